// Package mariadb runs the store on MariaDB: SERIALIZABLE closures side by side, and hot rows in multi-row inserts
// that are read back where one was in the way.
//
// MariaDB says of a multi-row insert only that some key was taken. So the guard is asked first for the whole batch,
// the rest goes in as one transaction, and when a key is taken the batch is undone, its rows are looked up by their
// keys, and those that are new are appended again. MariaDB has no way to confirm before the sync for one transaction
// alone, so Written is Synced here.
package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"chancery/internal/core/store/internal/engine"
	"chancery/internal/core/store/internal/pool"
)

const (
	dialTime = 3 * time.Second
	batchers = 2
)

// Config says where the server is and how the engine reports.
type Config struct {
	URL   string // mysql://user:password@host:port/database
	Log   *slog.Logger
	Probe engine.Probe
}

// Engine is the store's engine on MariaDB.
type Engine struct {
	pool.Pool
	*pool.Batcher
	batch  *sql.DB
	closed sync.Once
}

// Open connects and checks that the server answers.
func Open(ctx context.Context, c Config) (*Engine, error) {
	config, err := address(c.URL)
	if err != nil {
		return nil, err
	}
	e := &Engine{}
	db, err := connect(config, "SERIALIZABLE")
	if err != nil {
		return nil, err
	}
	e.Pool = pool.Pool{DB: db, Dialect: dialect, Probe: c.Probe}
	e.Init()
	if err := e.DB.PingContext(ctx); err != nil {
		return nil, errors.Join(engine.Unreachable.Because(err), e.DB.Close())
	}
	if e.batch, err = connect(config, "READ-COMMITTED"); err != nil {
		return nil, errors.Join(err, e.DB.Close())
	}
	e.batch.SetMaxOpenConns(batchers)
	e.batch.SetMaxIdleConns(batchers)
	return e, nil
}

// address reads a mysql:// URL. The driver's own form has no place for a password with special characters.
func address(text string) (*mysql.Config, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the address of the database is no mysql:// URL") // err repeats the password
	}
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr = "tcp", u.Host
	if u.Port() == "" {
		c.Addr += ":3306"
	}
	if len(u.Path) > 1 {
		c.DBName = u.Path[1:]
	}
	if tls := u.Query().Get("tls"); tls != "" {
		c.TLSConfig = tls
	}
	c.Timeout = dialTime
	c.ClientFoundRows = true   // a change that changes nothing counts, as on the other databases
	c.InterpolateParams = true // one round trip a statement instead of three
	c.CheckConnLiveness = true
	c.Logger = &mysql.NopLogger{} // what matters comes back as an error
	c.Collation = "utf8mb4_bin"
	return c, nil
}

func connect(c *mysql.Config, isolation string) (*sql.DB, error) {
	c = c.Clone()
	seconds := strconv.Itoa(int(pool.Longest.Seconds()))
	c.Params = map[string]string{
		"tx_isolation":                   "'" + isolation + "'",
		"sql_mode":                       "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ANSI_QUOTES,ERROR_FOR_DIVISION_BY_ZERO'",
		"innodb_lock_wait_timeout":       "4",
		"max_statement_time":             seconds,
		"idle_write_transaction_timeout": seconds,
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the database: %w", err)
	}
	return sql.OpenDB(connector), nil
}

// Migrator gives the database handle that migrations run on.
func (e *Engine) Migrator() *sql.DB { return e.DB }

// Start starts the batching connections.
func (e *Engine) Start(context.Context) error {
	flushers := make([]pool.Flusher, batchers)
	for i := range flushers {
		flushers[i] = &flusher{db: e.batch, traced: e.Probe.Traced}
	}
	e.Batcher = pool.NewBatcher(dialect, e.Probe, flushers...)
	return nil
}

// Close finishes queued rows until ctx ends, refuses the rest and closes the connections.
func (e *Engine) Close(ctx context.Context) error {
	var err error
	e.closed.Do(func() {
		if e.Batcher != nil {
			err = e.Batcher.Close(ctx)
		}
		err = errors.Join(err, pool.Bounded(ctx, e.batch.Close), pool.Bounded(ctx, e.DB.Close))
	})
	return err
}

// dialect is what MariaDB does in its own way.
var dialect = pool.Dialect{
	Bind:      func(query string) string { return query },
	InsertNew: insertNew,
	Judge:     judge,
	Explain:   explain,
	Snapshot:  sql.LevelRepeatableRead,
	Tables:    tables,
	Unbound:   []string{"SET SESSION max_statement_time = 0", "SET SESSION net_write_timeout = 3600"},
	NotDone:   func(err error) bool { return judge(err) == pool.Final },
}

// insertNew does not use INSERT IGNORE, which would also turn wrong values into other ones.
func insertNew(s *pool.Session, query string, args []any) (bool, error) {
	n, err := s.Exec(query, args)
	if number(err) == duplicate { // MariaDB has undone the statement, not the transaction
		return false, nil
	}
	return n > 0, err
}

// Settings reads what a commit of this server stands on; see engine.Engine.
func (e *Engine) Settings(ctx context.Context) ([]engine.Setting, error) {
	settings := []engine.Setting{
		{Name: "innodb_flush_log_at_trx_commit", Why: "the server confirms commits before they are on the disk"},
		{Name: "innodb_doublewrite", Why: "a page that was half written when the power went cannot be repaired"},
		{Name: "innodb_flush_method", Why: "the server does not sync its data files"},
	}
	for i := range settings {
		s := &settings[i]
		if err := e.DB.QueryRowContext(ctx, "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_VARIABLES WHERE VARIABLE_NAME = ?",
			s.Name).Scan(&s.Value); err != nil {
			return nil, fmt.Errorf("reading %s: %w", s.Name, err)
		}
	}
	settings[0].Safe = settings[0].Value == "1" || settings[0].Value == "3"
	settings[1].Safe = settings[1].Value != "OFF" && settings[1].Value != "0"
	settings[2].Safe = settings[2].Value != "nosync" && settings[2].Value != "O_DIRECT_NO_FSYNC"
	return settings, nil
}
