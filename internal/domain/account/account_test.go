package account

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"
)

// A clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now().UTC().Truncate(time.Millisecond)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// everywhere runs a test on each database that is at hand.
func everywhere(t *testing.T, test func(t *testing.T, at storetest.Target)) {
	t.Helper()
	t.Parallel()
	for name, target := range map[string]func(testing.TB) storetest.Target{"sqlite": storetest.SQLite, "postgres": storetest.Postgres, "mariadb": storetest.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, target(t))
		})
	}
}

func openDirectory(t testing.TB, at storetest.Target, c *clock) *Directory {
	t.Helper()
	db, err := store.Open(context.Background(), store.Config{URL: at.URL, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	d := New(db, Config{Now: c.Now})
	t.Cleanup(func() {
		d.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := db.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return d
}

// operator is the context of the person at the machine.
func operator(t testing.TB) context.Context {
	t.Helper()
	return who.With(t.Context(), who.Caller{Kind: who.Operator, Permissions: who.Permissions(), AllAuthorities: true})
}

func create(t testing.TB, d *Directory, name string, roles ...Role) Account {
	t.Helper()
	a, err := d.Create(operator(t), Spec{Kind: who.Person, Name: name, Display: "Person " + name, Roles: roles, Authorities: []string{"people"}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func createToken(t testing.TB, d *Directory, account string, s TokenSpec) (Token, string) {
	t.Helper()
	token, raw, err := d.CreateToken(operator(t), account, s)
	if err != nil {
		t.Fatal(err)
	}
	return token, raw
}

func wantCode(t testing.TB, what string, err error, code string) {
	t.Helper()
	if fault.CodeOf(err) != code || code == "" && err != nil {
		t.Errorf("%s: got %v, want code %q", what, err, code)
	}
}

func TestATokenCarriesTheRightsOfItsAccount(t *testing.T) {
	everywhere(t, func(t *testing.T, at storetest.Target) {
		c := newClock()
		d := openDirectory(t, at, c)
		alice := create(t, d, "alice", Issuer, Reader)
		token, raw := createToken(t, d, alice.ID, TokenSpec{Label: "laptop", Expires: c.Now().Add(time.Hour)})
		got, err := d.CallerByToken(t.Context(), raw)
		if err != nil {
			t.Fatal(err)
		}
		want := who.Caller{
			Kind: who.Person, ID: alice.ID, Name: "alice", Authorities: []string{"people"}, Credential: token.ID,
			Permissions: who.Set{who.CertificateIssue, who.CertificateRead, who.CertificateRenew, who.AgentIssue, who.AuthorityRead},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("caller (-want +got):\n%s", diff)
		}
		_, narrow := createToken(t, d, alice.ID, TokenSpec{Permissions: who.Set{who.CertificateRead, who.AuditRead}})
		if got, err := d.CallerByToken(t.Context(), narrow); err != nil || !slices.Equal(got.Permissions, who.Set{who.CertificateRead}) {
			t.Errorf("a narrowed token may %v (%v), want only what both name", got.Permissions, err)
		}
		c.pass(time.Hour)
		_, err = d.CallerByToken(t.Context(), raw)
		wantCode(t, "an expired token", err, "token_expired")
	})
}

func TestWhatIsNoTokenIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, at storetest.Target) {
		d := openDirectory(t, at, newClock())
		alice := create(t, d, "alice", Reader)
		_, raw := createToken(t, d, alice.ID, TokenSpec{})
		unknown := tokenPrefix + strings.Repeat("a", tokenLength)
		// The bytes of a bound key must not pass for a token, whose hash is made the same way.
		if err := d.BindKey(operator(t), Binding{KeyHash: sha256.Sum256([]byte(unknown)), Account: alice.ID}); err != nil {
			t.Fatal(err)
		}
		for _, given := range []string{"", "chy_", raw[4:], raw + "a", strings.ToUpper(raw), "chy_" + raw, unknown} {
			_, err := d.CallerByToken(t.Context(), given)
			wantCode(t, given, err, "token_invalid")
		}
	})
}

func TestABoundKeyActsForItsAccount(t *testing.T) {
	everywhere(t, func(t *testing.T, at storetest.Target) {
		c := newClock()
		d := openDirectory(t, at, c)
		robot, err := d.Create(operator(t), Spec{Kind: who.Service, Name: "deploy", Roles: []Role{Operator}})
		if err != nil {
			t.Fatal(err)
		}
		hash := sha256.Sum256([]byte("a public key"))
		_, err = d.CallerByKey(t.Context(), hash)
		wantCode(t, "an unbound key", err, "key_unbound")
		if err := d.BindKey(operator(t), Binding{KeyHash: hash, Account: robot.ID, Label: "ci", Expires: c.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		got, err := d.CallerByKey(t.Context(), hash)
		if err != nil || got.Kind != who.Service || got.ID != robot.ID || got.KeyHash != hash || !got.AllAuthorities {
			t.Errorf("caller %+v, %v", got, err)
		}
		wantCode(t, "a second binding", d.BindKey(operator(t), Binding{KeyHash: hash, Account: create(t, d, "alice").ID}), "key_bound")
		bound, err := d.Bindings(t.Context(), robot.ID)
		if err != nil || len(bound) != 1 || bound[0].KeyHash != hash || bound[0].Label != "ci" {
			t.Errorf("bindings %+v, %v", bound, err)
		}
		c.pass(time.Hour)
		_, err = d.CallerByKey(t.Context(), hash)
		wantCode(t, "an expired binding", err, "key_expired")
	})
}

func TestAChangeEndsWhatHangsOnItAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, at storetest.Target) {
		d := openDirectory(t, at, newClock())
		no, yes := false, true
		hash := sha256.Sum256([]byte("key"))
		alice := create(t, d, "alice", Reader)
		token, raw := createToken(t, d, alice.ID, TokenSpec{})
		other, otherRaw := createToken(t, d, alice.ID, TokenSpec{})
		change := func(c Change) func() error {
			return func() error { _, err := d.Change(operator(t), alice.ID, c); return err }
		}
		steps := []struct {
			name        string
			do          func() error
			token, key  string // codes of the refusals, "" for none
			permissions int
		}{
			{"bind", func() error { return d.BindKey(operator(t), Binding{KeyHash: hash, Account: alice.ID}) }, "", "", 2},
			{"more roles", change(Change{Roles: &[]Role{Reader, Revoker}}), "", "", 5},
			{"no roles", change(Change{Roles: &[]Role{}}), "", "", 0},
			{"disable", change(Change{Enabled: &no}), "account_disabled", "account_disabled", 0},
			{"enable", change(Change{Enabled: &yes, Roles: &[]Role{Reader}}), "", "", 2},
			{"unbind", func() error { return d.UnbindKey(operator(t), hash) }, "", "key_unbound", 2},
			{"bind again", func() error { return d.BindKey(operator(t), Binding{KeyHash: hash, Account: alice.ID}) }, "", "", 2},
			{"delete the token", func() error { return d.DeleteToken(operator(t), token.ID) }, "token_invalid", "", 2},
			{"delete the account", func() error { return d.Delete(operator(t), alice.ID) }, "token_invalid", "key_unbound", 0},
		}
		for _, step := range steps {
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			got, err := d.CallerByToken(t.Context(), raw)
			wantCode(t, step.name+": token", err, step.token)
			if err == nil && len(got.Permissions) != step.permissions {
				t.Errorf("%s: %d permissions, want %d", step.name, len(got.Permissions), step.permissions)
			}
			_, err = d.CallerByKey(t.Context(), hash)
			wantCode(t, step.name+": key", err, step.key)
		}
		_, err := d.CallerByToken(t.Context(), otherRaw)
		wantCode(t, "another token of a deleted account", err, "token_invalid")
		wantCode(t, "deleting a token of a deleted account", d.DeleteToken(operator(t), other.ID), "token_unknown")
	})
}

func TestAnotherInstanceFollowsWithinASecond(t *testing.T) {
	everywhere(t, func(t *testing.T, at storetest.Target) {
		if at.Name == "sqlite" {
			t.Skip("one process owns the file")
		}
		here, there := openDirectory(t, at, newClock()), openDirectory(t, at, newClock())
		alice := create(t, here, "alice", Reader)
		token, raw := createToken(t, here, alice.ID, TokenSpec{})
		if _, err := there.CallerByToken(t.Context(), raw); err != nil {
			t.Fatal(err)
		}
		if _, err := here.Change(operator(t), alice.ID, Change{Roles: &[]Role{Revoker}}); err != nil {
			t.Fatal(err)
		}
		within(t, time.Second, "the changed role", func() bool {
			c, err := there.CallerByToken(t.Context(), raw)
			return err == nil && c.May(who.CertificateRevoke)
		})
		if err := here.DeleteToken(operator(t), token.ID); err != nil {
			t.Fatal(err)
		}
		within(t, time.Second, "the deleted token", func() bool {
			_, err := there.CallerByToken(t.Context(), raw)
			return fault.CodeOf(err) == "token_invalid"
		})
	})
}

// within waits for a condition that another instance brings about.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s is not seen after %v", what, limit)
		case <-tick.C:
		}
	}
}

func TestNobodySeesTheOldStateAfterAChange(t *testing.T) {
	everywhere(t, func(t *testing.T, at storetest.Target) {
		d := openDirectory(t, at, newClock())
		alice := create(t, d, "alice", Reader)
		_, raw := createToken(t, d, alice.ID, TokenSpec{})
		var readers sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		for range 2 { // they keep the memory busy with questions that are under way during changes
			readers.Go(func() {
				for ctx.Err() == nil {
					if _, err := d.CallerByToken(ctx, raw); err != nil && ctx.Err() == nil && fault.CodeOf(err) != "account_disabled" {
						t.Error(err)
						return
					}
				}
			})
		}
		for i := range 16 {
			enabled := i%2 == 1
			if _, err := d.Change(operator(t), alice.ID, Change{Enabled: &enabled}); err != nil {
				t.Fatal(err)
			}
			if _, err := d.CallerByToken(t.Context(), raw); (err == nil) != enabled {
				t.Errorf("after change %d to enabled=%v the caller gets %v", i, enabled, err)
			}
		}
		stop()
		readers.Wait()
	})
}

func TestTheLastAdministratorStays(t *testing.T) {
	everywhere(t, func(t *testing.T, at storetest.Target) {
		d := openDirectory(t, at, newClock())
		no := false
		alice := create(t, d, "alice", Administrator)
		if _, err := d.Create(operator(t), Spec{Kind: who.Service, Name: "robot", Roles: []Role{Administrator}}); err != nil {
			t.Fatal(err)
		}
		_, err := d.Change(operator(t), alice.ID, Change{Enabled: &no})
		wantCode(t, "disable", err, "last_administrator")
		_, err = d.Change(operator(t), alice.ID, Change{Roles: &[]Role{Operator}})
		wantCode(t, "take the role", err, "last_administrator")
		wantCode(t, "delete", d.Delete(operator(t), alice.ID), "last_administrator")

		bob := create(t, d, "bob", Administrator)
		outcomes := make(chan error, 2)
		for _, a := range []Account{alice, bob} {
			go func() {
				_, err := d.Change(operator(t), a.ID, Change{Enabled: &no})
				outcomes <- err
			}()
		}
		refused := 0
		for range 2 {
			if err := <-outcomes; err != nil {
				refused++
				wantCode(t, "two at once", err, "last_administrator")
			}
		}
		if refused != 1 {
			t.Errorf("%d of two administrators could not be disabled, want exactly one", refused)
		}
	})
}

func TestNamesAreTakenOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, at storetest.Target) {
		d := openDirectory(t, at, newClock())
		alice := create(t, d, "alice", Reader)
		_, err := d.Create(operator(t), Spec{Kind: who.Person, Name: "alice"})
		wantCode(t, "a second alice", err, "account_exists")
		found, err := d.FindByName(t.Context(), "alice")
		if diff := cmp.Diff(alice, found); err != nil || diff != "" {
			t.Errorf("found (-made +found):\n%s%v", diff, err)
		}
		_, err = d.FindByName(t.Context(), "bob")
		wantCode(t, "nobody", err, "account_unknown")
		_, err = d.Change(operator(t), "per_x", Change{})
		wantCode(t, "change of nobody", err, "account_unknown")
	})
}

func TestAccountsAreHeldToBounds(t *testing.T) {
	t.Parallel()
	d := openDirectory(t, storetest.SQLite(t), newClock())
	ok := Spec{Kind: who.Person, Name: "alice"}
	tests := map[string]struct {
		mend func(*Spec)
		code string
	}{
		"kind":            {func(s *Spec) { s.Kind = who.Agent }, "account_invalid"},
		"no name":         {func(s *Spec) { s.Name = "" }, "account_invalid"},
		"upper case":      {func(s *Spec) { s.Name = "Alice" }, "account_invalid"},
		"long name":       {func(s *Spec) { s.Name = strings.Repeat("a", nameBytesMax+1) }, "account_invalid"},
		"an identifier":   {func(s *Spec) { s.Name = "per_06h2vwh6m7sc2v9qacfw" }, "account_invalid"},
		"control":         {func(s *Spec) { s.Display = "a\nb" }, "account_invalid"},
		"long display":    {func(s *Spec) { s.Display = strings.Repeat("a", textBytesMax+1) }, "account_invalid"},
		"email":           {func(s *Spec) { s.Email = "alice@" }, "account_invalid"},
		"role":            {func(s *Spec) { s.Roles = []Role{"root"} }, "role_unknown"},
		"authority":       {func(s *Spec) { s.Authorities = []string{"a,b"} }, "account_invalid"},
		"empty authority": {func(s *Spec) { s.Authorities = []string{""} }, "account_invalid"},
	}
	for name, test := range tests {
		s := ok
		test.mend(&s)
		_, err := d.Create(operator(t), s)
		wantCode(t, name, err, test.code)
	}
}

func TestEveryChangeIsAuditedAndPublished(t *testing.T) {
	everywhere(t, func(t *testing.T, at storetest.Target) {
		d := openDirectory(t, at, newClock())
		alice := create(t, d, "alice", Reader)
		token, _ := createToken(t, d, alice.ID, TokenSpec{})
		hash := sha256.Sum256([]byte("key"))
		no := false
		for _, change := range []func() error{
			func() error { return d.BindKey(operator(t), Binding{KeyHash: hash, Account: alice.ID}) },
			func() error { _, err := d.Change(operator(t), alice.ID, Change{Enabled: &no}); return err },
			func() error { _, err := d.Change(operator(t), alice.ID, Change{Enabled: &no}); return err }, // changes nothing
			func() error { return d.UnbindKey(operator(t), hash) },
			func() error { return d.DeleteToken(operator(t), token.ID) },
			func() error { return d.Delete(operator(t), alice.ID) },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{
			"account.create", "token.create", "key.bind", "account.change",
			"key.unbind", "token.delete", "account.delete",
		}
		if diff := cmp.Diff(want, column(t, d, "SELECT action FROM audit ORDER BY seq")); diff != "" {
			t.Errorf("audit (-want +got):\n%s", diff)
		}
		if got := column(t, d, "SELECT DISTINCT actor FROM audit"); !cmp.Equal(got, []string{"operator"}) {
			t.Errorf("the audit names %v, want the operator", got)
		}
		topics := []string{"account", "token", "token", "account", "token", "token", "account"}
		if diff := cmp.Diff(topics, column(t, d, "SELECT topic FROM feed ORDER BY seq")); diff != "" {
			t.Errorf("feed (-want +got):\n%s", diff)
		}
	})
}

func column(t *testing.T, d *Directory, query string) (values []string) {
	t.Helper()
	if err := d.db.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Each(query, nil, func(r store.Row) error {
			var value string
			err := r.Scan(&value)
			values = append(values, value)
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	return values
}

func TestTheFileHoldsNoToken(t *testing.T) {
	t.Parallel()
	at := storetest.SQLite(t)
	d := openDirectory(t, at, newClock())
	_, raw := createToken(t, d, create(t, d, "alice").ID, TokenSpec{})
	code, err := d.NewSetupCode(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(strings.TrimPrefix(at.URL, "sqlite:")), "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no database files: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{raw[len(tokenPrefix):], code, strings.ReplaceAll(code, "-", "")} {
			if strings.Contains(string(content), secret) {
				t.Errorf("a secret stands in %s", filepath.Base(file))
			}
		}
	}
}

func TestListsGiveEachLastingRowOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, at storetest.Target) {
		c := newClock()
		d := openDirectory(t, at, c)
		var lasting []string
		for i := range 7 {
			c.pass(time.Millisecond)
			lasting = append(lasting, create(t, d, fmt.Sprintf("lasting-%d", i)).ID)
		}
		passing := create(t, d, "passing")
		robot, err := d.Create(operator(t), Spec{Kind: who.Service, Name: "robot"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for cursor, pages := "", 0; ; pages++ {
			page, err := d.List(t.Context(), who.Person, cursor, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range page.Items {
				if strings.HasPrefix(a.Name, "lasting") {
					got = append(got, a.ID)
				}
			}
			if cursor = page.Next; cursor == "" {
				break
			}
			c.pass(time.Millisecond)
			create(t, d, fmt.Sprintf("new-%d", pages))
			if err := d.Delete(operator(t), passing.ID); err != nil && !errors.Is(err, fault.New(fault.NotFound, "account_unknown", "")) {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(lasting, got); diff != "" {
			t.Errorf("lasting accounts (-want +got):\n%s", diff)
		}
		services, err := d.List(t.Context(), who.Service, "", 10)
		if err != nil || len(services.Items) != 1 || services.Items[0].ID != robot.ID || services.Next != "" {
			t.Errorf("services %+v, %v", services, err)
		}
		everybody, err := d.List(t.Context(), who.Nobody, "", 100)
		if err != nil || !slices.ContainsFunc(everybody.Items, func(a Account) bool { return a.ID == robot.ID }) || len(everybody.Items) < 8 {
			t.Errorf("everybody %d, %v", len(everybody.Items), err)
		}
	})
}
