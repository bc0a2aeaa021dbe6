package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"chancery/internal/core/store/internal/engine"
)

const (
	feedKept    = time.Hour        // rows of the feed
	feedForget  = 30 * time.Minute // unread for so long: tell subscribers to forget
	doubtFor    = 30 * time.Second // after a commit of unknown outcome, own rows are told as well
	followDelay = 5 * time.Second  // bound of one look
)

// following is the part of the feed that comes from other instances.
type following struct {
	follower engine.Follower // nil where there are none
	doubt    atomic.Int64    // until then, in Unix nanoseconds, the outcome of an own commit may be unknown
	seen     map[int64]bool  // rows of the latest answer; others never come again
}

// begin starts to follow the commits of other instances.
func (s *Store) beginFollowing(ctx, background context.Context) (err error) {
	if s.following.follower, err = s.engine.Follow(ctx); err != nil || s.following.follower == nil {
		return err
	}
	s.tasks.start(background, s.follow)
	return nil
}

// follow tells subscribers what other instances commit, until ctx ends.
func (s *Store) follow(ctx context.Context) {
	f := &s.following
	defer f.follower.Close()
	latest, failing := time.Now(), false
	for ctx.Err() == nil {
		look, cancel := context.WithTimeout(ctx, followDelay)
		rows, err := f.follower.Next(look)
		cancel()
		switch {
		case err == nil:
			if time.Since(latest) > feedForget {
				s.feed.forget()
			}
			latest, failing = time.Now(), false
			s.feed.tell(f.fresh(rows, s.instance))
		case ctx.Err() == nil && !failing:
			failing = true
			s.config.Log.Warn("the change feed cannot be read; trying on", "error", err)
		}
		f.follower.Wait(ctx)
	}
}

// fresh gives the changes of rows that were not in the answer before. Own rows were told at their commit.
func (f *following) fresh(rows []engine.FeedRow, instance string) (changes []Change) {
	doubtful := time.Now().UnixNano() < f.doubt.Load()
	seen := make(map[int64]bool, len(rows))
	for _, r := range rows {
		seen[r.Seq] = true
		if !f.seen[r.Seq] && (r.Origin != instance || doubtful) {
			changes = append(changes, Change{Topic: r.Topic, Key: r.Item})
		}
	}
	f.seen = seen
	return changes
}

// committed tells the changes of an own commit.
func (s *Store) committed(changes []Change) {
	if len(changes) == 0 {
		return
	}
	s.feed.tell(changes)
	if s.following.follower != nil {
		s.following.follower.Wake()
	}
}

// suspect has the changes of a commit with unknown outcome told whenever they turn up.
func (s *Store) suspect(err error) {
	if errors.Is(err, Unknown) {
		s.following.doubt.Store(time.Now().Add(doubtFor).UnixNano())
	}
}

// trim removes old rows of the feed, every few minutes, until ctx ends.
func (s *Store) trim(ctx context.Context) {
	every := time.NewTicker(feedKept / 12)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		err := s.Write(ctx, func(tx *Tx) error {
			_, err := tx.Exec("DELETE FROM feed WHERE at < ?", tx.Now()-feedKept.Milliseconds())
			return err
		})
		if err != nil && ctx.Err() == nil {
			s.config.Log.Warn("removing old rows of the change feed", "error", err)
		}
	}
}
