package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/core/store/internal/engine"
	"chancery/internal/core/store/internal/mariadb"
	"chancery/internal/core/store/internal/postgres"
	"chancery/internal/core/store/internal/sqlite"
)

// openTime bounds an Open whose context has no deadline; migrations of large tables take their time.
const openTime = 10 * time.Minute

// opener is an engine between its opening and its start; migrations run there.
type opener interface {
	engine.Engine
	Migrator() *sql.DB
	Start(context.Context) error
}

var errURL = fault.New(fault.Invalid, "store_url",
	"The store's address must begin with sqlite:, postgres: or mysql:.")

func (s *Store) open(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, openTime)
		defer cancel()
	}
	o, d, err := s.connect(ctx)
	if err != nil {
		return err
	}
	s.engine = o
	if err := migrate(ctx, d, o.Migrator(), s.config.Log, latest); err != nil {
		return err
	}
	if err := o.Start(ctx); err != nil {
		return fmt.Errorf("starting the store: %w", err)
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	if err := s.Read(ctx, whole); err != nil {
		return err
	}
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.tasks.start(background, s.trim)
	s.tasks.start(background, s.seals)
	return s.beginFollowing(ctx, background)
}

// connect opens the engine that the address asks for. A file's lock is taken before anything touches the file.
func (s *Store) connect(ctx context.Context) (o opener, d dialect, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	c := s.config
	probe := engine.Probe{Took: c.Observe, Batched: c.ObserveBatch, Traced: c.Trace}
	scheme, rest, _ := strings.Cut(c.URL, ":")
	switch scheme {
	case "sqlite":
		path, err := filepath.Abs(strings.TrimPrefix(rest, "//"))
		if err != nil {
			return nil, d, fmt.Errorf("finding the database file: %w", err)
		}
		if s.lock, err = acquire(path + ".lock"); err != nil {
			return nil, d, err
		}
		o, err = opened(sqlite.Open(ctx, sqlite.Config{Path: path, Cache: c.Cache, Log: c.Log, Probe: probe, Fatal: c.Fatal}))
		return o, dialectSQLite, err
	case "postgres", "postgresql":
		o, err = opened(postgres.Open(ctx, postgres.Config{URL: c.URL, Log: c.Log, Probe: probe}))
		return o, dialectPostgres, err
	case "mysql", "mariadb":
		o, err = opened(mariadb.Open(ctx, mariadb.Config{URL: c.URL, Log: c.Log, Probe: probe}))
		return o, dialectMariaDB, err
	}
	return nil, d, errURL
}

// opened keeps a nil engine from becoming an opener that is not nil.
func opened[E opener](e E, err error) (opener, error) {
	if err != nil {
		return nil, err
	}
	return e, nil
}
