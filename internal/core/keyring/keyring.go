// Package keyring keeps the private keys that Chancery signs with: sealed in the store, handed out as crypto.Signer.
//
// One random data key seals every private key, and a key derived from the operator's passphrase seals the data key.
// So the passphrase can be changed by rewriting one row, and a stolen database is worth nothing without it:
//
//	passphrase ─ argon2id ─→ wrapping key ─ XChaCha20-Poly1305 ─→ data key ─ XChaCha20-Poly1305 ─→ private key (PKCS#8)
//
// A sealed key is bound to its name and its public key; a row that was moved, swapped or altered does not open. What
// leaves the room can sign but not be read: no fmt verb, error or log line shows a private key. The one way out is
// Export, encrypted and audited. A row may instead name a Source, a device or service that signs with a key which
// never comes here.
//
// The room knows names, not purposes: what a key is for, and when it is to be replaced, is decided above.
package keyring

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"

	"chancery/internal/core/store"
)

// feedTopic is where changes of keys are published; the change's key is the name.
const feedTopic = "key"

// ErrDamaged is in the chain of errors about a sealed key that does not open although the passphrase was right: the
// database was altered or has decayed. The way back is a backup.
var ErrDamaged = errors.New("the sealed key does not belong to its row")

// A Ring is an open keyring. All methods are safe for concurrent use.
type Ring struct {
	db       *store.Store
	seal     cipher.AEAD // by the data key
	sources  map[string]Source
	live     *signers
	unfollow func()
}

// Open opens the store's keyring; the first Open of a store creates it and sets the passphrase. sources are further
// places of keys by name. Deriving the wrapping key takes about 100 ms and, while it runs, 64 MiB.
//
// Faults: Denied passphrase_wrong; Invalid passphrase_missing. The passphrase is not kept.
func Open(ctx context.Context, db *store.Store, passphrase []byte, sources ...NamedSource) (*Ring, error) {
	return open(ctx, db, passphrase, usual, sources)
}

func open(ctx context.Context, db *store.Store, passphrase []byte, c cost, sources []NamedSource) (*Ring, error) {
	dataKey, err := openVault(ctx, db, passphrase, c)
	if err != nil {
		return nil, fmt.Errorf("opening the keyring: %w", err)
	}
	defer clear(dataKey)
	seal, err := newSeal(dataKey)
	if err != nil {
		return nil, err
	}
	r := &Ring{db: db, seal: seal, sources: map[string]Source{}, live: newSigners(signersMax)}
	for _, s := range sources {
		r.sources[s.Name] = s.Source
	}
	r.unfollow = db.Subscribe(feedTopic, func(c store.Change) { r.live.forget(c.Key) })
	return r, nil
}

// Close ends following the store's changes. Signers that were handed out go on working.
func (r *Ring) Close() { r.unfollow() }

// Format shows that this is a keyring and nothing of it, under every verb.
func (r *Ring) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("keyring")) }
