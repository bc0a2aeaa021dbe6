// Package pool runs the store's transactions on a database server: closures side by side on a pool of connections,
// hot rows in batches on connections of their own.
//
// What holds: a closure whose transaction the server undid (serialization failure, deadlock, connection lost before
// COMMIT) runs again within its deadline; a connection lost during COMMIT is Unknown and never runs again; a server
// that does not answer costs its callers no more than their deadlines. The package knows no server by name: what
// differs is in a Dialect.
package pool

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"time"

	"chancery/internal/core/store/internal/engine"
)

const (
	// Longest is the longest that a writing transaction may last. Servers are told to end longer ones, and readers of
	// the change feed rely on it.
	Longest = 20 * time.Second
	// connections for closures and reads, the batching ones not counted
	connections = 16
	lostMax     = 3 // runs of one closure that may end with a lost connection
)

// Verdict says what an error means for the transaction that it ended.
type Verdict uint8

// The verdicts.
const (
	Final  Verdict = iota // the statement is wrong or refused; another run would say the same
	Undone                // the server undid the transaction in favour of another; run it again
	Lost                  // the connection is gone, or the server is going
)

// A Dialect is what differs between servers.
type Dialect struct {
	Bind      func(query string) string                                            // rewrites question marks
	InsertNew func(s *Session, query string, args []any) (bool, error)             // engine.Session's
	Begin     func(ctx context.Context, tx *sql.Tx, level engine.Durability) error // runs first in a writing transaction
	Judge     func(error) Verdict                                                  // of errors that are not nil
	Explain   func(error) error                                                    // turns the server's refusals into faults; values are not in its text
	Snapshot  sql.IsolationLevel                                                   // what gives a reader one consistent view
	Tables    func(s engine.Session) ([]engine.Table, error)
	Unbound   []string                // statements that free a session from bounds on its statements
	NotDone   func(commit error) bool // whether a failed COMMIT surely did not happen
}

// Pool runs closures. Make it with its fields; call Init once.
type Pool struct {
	DB      *sql.DB
	Dialect Dialect
	Probe   engine.Probe
}

// Init bounds the pool.
func (p *Pool) Init() {
	p.DB.SetMaxOpenConns(connections)
	p.DB.SetMaxIdleConns(connections)
	p.DB.SetConnMaxIdleTime(5 * time.Minute)
}

// Write is engine.Engine's.
func (p *Pool) Write(ctx context.Context, level engine.Durability, work engine.Work) error {
	ctx, cancel := context.WithTimeout(ctx, Longest)
	defer cancel()
	start := time.Now()
	for run, lost := 0, 0; ; run++ {
		err := p.once(ctx, level, work, start)
		if err == nil {
			return nil
		}
		if own, ok := errors.AsType[engine.Own](err); ok {
			return own.Err
		}
		if errors.Is(err, engine.Unknown) {
			return err
		}
		verdict := p.Dialect.Judge(err)
		if verdict == Lost {
			lost++
		}
		if ctx.Err() != nil && verdict != Final {
			return engine.Left(ctx)
		}
		if verdict == Final || lost >= lostMax {
			return p.explain(ctx, err)
		}
		if !pause(ctx, run) {
			return engine.Left(ctx)
		}
	}
}

// pause waits a random time that grows with each run, so that rivals do not meet again; false when ctx ends first.
func pause(ctx context.Context, run int) bool {
	longest := min(time.Millisecond<<min(run, 7), 100*time.Millisecond)
	timer := time.NewTimer(rand.N(longest) + time.Millisecond/4)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once runs work in one transaction. An error other than Unknown means that nothing was stored.
func (p *Pool) once(ctx context.Context, level engine.Durability, work engine.Work, asked time.Time) error {
	waiting := time.Now()
	tx, err := p.DB.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		return err
	}
	p.Probe.Took(engine.PoolWait, time.Since(waiting))
	p.Probe.Took(engine.QueueWait, time.Since(asked))
	start := time.Now()
	if err := p.body(ctx, tx, level, work); err != nil {
		_ = tx.Rollback() // the transaction ends with its connection at the latest; err says why
		return err
	}
	done := time.Now()
	p.Probe.Took(engine.Statement, done.Sub(start))
	if err := p.commit(ctx, tx); err != nil {
		return err
	}
	p.Probe.Took(engine.Sync, time.Since(done))
	p.Probe.Batched(1)
	if work.Committed != nil {
		work.Committed()
	}
	p.Probe.Took(engine.CommitWait, time.Since(done))
	return nil
}

func (p *Pool) body(ctx context.Context, tx *sql.Tx, level engine.Durability, work engine.Work) error {
	if p.Dialect.Begin != nil {
		if err := p.Dialect.Begin(ctx, tx, level); err != nil {
			return err
		}
	}
	return work.Run(&Session{ctx: ctx, tx: tx, dialect: &p.Dialect, traced: p.Probe.Traced})
}

// commit tells a commit that surely failed from one whose outcome nobody knows.
func (p *Pool) commit(ctx context.Context, tx *sql.Tx) error {
	if ctx.Err() != nil {
		_ = tx.Rollback()
		return engine.Left(ctx)
	}
	err := tx.Commit()
	if err == nil || p.Dialect.NotDone(err) || p.Dialect.Judge(err) == Undone {
		return err
	}
	return engine.Unknown.Because(err)
}

// Read is engine.Engine's.
func (p *Pool) Read(ctx context.Context, fn func(engine.Session) error) error {
	start := time.Now()
	tx, err := p.DB.BeginTx(ctx, &sql.TxOptions{Isolation: p.Dialect.Snapshot, ReadOnly: true})
	if err != nil {
		return p.explain(ctx, err)
	}
	p.Probe.Took(engine.PoolWait, time.Since(start))
	err = fn(&Session{ctx: ctx, tx: tx, dialect: &p.Dialect, traced: p.Probe.Traced})
	_ = tx.Rollback() // nothing to keep; a lost connection has shown itself in err
	return p.explain(ctx, err)
}

// Export is engine.Engine's. Its connection has no bound on statements and is not used again.
func (p *Pool) Export(ctx context.Context, fn func(engine.Session, []engine.Table) error) (err error) {
	conn, err := p.DB.Conn(ctx)
	if err != nil {
		return p.explain(ctx, err)
	}
	defer func() {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // keeps it out of the pool
		_ = conn.Close()
	}()
	for _, statement := range p.Dialect.Unbound {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return p.explain(ctx, err)
		}
	}
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: p.Dialect.Snapshot, ReadOnly: true})
	if err != nil {
		return p.explain(ctx, err)
	}
	s := &Session{ctx: ctx, tx: tx, dialect: &p.Dialect, traced: p.Probe.Traced}
	tables, err := p.Dialect.Tables(s)
	if err == nil {
		err = fn(s, tables)
	}
	_ = tx.Rollback() // nothing to keep
	return p.explain(ctx, err)
}

// Stats is engine.Engine's.
func (p *Pool) Stats() engine.Stats {
	s := p.DB.Stats()
	return engine.Stats{Waits: s.WaitCount, Waited: s.WaitDuration, Open: s.OpenConnections}
}

func (p *Pool) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[engine.Own](err); ok {
		return own.Err
	}
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || p.Dialect.Judge(err) == Lost) {
		return engine.Left(ctx)
	}
	return p.Dialect.Explain(err)
}

// Session is a transaction's engine.Session.
type Session struct {
	ctx     context.Context
	tx      *sql.Tx
	dialect *Dialect
	traced  func(statement string)
}

// Exec is engine.Session's.
func (s *Session) Exec(query string, args []any) (int64, error) {
	s.traced(query)
	r, err := s.tx.ExecContext(s.ctx, s.dialect.Bind(query), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Query is engine.Session's.
func (s *Session) Query(query string, args []any) (*sql.Rows, error) {
	s.traced(query)
	return s.tx.QueryContext(s.ctx, s.dialect.Bind(query), args...)
}

// InsertNew is engine.Session's.
func (s *Session) InsertNew(query string, args []any) (bool, error) {
	return s.dialect.InsertNew(s, query, args)
}

// Context is engine.Session's.
func (s *Session) Context() context.Context { return s.ctx }
