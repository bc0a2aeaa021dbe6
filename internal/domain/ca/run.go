package ca

import (
	"context"
	"fmt"
	"time"

	"chancery/internal/core/store"
)

const (
	tick        = 500 * time.Millisecond // how far memory may lag behind the feed without a question that catches up
	stepsAtOnce = 5                      // steps of the name index in one tick, so that issuing keeps the writer
	retireEvery = time.Hour
)

// Run does what nobody waits for, until ctx ends: it learns which combinations are stored already, follows revocations
// even while nobody asks, enters names into their index, and retires what expired long ago. report takes what went
// wrong; work goes on after it.
func (h *Hierarchy) Run(ctx context.Context, report func(error)) {
	try := func(work func(context.Context) error) {
		if err := work(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
	}
	try(h.recall)
	beat, hour := time.NewTicker(tick), time.NewTicker(retireEvery)
	defer beat.Stop()
	defer hour.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			try(h.tend)
		case <-hour.C:
			try(h.retireInTurn)
		}
	}
}

// retireInTurn retires in one instance at a time.
func (h *Hierarchy) retireInTurn(ctx context.Context) error {
	held, err := h.db.Lease(ctx, "certificate retention", retireEvery)
	if err != nil || !held {
		return err
	}
	return h.Retire(ctx)
}

// Retire removes certificates that expired longer ago than Config keeps them, in bounded steps with an audit line each.
// Their status is Unknown afterwards; revocations stay.
func (h *Hierarchy) Retire(ctx context.Context) error {
	now := h.now()
	for table, keep := range map[string]time.Duration{"certificate": h.config.Keep, "agent_certificate": h.config.KeepAgents} {
		if _, err := h.db.Retire(ctx, table, store.Lifetime{Born: "not_before", Ends: "not_after"}, now.Add(-keep).UnixMilli(), "expired "+keep.String()+" ago"); err != nil {
			return fmt.Errorf("retiring from %s: %w", table, err)
		}
	}
	return h.retireNames(ctx, now.Add(-h.config.Keep).UnixMilli())
}

// retireNames takes the names of retired certificates out of their index.
func (h *Hierarchy) retireNames(ctx context.Context, before int64) error {
	type entry struct{ digest, serial []byte }
	for {
		var old []entry
		err := h.db.Write(ctx, func(tx *store.Tx) error {
			old = old[:0]
			err := tx.Each("SELECT digest, serial FROM certificate_name WHERE not_after < ? LIMIT ?", []any{before, nameStep}, func(r store.Row) error {
				var e entry
				err := r.Scan(&e.digest, &e.serial)
				old = append(old, e)
				return err
			})
			if err != nil {
				return err
			}
			for _, e := range old {
				if _, err := tx.Exec("DELETE FROM certificate_name WHERE digest = ? AND serial = ?", e.digest, e.serial); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(old) < nameStep {
			return err
		}
	}
}

// tend is one tick of Run.
func (h *Hierarchy) tend(ctx context.Context) error {
	if err := h.revoked.catchUp(ctx, h.db); err != nil {
		return err
	}
	for range stepsAtOnce {
		more, err := h.indexNames(ctx)
		if err != nil {
			return fmt.Errorf("indexing names: %w", err)
		}
		if !more {
			return nil
		}
	}
	return nil
}

// recallStep is how many combinations one read takes.
const recallStep = 10_000

// recall reads the stored combinations, so that the first certificate of each agent after a start is one insert too.
func (h *Hierarchy) recall(ctx context.Context) error {
	after := ""
	for read := 0; read < combinationsMax; read += recallStep {
		var found []combination
		from := after
		err := h.db.Read(ctx, func(tx *store.Tx) error {
			found = found[:0]
			return tx.Each("SELECT agent, delegation, principal, principal_serial FROM standing WHERE agent > ? ORDER BY agent LIMIT ?",
				[]any{from, recallStep}, func(r store.Row) error {
					var delegation, principal, serial string
					err := r.Scan(&after, &delegation, &principal, &serial)
					found = append(found, combine(after, delegation, principal, serial))
					return err
				})
		})
		if err != nil {
			return fmt.Errorf("recalling what agents stand below: %w", err)
		}
		for _, c := range found {
			h.known.add(c)
		}
		if len(found) < recallStep {
			return nil
		}
	}
	return nil
}
