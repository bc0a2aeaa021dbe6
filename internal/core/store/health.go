package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"chancery/internal/base/fault"
)

// Health is what doctor, metrics and reports show of the store.
type Health struct {
	Reachable bool      // a read was answered just now
	Problem   error     // why not
	Settings  []Setting // durability settings as found at the start
	Accepted  []string  // those of them that are unsafe and were accepted: "acknowledged" may not be true
	Stats     Stats
	Waiting   int           // writes that wait for their commit
	Oldest    time.Duration // how long the oldest has waited
	Seal      SealState     // how far the audit is sealed
	Epoch     int64         // how often this store was restored from a backup
}

// Health asks the database one question and says how the store does. It never fails: what is wrong is in the answer.
func (s *Store) Health(ctx context.Context) Health {
	h := Health{Settings: slices.Clone(s.settings), Stats: s.Stats()}
	for _, one := range h.Settings {
		if !one.Safe {
			h.Accepted = append(h.Accepted, one.Name)
		}
	}
	h.Waiting, h.Oldest = s.Backlog()
	h.Problem = s.Read(ctx, func(tx *Tx) (err error) {
		if h.Epoch, err = epoch(tx); err != nil {
			return err
		}
		h.Seal, err = sealState(tx)
		return err
	})
	h.Reachable = h.Problem == nil
	return h
}

func refuseUnsafe(settings []Setting, accepted []string) error {
	var unsafe []string
	for _, s := range settings {
		if !s.Safe && !slices.Contains(accepted, s.Name) {
			unsafe = append(unsafe, s.Name+" = "+s.Value+": "+s.Why)
		}
	}
	if len(unsafe) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "store_not_durable",
		"The database may lose what it has acknowledged: %s.", strings.Join(unsafe, "; ")).
		WithHint("Change the settings of the database, or accept them by name in the configuration of the store.")
}
