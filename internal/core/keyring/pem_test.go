package keyring

import (
	"bytes"
	"crypto"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/core/store"
)

func TestExportedKeyComesBack(t *testing.T) {
	t.Parallel()
	r := openRing(t, openStore(t, t.TempDir()))
	for _, kind := range []key.Kind{key.P256, key.Ed25519, key.RSA2048} {
		name := string(kind)
		private := keep(t, r, name, kind)
		text, err := r.Export(t.Context(), name, []byte("export"))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Import(t.Context(), name+"/wrong", text, []byte("exporT")); fault.CodeOf(err) != "passphrase_wrong" {
			t.Errorf("%s: import with a wrong passphrase: %v", kind, err)
		}
		if err := r.Import(t.Context(), name+"/back", text, []byte("export")); err != nil {
			t.Fatal(err)
		}
		checkSigns(t, mustSigner(t, r, name+"/back"), private.Public())
	}
	if _, err := r.Export(t.Context(), "p256", nil); fault.CodeOf(err) != "passphrase_missing" {
		t.Errorf("export without a passphrase: %v", err)
	}
}

func TestOpenSSLReadsAndWritesTheSameForm(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	dir := t.TempDir()
	r := openRing(t, openStore(t, dir))
	private := keep(t, r, "root", key.P384)
	text, err := r.Export(t.Context(), "root", []byte("export"))
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := filepath.Join(dir, "ours.pem"), filepath.Join(dir, "theirs.pem")
	if err := os.WriteFile(ours, text, 0o600); err != nil {
		t.Fatal(err)
	}
	plain := openssl(t, "pkcs8", "-in", ours, "-passin", "pass:export")
	read, err := key.ParsePrivate(plain)
	if err != nil {
		t.Fatal(err)
	}
	checkSigns(t, read, private.Public())
	openssl(t, "pkcs8", "-topk8", "-in", ours, "-passin", "pass:export", "-out", theirs, "-passout", "pass:again")
	text, err = os.ReadFile(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Import(t.Context(), "back", text, []byte("again")); err != nil {
		t.Fatal(err)
	}
	checkSigns(t, mustSigner(t, r, "back"), private.Public())
}

func openssl(t *testing.T, args ...string) []byte {
	t.Helper()
	var complaint bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "openssl", args...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("openssl %s: %v: %s", args[0], err, &complaint)
	}
	return out
}

func TestImportBoundsTheWorkItIsAskedFor(t *testing.T) {
	t.Parallel()
	text, err := encryptPKCS8([]byte("key"), []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	var e encryptedKey
	if _, err := asn1.Unmarshal(block.Bytes, &e); err != nil {
		t.Fatal(err)
	}
	e.Scheme.Params.Derivation.Params.Iterations = iterationsMax + 1
	if e.readable() {
		t.Errorf("%d iterations were accepted", iterationsMax+1)
	}
}

func TestPlainKeysAreImported(t *testing.T) {
	t.Parallel()
	r := openRing(t, openStore(t, t.TempDir()))
	private, err := key.Generate(key.P256)
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.EncodePrivate(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Import(t.Context(), "root", text, nil); err != nil {
		t.Fatal(err)
	}
	checkSigns(t, mustSigner(t, r, "root"), private.Public())
	for name, text := range map[string][]byte{"nothing": nil, "not PEM": []byte("x"), "too long": make([]byte, importBytesMax+1)} {
		if err := r.Import(t.Context(), "other", text, nil); fault.CodeOf(err) != "key_malformed" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARolledBackKeepLeavesNothing(t *testing.T) {
	t.Parallel()
	r := openRing(t, openStore(t, t.TempDir()))
	f, err := Prepare(key.P256)
	if err != nil {
		t.Fatal(err)
	}
	second := errors.New("the second half went wrong")
	err = r.db.Write(t.Context(), func(tx *store.Tx) error {
		if err := r.Keep(tx, "root", f); err != nil {
			return err
		}
		return second
	})
	if _, missing := r.Signer(t.Context(), "root"); !errors.Is(err, second) || fault.CodeOf(missing) != "key_unknown" {
		t.Errorf("write %v, then signer %v", err, missing)
	}
	if err := r.db.Write(t.Context(), func(tx *store.Tx) error { return r.Keep(tx, "root", f) }); err != nil {
		t.Fatal(err)
	}
	checkSigns(t, mustSigner(t, r, "root"), f.Public())
}

// FuzzParsePrivate holds that no bytes panic, and that what is taken for a key can be written again.
func FuzzParsePrivate(f *testing.F) {
	private, err := key.Generate(key.P256)
	if err != nil {
		f.Fatal(err)
	}
	plain, err := key.EncodePrivate(private)
	if err != nil {
		f.Fatal(err)
	}
	block, _ := pem.Decode(plain)
	encrypted, err := encryptPKCS8(block.Bytes, []byte("x"))
	if err != nil {
		f.Fatal(err)
	}
	block, _ = pem.Decode(encrypted)
	f.Add(block.Bytes)
	f.Add([]byte{0x30, 0x80})
	f.Fuzz(func(t *testing.T, der []byte) {
		var e encryptedKey
		if _, err := asn1.Unmarshal(der, &e); err == nil && e.Scheme.Params.Derivation.Params.Iterations > 1000 {
			e.Scheme.Params.Derivation.Params.Iterations = 1
			if der, err = asn1.Marshal(e); err != nil {
				return
			}
		}
		text := pem.EncodeToMemory(&pem.Block{Type: encryptedBlock, Bytes: der})
		var s crypto.Signer
		if s, err = parsePrivate(text, []byte("x")); err != nil {
			return
		}
		if _, err := key.SPKI(s.Public()); err != nil {
			t.Errorf("an accepted key cannot be written: %v", err)
		}
	})
}
