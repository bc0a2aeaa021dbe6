package load

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"time"

	"chancery/internal/load/observe"
)

// newDatabase makes a database for one run on the server that a store address names, and gives the address of that
// database; drop removes it. A run on SQLite has its file in its own directory and needs none.
func newDatabase(ctx context.Context, address string) (own string, drop func(), err error) {
	db, err := observe.Connect(address)
	if err != nil {
		return "", nil, err
	}
	if db == nil {
		return address, func() {}, nil
	}
	remove := "DROP DATABASE IF EXISTS %s"
	if strings.HasPrefix(address, "postgres") {
		remove += " WITH (FORCE)" // a server that was killed may still be connected
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
