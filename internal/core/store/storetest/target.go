package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver that makes the test's database

	"chancery/internal/core/store"
)

// A Target is a database for one test: where it is, and how it spells its types.
type Target struct {
	Name   string
	URL    string
	Shared bool                    // several processes may open it
	again  func(testing.TB) Target // makes another like it
	kind   kinds
}

// kinds spells what the common subset of SQL leaves open.
type kinds struct{ id, bytes, key, position, index string }

// SQLite gives a fresh file.
func SQLite(t testing.TB) Target {
	t.Helper()
	return Target{
		Name: "sqlite", again: SQLite,
		URL:  "sqlite:" + filepath.Join(t.TempDir(), "chancery.db"),
		kind: kinds{id: "TEXT", bytes: "BLOB", key: "BLOB", position: "seq INTEGER PRIMARY KEY"},
	}
}

// Postgres makes a database of its own on the server that CHANCERY_TEST_POSTGRES names, and drops it afterwards.
func Postgres(t testing.TB) Target {
	t.Helper()
	admin := server(t, "CHANCERY_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/postgres")
	db, err := sql.Open("pgx", admin)
	if err != nil {
		t.Fatalf("opening %s: %v", "CHANCERY_TEST_POSTGRES", err)
	}
	name := scratch(t, db, "CREATE DATABASE %s", "DROP DATABASE IF EXISTS %s WITH (FORCE)")
	return Target{
		Name: "postgres", Shared: true, again: Postgres,
		URL: inDatabase(t, admin, name),
		kind: kinds{id: "TEXT", bytes: "BYTEA", key: "BYTEA", position: "xact XID8 NOT NULL DEFAULT pg_current_xact_id()",
			index: "CREATE INDEX sample_xact ON sample_certificate (xact)"},
	}
}

// MariaDB makes a database of its own on the server that CHANCERY_TEST_MARIADB names, and drops it afterwards.
func MariaDB(t testing.TB) Target {
	t.Helper()
	admin := server(t, "CHANCERY_TEST_MARIADB", "mysql://root@127.0.0.1:3306/")
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatalf("reading the server's address: %v", err)
	}
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr = u.User.Username(), "tcp", u.Host
	c.Passwd, _ = u.User.Password()
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatalf("reading the server's address: %v", err)
	}
	name := scratch(t, sql.OpenDB(connector), "CREATE DATABASE %s", "DROP DATABASE IF EXISTS %s")
	return Target{
		Name: "mariadb", Shared: true, again: MariaDB,
		URL: inDatabase(t, admin, name),
		kind: kinds{
			id:       "VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin",
			bytes:    "VARBINARY(4096)",
			key:      "VARBINARY(64)",
			position: "seq BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
		},
	}
}

// server gives the address of a test server, or leaves the test out; where everything must run, that is a failure.
func server(t testing.TB, variable, example string) string {
	t.Helper()
	address := os.Getenv(variable)
	switch {
	case address != "":
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is not set, and CI leaves nothing out", variable)
	default:
		t.Skipf("left out: set %s to a server that may make databases, e.g. %s", variable, example)
	}
	return address
}

// scratch makes a database with a name of its own and drops it when the test ends.
func scratch(t testing.TB, db *sql.DB, create, drop string) (name string) {
	t.Helper()
	name = "chancery_test_" + strings.ToLower(rand.Text()[:12])
	if _, err := db.ExecContext(t.Context(), fmt.Sprintf(create, name)); err != nil {
		t.Fatalf("making a database: %v", err)
	}
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.Background(), fmt.Sprintf(drop, name)); err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return name
}

func inDatabase(t testing.TB, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("reading the server's address: %v", err)
	}
	u.Path = "/" + name
	return u.String()
}

// Create makes the tables that the suite works on: a hot one in the shape of agent certificates, its guard, and a
// plain one with counters.
func (d Target) Create(t testing.TB, s *store.Store) {
	t.Helper()
	for _, ddl := range []string{
		fmt.Sprintf(`CREATE TABLE sample_certificate (%s, serial %s NOT NULL, signed_at BIGINT NOT NULL, nonce %s NOT NULL,
			agent %s NOT NULL, request %s, authority %s NOT NULL, delegation %s NOT NULL, not_before BIGINT NOT NULL,
			not_after BIGINT NOT NULL, der %s NOT NULL)`,
			d.kind.position, d.kind.key, d.kind.key, d.kind.id, d.kind.id, d.kind.id, d.kind.id, d.kind.bytes),
		d.kind.index,
		`CREATE UNIQUE INDEX sample_serial ON sample_certificate (serial)`,
		`CREATE UNIQUE INDEX sample_evidence ON sample_certificate (signed_at, nonce)`,
		`CREATE UNIQUE INDEX sample_request ON sample_certificate (agent, request)`,
		fmt.Sprintf(`CREATE TABLE sample_revocation (target %s NOT NULL PRIMARY KEY)`, d.kind.id),
		fmt.Sprintf(`CREATE TABLE sample_counter (name %s NOT NULL PRIMARY KEY, value BIGINT NOT NULL)`, d.kind.id),
	} {
		if ddl == "" {
			continue
		}
		if err := s.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(ddl)
			return err
		}); err != nil {
			t.Fatalf("creating a sample table: %v", err)
		}
	}
}

// Certificate is a hot table in the shape of agent certificates.
var Certificate = &store.Hot{
	Table: "sample_certificate",
	Columns: []store.Column{
		{Name: "serial", Kind: store.Bytes}, {Name: "signed_at", Kind: store.Int}, {Name: "nonce", Kind: store.Bytes},
		{Name: "agent", Kind: store.Text}, {Name: "request", Kind: store.Text}, {Name: "authority", Kind: store.Text},
		{Name: "delegation", Kind: store.Text}, {Name: "not_before", Kind: store.Int}, {Name: "not_after", Kind: store.Int},
		{Name: "der", Kind: store.Bytes},
	},
	Keys:  [][]string{{"serial"}, {"signed_at", "nonce"}, {"agent", "request"}},
	Guard: store.Guard{Table: "sample_revocation", Column: "target", Of: []string{"agent", "authority", "delegation"}},
}

// Row gives the n-th certificate, unlike every other: serials and times grow, nonces are spread.
func Row(n int64, der []byte) []any {
	return []any{
		fmt.Appendf(nil, "%08d-serial-", n), 1_790_000_000 + n/1000, spread(n), fmt.Sprintf("agt_%016d", n%5000), nil,
		"aut:agents", fmt.Sprintf("dlg_%016d", n%5000), int64(1_790_000_000_000) + n, int64(1_790_000_600_000) + n, der,
	}
}

// spread gives 32 bytes that look random and differ for each n.
func spread(n int64) []byte {
	b := make([]byte, 32)
	x := uint64(n)
	for i := range b {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = byte(x >> 56)
	}
	return b
}
