package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"chancery/internal/base/fault"
)

//go:embed migrations
var migrations embed.FS

// A dialect names a folder of migrations and how goose speaks to the database.
type dialect struct {
	folder string
	goose  goose.Dialect
}

var (
	dialectSQLite   = dialect{"sqlite", goose.DialectSQLite3}
	dialectPostgres = dialect{"postgres", goose.DialectPostgres}
	dialectMariaDB  = dialect{"mysql", goose.DialectMySQL}
)

// latest stands for all migrations.
const latest = math.MaxInt64

// migrate brings the tables to the given version, once over all instances that start at the same time. A version that
// this program does not know is refused.
func migrate(ctx context.Context, d dialect, db *sql.DB, log *slog.Logger, version int64) error {
	files, err := fs.Sub(migrations, "migrations/"+d.folder)
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	options := []goose.ProviderOption{goose.WithSlog(log), goose.WithDisableGlobalRegistry(true)}
	if d == dialectPostgres {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 120)) // tries every second, for two minutes
		if err != nil {
			return fmt.Errorf("preparing the migration lock: %w", err)
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	if d == dialectMariaDB {
		unlock, err := lockMariaDB(ctx, db)
		if err != nil {
			return err
		}
		defer unlock()
	}
	provider, err := goose.NewProvider(d.goose, db, files, options...)
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	sources := provider.ListSources()
	newest := sources[len(sources)-1].Version
	if version == latest {
		version = newest
	}
	have, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("reading the version of the tables: %w", err)
	}
	if version > newest || have > newest {
		return fault.New(fault.Conflict, "store_newer", "The data was written by a newer version of this program: it has tables of version %d, this program knows %d.",
			max(have, version), newest).WithHint("Use the newer program.")
	}
	if _, err := provider.UpTo(ctx, version); err != nil {
		return fmt.Errorf("bringing the tables up to date: %w", err)
	}
	return nil
}

// lockMariaDB holds a named lock of the server on a connection of its own; it ends with the connection at the latest.
func lockMariaDB(ctx context.Context, db *sql.DB) (unlock func(), err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting for the migration lock: %w", err)
	}
	var got sql.NullInt64
	err = conn.QueryRowContext(ctx, "SELECT GET_LOCK(CONCAT('chancery migration ', DATABASE()), 60)").Scan(&got)
	if err == nil && got.Int64 != 1 {
		err = errors.New("another instance holds it for more than a minute")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("taking the migration lock: %w", err), conn.Close())
	}
	return func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_ALL_LOCKS()") // or with the connection
		_ = conn.Close()
	}, nil
}
