package account

import (
	"fmt"
	"testing"

	"chancery/internal/base/who"
	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

// BenchmarkChange measures one change among few and among many accounts and tokens, each with the next request that
// sees it: a change costs what it costs, not what there is. "commit" is one audit line, which is the disk's share.
func BenchmarkChange(b *testing.B) {
	for _, people := range []int{50, 50_000} {
		b.Run(fmt.Sprintf("tokens=%d", 10*people), func(b *testing.B) {
			d := openDirectory(b, storetest.SQLite(b), newClock())
			fill(b, d, people, 10)
			benchmarkChange(b, d)
		})
	}
}

func benchmarkChange(b *testing.B, d *Directory) {
	alice := create(b, d, "alice", Reader)
	_, raw := createToken(b, d, alice.ID, TokenSpec{})
	b.Run("commit", func(b *testing.B) {
		for b.Loop() {
			if err := d.db.Write(b.Context(), func(tx *store.Tx) error { return audit(tx, "bench", "bench", "") }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("roles", func(b *testing.B) {
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
	b.Run("disable", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			enabled := i%2 == 1
			if _, err := d.Change(operator(b), alice.ID, Change{Enabled: &enabled}); err != nil {
				b.Fatal(err)
			}
			if _, err := d.CallerByToken(b.Context(), raw); (err == nil) != enabled {
				b.Fatal(err)
			}
		}
		d.enable(b, alice.ID)
	})
	b.Run("revoke", func(b *testing.B) { benchmarkRevoke(b, d, alice.ID) })
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := d.CallerByToken(b.Context(), raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func (d *Directory) enable(b *testing.B, account string) {
	b.Helper()
	enabled := true
	if _, err := d.Change(operator(b), account, Change{Enabled: &enabled}); err != nil {
		b.Fatal(err)
	}
}

// benchmarkRevoke ends tokens that are in use; making them is not counted.
func benchmarkRevoke(b *testing.B, d *Directory, account string) {
	for b.Loop() {
		b.StopTimer()
		token, raw := createToken(b, d, account, TokenSpec{})
		if _, err := d.CallerByToken(b.Context(), raw); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := d.DeleteToken(operator(b), token.ID); err != nil {
			b.Fatal(err)
		}
		if _, err := d.CallerByToken(b.Context(), raw); err == nil {
			b.Fatal("a token that was revoked is accepted")
		}
	}
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
