// Package postgres runs the store on PostgreSQL: SERIALIZABLE closures side by side, and hot rows in one statement a
// batch that says what became of each row.
//
// A row of a batch is written unless the guard or a unique key stands in its way; those that come back unwritten are
// looked up in one more round trip. The batching connections plan without sequential scans, so that a plan made while
// the guard's table was small stays good when it has grown.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"chancery/internal/core/store/internal/engine"
	"chancery/internal/core/store/internal/pool"
)

// dialTime bounds one attempt to connect.
const dialTime = 3 * time.Second

// Config says where the server is and how the engine reports.
type Config struct {
	URL   string
	Log   *slog.Logger
	Probe engine.Probe
}

// Engine is the store's engine on PostgreSQL.
type Engine struct {
	pool.Pool
	*pool.Batcher
	log    *slog.Logger
	config *pgx.ConnConfig
	batch  *pgx.ConnConfig
	closed sync.Once
}

// Open connects and checks that the server answers.
func Open(ctx context.Context, c Config) (*Engine, error) {
	config, err := pgx.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the database: %w", scrub(err))
	}
	config.ConnectTimeout = dialTime
	config.RuntimeParams["application_name"] = "chancery"
	config.RuntimeParams["idle_in_transaction_session_timeout"] = milliseconds(pool.Longest)
	config.RuntimeParams["lock_timeout"] = milliseconds(pool.Longest)
	batch := config.Copy()
	batch.RuntimeParams["default_transaction_isolation"] = "read committed"
	batch.RuntimeParams["enable_seqscan"] = "off"
	batch.RuntimeParams["statement_timeout"] = milliseconds(pool.Longest)

	e := &Engine{log: c.Log, config: config, batch: batch}
	e.Pool = pool.Pool{DB: stdlib.OpenDB(*config), Dialect: dialect, Probe: c.Probe}
	e.Init()
	if err := e.DB.PingContext(ctx); err != nil {
		return nil, errors.Join(engine.Unreachable.Because(scrub(err)), e.DB.Close())
	}
	return e, nil
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// Migrator gives the database handle that migrations run on.
func (e *Engine) Migrator() *sql.DB { return e.DB }

// Start starts the batching connections.
func (e *Engine) Start(context.Context) error {
	one, other := &flusher{config: e.batch, traced: e.Probe.Traced}, &flusher{config: e.batch, traced: e.Probe.Traced}
	e.Batcher = pool.NewBatcher(dialect, e.Probe, one, other)
	return nil
}

// Close finishes queued rows until ctx ends, refuses the rest and closes the connections.
func (e *Engine) Close(ctx context.Context) error {
	var err error
	e.closed.Do(func() {
		if e.Batcher != nil {
			err = e.Batcher.Close(ctx)
		}
		err = errors.Join(err, pool.Bounded(ctx, e.DB.Close))
	})
	return err
}

// dialect is what PostgreSQL does in its own way.
var dialect = pool.Dialect{
	Bind:      numbered,
	InsertNew: insertNew,
	Begin:     begin,
	Judge:     judge,
	Explain:   explain,
	Snapshot:  sql.LevelRepeatableRead,
	Tables:    tables,
	Unbound:   []string{"SET statement_timeout = 0", "SET idle_in_transaction_session_timeout = 0"},
	NotDone:   undone,
}

// bound remembers rewritten statements; the rooms have a fixed set of them.
var bound sync.Map

func numbered(query string) string {
	if known, ok := bound.Load(query); ok {
		return known.(string)
	}
	rewritten := engine.Numbered(query)
	bound.Store(query, rewritten)
	return rewritten
}

func insertNew(s *pool.Session, query string, args []any) (bool, error) {
	n, err := s.Exec(query+" ON CONFLICT DO NOTHING", args)
	return n > 0, err
}

func begin(ctx context.Context, tx *sql.Tx, level engine.Durability) error {
	if level == engine.Synced {
		return nil
	}
	_, err := tx.ExecContext(ctx, "SET LOCAL synchronous_commit = off")
	return err
}
