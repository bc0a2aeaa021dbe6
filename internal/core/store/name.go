package store

import "chancery/internal/core/store/internal/engine"

// The words that the store shares with its engines.
type (
	// Durability says what a commit survives.
	Durability = engine.Durability
	// Phase is a part of a write that is timed on its own.
	Phase = engine.Phase
	// Setting is a durability setting of the database.
	Setting = engine.Setting
	// Hot describes a table that takes appended rows at the full rate of the database.
	Hot = engine.Hot
	// Column is a column of a hot table.
	Column = engine.Column
	// Kind is the kind of a column of a hot table.
	Kind = engine.Kind
	// Guard refuses a row while another table holds one of its values.
	Guard = engine.Guard
	// Appended is the answer to one appended row.
	Appended = engine.Appended
	// Outcome is what became of an appended row.
	Outcome = engine.Outcome
	// Stats says how a database does.
	Stats = engine.Stats
)

// The levels of durability.
const (
	Synced  = engine.Synced  // survives the loss of power
	Written = engine.Written // survives the death of the process only
)

// The kinds of columns, with int64, string and []byte as their values.
const (
	Int   = engine.Int
	Text  = engine.Text
	Bytes = engine.Bytes
)

// The outcomes of an append.
const (
	Inserted = engine.Inserted // the row is stored
	Exists   = engine.Exists   // a row with one of its keys was stored before
	Refused  = engine.Refused  // the guard holds one of its values
)

// The phases of a write.
const (
	QueueWait  = engine.QueueWait
	Statement  = engine.Statement
	CommitWait = engine.CommitWait
	Sync       = engine.Sync
	PoolWait   = engine.PoolWait
)

// The faults of the store; an occurrence carries its cause, so compare with errors.Is.
var (
	Unknown     = engine.Unknown     // nobody knows whether the commit happened; callers are idempotent
	Busy        = engine.Busy        // not in time; nothing was stored
	Unreachable = engine.Unreachable // the database cannot be reached; nothing was stored
	Full        = engine.Full        // the disk is full; nothing was stored
	ReadOnly    = engine.ReadOnly    // the database accepts no changes; nothing was stored
	Closed      = engine.Closed      // shutting down; nothing was stored
	Stale       = engine.Stale       // a read held its snapshot for too long
)
