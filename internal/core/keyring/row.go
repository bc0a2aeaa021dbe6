package keyring

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

// listMax bounds one page of List.
const listMax = 1000

// A Key is what anybody may know of a key.
type Key struct {
	Name    string
	Kind    key.Kind
	SPKI    []byte    // SubjectPublicKeyInfo, DER
	Source  string    // "sealed", or the name of the Source that holds it
	Created time.Time // UTC, milliseconds
	Retired time.Time // zero while it signs
}

// A row is a key as it is stored.
type row struct {
	Key
	reference string // the source's name for the key
	sealed    []byte // nonce, sealed PKCS#8
}

// context binds the sealed key to its name and its public key.
func (r row) context() []byte {
	c := append([]byte("chancery keyring key 1\x00"), r.Name...)
	return append(append(c, 0), r.SPKI...) // a name holds no zero byte
}

// A Fresh key was generated and is not yet kept.
type Fresh struct {
	kind    key.Kind
	spki    []byte
	private crypto.Signer // veiled
	encode  func() ([]byte, error)
}

// Prepare generates a key. RSA takes seconds, which is why it happens outside the transaction that keeps the key.
func Prepare(kind key.Kind) (Fresh, error) {
	private, err := key.Generate(kind)
	if err != nil {
		return Fresh{}, err
	}
	return fresh(private)
}

func fresh(private crypto.Signer) (Fresh, error) {
	kind, err := key.KindOf(private.Public())
	if err != nil {
		return Fresh{}, err
	}
	spki, err := key.SPKI(private.Public())
	if err != nil {
		return Fresh{}, err
	}
	return Fresh{kind: kind, spki: spki, private: veil("not yet kept", private), encode: func() ([]byte, error) {
		return x509.MarshalPKCS8PrivateKey(private)
	}}, nil
}

// Signer gives the signer of the fresh key, for the signature that goes into the same transaction as the key.
func (f Fresh) Signer() crypto.Signer { return f.private }

// Public gives the public key.
func (f Fresh) Public() crypto.PublicKey { return f.private.Public() }

// Format shows the kind alone, under every verb.
func (f Fresh) Format(s fmt.State, _ rune) { _, _ = fmt.Fprintf(s, "fresh %s key", f.kind) }

// Keep seals a fresh key and stores it under a name in tx, with an audit line in the name of the context's caller. It may run again with the same key.
//
// Faults: Exists key_exists; Invalid key_name_invalid.
func (r *Ring) Keep(tx *store.Tx, name string, f Fresh) error {
	der, err := f.encode()
	if err != nil {
		return fmt.Errorf("encoding key %s: %w", name, err)
	}
	defer clear(der)
	kept := row{Key: Key{Name: name, Kind: f.kind, SPKI: f.spki, Source: sealedHere}}
	kept.sealed = sealBytes(r.seal, der, kept.context())
	return insertRow(tx, "key.create", kept)
}

// Adopt stores that a key of this name lies in a source, which calls it reference. The private key stays there.
//
// Faults: as Keep.
func (r *Ring) Adopt(tx *store.Tx, name, source, reference string, public crypto.PublicKey) error {
	kind, err := key.KindOf(public)
	if err != nil {
		return err
	}
	spki, err := key.SPKI(public)
	if err != nil {
		return err
	}
	return insertRow(tx, "key.adopt", row{Key: Key{Name: name, Kind: kind, SPKI: spki, Source: source}, reference: reference, sealed: []byte{}})
}

func insertRow(tx *store.Tx, action string, k row) error {
	if err := checkName(k.Name); err != nil {
		return err
	}
	inserted, err := tx.InsertNew("INSERT INTO keyring_key (name, kind, spki, source, reference, sealed, created_at, retired_at) VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
		k.Name, string(k.Kind), k.SPKI, k.Source, k.reference, k.sealed, tx.Now())
	if err != nil {
		return err
	}
	if !inserted {
		return fault.New(fault.Exists, "key_exists", "a key named %s is there already", k.Name)
	}
	return record(tx, action, k.Name)
}

// checkName holds names to what needs no quoting anywhere.
func checkName(name string) error {
	if name == "" || len(name) > 128 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._:/-") != "" {
		return fault.New(fault.Invalid, "key_name_invalid", "%.40q cannot name a key", name).
			WithHint("use 1 to 128 lower-case letters, digits and . _ : / -")
	}
	return nil
}

// record writes the audit line and the feed row of a change.
func record(tx *store.Tx, action, name string) error {
	if err := tx.Audit(store.Line{Actor: who.From(tx.Context()).Actor(), Action: action, Target: name}); err != nil {
		return err
	}
	return tx.Publish(store.Change{Topic: feedTopic, Key: name})
}

// Retire ends a key's signing, here at once and on other instances within a second. It can still be exported and
// deleted. To retire a retired key is no error.
func (r *Ring) Retire(ctx context.Context, name string) error {
	return r.change(ctx, name, "key.retire", "UPDATE keyring_key SET retired_at = ? WHERE name = ? AND retired_at = 0",
		func(tx *store.Tx) []any { return []any{tx.Now(), name} })
}

// Delete removes a key for good; what it signed stays valid. Backups made before still hold it, sealed.
func (r *Ring) Delete(ctx context.Context, name string) error {
	return r.change(ctx, name, "key.delete", "DELETE FROM keyring_key WHERE name = ?",
		func(*store.Tx) []any { return []any{name} })
}

func (r *Ring) change(ctx context.Context, name, action, statement string, args func(*store.Tx) []any) error {
	return r.db.Write(ctx, func(tx *store.Tx) error {
		if _, err := selectRow(tx, name); err != nil {
			return err
		}
		changed, err := tx.Exec(statement, args(tx)...)
		if err != nil || changed == 0 {
			return err
		}
		return record(tx, action, name)
	})
}

// List gives up to limit keys in the order of their names, those after the given name. A page that is not full is
// the last one.
func (r *Ring) List(ctx context.Context, after string, limit int) ([]Key, error) {
	var page []Key
	err := r.db.Read(ctx, func(tx *store.Tx) error {
		page = page[:0]
		return tx.Each("SELECT "+rowColumns+" FROM keyring_key WHERE name > ? ORDER BY name LIMIT ?",
			[]any{after, min(max(limit, 1), listMax)}, func(from store.Row) error {
				k, err := scanRow(from.Scan)
				page = append(page, k.Key)
				return err
			})
	})
	return page, err
}

const rowColumns = "name, kind, spki, source, reference, sealed, created_at, retired_at"

func selectRow(tx *store.Tx, name string) (row, error) {
	var found bool
	k, err := scanRow(func(dest ...any) (err error) {
		found, err = tx.One(dest, "SELECT "+rowColumns+" FROM keyring_key WHERE name = ?", name)
		return err
	})
	if err == nil && !found {
		err = fault.New(fault.NotFound, "key_unknown", "there is no key named %.128q", name)
	}
	return k, err
}

func scanRow(scan func(dest ...any) error) (row, error) {
	var k row
	var created, retired int64
	err := scan(&k.Name, &k.Kind, &k.SPKI, &k.Source, &k.reference, &k.sealed, &created, &retired)
	k.Created = time.UnixMilli(created).UTC()
	if retired != 0 {
		k.Retired = time.UnixMilli(retired).UTC()
	}
	return k, err
}
