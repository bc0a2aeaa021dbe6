package ca

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"chancery/internal/core/store"
)

// A revocation is one row of the rule: what is revoked, since when and why.
type revocation struct {
	target    string
	kind      TargetKind
	reason    Reason
	at        time.Time
	authority string // of a revoked certificate: its authority's target
	notAfter  int64  // of a revoked certificate, in milliseconds; otherwise the end of time
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
