package store

import (
	"context"
	"time"
)

// Lease takes or keeps the named lease for this instance until ttl from now, and reports whether this instance holds
// it. Instances compare the end with their own clocks, so ttl is much longer than their clocks differ. Close gives all
// leases back.
func (s *Store) Lease(ctx context.Context, name string, ttl time.Duration) (held bool, err error) {
	err = s.Write(ctx, func(tx *Tx) (err error) {
		until := tx.Now() + ttl.Milliseconds()
		held, err = tx.InsertNew("INSERT INTO lease (name, holder, until) VALUES (?, ?, ?)", name, s.instance, until)
		if err != nil || held {
			return err
		}
		n, err := tx.Exec("UPDATE lease SET holder = ?, until = ? WHERE name = ? AND (holder = ? OR until < ?)",
			s.instance, until, name, s.instance, tx.Now())
		held = n > 0
		return err
	})
	if held && err == nil {
		s.leased.Store(true)
	}
	return held && err == nil, err
}

// yield gives all leases of this instance back, if the database answers quickly; otherwise they end by themselves.
func (s *Store) yield(ctx context.Context) error {
	if !s.leased.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return s.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec("DELETE FROM lease WHERE holder = ?", s.instance)
		return err
	})
}
