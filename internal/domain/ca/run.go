package ca

import (
	"context"
	"fmt"
	"time"

	"chancery/internal/core/store"
)

const (
	tick       = 500 * time.Millisecond // how far memory may lag behind the feed without a question that catches up
	stepsAtAct = 5                      // steps of the name index in one tick, so that issuing keeps the writer
)

// Run does what nobody waits for, until ctx ends: it learns which combinations are stored already, follows revocations
// even while nobody asks, and enters names into their index. report takes what went wrong; work goes on after it.
func (h *Hierarchy) Run(ctx context.Context, report func(error)) {
	if err := h.recall(ctx); err != nil && ctx.Err() == nil {
		report(err)
	}
	beat := time.NewTicker(tick)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		if err := h.tend(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}

// tend is one tick of Run.
func (h *Hierarchy) tend(ctx context.Context) error {
	if err := h.revoked.catchUp(ctx, h.db); err != nil {
		return err
	}
	for range stepsAtAct {
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
