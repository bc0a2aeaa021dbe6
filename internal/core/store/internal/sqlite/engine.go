// Package sqlite runs the store on one SQLite file: one writer that commits many callers' work together, and a pool
// of readers on snapshots.
//
// The idea: a sync to disk costs the same for one change as for a thousand. While the disk syncs, work queues up; the
// next SQL transaction takes all of it, each closure in a savepoint of its own, each hot row in one statement. Nothing
// is ever delayed on purpose.
//
// What holds: the writer's statements never run under a caller's context, because an interrupted statement rolls the
// whole transaction back, savepoints and all. Where SQLite ends a transaction by itself (interrupt, full disk, I/O
// error, no memory) the rollback hook tells; nobody is answered, the one at fault gets its error, the others run again.
// A sync that failed leaves the page cache in doubt, so after an I/O error of a commit or a checkpoint, whichever it is,
// Fatal is called and must not return.
// The write-ahead log stays bounded: checkpoints are SQLite's own, and readers that hold it open too long are ended.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"chancery/internal/core/store/internal/engine"
)

const (
	logPages = 5000     // of 4 KB; automatic checkpoint, 20 MB of write-ahead log
	logKeep  = 24 << 20 // the log file is cut to this after it was folded in
	readers  = 8
	cached   = 32 << 20 // memory for pages
)

// Config says where the file is and how the engine reports.
type Config struct {
	Path  string
	Cache int64 // bytes for pages, of all connections together; 0 is 32 MB
	Log   *slog.Logger
	Probe engine.Probe
	Fatal func(error) // called after an I/O error of a commit or a checkpoint; it does not return
}

// Engine is the store's engine on one SQLite file.
type Engine struct {
	Config
	write  *sql.DB // one connection, the writer's
	read   *sql.DB
	pool   *readPool
	writer *writer
	views  views
	closed atomic.Bool
}

// Open opens the file, making it with mode 0600 where there is none, and starts the writer. The caller holds the
// lock that keeps other processes out.
func Open(ctx context.Context, c Config) (*Engine, error) {
	if err := touch(c.Path); err != nil {
		return nil, err
	}
	// On the platforms where it exists, fdatasync is as durable for a log of data pages and takes half the time.
	if _, err := sqlite.Fdatasync(true); err != nil && !errors.Is(err, sqlite.ErrFdatasyncUnavailable) {
		return nil, fmt.Errorf("choosing fdatasync: %w", err)
	}
	c.Cache = cmp.Or(c.Cache, cached)
	e := &Engine{Config: c}
	e.sweep()
	if err := e.connect(ctx); err != nil {
		return nil, errors.Join(err, e.free())
	}
	return e, nil
}

func (e *Engine) connect(ctx context.Context) (err error) {
	if e.write, err = sql.Open("sqlite", e.source(e.Path, false)); err != nil {
		return fmt.Errorf("opening %s: %w", e.Path, err)
	}
	e.write.SetMaxOpenConns(1)
	if e.read, err = sql.Open("sqlite", e.source(e.Path, true)); err != nil {
		return fmt.Errorf("opening %s: %w", e.Path, err)
	}
	e.read.SetMaxOpenConns(readers)
	e.read.SetMaxIdleConns(readers)
	e.pool = newReadPool(e.read, e.Probe.Traced)
	return e.write.PingContext(ctx)
}

// Start hands the writing connection to the writer; migrations run before.
func (e *Engine) Start(ctx context.Context) error {
	w, err := newWriter(ctx, e)
	if err != nil {
		return err
	}
	e.writer = w
	go w.run()
	return nil
}

// Migrator gives the database handle that migrations run on, usable until Start.
func (e *Engine) Migrator() *sql.DB { return e.write }

// touch makes the file with a mode that keeps others out, and its entry in the directory durable; SQLite gives its log
// and index files the same mode.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("opening the database file: %w", err)
	}
	defer f.Close()
	if runtime.GOOS == "windows" { // directories cannot be synced there, and need not be
		return nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("opening the directory of the database: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("syncing the directory of the database: %w", err)
	}
	return nil
}

// source gives the address of a file with the settings of a connection. Two thirds of the cache are the writer's, and
// the readers share the rest.
func (e *Engine) source(path string, readOnly bool) string {
	q := url.Values{}
	add := func(p string) { q.Add("_pragma", p) }
	if readOnly {
		add("query_only(1)")
		add(fmt.Sprintf("cache_size(-%d)", e.Cache/3/readers>>10))
	} else {
		add("journal_mode(WAL)")
		add("synchronous(FULL)")
		add("fullfsync(1)") // macOS: past the drive's cache; elsewhere without effect
		add("checkpoint_fullfsync(1)")
		add(fmt.Sprintf("wal_autocheckpoint(%d)", logPages))
		add(fmt.Sprintf("journal_size_limit(%d)", logKeep))
		add(fmt.Sprintf("cache_size(-%d)", e.Cache/3*2>>10))
	}
	add("busy_timeout(1000)")
	add("foreign_keys(1)")
	add("temp_store(MEMORY)")
	return address(path, q)
}

// address writes a path as the address that the driver opens.
func address(path string, q url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/… on Windows
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String()
}

// Write queues work for the writer; see engine.Engine.
func (e *Engine) Write(ctx context.Context, level engine.Durability, work engine.Work) error {
	j := newJob(ctx)
	j.work = work
	return e.writer.do(j, level)
}

// Append queues one row for the writer; see engine.Engine.
func (e *Engine) Append(ctx context.Context, h *engine.Hot, row []any) (engine.Appended, error) {
	j := newJob(ctx)
	j.hot, j.row = h, row
	err := e.writer.do(j, engine.Synced)
	if err != nil {
		return engine.Appended{}, err
	}
	return j.result, nil
}

// Backlog says how many writes wait, and for how long the oldest has.
func (e *Engine) Backlog() (int, time.Duration) { return e.writer.backlog() }

// Stats says how the engine does at the moment.
func (e *Engine) Stats() engine.Stats {
	return engine.Stats{
		LogBytes: fileSize(e.Path + "-wal"), LogHeld: e.writer.fold.lasts(), OldestRead: e.views.oldest().age(),
		Waits: e.pool.waits.Load(), Waited: time.Duration(e.pool.waited.Load()), Open: len(e.pool.all),
	}
}

// Close finishes what is queued until ctx ends, refuses the rest, folds the log into the file and closes it.
func (e *Engine) Close(ctx context.Context) error {
	if e.closed.Swap(true) {
		return nil
	}
	var err error
	if e.writer != nil {
		err = e.writer.close(ctx)
	}
	e.views.end(0)
	e.pool.close()
	return errors.Join(err, e.free())
}

func (e *Engine) free() error {
	var errs []error
	for _, db := range []*sql.DB{e.read, e.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
