// Package engine is the contract between the store and the three databases below it: what a transaction, a hot append
// and a durability setting are, and what must be true when a call returns.
//
// The store owns meaning (audit, change feed, seals, backup, bounds); an engine owns one database's way to commit:
// who runs closures, how rows are batched, which errors mean "run it again" and which mean "nobody knows". Engines
// know no table of the store but the ones named here, and no room above the store knows that engines exist.
package engine

import (
	"context"
	"database/sql"
	"time"
)

// An Engine runs transactions on one database. All methods are safe for concurrent use; every context carries a
// deadline, and an engine answers by then whatever the database does.
type Engine interface {
	// Write runs work in a transaction that sees no other writer's half-done work. When it returns nil, the
	// transaction is committed at the given durability and work.Committed has returned. It returns an Own error of
	// work.Run unmarked, Unknown where the outcome of a commit is not known, and another fault where nothing was
	// stored. It never returns while work.Run is running.
	Write(ctx context.Context, level Durability, work Work) error
	// Read runs fn on one consistent snapshot. A statement that writes fails.
	Read(ctx context.Context, fn func(Session) error) error
	// Export runs fn on one consistent snapshot for as long as it takes, without holding up writers, and gives it the
	// tables there are. Only ctx bounds it.
	Export(ctx context.Context, fn func(Session, []Table) error) error
	// Tables gives the tables there are, in the order of their names.
	Tables(session Session) ([]Table, error)
	// Append stores one row of h, batched with the rows of other callers, and returns when the row's outcome is
	// committed and synced. row has a value of the right kind for each column; its bytes
	// do not change afterwards.
	Append(ctx context.Context, h *Hot, row []any) (Appended, error)
	// Settings reads the settings of the database, and what it stands on, that decide whether a commit lasts.
	Settings(ctx context.Context) ([]Setting, error)
	// Follow begins to read the change feed from here on, for the commits of other processes. It gives nil where there
	// can be none.
	Follow(ctx context.Context) (Follower, error)
	// Positions says how the rows of audit and hot tables are ordered.
	Positions() Positions
	// Stats says how the engine does at the moment, without asking the database.
	Stats() Stats
	// Backlog says how many writes wait, and for how long the oldest has.
	Backlog() (waiting int, oldest time.Duration)
	// Close finishes what is queued until ctx ends, refuses the rest, and frees the database.
	Close(ctx context.Context) error
}

// A Follower reads the change feed. One goroutine uses it, but for Wake.
type Follower interface {
	// Next gives the rows of the feed that other transactions may still be adding to: every row that is committed after
	// Follow is in some answer, and once it is missing from a later answer it never comes again.
	Next(ctx context.Context) ([]FeedRow, error)
	// Wait returns when there may be something new, after a fraction of a second at the latest.
	Wait(ctx context.Context)
	// Wake makes the followers of other processes look soon. It does not wait for them.
	Wake()
	Close()
}

// A FeedRow is a committed row of the change feed.
type FeedRow struct {
	Seq                 int64
	Topic, Item, Origin string
}

// Work is a closure and what follows its commit.
type Work struct {
	Run       func(Session) error // may run more than once; only the last run counts
	Committed func()              // runs once, after the commit and before Write returns; in commit order where there is one writer
}

// Own marks the error that a closure gave by itself, with no statement failing. It says nothing about the database:
// engines give Err to the caller as it is and never run the closure again for it.
type Own struct{ Err error }

// Error is Err's.
func (o Own) Error() string { return o.Err.Error() }

// Unwrap gives Err.
func (o Own) Unwrap() error { return o.Err }

// A Session runs statements inside one transaction, under the engine's context. After an error the transaction is
// spoiled: the caller returns, and the engine rolls back. Placeholders are question marks.
type Session interface {
	Exec(query string, args []any) (affected int64, err error)
	Query(query string, args []any) (*sql.Rows, error)
	// InsertNew runs an INSERT that is not an error when a unique key exists already; it reports whether a row went in.
	InsertNew(query string, args []any) (inserted bool, err error)
	// Context is what the statements run under; the engine may end it before the caller's.
	Context() context.Context
}

// A Table is a table of the database as its catalogue has it.
type Table struct {
	Name    string
	Columns []Column // without the position column
	Ordered bool     // it has a position column
}

// Durability says what a commit survives.
type Durability uint8

// The levels of durability. The zero level is the safe one.
const (
	Synced  Durability = iota // survives the loss of power
	Written                   // survives the death of the process, not the loss of power
)

// A Setting is one thing that decides whether "committed" is true.
type Setting struct {
	Name  string // as the database spells it, e.g. "fsync"
	Value string // as found
	Safe  bool   // false: an acknowledged change may be lost
	Why   string // what an unsafe value means, in one sentence
}

// Positions orders the rows of a table by the time of their storing, near enough: each row has a position, and the
// bound of a snapshot is a position at or below which no row will appear any more, or with Late, hardly any.
type Positions struct {
	Column string        // the column, by name; "?" placeholders below take integers
	Select string        // expression that gives a row's position as an integer
	After  string        // condition: position > ?
	UpTo   string        // condition: position <= ?
	Bound  string        // query for the bound of a table, whose name replaces TABLE
	Unique bool          // no two rows of a table share a position
	Late   time.Duration // rows may still appear below the bound for so long; 0 for never
}

// Stats says how an engine does. Fields that a database does not have are zero.
type Stats struct {
	LogBytes   int64         // SQLite: size of the write-ahead log
	LogHeld    time.Duration // SQLite: for how long a reader has kept the log from being folded in, past 32 MB
	OldestRead time.Duration // SQLite: age of the oldest open read of this process
	Waits      int64         // callers that waited for a pooled connection since the start
	Waited     time.Duration // how long they did, all together
	Open       int           // pooled connections
}

// A Phase is a part of a write that is timed on its own.
type Phase uint8

// The phases of a write.
const (
	QueueWait  Phase = iota // from the call to the start of its work
	Statement               // running one closure, or one batch of rows
	CommitWait              // from the end of one closure's work to its answer
	Sync                    // the database's COMMIT, the sync to disk included
	PoolWait                // until a connection was free
)

var phaseNames = [...]string{"queue", "write", "commit_wait", "sync", "pool_wait"}

// String gives the phase as metrics name it.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "unknown"
}

// A Probe is told how long phases take, how many writes shared a commit and which statements run, without their
// values. Its functions are quick, safe for concurrent use and never nil.
type Probe struct {
	Took    func(Phase, time.Duration)
	Batched func(writes int)
	Traced  func(statement string)
}
