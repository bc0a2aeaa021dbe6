package hinder

import (
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
)

func TestAddresses(t *testing.T) {
	p := &Proxy{listener: echo(t, "tcp", "127.0.0.1:0")}
	for _, c := range []struct{ store, target, url string }{
		{"postgres://u:p%40ss@db.example:6432/x?sslmode=disable", "db.example:6432", "postgres://u:p%40ss@PROXY/x?sslmode=disable"},
		{"postgresql://db.example/x", "db.example:5432", "postgresql://PROXY/x"},
		{"postgres:///x?host=/run/postgresql&sslmode=disable", "/run/postgresql/.s.PGSQL.5432", "postgres://PROXY/x?sslmode=disable"},
		{"postgres://u@/x?host=db.example&port=99", "db.example:99", "postgres://u@PROXY/x"},
		{"mysql://root@[::1]/x", "[::1]:3306", "mysql://root@PROXY/x"},
		{"mariadb://root@h:1/x?tls=true", "h:1", "mariadb://root@PROXY/x?tls=true"},
		{"sqlite:/data/chancery.db", "", ""},
		{"host=db.example user=u", "", ""},
		{"postgres:secret", "", ""},
		{"postgres://u:secret@a:1,b:2/x", "", ""},
		{"postgres://u:secret@/x?host=a,b", "", ""},
	} {
		target, refused := Target(c.store)
		got, err := p.URL(c.store)
		if want := strings.Replace(c.url, "PROXY", p.Address(), 1); target != c.target || got != want {
			t.Errorf("%s: %q and %q, not %q and %q", c.store, target, got, c.target, want)
		}
		for _, err := range []error{refused, err} {
			if (err == nil) != (c.target != "") || err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", c.store, err)
			}
		}
	}
}

func openPostgres(t *testing.T, storeURL string) *sql.DB {
	db, err := sql.Open("pgx", storeURL)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func openMariaDB(t *testing.T, storeURL string) *sql.DB {
	u, err := url.Parse(storeURL)
	if err != nil {
		t.Fatal(err)
	}
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr = u.User.Username(), "tcp", u.Host
	c.Passwd, _ = u.User.Password()
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	return sql.OpenDB(connector)
}

// TestQueryWaitsForTheEndOfAStall asks real servers.
func TestQueryWaitsForTheEndOfAStall(t *testing.T) {
	for variable, open := range map[string]func(*testing.T, string) *sql.DB{"CHANCERY_TEST_POSTGRES": openPostgres, "CHANCERY_TEST_MARIADB": openMariaDB} {
		t.Run(variable, func(t *testing.T) {
			server := os.Getenv(variable)
			if server == "" {
				t.Skipf("left out: set %s to a server", variable)
			}
			target, err := Target(server)
			if err != nil {
				t.Fatal(err)
			}
			p := newProxy(t, target)
			through, err := p.URL(server)
			if err != nil {
				t.Fatal(err)
			}
			db := open(t, through)
			defer db.Close()
			queryInAStall(t, p, db)
		})
	}
}

func queryInAStall(t *testing.T, p *Proxy, db *sql.DB) {
	const length = 200 * time.Millisecond
	var one int
	if err := db.QueryRow("SELECT 1").Scan(&one); err != nil {
		t.Fatal(err)
	}
	go p.Stall(t.Context(), length)
	until(t, "it is stalled", p.gate.shut)
	began := time.Now()
	if err := db.QueryRow("SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Fatal(one, err)
	}
	if took := time.Since(began); took < length/2 {
		t.Errorf("a query in a stall of %s took %s", length, took)
	}
	if n := p.Cut(); n != 1 {
		t.Errorf("%d connections were cut", n)
	}
	_ = db.QueryRow("SELECT 1").Scan(&one) // may find the broken connection in the pool
	if err := db.QueryRow("SELECT 1").Scan(&one); err != nil {
		t.Errorf("no new connection after a cut: %v", err)
	}
}
