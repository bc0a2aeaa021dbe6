package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"

	"chancery/internal/base/fault"
	"chancery/internal/core/store/internal/engine"
	"chancery/internal/core/store/internal/mariadb"
	"chancery/internal/core/store/internal/postgres"
	"chancery/internal/core/store/internal/sqlite"
)

// opener is an engine between its opening and its start; migrations run there.
type opener interface {
	engine.Engine
	Migrator() *sql.DB
	Start(context.Context) error
}

func (s *Store) open(ctx context.Context) error {
	scheme, rest, ok := strings.Cut(s.config.URL, ":")
	if !ok {
		return errURL
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	var o opener
	var d dialect
	var err error
	switch scheme {
	case "sqlite":
		d = dialectSQLite
		o, err = s.openFile(ctx, strings.TrimPrefix(rest, "//"))
	case "postgres", "postgresql":
		d = dialectPostgres
		o, err = opened(postgres.Open(ctx, postgres.Config{URL: s.config.URL, Log: s.config.Log, Probe: s.probe()}))
	case "mysql", "mariadb":
		d = dialectMariaDB
		o, err = opened(mariadb.Open(ctx, mariadb.Config{URL: s.config.URL, Log: s.config.Log, Probe: s.probe()}))
	default:
		err = errURL
	}
	if err != nil {
		return err
	}
	s.engine = o
	return s.start(ctx, o, d)
}

var errURL = fault.New(fault.Invalid, "store_url",
	"The store's address must begin with sqlite:, postgres: or mysql:.")

// openFile takes the lock before anything touches the file.
func (s *Store) openFile(ctx context.Context, path string) (opener, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("finding the database file: %w", err)
	}
	if s.lock, err = acquire(path + ".lock"); err != nil {
		return nil, err
	}
	return opened(sqlite.Open(ctx, sqlite.Config{Path: path, Log: s.config.Log, Probe: s.probe(), Fatal: s.config.Fatal}))
}

// opened keeps a nil engine from becoming an opener that is not nil.
func opened[E opener](e E, err error) (opener, error) {
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (s *Store) probe() engine.Probe {
	return engine.Probe{Took: s.config.Observe, Batched: s.config.ObserveBatch}
}

func (s *Store) start(ctx context.Context, o opener, d dialect) error {
	if err := migrate(ctx, d, o.Migrator(), s.config.Log); err != nil {
		return err
	}
	if err := o.Start(ctx); err != nil {
		return fmt.Errorf("starting the store: %w", err)
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	var background context.Context
	background, s.stop = context.WithCancel(context.Background())
	s.tasks.start(background, s.trim)
	s.tasks.start(background, s.seals)
	return s.beginFollowing(ctx, background)
}
