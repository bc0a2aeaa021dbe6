// Package store holds everything that must survive the loss of power: tables, transactions, hot rows, the change feed,
// the audit chain and backups, on SQLite, PostgreSQL or MariaDB.
//
// Acknowledged means durable: Write and Append return after the commit, and the commit after the sync. Speed comes
// from group commit, never from answering early. A transaction is a function that may run more than once; rows that
// come by the thousand are appended in batches; rare changes go through the change feed; what people must be able to
// prove later is an audit line in the same transaction, chained and signed within a second by one sealer.
//
// What holds on all three databases: a transaction behaves as if it ran alone; any error of a Tx method spoils the
// transaction; a commit whose outcome nobody knows is the fault Unknown and is never run again; every call answers by
// its deadline; times are UTC milliseconds. The conformance suite in storetest says the rest, one test a sentence.
//
// The store knows no meaning of a row, no signing key and no network protocol. SQL lives in the room that owns the
// table, in the common subset with question marks; what differs between databases is a method here.
package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"chancery/internal/core/store/internal/engine"
)

// deadline bounds calls whose context has none.
const deadline = 10 * time.Second

// Config says which database to use and how to report. Only URL is needed.
type Config struct {
	// URL is "sqlite:/path/chancery.db", "postgres://user:password@host/database" or "mysql://user:password@host/database".
	URL string
	// Cache is the memory for pages of a SQLite file, in bytes; 0 is 32 MB. Two thirds are the writer's.
	Cache int64
	// Accept lists durability settings, by name, that the operator accepts although they make "acknowledged" untrue.
	Accept []string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log takes what no caller can be told; nil discards it.
	Log *slog.Logger
	// Observe is told how long each phase of each write took; nil tells nobody. It is quick and safe for concurrent use.
	Observe func(Phase, time.Duration)
	// ObserveBatch is told how many writes shared a commit; nil tells nobody.
	ObserveBatch func(writes int)
	// Trace is told of each statement of closures, reads and appended batches, without values; nil tells nobody.
	Trace func(statement string)
	// Fatal is called after an I/O error of a commit or a checkpoint on SQLite, such as a failed sync: nobody knows what is
	// on the disk. It must not return; nil logs and exits.
	Fatal func(error)
	// Restored runs in the last transaction of a Restore, with the time that the backup was taken (UTC milliseconds):
	// rooms raise there what must not fall back, such as CRL numbers.
	Restored func(tx *Tx, takenAt int64) error
	// Sign signs the head of the audit chain; nil leaves heads unsigned until SetSigner.
	Sign Sign
}

// Store is an open database. All methods are safe for concurrent use.
type Store struct {
	config    Config
	engine    engine.Engine
	settings  []engine.Setting
	instance  string // names this process in the feed and in leases
	feed      feed
	following following
	sealer    sealer
	hot       sync.Map  // of *Hot: checked
	lock      *fileLock // of the SQLite file; nil with a server
	stop      context.CancelFunc
	tasks     tasks
	closed    sync.Once
	leased    atomic.Bool // a lease was taken at some time
}

// Open opens the database, refuses unsafe durability settings that are not accepted, brings the tables up to date and
// starts the background work. A SQLite file is locked against other processes, which are refused with the holder's
// process id.
func Open(ctx context.Context, c Config) (*Store, error) {
	c = c.withDefaults()
	s := &Store{config: c, instance: rand.Text()}
	s.SetSigner(c.Sign)
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	return s, nil
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Observe == nil {
		c.Observe = func(Phase, time.Duration) {}
	}
	if c.ObserveBatch == nil {
		c.ObserveBatch = func(int) {}
	}
	if c.Trace == nil {
		c.Trace = func(string) {}
	}
	if c.Fatal == nil {
		log := c.Log
		c.Fatal = func(err error) {
			log.Error("writing the database failed; ending before anything is acknowledged that is not on the disk", "error", err)
			os.Exit(70) // EX_SOFTWARE
		}
	}
	return c
}

// abandon frees what a failed open had taken.
func (s *Store) abandon() error {
	var errs []error
	if s.engine != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		errs = append(errs, s.engine.Close(ctx))
	}
	return errors.Join(append(errs, s.lock.release())...)
}

// Close ends the background work, finishes queued writes until ctx ends, refuses the rest and frees the database. It
// returns within about two seconds of ctx's end whatever the database does. A second Close does nothing.
func (s *Store) Close(ctx context.Context) (err error) {
	s.closed.Do(func() {
		s.stop()
		s.tasks.wait(ctx)
		if err := s.yield(ctx); err != nil {
			s.config.Log.Warn("giving leases back; they end by themselves", "error", err)
		}
		err = errors.Join(s.engine.Close(ctx), s.lock.release())
	})
	return err
}

// Write runs fn in a transaction and returns after its commit was synced to disk. fn sees a state as if it ran alone.
//
// fn may run more than once: it changes nothing but its Tx and its own results, which it sets afresh in each run. It
// does no network, signing or hashing and calls no method of the Store; it is short, 1 MB and 20 ms at most. When fn
// returns an error, nothing is stored and Write returns that error. The fault Unknown means that nobody knows whether
// the commit happened; other faults mean that nothing was stored. Without a deadline in ctx, Write takes ten seconds.
func (s *Store) Write(ctx context.Context, fn func(*Tx) error) error {
	return s.WriteAs(ctx, Synced, fn)
}

// WriteAs is Write with a choice of durability. Written returns when the change survives the death of the process but
// not yet the loss of power; MariaDB has no such level and gives Synced.
func (s *Store) WriteAs(ctx context.Context, d Durability, fn func(*Tx) error) error {
	if inside(ctx) {
		return errNested
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	var changes []Change
	err := s.engine.Write(ctx, d, engine.Work{
		Run: func(session engine.Session) error {
			tx := s.tx(ctx, session)
			err := tx.run(fn)
			changes = tx.changes
			return err
		},
		Committed: func() { s.committed(changes) },
	})
	s.suspect(err)
	return err
}

// Read runs fn on one consistent snapshot; a Tx method that writes fails. On SQLite, a read of more than a second may
// be ended with the fault snapshot_too_old when the write-ahead log has grown large. fn calls no method of the Store.
func (s *Store) Read(ctx context.Context, fn func(*Tx) error) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return s.engine.Read(ctx, func(session engine.Session) error {
		tx := s.tx(session.Context(), session)
		tx.readOnly = true
		return tx.run(fn)
	})
}

// Append stores one row of h and returns when its outcome is committed and synced: the row is in, or a row with one of
// its keys stood there already, or the guard refuses it. Rows of many callers share a statement and a commit. The row
// has an int64, string, []byte or nil for each column of h, 1 MB at most; its bytes must not change afterwards. Faults
// are those of Write.
func (s *Store) Append(ctx context.Context, h *Hot, row []any) (Appended, error) {
	if err := s.known(h); err != nil {
		return Appended{}, err
	}
	if err := h.CheckRow(row); err != nil {
		return Appended{}, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	return s.engine.Append(ctx, h, row)
}

// Register checks the description of a hot table before its first row is appended, which checks it as well.
func (s *Store) Register(h *Hot) error { return s.known(h) }

// known checks a hot table once, and has the sealer look for it.
func (s *Store) known(h *Hot) error {
	if _, ok := s.hot.Load(h); ok {
		return nil
	}
	if err := h.Check(); err != nil {
		return err
	}
	s.hot.Store(h, true)
	s.sealer.stale.Store(true)
	return nil
}

// Backlog says how many writes wait for their commit, and for how long the oldest has waited. Admission asks it before
// any work is done for a request.
func (s *Store) Backlog() (waiting int, oldest time.Duration) { return s.engine.Backlog() }

// Stats says how the database does at the moment, without asking it.
func (s *Store) Stats() Stats { return s.engine.Stats() }

// bounded gives ctx a deadline if it has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, deadline)
}

func (s *Store) now() int64 { return s.config.Now().UnixMilli() }

// errNested is returned for a Write under the context of a Tx: with one writer it would wait for itself.
var errNested = errors.New("a transaction must not start another: its work belongs into the same closure")

type insideKey struct{}

func inside(ctx context.Context) bool { return ctx.Value(insideKey{}) != nil }

func (s *Store) check(ctx context.Context) error {
	settings, err := s.engine.Settings(ctx)
	if err != nil {
		return fmt.Errorf("reading the durability settings: %w", err)
	}
	s.settings = settings
	return refuseUnsafe(settings, s.config.Accept)
}
