package sqlite

import (
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"chancery/internal/base/fault"
	"chancery/internal/core/store/internal/engine"
)

// explain turns what SQLite says into the store's faults; any other error stays as it is.
func explain(err error) error {
	if own, ok := errors.AsType[engine.Own](err); ok {
		return own.Err
	}
	if _, ok := fault.As(err); ok || err == nil {
		return err
	}
	switch primary(err) {
	case sqlite3.SQLITE_FULL:
		return engine.Full.Because(err)
	case sqlite3.SQLITE_READONLY:
		return engine.ReadOnly.Because(err)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM:
		return engine.Unreachable.Because(err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return engine.Busy.Because(err)
	}
	return err
}

// primary gives SQLite's primary result code, or 0 for any other error.
func primary(err error) int { return extended(err) & 0xff }

func extended(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// doubtful reports whether err, of a commit or a checkpoint, leaves open what is on the disk: after a failed sync the
// kernel may have dropped the pages that it could not write and call the next sync a success. Every I/O error counts, but
// for want of memory: not each of them names the call that failed.
func doubtful(err error) bool {
	return primary(err) == sqlite3.SQLITE_IOERR && extended(err) != sqlite3.SQLITE_IOERR_NOMEM
}
