package load

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver that makes a run's database
)

// newDatabase makes a database for one run on the server that a store address names, and gives the address of that
// database; drop removes it. A run on SQLite has its file in its own directory and needs none.
func newDatabase(ctx context.Context, address string) (own string, drop func(), err error) {
	scheme, _, _ := strings.Cut(address, ":")
	var db *sql.DB
	remove := "DROP DATABASE IF EXISTS %s"
	switch scheme {
	case "", "sqlite":
		return address, func() {}, nil
	case "postgres", "postgresql":
		db, err = sql.Open("pgx", address)
		remove += " WITH (FORCE)" // a server that was killed may still be connected
	case "mysql", "mariadb":
		db, err = openMariaDB(address)
	default:
		return "", nil, fmt.Errorf("store address: want sqlite:, postgres: or mysql:, not %.20q", scheme)
	}
	if err != nil {
		return "", nil, fmt.Errorf("store address: %w", err)
	}
	name := "chancery_bench_" + strings.ToLower(rand.Text()[:12])
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		_ = db.Close()
		return "", nil, fmt.Errorf("make a database for the run: %w", err)
	}
	drop = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, _ = db.ExecContext(ctx, fmt.Sprintf(remove, name))
		_ = db.Close()
	}
	u, err := url.Parse(address)
	if err != nil {
		drop()
		return "", nil, fmt.Errorf("store address: %w", err)
	}
	u.Path = "/" + name
	return u.String(), drop, nil
}

func openMariaDB(address string) (*sql.DB, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr = u.User.Username(), "tcp", u.Host
	c.Passwd, _ = u.User.Password()
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
