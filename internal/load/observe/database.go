package observe

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// A dialect is what one kind of database server is asked.
type dialect struct {
	sessions string // what this database's sessions wait for, and how many; ours left out
	plain    string // the same for an account that may not ask so closely
	settings string // names and values of some settings
	durable  []string
}

var (
	postgres = &dialect{
		sessions: `SELECT coalesce(wait_event_type || ':' || wait_event, state, 'unknown'), count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() GROUP BY 1 LIMIT 100`,
		settings: "SELECT name, setting FROM pg_settings WHERE name IN (%s)",
		durable:  []string{"server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "commit_delay", "wal_level"},
	}
	mariaDB = &dialect{
		// The performance schema names the innermost wait. It is off by default, and its tables are empty then.
		sessions: `SELECT COALESCE((SELECT w.EVENT_NAME FROM performance_schema.events_waits_current w
				JOIN performance_schema.threads t ON t.THREAD_ID = w.THREAD_ID
				WHERE t.PROCESSLIST_ID = p.ID AND w.END_EVENT_ID IS NULL ORDER BY w.EVENT_ID DESC LIMIT 1),
			NULLIF(p.STATE, ''), p.COMMAND) AS what, COUNT(*) FROM information_schema.PROCESSLIST p
			WHERE p.DB = DATABASE() AND p.ID <> CONNECTION_ID() GROUP BY what LIMIT 100`,
		plain: `SELECT COALESCE(NULLIF(STATE, ''), COMMAND) AS what, COUNT(*) FROM information_schema.PROCESSLIST
			WHERE DB = DATABASE() AND ID <> CONNECTION_ID() GROUP BY what LIMIT 100`,
		settings: "SELECT LOWER(VARIABLE_NAME), VARIABLE_VALUE FROM information_schema.GLOBAL_VARIABLES WHERE VARIABLE_NAME IN (%s)",
		durable:  []string{"version", "innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_flush_method", "innodb_doublewrite"},
	}
)

// Connect gives a handle on the database server that a store URL names; it connects when it is first used. db is nil
// for SQLite, which has no server. No error repeats the address, which may hold a password.
func Connect(storeURL string) (db *sql.DB, err error) {
	db, _, err = connect(storeURL)
	return db, err
}

func connect(storeURL string) (*sql.DB, *dialect, error) {
	scheme, _, _ := strings.Cut(storeURL, ":")
	switch scheme {
	case "", "sqlite":
		return nil, nil, nil
	case "postgres", "postgresql":
		c, err := pgx.ParseConfig(storeURL)
		if err != nil {
			return nil, nil, errors.New("the store's address is no postgres:// URL")
		}
		c.ConnectTimeout = connectWithin
		return stdlib.OpenDB(*c), postgres, nil
	case "mysql", "mariadb":
		db, err := connectMariaDB(storeURL)
		return db, mariaDB, err
	}
	return nil, nil, errors.New("want a store address such as sqlite:FILE, postgres://… or mysql://…")
}

const connectWithin = 3 * time.Second

func connectMariaDB(storeURL string) (*sql.DB, error) {
	u, err := url.Parse(storeURL)
	if err != nil {
		return nil, errors.New("the store's address is no mysql:// URL")
	}
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr = u.User.Username(), "tcp", u.Host
	c.Passwd, _ = u.User.Password()
	c.DBName, c.TLSConfig = strings.TrimPrefix(u.Path, "/"), u.Query().Get("tls")
	c.Timeout = connectWithin
	c.Logger = &mysql.NopLogger{} // what matters comes back as an error
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, errors.New("the store's address is no mysql:// URL that can be used")
	}
	return sql.OpenDB(connector), nil
}

// Sessions of one database, asked on one connection of their own. One goroutine uses them; nil ones are none.
type sessions struct {
	db    *sql.DB
	query string
	plain string // asked when the server refuses query; empty: nothing
}

// newSessions gives nil where no database server is named.
func newSessions(storeURL string) (*sessions, error) {
	db, d, err := connect(storeURL)
	if err != nil {
		return nil, fmt.Errorf("watch the database: %w", err)
	}
	if db == nil {
		return nil, nil
	}
	db.SetMaxOpenConns(1)
	return &sessions{db, d.sessions, d.plain}, nil
}

func (s *sessions) close() {
	if s != nil {
		_ = s.db.Close() // it only read
	}
}

// waits counts the sessions by what they wait for at this moment.
func (s *sessions) waits(ctx context.Context) (map[string]int, error) {
	if s == nil {
		return nil, nil
	}
	all, err := pairs[int](ctx, s.db, s.query)
	if refused := (*mysql.MySQLError)(nil); s.plain != "" && errors.As(err, &refused) {
		s.query, s.plain = s.plain, ""
		all, err = pairs[int](ctx, s.db, s.query)
	}
	return all, err
}

// pairs reads the rows of a query that gives names and values.
func pairs[V any](ctx context.Context, db *sql.DB, query string) (all map[string]V, err error) {
	found, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	all = map[string]V{}
	for found.Next() {
		var name string
		var value V
		if err := found.Scan(&name, &value); err != nil {
			return nil, err
		}
		all[name] = value
	}
	return all, found.Err()
}

// A Setting is a fact about a database server, by its own name for it.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Durability gives the version of the database server that a store URL names, and the settings that decide what its
// commits survive, as they stand for a new session and without a judgement. It is nil for SQLite, whose settings the
// server tells.
func Durability(ctx context.Context, storeURL string) ([]Setting, error) {
	db, d, err := connect(storeURL)
	if err != nil || db == nil {
		return nil, err
	}
	defer func() { _ = db.Close() }() // it only read
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	found, err := pairs[string](ctx, db, fmt.Sprintf(d.settings, "'"+strings.Join(d.durable, "', '")+"'"))
	if err != nil {
		return nil, fmt.Errorf("ask the database for its settings: %w", err)
	}
	var all []Setting
	for _, name := range d.durable {
		if value, ok := found[name]; ok {
			all = append(all, Setting{name, value})
		}
	}
	return all, nil
}
