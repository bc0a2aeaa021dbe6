package ca

import (
	"context"
	"crypto/sha256"
	"encoding/asn1"
	"fmt"
	"slices"
	"sync"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/base/name"
	"chancery/internal/core/store"
	"chancery/internal/domain/ca/pkix"
)

// An AgentOrder asks for an agent certificate. The agent room has verified the delegation authorization and that the
// sender holds the key; this room sees to it that the evidence is used once.
type AgentOrder struct {
	Authority string
	SPKI      []byte // of the agent's key, DER
	AgentID   string // identifier of the agent: its SPIFFE path, and what it is revoked by
	Name      string // common name
	AIC       []byte // value of the agent identity extension, DER

	Lifetime    time.Duration // as requested; cut to the profile's maximum
	NotAfterMax time.Time     // when the principal's certificate, or the delegation, ends

	SignedAt int64    // time of the delegation authorization, Unix seconds
	Nonce    [32]byte // of the delegation authorization; SignedAt and Nonce together are used once
	Request  string   // idempotency key, unique per agent; may be empty

	Principal       string    // identifier of the person who answers for the agent
	PrincipalSerial id.Serial // of the principal's certificate
	Delegation      string    // identifier of the standing delegation; empty without one
}

// agentProfile is the profile of agent certificates.
const agentProfile = "agent"

var oidAgentIdentity = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 66257, 1, 1}

// hotAgent describes agent certificates to the store. Evidence and request are unique, so a replay finds the row that
// it made the first time; the guard is everything above the certificate.
var hotAgent = &store.Hot{
	Table: "agent_certificate",
	Columns: []store.Column{
		{Name: "serial", Kind: store.Bytes}, {Name: "signed_at", Kind: store.Int}, {Name: "nonce", Kind: store.Bytes},
		{Name: "agent", Kind: store.Text}, {Name: "request", Kind: store.Text}, {Name: "authority", Kind: store.Text},
		{Name: "delegation", Kind: store.Text}, {Name: "principal", Kind: store.Text}, {Name: "principal_serial", Kind: store.Text},
		{Name: "key_hash", Kind: store.Bytes}, {Name: "not_before", Kind: store.Int}, {Name: "not_after", Kind: store.Int},
		{Name: "der", Kind: store.Bytes},
	},
	Keys:  [][]string{{"serial"}, {"signed_at", "nonce"}, {"agent", "request"}},
	Guard: store.Guard{Table: "revocation", Column: "target", Of: []string{"authority", "delegation", "principal", "principal_serial", "agent"}},
}

// IssueAgent signs and stores an agent certificate: one insert, which consumes the evidence, finds the certificate that
// it was consumed for, or is refused because something above is revoked. It is durable on return. The same evidence
// with the same key gives the same certificate again.
//
// notAfter = notBefore + min(requested, policy) - 1 s, since both ends count, and never past NotAfterMax.
//
// Faults: Conflict da_replayed (the evidence was used with another key), idempotency_key_reused; Denied
// agent_revoked, delegation_revoked, principal_revoked, certificate_revoked (the principal's), authority_revoked,
// principal_unknown, nothing_left (NotAfterMax has passed); NotFound authority_unknown; Invalid key_refused, subject_invalid; those of
// the store. After fault.Unknown, ask again with the same order.
func (h *Hierarchy) IssueAgent(ctx context.Context, o AgentOrder) (Issued, error) {
	a, t, err := h.template(ctx, o.Authority, agentProfile)
	if err != nil {
		return Issued{}, err
	}
	c, err := h.agentContent(t, &o)
	if err != nil {
		return Issued{}, err
	}
	if err := h.standsUnder(ctx, a, &o); err != nil {
		return Issued{}, err
	}
	if err := h.remember(ctx, &o); err != nil {
		return Issued{}, err
	}
	der, err := h.signed(t, c)
	if err != nil {
		return Issued{}, err
	}
	keyHash := key.Hash(o.SPKI)
	got, err := h.db.Append(ctx, hotAgent, o.values(c, a.target, keyHash[:], der))
	switch {
	case err != nil:
		return Issued{}, fmt.Errorf("storing the agent certificate: %w", err)
	case got.Outcome == store.Refused:
		return Issued{}, errRevoked(got.Because)
	case got.Outcome == store.Exists:
		return again(&o, keyHash[:], got.Stored)
	}
	return Issued{Serial: c.Serial, DER: der, NotBefore: c.NotBefore, NotAfter: c.NotAfter}, nil
}

// standsUnder checks what the guard of the insert does not see: that the principal's certificate was issued here, to this
// principal, and that every authority above is good.
func (h *Hierarchy) standsUnder(ctx context.Context, a *authority, o *AgentOrder) error {
	r, found, err := h.records.Get(ctx, string(o.PrincipalSerial))
	if err != nil {
		return fmt.Errorf("looking up the principal's certificate: %w", err)
	}
	if !found || r.isAgent || !slices.Contains(r.above, o.Principal) {
		return fault.New(fault.Denied, "principal_unknown", "the principal's certificate %s was not issued here to %s", o.PrincipalSerial, o.Principal)
	}
	return h.alive(ctx, slices.Concat(a.above, r.above))
}

func (h *Hierarchy) agentContent(t *pkix.Template, o *AgentOrder) (*pkix.Content, error) {
	request, err := pkix.BareRequest(o.SPKI)
	if err != nil {
		return nil, err
	}
	request.Subject = Subject{CommonName: o.Name}
	if h.config.TrustDomain != "" {
		request.Names = []name.Name{h.spiffe(o.AgentID)}
	}
	c, err := t.Content(request, []Extension{{Id: oidAgentIdentity, Value: o.AIC}})
	if err != nil {
		return nil, err
	}
	now := h.now()
	c.Serial = h.serials.Next(now)
	return c, t.Date(c, now, o.Lifetime, o.NotAfterMax)
}

func (h *Hierarchy) spiffe(agent string) name.Name {
	return name.Name{Kind: name.URI, Text: "spiffe://" + h.config.TrustDomain + "/agent/" + agent}
}

func certificateTarget(s id.Serial) string { return "crt:" + s.String() }

// values gives the row in the column order of hotAgent.
func (o *AgentOrder) values(c *pkix.Content, authority string, keyHash, der []byte) []any {
	return []any{
		[]byte(c.Serial), o.SignedAt, o.Nonce[:], o.AgentID, orNull(o.Request), authority,
		o.Delegation, o.Principal, certificateTarget(o.PrincipalSerial),
		keyHash, c.NotBefore.UnixMilli(), c.NotAfter.UnixMilli(), der,
	}
}

// orNull gives NULL for an empty request, of which a unique index holds many.
func orNull(request string) any {
	if request == "" {
		return nil
	}
	return request
}

// again answers an order whose evidence or request was used: with the stored certificate if it is for the same key.
func again(o *AgentOrder, keyHash []byte, stored []any) (Issued, error) {
	column := func(name string) any { return stored[hotAgent.Index(name)] }
	sameEvidence := column("signed_at").(int64) == o.SignedAt && string(column("nonce").([]byte)) == string(o.Nonce[:])
	sameKey := string(column("key_hash").([]byte)) == string(keyHash)
	switch {
	case sameKey && column("agent").(string) == o.AgentID:
		return Issued{
			Serial: column("serial").([]byte), DER: column("der").([]byte), Again: true,
			NotBefore: milli(column("not_before").(int64)), NotAfter: milli(column("not_after").(int64)),
		}, nil
	case sameEvidence:
		return Issued{}, fault.New(fault.Conflict, "da_replayed", "this delegation authorization was used already, for another key").
			WithHint("sign a new delegation authorization with a fresh nonce")
	}
	return Issued{}, errKeyReused
}

func milli(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// FindByEvidence gives the certificate that a delegation authorization was used for, and the SHA-256 of its key. It
// lets the agent room answer a repeated request before it verifies anything. found is false for fresh evidence. The
// faults for something revoked above are those of IssueAgent.
func (h *Hierarchy) FindByEvidence(ctx context.Context, signedAt int64, nonce [32]byte) (i Issued, keyHash [32]byte, found bool, err error) {
	var serial, hash []byte
	var from, to int64
	err = h.db.Read(ctx, func(tx *store.Tx) error {
		found, err = tx.One([]any{&serial, &hash, &from, &to, &i.DER},
			"SELECT serial, key_hash, not_before, not_after, der FROM agent_certificate WHERE signed_at = ? AND nonce = ?", signedAt, nonce[:])
		return err
	})
	if err != nil || !found {
		return Issued{}, keyHash, false, err
	}
	i.Serial, i.NotBefore, i.NotAfter, i.Again = serial, milli(from), milli(to), true
	copy(keyHash[:], hash)
	status, err := h.Status(ctx, "", i.Serial)
	if err == nil && status.State == Revoked {
		err = errRevoked(status.Target)
	}
	return i, keyHash, true, err
}

// remember stores what the agent stands below, unless that is known to be stored: the first certificate of an agent
// under a delegation costs one more write, all others a look into memory.
func (h *Hierarchy) remember(ctx context.Context, o *AgentOrder) error {
	serial := certificateTarget(o.PrincipalSerial)
	c := combine(o.AgentID, o.Delegation, o.Principal, serial)
	if h.known.has(c) {
		return nil
	}
	err := h.db.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.InsertNew("INSERT INTO standing (agent, delegation, principal, principal_serial) VALUES (?, ?, ?, ?)",
			o.AgentID, o.Delegation, o.Principal, serial)
		return err
	})
	if err != nil {
		return fmt.Errorf("storing what agent %s stands below: %w", o.AgentID, err)
	}
	h.known.add(c)
	return nil
}

// Combinations are those of agent, delegation and principal that are known to be stored. Past the bound all are
// forgotten; that costs a write each, no more. The zero value is ready.
type combinations struct {
	mu     sync.RWMutex
	stored map[combination]struct{}
}

// A combination is a digest: half a million agents fit into some 20 MB.
type combination [16]byte

const combinationsMax = 1 << 20

func combine(texts ...string) combination {
	h := sha256.New()
	for _, text := range texts {
		h.Write([]byte{byte(len(text))}) // identifiers are shorter than 256
		h.Write([]byte(text))
	}
	return combination(h.Sum(nil)[:16])
}

func (k *combinations) has(c combination) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	_, ok := k.stored[c]
	return ok
}

func (k *combinations) add(c combination) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stored == nil || len(k.stored) >= combinationsMax {
		k.stored = map[combination]struct{}{}
	}
	k.stored[c] = struct{}{}
}
