package ca

import (
	"fmt"
	"testing"
	"time"

	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/core/store"
	"chancery/internal/domain/ca/pkix/pkixtest"
)

func (w *world) find(t testing.TB, q Query) []Found {
	t.Helper()
	var all []Found
	for {
		p, err := w.Find(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Certificates...)
		if q.Cursor = p.Next; q.Cursor == "" {
			return all
		}
	}
}

// TestFind looks for certificates in every way, before and after their names are indexed, on each database.
func TestFind(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		person, agent, delegation := id.New(id.Person, w.now()), id.New(id.Agent, w.now()), id.New(id.Delegation, w.now())
		principal := w.principal(t, person)
		leaf := w.agent(t, w.order(t, principal, person, agent, delegation))
		server := w.certificate(t, serverOrder(t, "dns:a.example.org"))
		w.certificate(t, serverOrder(t, "dns:aa.example.org"))
		keyHash := key.Hash(pkixtest.SPKI(t, key.P384))
		check := func() {
			t.Helper()
			for _, c := range []struct {
				q    Query
				want []Issued
			}{
				{Query{Serial: leaf.Serial}, []Issued{leaf}},
				{Query{Serial: server.Serial}, []Issued{server}},
				{Query{Name: "a.example.org"}, []Issued{server}},
				{Query{Name: "A.example.org."}, []Issued{server}},
				{Query{Name: "spiffe://example.org/agent/" + agent}, []Issued{leaf}},
				{Query{KeyHash: keyHash[:]}, []Issued{principal}},
				{Query{Principal: person}, []Issued{principal, leaf}},
				{Query{Principal: person, Authority: "agents"}, []Issued{leaf}},
				{Query{Agent: agent}, []Issued{leaf}},
				{Query{Agent: id.New(id.Agent, w.now())}, nil},
				{Query{Agent: agent, Principal: id.New(id.Person, w.now())}, nil},
				{Query{Agent: agent, Name: "a.example.org"}, nil},
			} {
				c.q.Limit = 1
				got := w.find(t, c.q)
				if fmt.Sprint(serials(got)) != fmt.Sprint(issuedSerials(c.want)) {
					t.Errorf("%+v: found %v, want %v", c.q, serials(got), issuedSerials(c.want))
				}
			}
		}
		check()
		w.clock.advance(settling + time.Second)
		if more, err := w.indexNames(t.Context()); err != nil || more {
			t.Fatalf("indexing: %v, %v", more, err)
		}
		check()
		if all := w.find(t, Query{Limit: 2}); len(all) != 8 { // four of authorities among them
			t.Errorf("found %d certificates in all", len(all))
		}
		w.revoke(t, agent, KeyCompromise)
		if got := w.find(t, Query{Agent: agent}); got[0].Status.State != Revoked || got[0].Agent != agent || got[0].Owner != person || got[0].Authority != "agents" {
			t.Errorf("found %+v", got[0])
		}
		_, err := w.Find(t.Context(), Query{Cursor: "x"})
		pkixtest.WantFault(t, "cursor_invalid", err)
	})
}

func serials(found []Found) (out []string) {
	for _, f := range found {
		out = append(out, f.Serial.String())
	}
	return out
}

// issuedSerials are in the order of issue; within a millisecond serials have none, so tests order them too.
func issuedSerials(issued []Issued) (out []string) {
	for _, i := range issued {
		out = append(out, i.Serial.String())
	}
	if len(out) == 2 && out[0] > out[1] {
		out[0], out[1] = out[1], out[0]
	}
	return out
}

// TestPagesHoldEachLastingRowOnce reads page by page while certificates come and go.
func TestPagesHoldEachLastingRowOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lasting := map[string]int{}
	var passing []id.Serial
	for n := range 30 {
		w.clock.advance(time.Millisecond)
		i := w.certificate(t, serverOrder(t, fmt.Sprintf("dns:h%d.example.org", n)))
		if n%3 == 0 {
			passing = append(passing, i.Serial)
			continue
		}
		lasting[i.Serial.String()] = 0
	}
	q := Query{Authority: "machines", Limit: 4}
	for page := 0; ; page++ {
		p, err := w.Find(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Certificates {
			if _, ok := lasting[f.Serial.String()]; ok {
				lasting[f.Serial.String()]++
			}
		}
		if q.Cursor = p.Next; q.Cursor == "" {
			break
		}
		w.delete(t, passing[page%len(passing)])
		if page < 5 {
			w.certificate(t, serverOrder(t, fmt.Sprintf("dns:new%d.example.org", page)))
		}
	}
	for serial, seen := range lasting {
		if seen != 1 {
			t.Errorf("%s came %d times", serial, seen)
		}
	}
}

func (w *world) delete(t testing.TB, serial id.Serial) {
	t.Helper()
	err := w.db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("DELETE FROM certificate WHERE serial = ?", []byte(serial))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRunIndexesNamesAndRecalls: what Run does in the background, step by step.
func TestRunIndexesNamesAndRecalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range nameStep + 5 {
		w.certificate(t, serverOrder(t, fmt.Sprintf("dns:h%d.example.org", n)))
	}
	w.clock.advance(settling + time.Second)
	if err := w.tend(t.Context()); err != nil {
		t.Fatal(err)
	}
	var indexed int
	err := w.db.Read(t.Context(), func(tx *store.Tx) error {
		_, err := tx.One([]any{&indexed}, "SELECT COUNT(*) FROM certificate_name")
		return err
	})
	if err != nil || indexed != nameStep+5 {
		t.Errorf("%d names indexed, %v", indexed, err)
	}
	person, agent := id.New(id.Person, w.now()), id.New(id.Agent, w.now())
	principal := w.principal(t, person)
	w.agent(t, w.order(t, principal, person, agent, ""))
	w.known = combinations{}
	if err := w.recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !w.known.has(combine(agent, "", person, "crt:"+principal.Serial.String())) {
		t.Error("what was stored is not recalled")
	}
}

// TestRetire: what expired long ago goes, with its names; what is kept stays.
func TestRetire(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		person, agent := id.New(id.Person, w.now()), id.New(id.Agent, w.now())
		principal := w.principal(t, person)
		leaf := w.agent(t, w.order(t, principal, person, agent, ""))
		server := w.certificate(t, serverOrder(t, "dns:a.example.org"))
		w.clock.advance(48 * time.Hour)
		w.agent(t, w.order(t, principal, person, agent, "")) // the latest row of a table stays whatever it is
		w.certificate(t, serverOrder(t, "dns:b.example.org"))
		if err := w.tend(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			after         time.Duration
			agent, server int
		}{{0, 0, 1}, {2 * 365 * 24 * time.Hour, 0, 0}} {
			w.clock.advance(step.after)
			if err := w.Retire(t.Context()); err != nil {
				t.Fatal(err)
			}
			if a, s := w.find(t, Query{Serial: leaf.Serial}), w.find(t, Query{Serial: server.Serial}); len(a) != step.agent || len(s) != step.server {
				t.Errorf("after %s: %d agent and %d server certificates", step.after, len(a), len(s))
			}
		}
		if found := w.find(t, Query{Name: "a.example.org"}); len(found) != 0 {
			t.Errorf("found by name after it was retired: %v", serials(found))
		}
		var names int
		err := w.db.Read(t.Context(), func(tx *store.Tx) error {
			_, err := tx.One([]any{&names}, "SELECT COUNT(*) FROM certificate_name")
			return err
		})
		if err != nil || names != 0 {
			t.Errorf("%d names left, %v", names, err)
		}
	})
}
