package ca

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"chancery/internal/base/id"
	"chancery/internal/core/store"

	"chancery/internal/domain/ca/pkix"
)

// A Status is a certificate's state, derived from its own revocation and those of all that stands above it: the agent,
// the delegation, the principal with its certificate, and the authorities. The earliest revocation counts.
type Status struct {
	pkix.Status
	Target string // with Revoked: what was revoked: "crt:"+serial, "agt_…", "dlg_…", "per_…", "svc_…" or "aut:"+name
}

// A record is what a certificate's status is derived from. It is immutable but for the answer.
type record struct {
	authority string   // name
	above     []string // the targets that its status hangs on, its own included
	isAgent   bool
	principal id.Serial // of the principal's certificate, of an agent's
	notAfter  time.Time
	answer    atomic.Pointer[ocspAnswer] // the latest signed one without a nonce
}

// Status derives the status of a certificate. With an authority, a certificate of another one is Unknown.
func (h *Hierarchy) Status(ctx context.Context, authority string, serial id.Serial) (Status, error) {
	if err := h.revoked.catchUp(ctx, h.db); err != nil {
		return Status{}, err
	}
	r, found, err := h.records.Get(ctx, string(serial))
	if err != nil || !found || authority != "" && r.authority != authority {
		return Status{}, err
	}
	return h.statusOf(r.above), nil
}

// statusOf derives a status from the targets that it hangs on. The caller has caught up.
func (h *Hierarchy) statusOf(above []string) Status {
	r, found := h.revoked.earliest(above)
	if !found {
		return Status{Status: pkix.Status{State: Good}}
	}
	return Status{pkix.Status{State: Revoked, At: r.at, Reason: r.reason}, r.target}
}

// Revoked gives the first of some targets that is revoked, such as agt_…, dlg_… or crt:…, from memory. What was told
// but not read yet counts as revoked.
func (h *Hierarchy) Revoked(targets ...string) (target string, revoked bool) {
	return h.revoked.first(targets)
}

// alive refuses work below targets of which one is revoked.
func (h *Hierarchy) alive(ctx context.Context, targets []string) error {
	if err := h.revoked.catchUp(ctx, h.db); err != nil {
		return err
	}
	if r, found := h.revoked.earliest(targets); found {
		return errRevoked(r.target)
	}
	return nil
}

// loadRecord reads a certificate's record; the key is the serial's octets.
func (h *Hierarchy) loadRecord(ctx context.Context, key string) (r *record, found bool, err error) {
	s, err := h.snapshot(ctx)
	if err != nil {
		return nil, false, err
	}
	err = h.db.Read(ctx, func(tx *store.Tx) error {
		r = &record{}
		if found, err = r.readAgent(tx, s, id.Serial(key)); found || err != nil {
			return err
		}
		found, err = r.readOrdinary(tx, s, id.Serial(key))
		return err
	})
	if err == nil && r.principal != nil {
		err = h.standUnderPrincipal(ctx, s, r)
	}
	return r, found, err
}

// standUnderPrincipal adds what the principal's certificate hangs on: its own authority stands above the agent too. It
// is a certificate that many agents share, so it is in memory as a rule. The question that it asks asks no further: an
// ordinary certificate's record stands under no principal.
//
// Where the principal's certificate is not there any more, nothing is added. Ordinary and agent certificates are kept for
// times that are set apart from each other, so it may have been retired first; then it has expired, and with it the
// agent's, which ends no later. All else that the agent's hangs on its own row names.
func (h *Hierarchy) standUnderPrincipal(ctx context.Context, s *snapshot, r *record) error {
	p, found, err := h.records.Get(ctx, string(r.principal))
	if err != nil {
		return fmt.Errorf("looking up the principal's certificate: %w", err)
	}
	if found && !p.isAgent {
		r.above = append(r.above, s.above(authorityTarget(p.authority))...)
	}
	return nil
}

func (r *record) readOrdinary(tx *store.Tx, s *snapshot, serial id.Serial) (bool, error) {
	var authority, owner string
	var notAfter int64
	found, err := tx.One([]any{&authority, &owner, &notAfter}, "SELECT authority, owner, not_after FROM certificate WHERE serial = ?", []byte(serial))
	if err != nil || !found {
		return false, err
	}
	r.stand(s, authority, certificateTarget(serial), owner)
	r.notAfter = milli(notAfter)
	return true, nil
}

// readAgent reads an agent certificate, without what the principal's hangs on.
func (r *record) readAgent(tx *store.Tx, s *snapshot, serial id.Serial) (bool, error) {
	var authority, agent, delegation, principal, certificate string
	var notAfter int64
	found, err := tx.One([]any{&authority, &agent, &delegation, &principal, &certificate, &notAfter},
		"SELECT authority, agent, delegation, principal, principal_serial, not_after FROM agent_certificate WHERE serial = ?", []byte(serial))
	if err != nil || !found {
		return false, err
	}
	r.stand(s, authority, certificateTarget(serial), agent, delegation, principal, certificate)
	r.isAgent, r.notAfter = true, milli(notAfter)
	r.principal, err = id.ParseSerial(certificate[len("crt:"):])
	return err == nil, err
}

// stand sets what the record hangs on; empty targets fall out.
func (r *record) stand(s *snapshot, authority string, targets ...string) {
	r.authority = authority[len("aut:"):]
	for _, t := range targets {
		if t != "" {
			r.above = append(r.above, t)
		}
	}
	r.above = append(r.above, s.above(authority)...)
}

// above gives the targets of an authority and those above it, by its own target.
func (s *snapshot) above(target string) []string {
	if a := s.authorities[target[len("aut:"):]]; a != nil {
		return a.above
	}
	return []string{target}
}
