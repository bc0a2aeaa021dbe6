package ca

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"unicode/utf8"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
	"chancery/internal/domain/ca/pkix"
)

// A TargetKind says what kind of thing is revoked.
type TargetKind string

// The kinds of targets. All but a certificate take everything below with them.
const (
	Certificate          TargetKind = "certificate"
	PrincipalCertificate TargetKind = "principal certificate" // a certificate that agents stand below; found out, not asked for
	Agent                TargetKind = "agent"
	Delegation           TargetKind = "delegation"
	Principal            TargetKind = "principal" // a person or a service account
	AuthorityItself      TargetKind = "authority"
)

// targetKinds tells kinds by the prefix that targets have.
var targetKinds = map[string]TargetKind{
	"crt:": Certificate, "agt_": Agent, "dlg_": Delegation, "per_": Principal, "svc_": Principal, "aut:": AuthorityItself,
}

// A Target is what is revoked: an agent, a delegation, a person or a service account by its identifier, an authority
// by its name, a certificate by its serial in hexadecimal.
type Target struct {
	Kind TargetKind
	ID   string
}

// ParseTarget reads a target in the form of the change feed: agt_…, dlg_…, per_…, svc_…, crt:serial or aut:name.
// The fault is Invalid, code target_invalid.
func ParseTarget(text string) (Target, error) {
	for prefix, kind := range targetKinds {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			t := Target{Kind: kind, ID: text}
			if strings.HasSuffix(prefix, ":") {
				t.ID = rest
			}
			_, err := t.key()
			return t, err
		}
	}
	return Target{}, fault.New(fault.Invalid, "target_invalid", "%.60q does not name anything that can be revoked", text)
}

// key gives the form in which the store and the change feed know the target, such as agt_… or crt:0198….
// The fault is Invalid, code target_invalid.
func (t Target) key() (string, error) {
	key := t.ID
	ok := false
	switch t.Kind {
	case Certificate:
		serial, err := id.ParseSerial(t.ID)
		if err != nil {
			return "", err
		}
		return certificateTarget(serial), nil
	case AuthorityItself:
		key, ok = authorityTarget(t.ID), pkix.IsLabel(t.ID)
	case Agent:
		ok = id.Is(id.Agent, t.ID)
	case Delegation:
		ok = id.Is(id.Delegation, t.ID)
	case Principal:
		ok = id.Is(id.Person, t.ID) || id.Is(id.Service, t.ID)
	}
	if !ok {
		return "", fault.New(fault.Invalid, "target_invalid", "%.60q does not name a %s that can be revoked", t.ID, t.Kind)
	}
	return key, nil
}

// noteMax bounds what people may write about a revocation.
const noteMax = 500

// Revoke revokes one thing and with it all that stands below it, by one row. It is durable on return, and OCSP, search
// and every check here know of it; other instances within a second. Revoking again changes nothing and is no error:
// the first reason and time stand. A hold is ended with RemoveFromCRL, or made final with another reason.
//
// Faults: Invalid target_invalid, serial_invalid, reason_unfit, note_invalid; NotFound certificate_unknown,
// authority_unknown.
func (h *Hierarchy) Revoke(ctx context.Context, t Target, reason Reason, note string) error {
	return h.db.Write(ctx, func(tx *store.Tx) error { return h.revokeIn(tx, t, reason, note) })
}

func (h *Hierarchy) revokeIn(tx *store.Tx, t Target, reason Reason, note string) error {
	key, err := t.key()
	if err != nil {
		return err
	}
	if err := checkReason(t.Kind, reason); err != nil {
		return err
	}
	if len(note) > noteMax || !utf8.ValidString(note) {
		return fault.New(fault.Invalid, "note_invalid", "a note has at most %d octets of UTF-8", noteMax)
	}
	r := revocation{target: key, kind: t.Kind, reason: reason, at: milli(tx.Now()), notAfter: math.MaxInt64}
	if err := r.complete(tx); err != nil {
		return err
	}
	before, found, err := selectRevocation(tx, key)
	if err != nil {
		return err
	}
	action := "revoke"
	switch {
	case reason == RemoveFromCRL:
		if !found || before.reason != CertificateHold {
			return fault.New(fault.Invalid, "reason_unfit", "%s is not on hold", key)
		}
		action = "revoke.release"
		_, err = tx.Exec("DELETE FROM revocation WHERE target = ?", key)
	case !found:
		err = r.insert(tx, note)
	case before.reason == CertificateHold && reason != CertificateHold:
		_, err = tx.Exec("UPDATE revocation SET reason = ?, note = ? WHERE target = ?", int64(reason), note, key)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	return announce(tx, action, key, reason, note)
}

func announce(tx *store.Tx, action, target string, reason Reason, note string) error {
	detail, err := json.Marshal(map[string]string{"reason": reason.String(), "note": note})
	if err != nil {
		return err
	}
	if err := tx.Audit(line(tx, action, target, string(detail))); err != nil {
		return err
	}
	return tx.Publish(store.Change{Topic: topicRevocation, Key: target})
}

func checkReason(k TargetKind, r Reason) error {
	if !r.Known() || r == CACompromise && k != AuthorityItself || r == pkix.AACompromise {
		return fault.New(fault.Invalid, "reason_unfit", "%s is not a reason to revoke a %s", r, k)
	}
	return nil
}

// complete looks up what the row of a certificate or an authority needs to say.
func (r *revocation) complete(tx *store.Tx) error {
	switch r.kind {
	case AuthorityItself:
		var one string
		found, err := tx.One([]any{&one}, "SELECT name FROM authority WHERE name = ?", strings.TrimPrefix(r.target, "aut:"))
		if err == nil && !found {
			err = fault.New(fault.NotFound, "authority_unknown", "there is no authority %s", r.target)
		}
		return err
	case Certificate:
		serial, err := id.ParseSerial(strings.TrimPrefix(r.target, "crt:"))
		if err != nil {
			return err
		}
		found := false
		for _, table := range []string{"agent_certificate", "certificate"} {
			if found, err = tx.One([]any{&r.authority, &r.notAfter}, "SELECT authority, not_after FROM "+table+" WHERE serial = ?", []byte(serial)); found || err != nil {
				break
			}
		}
		if err == nil && !found {
			err = fault.New(fault.NotFound, "certificate_unknown", "there is no certificate with the serial %s", serial)
		}
		if err != nil {
			return err
		}
		var one string
		below, err := tx.One([]any{&one}, "SELECT agent FROM standing WHERE principal_serial = ? LIMIT 1", r.target)
		if below {
			r.kind = PrincipalCertificate
		}
		return err
	}
	return nil
}

func (r *revocation) insert(tx *store.Tx, note string) error {
	_, err := tx.Exec("INSERT INTO revocation (target, kind, reason, at, note, actor, authority, not_after) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		r.target, string(r.kind), int64(r.reason), r.at.UnixMilli(), note, who.From(tx.Context()).Actor(), r.authority, r.notAfter)
	return err
}
