package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"chancery/agentcert"
	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

// A Renewal asks for the next certificate of an enrolled agent under standing approval.
type Renewal struct {
	Agent     string // identifier; empty for the agent that calls with its own certificate
	Request   []byte // certificate request signed by the key to certify; nil for the TLS client key
	ClientKey []byte // SubjectPublicKeyInfo of the TLS client key, whose possession the handshake proved; or nil
	Key       string // the caller's Idempotency-Key, unique per agent; empty for none
}

// Renew signs a delegation authorization with the key held for the person and gives the next certificate, durable on
// return. The agent proves itself with the last key that was certified: by its TLS client certificate, or, when that
// has expired, by a certificate request signed with it. A new key is taken only from an agent that calls with the old
// one, and takes its place.
func (r *Registry) Renew(ctx context.Context, n Renewal) (Certificate, error) {
	spki, keyHash, agentID, err := r.renewing(ctx, n)
	if err != nil {
		return Certificate{}, err
	}
	a, d, err := r.enrolled(ctx, agentID)
	if err != nil {
		return Certificate{}, err
	}
	if err := r.proven(ctx, a, keyHash); err != nil {
		return Certificate{}, err
	}
	o, err := r.standingOrder(ctx, a, d, spki)
	if err != nil {
		return Certificate{}, err
	}
	o.Request = cmp.Or(n.Key, o.Request)
	c, err := r.issue(ctx, o)
	if err != nil || keyHash == a.KeyHash {
		return c, err
	}
	return c, r.changeKey(ctx, a, keyHash, spki)
}

// renewing says whose certificate is asked for, and for which key.
func (r *Registry) renewing(ctx context.Context, n Renewal) (spki []byte, keyHash, agentID string, err error) {
	agentID = n.Agent
	if caller := who.From(ctx); caller.Kind == who.Agent {
		if agentID != "" && agentID != caller.ID {
			return nil, "", "", fault.New(fault.Denied, "agent_foreign", "agent %s asks for a certificate of another agent", caller.ID)
		}
		agentID = caller.ID
	}
	if n.Request == nil {
		if n.ClientKey == nil {
			return nil, "", "", fault.New(fault.Invalid, "csr_missing", "a renewal needs a certificate request, or the agent's certificate on the mTLS listener")
		}
		hash := key.Hash(n.ClientKey)
		return n.ClientKey, hex.EncodeToString(hash[:]), agentID, nil
	}
	req, err := readRequest(n.Request)
	return req.spki, req.keyHash, agentID, err
}

// proven lets through an agent that holds its last key: it signed the request, or it is the key of the TLS connection.
// An earlier key proves nothing, though certificates for it may not have ended yet: enrolling anew is how a person
// takes an agent back whose key was lost.
func (r *Registry) proven(ctx context.Context, a Agent, keyHash string) error {
	caller := who.From(ctx)
	byConnection := caller.Kind == who.Agent && caller.ID == a.ID && hex.EncodeToString(caller.KeyHash[:]) == a.KeyHash
	if byConnection || keyHash == a.KeyHash {
		return nil
	}
	return keyMismatch(a)
}

func keyMismatch(a Agent) error {
	return fault.New(fault.Denied, "key_mismatch", "neither the request nor the connection is proved by the key that was last certified for agent %s", a.ID).
		WithHint("use the agent's last key, or enrol the agent again with a new one-time token")
}

// standingOrder writes the agent identity from the approved terms and signs it for the person.
func (r *Registry) standingOrder(ctx context.Context, a Agent, d Delegation, spki []byte) (Order, error) {
	if !d.Standing {
		return Order{}, fault.New(fault.Denied, "standing_approval_missing", "delegation %s lets no key held here sign for the person", d.ID).
			WithHint("the person signs each delegation authorization, or approves a standing delegation")
	}
	p, signer, err := r.heldPrincipal(ctx, d)
	if err != nil {
		return Order{}, err
	}
	lifetime := min(time.Duration(d.LifetimeSec)*time.Second, r.conf.Lifetime)
	aic := agentcert.AIC{
		Version: 2, AgentID: a.ID, Principal: p.UID, Capabilities: d.Granted, Constraints: d.Constrained, Mode: d.mode(),
		Authorization: agentcert.DelegationAuthorization{
			Reason:   agentcert.Reason{Code: agentcert.ReasonStandingApproval, Description: d.Hash},
			Lifetime: lifetime, Timestamp: r.now().UTC().Truncate(time.Second),
		},
	}
	if err := agentcert.Sign(&aic, spki, signer, rand.Reader); err != nil {
		return Order{}, fmt.Errorf("sign delegation authorization: %w", err)
	}
	der, err := aic.Encode()
	if err != nil {
		return Order{}, fmt.Errorf("encode agent identity: %w", err)
	}
	return Order{
		Agent: a.ID, Name: a.Name, SPKI: spki, AIC: der, Lifetime: lifetime, NotAfterMax: earliest(p.NotAfter, d.Until),
		SignedAt: aic.Authorization.Timestamp, Nonce: aic.Authorization.Nonce, Delegation: d.ID, Principal: p.Person,
		PrincipalSerial: p.Serial, PrincipalDER: p.Certificate, Request: hex.EncodeToString(aic.Authorization.Nonce),
	}, nil
}

func (d Delegation) mode() agentcert.Mode {
	if d.Representative {
		return agentcert.Representative
	}
	return agentcert.Authorized
}

// changeKey makes the key that was just certified the agent's last one, unless another took its place meanwhile.
func (r *Registry) changeKey(ctx context.Context, a Agent, keyHash string, spki []byte) error {
	return r.db.Write(ctx, func(tx *store.Tx) error {
		changed, err := tx.Exec("UPDATE agent SET key_hash = ?, spki = ? WHERE id = ? AND key_hash = ?", keyHash, spki, a.ID, a.KeyHash)
		if err != nil {
			return err
		}
		if changed == 0 {
			return keyMismatch(a)
		}
		return record(ctx, tx, "agent", a.ID, "agent.rekey")
	})
}
