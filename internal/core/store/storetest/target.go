package storetest

import (
	"fmt"
	"path/filepath"
	"testing"

	"chancery/internal/core/store"
)

// A Target is a database for one test: where it is, and how it spells its types.
type Target struct {
	Name string
	URL  string
	kind kinds
}

// kinds spells what the common subset of SQL leaves open.
type kinds struct{ id, bytes, position string }

// SQLite gives a fresh file.
func SQLite(t testing.TB) Target {
	t.Helper()
	return Target{
		Name: "sqlite",
		URL:  "sqlite:" + filepath.Join(t.TempDir(), "chancery.db"),
		kind: kinds{id: "TEXT", bytes: "BLOB", position: "seq INTEGER PRIMARY KEY"},
	}
}

// Create makes the tables that the suite works on: a hot one in the shape of agent certificates, its guard, and a
// plain one with counters.
func (d Target) Create(t testing.TB, s *store.Store) {
	t.Helper()
	for _, ddl := range []string{
		fmt.Sprintf(`CREATE TABLE sample_certificate (%s, serial %s NOT NULL, signed_at BIGINT NOT NULL, nonce %s NOT NULL,
			agent %s NOT NULL, request %s, authority %s NOT NULL, delegation %s NOT NULL, not_before BIGINT NOT NULL,
			not_after BIGINT NOT NULL, der %s NOT NULL)`,
			d.kind.position, d.kind.bytes, d.kind.bytes, d.kind.id, d.kind.id, d.kind.id, d.kind.id, d.kind.bytes),
		`CREATE UNIQUE INDEX sample_serial ON sample_certificate (serial)`,
		`CREATE UNIQUE INDEX sample_evidence ON sample_certificate (signed_at, nonce)`,
		`CREATE UNIQUE INDEX sample_request ON sample_certificate (agent, request)`,
		fmt.Sprintf(`CREATE TABLE sample_revocation (target %s NOT NULL PRIMARY KEY)`, d.kind.id),
		fmt.Sprintf(`CREATE TABLE sample_counter (name %s NOT NULL PRIMARY KEY, value BIGINT NOT NULL)`, d.kind.id),
	} {
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
