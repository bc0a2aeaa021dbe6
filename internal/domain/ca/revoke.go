package ca

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
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
	return h.db.Write(ctx, func(tx *store.Tx) error { return h.RevokeIn(tx, t, reason, note) })
}

// RevokeIn is Revoke as a part of a caller's transaction: an agent that is stopped and the revocation that stops it
// are one change.
func (h *Hierarchy) RevokeIn(tx *store.Tx, t Target, reason Reason, note string) error {
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

// A revocation is one row of the rule: what is revoked, since when and why.
type revocation struct {
	target    string
	kind      TargetKind
	reason    Reason
	at        time.Time
	authority string // of a revoked certificate: its authority's target
	notAfter  int64  // of a revoked certificate, in milliseconds; otherwise the end of time
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

const revocationColumns = "target, kind, reason, at, authority, not_after"

func selectRevocation(tx *store.Tx, target string) (revocation, bool, error) {
	var found bool
	r, err := scanRevocation(func(dest ...any) (err error) {
		found, err = tx.One(dest, "SELECT "+revocationColumns+" FROM revocation WHERE target = ?", target)
		return err
	})
	return r, found, err
}

func scanRevocation(scan func(...any) error) (r revocation, err error) {
	var kind string
	var reason, at int64
	err = scan(&r.target, &kind, &reason, &at, &r.authority, &r.notAfter)
	r.kind, r.reason, r.at = TargetKind(kind), Reason(reason), milli(at)
	return r, err
}

// revocations is all that is revoked, in memory: the rule by which every status is derived. The change feed tells
// which targets changed; the next question reads them. The zero value is ready.
type revocations struct {
	behind  atomic.Bool // something was told that is not read
	reading sync.Mutex  // held while the store is read

	mu       sync.RWMutex // guards the rest
	told     map[string]struct{}
	all      bool // everything is to be read
	byTarget map[string]revocation
	order    []string // targets as they came, for the lists
	epoch    uint64   // counts what order does not show: a reload, an ended hold, a changed reason
}

// tell notes a change; "" means all may have changed. It is quick and calls nothing.
func (r *revocations) tell(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if target == "" {
		r.all = true
	} else {
		r.note(target)
	}
	r.behind.Store(true)
}

// note puts a target among those to read. The caller holds mu.
func (r *revocations) note(target string) {
	if r.told == nil {
		r.told = map[string]struct{}{}
	}
	r.told[target] = struct{}{}
}

// catchUp reads what was told before the call.
func (r *revocations) catchUp(ctx context.Context, db *store.Store) error {
	if !r.behind.Load() {
		return nil
	}
	r.reading.Lock()
	defer r.reading.Unlock()
	if !r.behind.Load() {
		return nil
	}
	r.mu.Lock()
	all, told := r.all, r.told
	r.all, r.told = false, nil
	r.mu.Unlock()
	read, err := readRevocations(ctx, db, all, told)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil { // tell it again
		r.all = r.all || all
		for target := range told {
			r.note(target)
		}
		return fmt.Errorf("reading revocations: %w", err)
	}
	r.apply(all, told, read)
	r.behind.Store(r.all || len(r.told) > 0)
	return nil
}

func readRevocations(ctx context.Context, db *store.Store, all bool, told map[string]struct{}) (read []revocation, err error) {
	err = db.Read(ctx, func(tx *store.Tx) error {
		read = nil
		if all {
			return tx.Each("SELECT "+revocationColumns+" FROM revocation ORDER BY at, target", nil, func(row store.Row) error {
				one, err := scanRevocation(row.Scan)
				read = append(read, one)
				return err
			})
		}
		for target := range told {
			one, found, err := selectRevocation(tx, target)
			if err != nil {
				return err
			}
			if found {
				read = append(read, one)
			}
		}
		return nil
	})
	return read, err
}

// apply takes what was read. The caller holds mu.
func (r *revocations) apply(all bool, told map[string]struct{}, read []revocation) {
	if all || r.byTarget == nil {
		r.byTarget, r.order = make(map[string]revocation, len(read)), nil
		r.epoch++
	}
	for _, one := range read {
		before, known := r.byTarget[one.target]
		switch {
		case !known:
			r.order = append(r.order, one.target)
		case before != one:
			r.epoch++
		}
		r.byTarget[one.target] = one
		delete(told, one.target)
	}
	for target := range told { // told, and not there any more
		if _, known := r.byTarget[target]; known {
			delete(r.byTarget, target)
			r.epoch++
		}
	}
}

// earliest gives the first revocation among targets.
func (r *revocations) earliest(targets []string) (first revocation, found bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, target := range targets {
		if one, ok := r.byTarget[target]; ok && (!found || one.at.Before(first.at)) {
			first, found = one, true
		}
	}
	return first, found
}

// first gives the first target that is revoked, or was told to have changed.
func (r *revocations) first(targets []string) (string, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, target := range targets {
		_, stands := r.byTarget[target]
		_, told := r.told[target]
		if stands || told {
			return target, true
		}
	}
	return "", false
}

// position says how far the revocations have come.
func (r *revocations) position() (epoch uint64, n int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.epoch, len(r.order)
}

// since gives the revocations that came after the n-th of an epoch, and where to go on; in another epoch, all.
func (r *revocations) since(epoch uint64, n int) (news []revocation, now uint64, next int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if epoch != r.epoch {
		n = 0
	}
	for _, target := range r.order[n:] {
		if one, ok := r.byTarget[target]; ok {
			news = append(news, one)
		}
	}
	return news, r.epoch, len(r.order)
}
