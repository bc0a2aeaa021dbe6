package account

import (
	"fmt"
	"testing"

	"chancery/internal/base/who"
	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

// BenchmarkChange measures one changed account and one new token among 50,000 people with 500,000 tokens, each with
// the lookup that sees it; "bare" is a commit of one audit line, which is the disk's share.
func BenchmarkChange(b *testing.B) {
	d := openDirectory(b, storetest.SQLite(b), newClock())
	fill(b, d, 50_000, 10)
	alice := create(b, d, "alice", Reader)
	_, raw := createToken(b, d, alice.ID, TokenSpec{})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := d.db.Write(b.Context(), func(tx *store.Tx) error { return audit(tx, "bench", "bench", "") }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("account", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			roles := []Role{Reader, Revoker}[:1+i%2]
			if _, err := d.Change(operator(b), alice.ID, Change{Roles: &roles}); err != nil {
				b.Fatal(err)
			}
			if c, err := d.CallerByToken(b.Context(), raw); err != nil || c.May(who.CertificateRevoke) != (len(roles) == 2) {
				b.Fatal(c, err)
			}
		}
	})
	b.Run("token", func(b *testing.B) {
		for b.Loop() {
			token, raw := createToken(b, d, alice.ID, TokenSpec{})
			if _, err := d.CallerByToken(b.Context(), raw); err != nil {
				b.Fatal(err)
			}
			if err := d.DeleteToken(operator(b), token.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := d.CallerByToken(b.Context(), raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func fill(b *testing.B, d *Directory, people, tokensEach int) {
	b.Helper()
	const step = 500
	for from := 0; from < people; from += step {
		if err := d.db.Write(b.Context(), func(tx *store.Tx) error {
			for i := from; i < from+step; i++ {
				a, err := Spec{Kind: who.Person, Name: fmt.Sprintf("person-%d", i), Roles: []Role{Self}}.account(d.now())
				if err != nil {
					return err
				}
				if _, err := tx.Exec("INSERT INTO account ("+accountColumns+", administers) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
					a.ID, a.Name, a.Display, a.Email, join(a.Roles), "", 1, 0, 0, 0); err != nil {
					return err
				}
				for range tokensEach {
					t, raw, err := TokenSpec{}.token(d.now(), a.ID)
					if err != nil {
						return err
					}
					hash, _ := hashToken(raw)
					if _, err := tx.Exec("INSERT INTO account_token ("+tokenColumns+", hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
						t.ID, t.Account, "", 0, "", 0, int64(never), hash[:]); err != nil {
						return err
					}
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}
