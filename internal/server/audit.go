package server

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"chancery/internal/core/store"
)

// auditKey is the keyring's name for the key that signs the head of the audit chain.
const auditKey = "audit"

// signAudit lets the store sign its audit chain with a key that is made at the first start.
func (s *Server) signAudit(ctx context.Context) error {
	if _, err := (heldKeys{s.Keys, s.Store}).Create(AsOperator(ctx), auditKey); err != nil {
		return fmt.Errorf("make the audit key: %w", err)
	}
	signer, err := s.Keys.Signer(ctx, auditKey)
	if err != nil {
		return fmt.Errorf("audit key: %w", err)
	}
	s.Store.SetSigner(func(head []byte) ([]byte, error) {
		digest := sha256.Sum256(head)
		return signer.Sign(rand.Reader, digest[:], crypto.SHA256)
	})
	return nil
}

// VerifyAudit walks the whole audit chain and checks its signatures with the audit key. known are heads that were
// written down elsewhere, such as those in the log.
func (s *Server) VerifyAudit(ctx context.Context, known []store.Head) (store.Verification, error) {
	signer, err := s.Keys.Signer(ctx, auditKey)
	if err != nil {
		return store.Verification{}, fmt.Errorf("audit key: %w", err)
	}
	public, ok := signer.Public().(*ecdsa.PublicKey)
	if !ok {
		return store.Verification{}, errors.New("the audit key is of another kind than this program makes")
	}
	return s.Store.VerifyAudit(ctx, func(head, signature []byte) error {
		digest := sha256.Sum256(head)
		if !ecdsa.VerifyASN1(public, digest[:], signature) {
			return errors.New("the signature is not of the audit key")
		}
		return nil
	}, known)
}
