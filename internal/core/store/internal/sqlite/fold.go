package sqlite

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

const (
	logHigh     = 32 << 20               // from here on the writer ends old reads and folds the log in itself
	logFull     = 48 << 20               // from here on it ends every read, and lets none begin meanwhile
	readerGrace = time.Second            // for how long a read may stand in the way
	foldEvery   = 250 * time.Millisecond // between two tries while somebody does
	foldWait    = 20 * time.Millisecond  // for which the writer waits for readers at one try
	foldFull    = 250 * time.Millisecond // the same past logFull
	foldAgain   = time.Minute            // between two tries past logFull, and between two reports
	lockWait    = time.Second            // for which a statement waits for a lock otherwise
)

// A fold is what the writer knows of a log that has grown large. Only since is read by others.
type fold struct {
	since atomic.Int64 // Unix nanoseconds since when the log has been past logHigh, 0 while it is not
	tried time.Time
	vain  time.Time // of the last try past logFull that helped nothing: no read of this process stands in the way
	told  time.Time // of the last report about reads that were ended
}

func (f *fold) lasts() time.Duration {
	since := f.since.Load()
	if since == 0 {
		return 0
	}
	return time.Since(time.Unix(0, since))
}

// tidy keeps the write-ahead log bounded. SQLite folds it in by itself, but cannot start it anew while a reader stands
// on it. Past logHigh, reads of this process that have had their time are ended; past logFull all of them. When the
// log cannot be folded in even then, somebody else reads it, whom nobody here can end: that is reported, and the reads
// of this process are left alone until the next report.
func (w *writer) tidy() {
	size, now := fileSize(w.e.Path+"-wal"), time.Now()
	if size < logHigh {
		w.fold.since.Store(0)
		return
	}
	w.fold.since.CompareAndSwap(0, now.UnixNano())
	foreign := now.Sub(w.fold.vain) < foldAgain
	full := size >= logFull && !foreign
	if now.Sub(w.fold.tried) < foldEvery && !full {
		return
	}
	w.fold.tried = now
	if !foreign {
		w.endReads(readerGrace, size)
	}
	if !w.foldIn(foldWait) && full {
		w.foldAlone(size)
	}
}

// foldAlone folds the log in while no read can begin, and reports whoever stands in the way all the same.
func (w *writer) foldAlone(size int64) {
	views := &w.e.views
	views.entry.Lock()
	defer views.entry.Unlock()
	w.endReads(0, size)
	if w.foldIn(foldFull) {
		return
	}
	w.fold.vain = time.Now()
	about := []any{"log_bytes", size, "since", w.fold.lasts().Round(time.Millisecond)}
	if own := views.oldest(); own != nil { // it was told to end, and does not look
		about = append(about, "reader", own.operation(), "age", own.age())
	} else {
		about = append(about, "reader", "another process", "process_ids", holders(w.e.Path+"-shm"))
	}
	w.e.Log.Warn("a reader keeps the write-ahead log from being folded in; it grows until the reader ends", about...)
}

// endReads ends the reads of this process that are older than grace. It says so once a minute: under load the next
// ones follow at once.
func (w *writer) endReads(grace time.Duration, size int64) {
	n, oldest := w.e.views.end(grace)
	if n == 0 || time.Since(w.fold.told) < foldAgain {
		return
	}
	w.fold.told = time.Now()
	w.e.Log.Warn("ended reads that kept the write-ahead log from being folded in",
		"reads", n, "reader", oldest.operation(), "age", oldest.age(), "log_bytes", size)
}

// foldIn moves the log into the file and cuts it to nothing, waiting for readers for so long; it reports whether that
// was possible.
func (w *writer) foldIn(wait time.Duration) bool {
	err := w.patience(wait)
	if err == nil {
		defer func() {
			if err := w.patience(lockWait); err != nil {
				w.e.Log.Warn("setting the time that a statement waits for a lock", "error", err)
			}
		}()
		var busy bool
		if busy, err = w.checkpoint(); err == nil {
			if !busy {
				w.fold.since.Store(0)
			}
			return !busy
		}
	}
	w.fatal(err)
	w.e.Log.Warn("folding in the write-ahead log", "error", err)
	return false
}

// checkpoint runs SQLite's. It reports busy when readers kept it from the end.
func (w *writer) checkpoint() (busy bool, err error) {
	rows, err := w.session.Query("PRAGMA wal_checkpoint(TRUNCATE)", nil)
	if err != nil {
		return false, err
	}
	defer closeRows(rows, &err)
	var log, folded int64
	for rows.Next() {
		if err := rows.Scan(&busy, &log, &folded); err != nil {
			return false, err
		}
	}
	return busy, rows.Err()
}

func (w *writer) patience(wait time.Duration) error {
	_, err := w.session.Exec(fmt.Sprintf("PRAGMA busy_timeout = %d", wait.Milliseconds()), nil)
	return err
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
