package ca

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"chancery/internal/base/id"
	"chancery/internal/core/store"
	"chancery/internal/domain/ca/pkix"
)

// A List is a certificate revocation list as it is published.
type List struct {
	DER                    []byte
	Number                 int64
	ThisUpdate, NextUpdate time.Time
}

const (
	// listPause is between two looks at what changed: a list is at most this much behind.
	listPause = time.Second
	// settling is how long certificates may still be stored below something that was revoked: longer than the longest
	// statement that was under way elsewhere.
	settling = 30 * time.Second
	// listAge is when a list is gathered afresh, to leave out what has expired.
	listAge = time.Hour
)

// lists are the revocation lists by authority. The zero value is ready.
type lists struct {
	mu     sync.Mutex
	byName map[string]*list
}

func (l *lists) of(authority string) *list {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byName == nil {
		l.byName = map[string]*list{}
	}
	if l.byName[authority] == nil {
		l.byName[authority] = &list{}
	}
	return l.byName[authority]
}

// A list is one authority's revocation list: its entries, and how far they follow the revocations.
type list struct {
	mu       sync.Mutex // guards the rest, also while the store is read and the list is signed
	roll     *pkix.Roll
	epoch    uint64
	next     int          // revocations of the epoch that are in
	open     []revocation // below which certificates may still be stored
	gathered time.Time    // when the roll was begun
	looked   time.Time    // when certificates below the open ones were looked for last
	signed   time.Time    // when the latest was signed
	latest   List
}

// CRL gives the current revocation list of an authority. It holds every certificate that is revoked by the rule of
// Status, but for those of an authority that is revoked as a whole: that one stands in its parent's list, and OCSP
// answers for what is below it. A list is at most a second behind. Its number goes up with each list, in the store, so
// over restarts and instances.
//
// Faults: NotFound authority_unknown; Unavailable authority_offline, when there is no list that is still good.
func (h *Hierarchy) CRL(ctx context.Context, authority string) (List, error) {
	a, err := h.authority(ctx, authority)
	if err != nil {
		return List{}, err
	}
	l := h.lists.of(authority)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !a.Online {
		return h.leftBehind(ctx, a)
	}
	if err := h.revoked.catchUp(ctx, h.db); err != nil {
		return List{}, err
	}
	now := h.now()
	if l.rests(now, &h.revoked) {
		return l.latest, nil
	}
	grown, err := h.gather(ctx, a, l)
	if err != nil {
		return List{}, fmt.Errorf("gathering the revocations of %s: %w", authority, err)
	}
	l.looked = now
	if !grown && l.latest.DER != nil && young(now, l.latest.ThisUpdate, l.latest.NextUpdate) {
		return l.latest, nil
	}
	return h.signGathered(ctx, a, l, now.Add(h.config.CRLLifetime))
}

// rests reports whether the latest list may be given again unseen: for a second after it was signed, and while nothing
// was revoked for a second after it was looked through.
func (l *list) rests(now time.Time, r *revocations) bool {
	epoch, revoked := r.position()
	recent := func(t time.Time) bool { return !now.Before(t) && now.Sub(t) < listPause }
	return l.latest.DER != nil && (recent(l.signed) || recent(l.looked) && l.epoch == epoch && l.next == revoked)
}

// young reports whether less than half of the time from thisUpdate to nextUpdate is over. What was signed before the
// clock was set back is not young: relying parties would find it not valid yet.
func young(now, thisUpdate, nextUpdate time.Time) bool {
	return !now.Before(thisUpdate) && now.Sub(thisUpdate) < nextUpdate.Sub(now)
}

// sign gathers and signs a list that stands until the given time.
func (h *Hierarchy) sign(ctx context.Context, a *authority, l *list, until time.Time) (List, error) {
	if err := h.revoked.catchUp(ctx, h.db); err != nil {
		return List{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := h.gather(ctx, a, l); err != nil {
		return List{}, err
	}
	return h.signGathered(ctx, a, l, until)
}

// signGathered takes a number, signs, and for a root keeps the list in the store: the key may be taken away.
func (h *Hierarchy) signGathered(ctx context.Context, a *authority, l *list, until time.Time) (List, error) {
	made := List{ThisUpdate: h.now().Truncate(time.Second), NextUpdate: until.UTC().Truncate(time.Second)}
	if err := h.takeNumber(ctx, a.Name, &made); err != nil {
		return List{}, fmt.Errorf("taking a number for the list of %s: %w", a.Name, err)
	}
	var err error
	if made.DER, err = a.issuer.SignCRL(l.roll, made.Number, made.ThisUpdate, made.NextUpdate); err != nil {
		return List{}, fmt.Errorf("signing the list of %s: %w", a.Name, err)
	}
	if a.Parent == "" {
		err = h.db.Write(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec("UPDATE crl SET der = ? WHERE authority = ? AND number = ?", made.DER, a.Name, made.Number)
			return err
		})
	}
	l.latest, l.signed = made, h.now()
	return made, err
}

// takeNumber gives max(last + 1, Unix seconds), in the store, so that no two lists share one (RFC 5280 §5.2.3).
func (h *Hierarchy) takeNumber(ctx context.Context, authority string, l *List) error {
	return h.db.Write(ctx, func(tx *store.Tx) error {
		var last int64
		found, err := tx.One([]any{&last}, "SELECT number FROM crl WHERE authority = ?", authority)
		if err != nil {
			return err
		}
		l.Number = max(last+1, l.ThisUpdate.Unix())
		from, until := l.ThisUpdate.UnixMilli(), l.NextUpdate.UnixMilli()
		if !found {
			_, err = tx.Exec("INSERT INTO crl (authority, number, this_update, next_update, der) VALUES (?, ?, ?, ?, ?)", authority, l.Number, from, until, []byte{})
			return err
		}
		_, err = tx.Exec("UPDATE crl SET number = ?, this_update = ?, next_update = ? WHERE authority = ?", l.Number, from, until, authority)
		return err
	})
}

// leftBehind gives the list that was signed before the authority's key was taken away.
func (h *Hierarchy) leftBehind(ctx context.Context, a *authority) (made List, err error) {
	var from, until int64
	var found bool
	err = h.db.Read(ctx, func(tx *store.Tx) error {
		found, err = tx.One([]any{&made.Number, &from, &until, &made.DER}, "SELECT number, this_update, next_update, der FROM crl WHERE authority = ?", a.Name)
		return err
	})
	if err == nil && (!found || len(made.DER) == 0 || milli(until).Before(h.now())) {
		return List{}, pkix.ErrOffline
	}
	made.ThisUpdate, made.NextUpdate = milli(from), milli(until)
	return made, err
}

// gather brings the roll up to the revocations of now. It reports whether the roll changed. The caller holds l.mu.
func (h *Hierarchy) gather(ctx context.Context, a *authority, l *list) (changed bool, err error) {
	now := h.now()
	known := l.epoch
	if l.gathered.IsZero() || now.Sub(l.gathered) > listAge || now.Before(l.gathered) {
		known = 0 // no epoch: read all
	}
	news, epoch, next := h.revoked.since(known, l.next)
	roll, open := l.roll, l.open
	afresh := epoch != known
	if afresh {
		roll, open = pkix.NewRoll(), nil
		l.gathered = now
	}
	size := roll.Size()
	open = append(open, news...)
	// An entry stays for one list beyond the certificate's end (RFC 5280 §3.3).
	if err := h.enter(ctx, a, roll, open, now.Add(-h.config.CRLLifetime)); err != nil {
		l.gathered = time.Time{} // half-entered: begin again
		return false, err
	}
	changed = roll.Size() > size
	if afresh && l.roll != nil {
		changed = !roll.Equal(l.roll)
	}
	l.roll, l.epoch, l.next, l.open = roll, epoch, next, stillOpen(open, now)
	return changed, nil
}

// stillOpen keeps the revocations below which certificates may still appear.
func stillOpen(all []revocation, now time.Time) (open []revocation) {
	for _, r := range all {
		if r.kind != Certificate && now.Sub(r.at) < settling {
			open = append(open, r)
		}
	}
	return open
}

// enter puts the authority's certificates below the given revocations into the roll.
func (h *Hierarchy) enter(ctx context.Context, a *authority, roll *pkix.Roll, all []revocation, ended time.Time) error {
	var wide []*revocation
	for n := range all {
		r := &all[n]
		if r.kind != Certificate {
			wide = append(wide, r)
		}
		if r.authority == a.target && r.notAfter > ended.UnixMilli() {
			serial, err := id.ParseSerial(r.target[len("crt:"):])
			if err != nil {
				return err
			}
			if err := roll.Add(serial, r.at, r.reason); err != nil {
				return err
			}
		}
	}
	for some := range slices.Chunk(wide, wideStep) {
		err := h.db.Read(ctx, func(tx *store.Tx) error {
			for _, r := range some {
				add := func(serial id.Serial) error { return roll.Add(serial, r.at, r.reason) }
				if err := below(tx, r, a.target, ended.UnixMilli(), add); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wideStep is how many revocations one read looks below, so that it is short.
const wideStep = 500

// belowColumns are the columns of agent_certificate, and of standing, that name a target of a kind.
var belowColumns = map[TargetKind]string{
	Delegation: "delegation", Principal: "principal", PrincipalCertificate: "principal_serial",
}

// below visits the serials of an authority that stand below a revocation and end after a time in milliseconds.
func below(tx *store.Tx, r *revocation, authority string, ended int64, visit func(id.Serial) error) error {
	each := func(query string, args ...any) error {
		return tx.Each(query, args, func(row store.Row) error {
			var serial []byte
			if err := row.Scan(&serial); err != nil {
				return err
			}
			return visit(serial)
		})
	}
	switch r.kind {
	case Principal, AuthorityItself: // they own ordinary certificates
		if err := each("SELECT serial FROM certificate WHERE owner = ? AND owner <> '' AND authority = ? AND not_after > ?", r.target, authority, ended); err != nil {
			return err
		}
	case Agent:
		return each("SELECT serial FROM agent_certificate WHERE agent = ? AND authority = ? AND not_after > ?", r.target, authority, ended)
	}
	if column := belowColumns[r.kind]; column != "" {
		return each("SELECT serial FROM agent_certificate WHERE agent IN (SELECT agent FROM standing WHERE "+column+" = ?) AND "+column+" = ? AND authority = ? AND not_after > ?",
			r.target, r.target, authority, ended)
	}
	return nil
}
