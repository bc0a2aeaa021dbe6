package keyring

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

var (
	passphrase = []byte("correct horse battery staple")
	cheap      = cost{passes: 1, memoryKiB: 64, lanes: 1} // guessing is not what most tests are about
)

func openStore(t testing.TB, dir string) *store.Store {
	t.Helper()
	return openURL(t, "sqlite:"+filepath.Join(dir, "chancery.db"))
}

// everywhere runs a test on an empty store of each database that is at hand.
func everywhere(t *testing.T, test func(t *testing.T, db *store.Store)) {
	t.Helper()
	t.Parallel()
	for name, target := range map[string]func(testing.TB) storetest.Target{
		"sqlite": storetest.SQLite, "postgres": storetest.Postgres, "mariadb": storetest.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, openURL(t, target(t).URL))
		})
	}
}

func openURL(t testing.TB, url string) *store.Store {
	t.Helper()
	db, err := store.Open(context.Background(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := db.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return db
}

func openRing(t testing.TB, db *store.Store, sources ...NamedSource) *Ring {
	t.Helper()
	r, err := open(context.Background(), db, passphrase, cheap, sources)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// keep makes a key and gives the private key itself, for tests that look for it.
func keep(t testing.TB, r *Ring, name string, kind key.Kind) crypto.Signer {
	t.Helper()
	private, err := key.Generate(kind)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fresh(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.db.Write(context.Background(), func(tx *store.Tx) error { return r.Keep(tx, name, f) }); err != nil {
		t.Fatal(err)
	}
	return private
}

func mustSigner(t testing.TB, r *Ring, name string) crypto.Signer {
	t.Helper()
	s, err := r.Signer(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkSigns signs with s and verifies with public.
func checkSigns(t testing.TB, s crypto.Signer, public crypto.PublicKey) {
	t.Helper()
	message := []byte("to be signed")
	digest := sha256.Sum256(message)
	signed, opts := digest[:], crypto.SignerOpts(crypto.SHA256)
	if _, ok := public.(ed25519.PublicKey); ok {
		signed, opts = message, crypto.Hash(0)
	}
	signature, err := s.Sign(rand.Reader, signed, opts)
	if err != nil {
		t.Fatal(err)
	}
	valid := false
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		valid = ecdsa.VerifyASN1(p, digest[:], signature)
	case ed25519.PublicKey:
		valid = ed25519.Verify(p, message, signature)
	case *rsa.PublicKey:
		valid = rsa.VerifyPKCS1v15(p, crypto.SHA256, digest[:], signature) == nil
	}
	if !valid {
		t.Errorf("the signature of %v does not verify", s)
	}
}

func TestEveryKindSignsAfterReopening(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.Store) {
		first := openRing(t, db)
		kinds := []key.Kind{key.P256, key.P384, key.Ed25519, key.RSA2048}
		public := map[key.Kind]crypto.PublicKey{}
		for _, kind := range kinds {
			f, err := Prepare(kind)
			if err != nil {
				t.Fatal(err)
			}
			checkSigns(t, f.Signer(), f.Public())
			if err := db.Write(t.Context(), func(tx *store.Tx) error { return first.Keep(tx, "ca/"+string(kind), f) }); err != nil {
				t.Fatal(err)
			}
			public[kind] = f.Public()
		}
		second := openRing(t, db)
		for _, kind := range kinds {
			checkSigns(t, mustSigner(t, second, "ca/"+string(kind)), public[kind])
		}
	})
}

func TestWrongPassphraseIsRefused(t *testing.T) {
	t.Parallel()
	db := openStore(t, t.TempDir())
	r, err := Open(t.Context(), db, passphrase)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	for given, want := range map[string]string{"": "passphrase_missing", "correct horse battery": "passphrase_wrong"} {
		if _, err := Open(t.Context(), db, []byte(given)); fault.CodeOf(err) != want {
			t.Errorf("passphrase %q: got %v, want %s", given, err, want)
		}
	}
}

func TestResealChangesOnlyThePassphrase(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.Store) {
		r := openRing(t, db)
		private := keep(t, r, "audit", key.Ed25519)
		if err := r.Reseal(t.Context(), []byte("wrong"), []byte("new")); fault.CodeOf(err) != "passphrase_wrong" {
			t.Errorf("reseal with a wrong passphrase: %v", err)
		}
		if err := r.Reseal(t.Context(), passphrase, []byte("new")); err != nil {
			t.Fatal(err)
		}
		checkSigns(t, mustSigner(t, r, "audit"), private.Public())
		if _, err := Open(t.Context(), db, passphrase); fault.CodeOf(err) != "passphrase_wrong" {
			t.Errorf("the old passphrase still opens the keyring: %v", err)
		}
		again, err := Open(t.Context(), db, []byte("new"))
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		checkSigns(t, mustSigner(t, again, "audit"), private.Public())
	})
}

// spellings gives the ways in which a secret could show up in text or files.
func spellings(secret []byte) [][]byte {
	var all [][]byte
	for _, s := range []string{
		string(secret), fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprintf("%d", secret),
		strings.TrimPrefix(fmt.Sprintf("%#v", secret), "[]byte"),
		new(big.Int).SetBytes(secret).String(), base64.StdEncoding.EncodeToString(secret), base64.RawURLEncoding.EncodeToString(secret),
	} {
		all = append(all, []byte(strings.Trim(s, "[]{}")))
	}
	return all
}

// secretOf gives the bytes that make a private key secret.
func secretOf(t testing.TB, private crypto.Signer) []byte {
	t.Helper()
	switch p := private.(type) {
	case *ecdsa.PrivateKey:
		secret, err := p.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		return secret
	case ed25519.PrivateKey:
		return p.Seed()
	}
	t.Fatalf("no secret known in a %T", private)
	return nil
}

func TestFilesHoldNoPrivateKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := openRing(t, openStore(t, dir))
	secrets := [][]byte{passphrase, secretOf(t, keep(t, r, "a", key.P256)), secretOf(t, keep(t, r, "b", key.Ed25519)), secretOf(t, keep(t, r, "c", key.P384))}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no database files: %v", err)
	}
	var all []byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, content...)
	}
	if !bytes.Contains(all, []byte("keyring_key")) {
		t.Fatal("the files are not those of the database")
	}
	for i, secret := range secrets {
		for _, spelling := range spellings(secret) {
			if bytes.Contains(all, spelling) {
				t.Errorf("secret %d stands in the database's files", i)
			}
		}
	}
}

func TestNothingPrintsThePrivateKey(t *testing.T) {
	t.Parallel()
	r := openRing(t, openStore(t, t.TempDir()))
	for _, kind := range []key.Kind{key.P256, key.Ed25519} {
		private := keep(t, r, string(kind), kind)
		f, err := fresh(private)
		if err != nil {
			t.Fatal(err)
		}
		s := mustSigner(t, r, string(kind))
		_, signError := s.Sign(rand.Reader, []byte("short"), crypto.SHA512)
		row, err := r.row(t.Context(), string(kind))
		if err != nil {
			t.Fatal(err)
		}
		type holder struct {
			Signer crypto.Signer
			hidden crypto.Signer
			fresh  Fresh
		}
		values := []any{r, *r, f, &f, s, *s.(*signer), signError, row, holder{s, s, f}, &holder{s, s, f}, []crypto.Signer{s}}
		for _, value := range values {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
				checkSilent(t, fmt.Sprintf(verb, value), private)
			}
		}
		if got := fmt.Sprintf("%v %#v", s, s); got != fmt.Sprintf("key %s key %s", kind, kind) {
			t.Errorf("a signer prints as %s", got)
		}
	}
}

func checkSilent(t *testing.T, text string, private crypto.Signer) {
	t.Helper()
	for _, spelling := range spellings(secretOf(t, private)) {
		if bytes.Contains([]byte(text), spelling) {
			t.Errorf("a private key is printed: %s", text)
		}
	}
}

func TestTamperedRowIsRefused(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, statement string }{
		{"sealed bytes of another key", "UPDATE keyring_key SET sealed = (SELECT k.sealed FROM keyring_key AS k WHERE k.name = 'other') WHERE name = 'root'"},
		{"public key of another key", "UPDATE keyring_key SET spki = (SELECT k.spki FROM keyring_key AS k WHERE k.name = 'other') WHERE name = 'root'"},
		{"another name", "UPDATE keyring_key SET name = CASE name WHEN 'root' THEN 'was-root' ELSE 'root' END"},
		{"cut", "UPDATE keyring_key SET sealed = substr(sealed, 1, 23) WHERE name = 'root'"},
		{"one byte more", "UPDATE keyring_key SET sealed = CAST(sealed || x'00' AS BLOB) WHERE name = 'root'"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			db := openStore(t, t.TempDir())
			r := openRing(t, db)
			keep(t, r, "root", key.P256)
			keep(t, r, "other", key.P256)
			if err := db.Write(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec(test.statement)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Signer(t.Context(), "root"); !errors.Is(err, ErrDamaged) {
				t.Errorf("Signer: %v, want %v", err, ErrDamaged)
			}
			if _, err := r.Export(t.Context(), "root", []byte("x")); !errors.Is(err, ErrDamaged) {
				t.Errorf("Export: %v, want %v", err, ErrDamaged)
			}
		})
	}
}

func TestTamperedCostIsRefusedBeforeItIsPaid(t *testing.T) {
	t.Parallel()
	db := openStore(t, t.TempDir())
	openRing(t, db)
	if err := db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE keyring_vault SET memory_kib = 1000000000")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), db, passphrase); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v, want %v", err, ErrDamaged)
	}
}

func TestNamesAreKeptOnce(t *testing.T) {
	t.Parallel()
	r := openRing(t, openStore(t, t.TempDir()))
	keep(t, r, "root", key.P256)
	f, err := Prepare(key.P256)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"root": "key_exists", "": "key_name_invalid", "Root": "key_name_invalid", "a\x00b": "key_name_invalid"} {
		err := r.db.Write(t.Context(), func(tx *store.Tx) error { return r.Keep(tx, name, f) })
		if fault.CodeOf(err) != want {
			t.Errorf("name %q: %v, want %s", name, err, want)
		}
	}
}

func TestRetireAndDeleteEndSigningAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.Store) {
		r := openRing(t, db)
		keep(t, r, "root", key.P256)
		mustSigner(t, r, "root")
		if err := r.Retire(t.Context(), "root"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Signer(t.Context(), "root"); fault.CodeOf(err) != "key_retired" {
			t.Errorf("retired: %v", err)
		}
		if _, err := r.Export(t.Context(), "root", []byte("x")); err != nil {
			t.Errorf("a retired key cannot be exported: %v", err)
		}
		if err := r.Delete(t.Context(), "root"); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{
			"Retire": r.Retire(t.Context(), "root"), "Delete": r.Delete(t.Context(), "root"),
		} {
			if fault.CodeOf(err) != "key_unknown" {
				t.Errorf("%s of a deleted key: %v", what, err)
			}
		}
		if got, want := auditActions(t, r.db), []string{"keyring.create", "key.create", "key.retire", "key.export", "key.delete"}; !cmp.Equal(got, want) {
			t.Errorf("the audit says %v, want %v", got, want)
		}
	})
}

func auditActions(t *testing.T, db *store.Store) []string {
	t.Helper()
	var actions []string
	if err := db.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Each("SELECT action FROM audit ORDER BY seq", nil, func(r store.Row) error {
			var action string
			err := r.Scan(&action)
			actions = append(actions, action)
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	return actions
}

func TestSigningGoesOnWhileKeysChange(t *testing.T) {
	t.Parallel()
	r := openRing(t, openStore(t, t.TempDir()))
	private := keep(t, r, "steady", key.P256)
	var signing sync.WaitGroup
	for range 8 {
		signing.Go(func() {
			for range 50 {
				checkSigns(t, mustSigner(t, r, "steady"), private.Public())
			}
		})
	}
	for i := range 20 {
		name := fmt.Sprintf("short/%d", i)
		keep(t, r, name, key.Ed25519)
		mustSigner(t, r, name)
		if err := r.Delete(t.Context(), name); err != nil {
			t.Error(err)
		}
		if _, err := r.Signer(t.Context(), name); fault.CodeOf(err) != "key_unknown" {
			t.Errorf("a deleted key signs: %v", err)
		}
	}
	signing.Wait()
}

func TestSignersAreBoundedAndNeverStale(t *testing.T) {
	t.Parallel()
	private, err := key.Generate(key.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	live := newSigners(3)
	for i := range 10 {
		live.put(fmt.Sprint(i), veil("x", private), live.moment())
	}
	if len(live.byName) != 3 {
		t.Errorf("%d signers are kept, want 3", len(live.byName))
	}
	before := live.moment()
	live.forget("")
	live.put("read before the change", veil("x", private), before)
	if len(live.byName) != 0 {
		t.Error("what was read before a change is kept after it")
	}
}

func TestListGivesPages(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.Store) {
		r := openRing(t, db)
		for _, name := range []string{"b", "a", "c"} {
			keep(t, r, name, key.Ed25519)
		}
		var got []string
		for after := ""; ; {
			page, err := r.List(t.Context(), after, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range page {
				if _, err := x509.ParsePKIXPublicKey(k.SPKI); err != nil || k.Kind != key.Ed25519 || k.Source != "sealed" || k.Created.IsZero() || !k.Retired.IsZero() {
					t.Errorf("listed %+v", k)
				}
				got, after = append(got, k.Name), k.Name
			}
			if len(page) < 2 {
				break
			}
		}
		if want := []string{"a", "b", "c"}; !cmp.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// device stands for a PKCS#11 token.
type device map[string]crypto.Signer

func (d device) Signer(_ context.Context, reference string) (crypto.Signer, error) {
	s, ok := d[reference]
	if !ok {
		return nil, errors.New("no such object")
	}
	return s, nil
}

func TestKeysMayLieElsewhere(t *testing.T) {
	everywhere(t, func(t *testing.T, db *store.Store) {
		private, err := key.Generate(key.P256)
		if err != nil {
			t.Fatal(err)
		}
		other, err := key.Generate(key.P256)
		if err != nil {
			t.Fatal(err)
		}
		r := openRing(t, db, NamedSource{"hsm", device{"slot-1": private, "slot-2": other}})
		for name, reference := range map[string]string{"root": "slot-1", "swapped": "slot-2", "gone": "slot-3"} {
			if err := db.Write(t.Context(), func(tx *store.Tx) error {
				return r.Adopt(tx, name, "hsm", reference, private.Public())
			}); err != nil {
				t.Fatal(err)
			}
		}
		checkSigns(t, mustSigner(t, r, "root"), private.Public())
		if _, err := r.Signer(t.Context(), "swapped"); !errors.Is(err, ErrDamaged) {
			t.Errorf("a source with another key: %v", err)
		}
		if _, err := r.Signer(t.Context(), "gone"); err == nil {
			t.Error("a source without the key gave a signer")
		}
		if _, err := r.Export(t.Context(), "root", []byte("x")); fault.CodeOf(err) != "key_elsewhere" {
			t.Errorf("export from a source: %v", err)
		}
		if _, err := openRing(t, db).Signer(t.Context(), "root"); err == nil {
			t.Error("a ring without the source gave a signer")
		}
	})
}
