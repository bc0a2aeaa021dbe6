package account

import (
	"slices"
	"testing"
	"time"

	"chancery/internal/base/who"
	"chancery/internal/core/store/storetest"
)

func TestTokensAreMadeOnlyByThoseWhoMay(t *testing.T) {
	t.Parallel()
	c := newClock()
	d := openDirectory(t, storetest.SQLite(t), c)
	alice, bob := create(t, d, "alice", Self, Reader), create(t, d, "bob", Self)
	full := who.Caller{Kind: who.Person, ID: alice.ID, Permissions: permissionsOf(alice.Roles)}
	narrow := who.Caller{Kind: who.Person, ID: alice.ID, Permissions: who.Set{who.TokenOwn, who.AgentOwn}}
	tests := []struct {
		name   string
		caller who.Caller
		of     string
		spec   TokenSpec
		code   string
		may    who.Set // of the new token; nil: everything that the account may
	}{
		{"own", full, alice.ID, TokenSpec{}, "", nil},
		{"own, narrowed", full, alice.ID, TokenSpec{Permissions: who.Set{who.AgentOwn}}, "", who.Set{who.AgentOwn}},
		{"own, narrowed to nothing", full, alice.ID, TokenSpec{Permissions: who.Set{}}, "", who.Set{}},
		{"by a narrowed token", narrow, alice.ID, TokenSpec{}, "", who.Set{who.AgentOwn, who.TokenOwn}},
		{"beyond a narrowed token", narrow, alice.ID, TokenSpec{Permissions: who.Set{who.CertificateRead}}, "permission_missing", nil},
		{"beyond the account", full, alice.ID, TokenSpec{Permissions: who.Set{who.AccountManage}}, "permission_missing", nil},
		{"somebody else's", full, bob.ID, TokenSpec{}, "permission_missing", nil},
		{"without token:own", who.Caller{Kind: who.Person, ID: alice.ID}, alice.ID, TokenSpec{}, "permission_missing", nil},
		{"by nobody", who.Caller{}, alice.ID, TokenSpec{}, "credentials_required", nil},
		{"unknown permission", full, alice.ID, TokenSpec{Permissions: who.Set{"root"}}, "permission_unknown", nil},
		{"in the past", full, alice.ID, TokenSpec{Expires: c.Now()}, "token_malformed", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			token, raw, err := d.CreateToken(who.With(t.Context(), test.caller), test.of, test.spec)
			wantCode(t, "create", err, test.code)
			if err != nil {
				return
			}
			got, err := d.CallerByToken(t.Context(), raw)
			want := test.may
			if want == nil {
				want = permissionsOf(alice.Roles)
			}
			if err != nil || !slices.Equal(got.Permissions, want) || got.Credential != token.ID {
				t.Errorf("the token may %v (%v), want %v", got.Permissions, err, want)
			}
		})
	}
}

func TestTokensAreSeenAndEndedByTheirOwner(t *testing.T) {
	everywhere(t, func(t *testing.T, at storetest.Target) {
		d := openDirectory(t, at, newClock())
		alice, bob := create(t, d, "alice", Self), create(t, d, "bob", Self)
		token, raw := createToken(t, d, alice.ID, TokenSpec{Label: "laptop", Permissions: who.Set{}})
		asAlice := who.With(t.Context(), who.Caller{Kind: who.Person, ID: alice.ID, Permissions: permissionsOf(alice.Roles)})
		asBob := who.With(t.Context(), who.Caller{Kind: who.Person, ID: bob.ID, Permissions: permissionsOf(bob.Roles)})
		page, err := d.Tokens(asAlice, alice.ID, "", 10)
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != token.ID || page.Items[0].Label != "laptop" || !page.Items[0].Narrowed || !page.Items[0].Expires.IsZero() {
			t.Errorf("tokens %+v, %v", page, err)
		}
		_, err = d.Tokens(asBob, alice.ID, "", 10)
		wantCode(t, "somebody else's tokens", err, "permission_missing")
		wantCode(t, "ending somebody else's token", d.DeleteToken(asBob, token.ID), "token_unknown")
		wantCode(t, "ending a token as nobody", d.DeleteToken(t.Context(), token.ID), "token_unknown")
		itself, err := d.CallerByToken(t.Context(), raw)
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, "a token ends itself", d.DeleteToken(who.With(t.Context(), itself), token.ID), "")
	})
}

func TestTheFirstAdministratorIsMadeOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, at storetest.Target) {
		c := newClock()
		d := openDirectory(t, at, c)
		first := Spec{Name: "alice", Roles: []Role{Reader}}
		code := func() string {
			t.Helper()
			code, err := d.NewSetupCode(t.Context(), time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return code
		}
		_, _, _, err := d.SetUp(t.Context(), "", first, TokenSpec{})
		wantCode(t, "before there is a code", err, "setup_code_wrong")
		replaced := code()
		expired := code()
		_, _, _, err = d.SetUp(t.Context(), replaced, first, TokenSpec{})
		wantCode(t, "a replaced code", err, "setup_code_wrong")
		c.pass(time.Hour)
		_, _, _, err = d.SetUp(t.Context(), expired, first, TokenSpec{})
		wantCode(t, "an expired code", err, "setup_code_wrong")

		good := " " + code()[:29]
		outcomes := make(chan error, 2)
		for _, name := range []string{"alice", "mallory"} {
			go func() {
				_, _, raw, err := d.SetUp(t.Context(), good, Spec{Name: name}, TokenSpec{Label: "setup"})
				if err == nil {
					_, err = d.CallerByToken(t.Context(), raw)
				}
				outcomes <- err
			}()
		}
		one, two := <-outcomes, <-outcomes
		if one != nil {
			one, two = two, one
		}
		wantCode(t, "the first of two", one, "")
		wantCode(t, "the second of two", two, "setup_done")
		_, err = d.NewSetupCode(t.Context(), time.Hour)
		wantCode(t, "another code", err, "setup_done")
	})
}

func TestRolesAreLean(t *testing.T) {
	t.Parallel()
	for _, r := range Roles() {
		if _, err := ParseRole(string(r)); err != nil || len(r.Permissions()) == 0 {
			t.Errorf("role %s: %v", r, err)
		}
		for _, p := range r.Permissions() {
			if !slices.Contains(who.Permissions(), p) {
				t.Errorf("role %s holds %s, which is no permission", r, p)
			}
		}
		if lets, issues := r.Permissions().Has(who.AccountManage), r.Permissions().Has(who.CertificateIssue); lets && issues {
			t.Errorf("role %s both lets people in and issues", r)
		}
	}
	for _, p := range []who.Permission{who.AgentSelf} {
		if permissionsOf(Roles()).Has(p) {
			t.Errorf("%s belongs to agents, and a role gives it", p)
		}
	}
	if got := len(permissionsOf(Roles())); got != len(who.Permissions())-1 {
		t.Errorf("all roles together give %d permissions of %d", got, len(who.Permissions()))
	}
	if Role("root").Permissions() != nil {
		t.Error("an unknown role gives permissions")
	}
}

func FuzzHashToken(f *testing.F) {
	f.Add("chy_" + "abcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrst")
	f.Fuzz(func(t *testing.T, raw string) {
		if _, ok := hashToken(raw); ok && len(raw) != len(tokenPrefix)+tokenLength {
			t.Errorf("%q was taken for a token", raw)
		}
	})
}

func TestFeedKeysComeBack(t *testing.T) {
	t.Parallel()
	for _, kind := range []credentialKind{byToken, byKey} {
		c := credential{kind: kind, hash: [32]byte{1, 2, 3}}
		if got, ok := parseFeedKey(c.feedKey()); !ok || got != c {
			t.Errorf("%v came back as %v", c, got)
		}
	}
	for _, bad := range []string{"", "token:", "token:00", "x"} {
		if _, ok := parseFeedKey(bad); ok {
			t.Errorf("%q was read", bad)
		}
	}
}
