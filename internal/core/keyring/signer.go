package keyring

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"io"
	"sync"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/core/store"
)

// sealedHere is the source of keys that lie sealed in their own row.
const sealedHere = "sealed"

// A Source is a place of keys that never leave it: a PKCS#11 token, a key management service.
type Source interface {
	// Signer gives the signer of the key that the source itself calls reference. The keyring keeps the signer and
	// uses it from many goroutines; it checks that its public key is the one of the row.
	Signer(ctx context.Context, reference string) (crypto.Signer, error)
}

// A NamedSource is a source under the name that rows call it by.
type NamedSource struct {
	Name   string
	Source Source
}

// Signer gives the signer of a key. The first call asks the store and unseals; later ones answer from memory until
// the key changes. A signer that the caller still holds works on: do not keep it longer than one piece of work.
//
// Faults: NotFound key_unknown; Conflict key_retired. ErrDamaged is in the chain where a sealed key does not open.
func (r *Ring) Signer(ctx context.Context, name string) (crypto.Signer, error) {
	if s, ok := r.live.get(name); ok {
		return s, nil
	}
	moment := r.live.moment()
	row, err := r.row(ctx, name)
	if err != nil {
		return nil, err
	}
	if !row.Retired.IsZero() {
		return nil, fault.New(fault.Conflict, "key_retired", "the key %s is retired and signs no more", name)
	}
	s, err := r.wake(ctx, row)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", name, err)
	}
	r.live.put(name, s, moment)
	return s, nil
}

func (r *Ring) row(ctx context.Context, name string) (row row, err error) {
	err = r.db.Read(ctx, func(tx *store.Tx) error {
		row, err = selectRow(tx, name)
		return err
	})
	return row, err
}

// wake turns a row into a signer.
func (r *Ring) wake(ctx context.Context, row row) (crypto.Signer, error) {
	if row.Source == sealedHere {
		private, err := r.unseal(row)
		if err != nil {
			return nil, err
		}
		return veil(row.Name, private), nil
	}
	source, ok := r.sources[row.Source]
	if !ok {
		return nil, fmt.Errorf("the key lies in %q, and no such source is configured", row.Source)
	}
	s, err := source.Signer(ctx, row.reference)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", row.Source, err)
	}
	spki, err := key.SPKI(s.Public())
	if err != nil || !bytes.Equal(spki, row.SPKI) {
		return nil, fmt.Errorf("%s holds another key under this reference: %w", row.Source, ErrDamaged)
	}
	return veil(row.Name, s), nil
}

func (r *Ring) unseal(row row) (crypto.Signer, error) {
	der, ok := openBytes(r.seal, row.sealed, row.context())
	if !ok {
		return nil, ErrDamaged
	}
	defer clear(der)
	private, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, ErrDamaged // the parser's words could hold bytes of the key
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, ErrDamaged
	}
	return signer, nil
}

// A signer signs with a key that cannot be read out of it: the key is captured by a function, which neither fmt nor
// reflection looks into.
type signer struct {
	name   string
	public crypto.PublicKey
	here   bool // the private key is in this process
	sign   func(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error)
}

func veil(name string, private crypto.Signer) *signer {
	here := false
	switch private.(type) {
	case *ecdsa.PrivateKey, ed25519.PrivateKey, *rsa.PrivateKey:
		here = true
	}
	return &signer{name: name, public: private.Public(), here: here, sign: private.Sign}
}

// InProcess reports whether the key is used in this process. What a device or a service signs is worth a second look.
func (s *signer) InProcess() bool { return s.here }

// Public gives the public key.
func (s *signer) Public() crypto.PublicKey { return s.public }

// Sign signs as crypto.Signer says; for Ed25519 the digest is the message itself.
func (s *signer) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	signature, err := s.sign(random, digest, opts)
	if err != nil {
		return nil, fmt.Errorf("signing with key %s: %w", s.name, err)
	}
	return signature, nil
}

// String gives the key's name.
func (s *signer) String() string { return "key " + s.name }

// GoString gives the key's name.
func (s *signer) GoString() string { return s.String() }

// Format gives the key's name under every verb.
func (s *signer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// signersMax bounds the signers in memory, at about 2 KB each. Past it, one at random makes room.
const signersMax = 16 << 10

// signers is the keys that are awake. A signer read from the store before a change was told is not kept: forget moves
// the moment, and put compares it.
type signers struct {
	limit int

	mu      sync.RWMutex
	changes uint64 // how often forget was called
	byName  map[string]*signer
}

func newSigners(limit int) *signers { return &signers{limit: limit, byName: map[string]*signer{}} }

func (s *signers) get(name string) (*signer, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, ok := s.byName[name]
	return found, ok
}

func (s *signers) moment() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.changes
}

func (s *signers) put(name string, awake crypto.Signer, moment uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes != moment {
		return
	}
	if len(s.byName) >= s.limit {
		for other := range s.byName {
			delete(s.byName, other)
			break
		}
	}
	s.byName[name] = awake.(*signer)
}

// forget drops one signer, or with "" all of them.
func (s *signers) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	if name == "" {
		clear(s.byName)
		return
	}
	delete(s.byName, name)
}
