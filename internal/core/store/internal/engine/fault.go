package engine

import (
	"context"
	"time"

	"chancery/internal/base/fault"
)

// The faults that engines give. An occurrence carries its cause; compare with errors.Is.
var (
	// Unknown: the database did not say whether it committed. The work is never run again; callers are idempotent.
	Unknown = fault.New(fault.Unknown, "outcome_unknown",
		"The database did not confirm the change; it may or may not be stored.").
		WithHint("Ask again with the same idempotency key: if it was stored, you get the stored answer.")
	// Busy: the deadline passed or the caller left before the work was done; nothing was stored.
	Busy = fault.New(fault.Unavailable, "store_busy",
		"The database did not get to this request in time; nothing was stored.").After(time.Second)
	// Unreachable: the database cannot be reached or answers with failures; nothing was stored.
	Unreachable = fault.New(fault.Unavailable, "store_unreachable",
		"The database cannot be reached at the moment; nothing was stored.").After(2 * time.Second)
	// Unstorable: a text cannot stand in a column; nothing was stored.
	Unstorable = fault.New(fault.Invalid, "text_invalid",
		"A text in the request holds a character that cannot stand there; nothing was stored.")
	// Full: the disk or the database's size limit is used up; nothing was stored.
	Full = fault.New(fault.Unavailable, "store_full",
		"The disk of the database is full; nothing was stored.").After(10 * time.Second).
		WithHint("Free space on the disk of the data directory; the service goes on without a restart.")
	// ReadOnly: the database refuses writes; nothing was stored.
	ReadOnly = fault.New(fault.Unavailable, "store_read_only",
		"The database accepts no changes at the moment; nothing was stored.").After(10 * time.Second)
	// Closed: the store is shutting down; nothing was stored.
	Closed = fault.New(fault.Unavailable, "store_closed",
		"The service is shutting down; nothing was stored.").After(time.Second)
	// Stale: a reader held its snapshot for so long that it kept the database from tidying up.
	Stale = fault.New(fault.Unavailable, "snapshot_too_old",
		"The read took so long that the database could keep its snapshot no longer.").After(time.Second)
)

// Left is the fault for a caller whose context ended while nothing was stored.
func Left(ctx context.Context) error { return Busy.Because(context.Cause(ctx)) }
