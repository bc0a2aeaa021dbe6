package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
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

// migrate brings the tables up to date, once over all instances that start at the same time.
func migrate(ctx context.Context, d dialect, db *sql.DB, log *slog.Logger) error {
	files, err := fs.Sub(migrations, "migrations/"+d.folder)
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	options := []goose.ProviderOption{goose.WithSlog(log), goose.WithDisableGlobalRegistry(true)}
	if d == dialectPostgres {
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return fmt.Errorf("preparing the migration lock: %w", err)
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(d.goose, db, files, options...)
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("bringing the tables up to date: %w", err)
	}
	return nil
}
