package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"

	"chancery/internal/core/store/internal/engine"
)

// stepPages is how much of the file is copied between two transactions: 2 MB, a few milliseconds.
const stepPages = 512

// exportSuffix names the copy, with something random behind it.
const exportSuffix = ".export-"

// Export copies the file beside itself and runs fn on the copy. A reader on the file itself would keep the write-ahead
// log from being folded in for as long as the export takes. The copy is made by the writer's own connection in small
// steps between transactions, since SQLite carries that connection's changes over into the part that is copied already.
func (e *Engine) Export(ctx context.Context, fn func(engine.Session, []engine.Table) error) (err error) {
	path := e.Path + exportSuffix + rand.Text()
	if err := touch(path); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	if err := e.writer.copyTo(ctx, path); err != nil {
		return fmt.Errorf("copying the database: %w", explain(err))
	}
	db, err := sql.Open("sqlite", e.source(path, true)+"&immutable=1")
	if err != nil {
		return fmt.Errorf("opening the copy: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("opening the copy: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	s := newSession(conn, e.Probe.Traced)
	defer func() { err = errors.Join(err, s.forget()) }()
	_, err = s.snapshot(ctx, func(s engine.Session) error {
		tables, err := e.Tables(s)
		if err != nil {
			return err
		}
		return fn(s, tables)
	})
	return err
}

// sweep removes copies that an earlier process left when it was killed.
func (e *Engine) sweep() {
	left, err := filepath.Glob(e.Path + exportSuffix + "*")
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		e.Log.Warn("removing left-over copies of the database", "error", err)
	}
}

// Tables is engine.Engine's.
func (e *Engine) Tables(s engine.Session) ([]engine.Table, error) {
	return engine.TablesOf(s, `SELECT t.name, c.name, c.type FROM sqlite_schema t JOIN pragma_table_info(t.name) c
		WHERE t.type = 'table' ORDER BY t.name, c.cid`, "seq", "sqlite_", "goose_")
}

// A chore runs on the writing connection between transactions.
type chore struct {
	run  func(*sql.Conn) error
	done chan error
}

// between runs a chore and gives its error.
func (w *writer) between(ctx context.Context, run func(*sql.Conn) error) error {
	c := chore{run: run, done: make(chan error, 1)}
	select {
	case w.chores <- c:
	case <-ctx.Done():
		return engine.Left(ctx)
	case <-w.stopped:
		return engine.Closed
	}
	return <-c.done
}

// unsynced opens a copy that nobody needs once this process has ended. Its sync at the end of a step would hold the
// writer up for as long as the disk takes to write the whole copy.
func unsynced(path string) string {
	return address(path, url.Values{"_pragma": {"journal_mode(OFF)", "synchronous(OFF)"}})
}

func (w *writer) copyTo(ctx context.Context, path string) (err error) {
	var b *sqlite.Backup
	err = w.between(ctx, func(conn *sql.Conn) error {
		return conn.Raw(func(c any) (err error) {
			b, err = c.(interface {
				NewBackup(string) (*sqlite.Backup, error)
			}).NewBackup(unsynced(path))
			return err
		})
	})
	if err != nil {
		return err
	}
	defer func() {
		finish := w.between(context.WithoutCancel(ctx), func(*sql.Conn) error { return b.Finish() })
		err = errors.Join(err, finish)
	}()
	for more := true; more; {
		err := w.between(ctx, func(*sql.Conn) (err error) {
			more, err = b.Step(stepPages)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
