package agent

import (
	"bytes"
	"context"
	"crypto"
	"encoding/hex"
	"fmt"
	"time"

	"chancery/agentcert"
	"chancery/internal/base/key"
)

// heldName is the keyring's name for the key with which standing approvals of a person are signed.
func heldName(person string) string { return "standing/" + person }

// holdKey makes sure that a key is held for the person and certified for as long as the delegation stands, with the
// grants of the person's own certificate.
func (r *Registry) holdKey(ctx context.Context, d Delegation) error {
	public, err := r.keys.Create(ctx, heldName(d.Principal))
	if err != nil {
		return err
	}
	spki, err := key.SPKI(public)
	if err != nil {
		return err
	}
	own, err := r.ownPrincipal(ctx, d.Principal)
	if err != nil {
		return err
	}
	until := earliest(own.NotAfter, d.Until)
	if p, err := r.heldFor(ctx, spki); err == nil {
		if err := r.unrevoked(p); err != nil { // whoever revoked it did not trust the key, which would be the same
			return err
		}
		if !p.NotAfter.Before(until) && sameGrants(p, own) {
			return nil
		}
	}
	_, err = r.certify(ctx, termsOf(own, until.Sub(r.now())), spki, heldName(d.Principal))
	return err
}

func (r *Registry) heldFor(ctx context.Context, spki []byte) (*Principal, error) {
	hash := key.Hash(spki)
	return r.principal(ctx, hex.EncodeToString(hash[:]))
}

// heldPrincipal gives the person's certificate for the held key, and the key.
func (r *Registry) heldPrincipal(ctx context.Context, d Delegation) (*Principal, crypto.Signer, error) {
	signer, err := r.keys.Signer(ctx, heldName(d.Principal))
	if err != nil {
		return nil, nil, fmt.Errorf("key for standing approvals: %w", err)
	}
	spki, err := key.SPKI(signer.Public())
	if err != nil {
		return nil, nil, err
	}
	p, err := r.heldFor(ctx, spki)
	if err != nil {
		return nil, nil, err
	}
	if err := r.unrevoked(p); err != nil {
		return nil, nil, err
	}
	if err := withinGrants(p, d.Representative, d.Granted, 1); err != nil {
		return nil, nil, err
	}
	own, err := r.ownPrincipal(ctx, d.Principal) // the held key is worth nothing without it
	if err != nil {
		return nil, nil, err
	}
	return p, signer, withinGrants(own, d.Representative, d.Granted, 1)
}

// sameGrants reports whether the held key's certificate hands on just what the person's own does.
func sameGrants(held, own *Principal) bool {
	a, errA := held.Grants.Encode()
	b, errB := own.Grants.Encode()
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

func termsOf(own *Principal, validity time.Duration) PrincipalTerms {
	t := PrincipalTerms{Person: own.Person, Grants: own.Grants.Grants, Constraints: own.Grants.Constraints, Validity: validity}
	if policy := own.Grants.Policy; policy != nil {
		t.MaxAgents, t.Representative = policy.MaxAgents, policy.AllowedMode == agentcert.Representative
	}
	return t
}
