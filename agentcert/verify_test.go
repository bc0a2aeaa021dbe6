package agentcert

import (
	"context"
	"crypto"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/capability"
)

var read = capability.Operation{Name: "calendar:read", ReadOnly: true}

func TestVerifyAllows(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "Example")
	alice := ca.person(t, &PrincipalAuthorization{
		Version: 1, Grants: grants(t, "calendar:*"), Constraints: grants(t, "constraint:op:audit:required"),
		Policy: &DelegationPolicy{Version: 1, MaxAgents: 3, MaxSessionHours: 2},
	})
	s := newStory(t, alice, "calendar:read")
	s.aic.Constraints = grants(t, `constraint:max-concurrent{"max":2}`, "constraint:op:readonly")
	agent := s.issue(t, ca)
	v := ca.verifier(Policy{})
	for _, run := range []string{"cold", "warm"} {
		d, err := v.Verify(t.Context(), []*x509.Certificate{agent, ca.issuing}, []*x509.Certificate{alice.cert}, read)
		if err != nil {
			t.Fatalf("%s: %v", run, err)
		}
		want := capability.Obligations{MaxConcurrent: 2, HardTimeout: 2 * time.Hour, Audit: true}
		if d.AgentID != "scheduler" || d.Principal.Identifier != "alice" || !d.Expires.Equal(agent.NotAfter) || d.Obligations != want {
			t.Errorf("%s: %+v", run, d)
		}
		if got := len(d.Steps()); got != len(steps) {
			t.Errorf("%s: %d steps are explained, want %d", run, got, len(steps))
		}
		for _, step := range d.Steps() {
			if !step.OK || step.Text == "" {
				t.Errorf("%s: %+v", run, step)
			}
		}
	}
	// The principal is remembered now, and so is the issuing chain's proof.
	if _, err := v.Verify(t.Context(), []*x509.Certificate{agent, ca.issuing}, nil, read); err != nil {
		t.Errorf("with the principal from memory: %v", err)
	}
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	ca, foreign := newAuthority(t, "Example"), newAuthority(t, "Foreign")
	plain := ca.person(t, calendarOwner(t))
	standing := func(c *x509.Certificate) {
		oid, err := x509.ParseOID(OIDStandingApproval.String())
		if err != nil {
			t.Fatal(err)
		}
		c.Policies = []x509.OID{oid}
	}
	held := ca.person(t, calendarOwner(t), standing)
	approved := func(s *story) {
		s.aic.Authorization.Reason = Reason{ReasonStandingApproval, strings.Repeat("ab", 32)}
	}
	tests := []struct {
		name   string
		person *person
		policy Policy
		change func(*story)
		op     capability.Operation
		step   string
		code   string
	}{
		{name: "expired", policy: Policy{Now: at(11 * time.Minute)}, step: StepChain, code: "chain_expired"},
		{name: "not yet valid", policy: Policy{Now: at(-2 * time.Minute)}, step: StepChain, code: "chain_not_yet_valid"},
		{name: "clock a little behind", policy: Policy{Now: at(-30 * time.Second)}},
		{name: "no client authentication", change: func(s *story) { s.template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }, step: StepChain, code: "chain_usage"},
		{name: "an authority", change: func(s *story) { s.template.IsCA = true }, step: StepChain, code: "chain_usage"},
		{name: "unknown critical extension", change: func(s *story) {
			s.template.ExtraExtensions = append(s.template.ExtraExtensions, foreignExtension(true))
		}, step: StepChain, code: "chain_usage"},
		{name: "unknown extension", change: func(s *story) {
			s.template.ExtraExtensions = append(s.template.ExtraExtensions, foreignExtension(false))
		}},
		{name: "key hash of nobody", change: func(s *story) { s.aic.Principal.KeyHash = octets(1, 32) }, step: StepPrincipal, code: "principal_key_mismatch"},
		{name: "too many capabilities", change: func(s *story) { s.aic.Capabilities = many(257) }, step: StepExtension, code: "aic_invalid"},
		{name: "signed by another", change: func(s *story) { s.signer = newECDSA(t, elliptic.P256()) }, step: StepSignature, code: "da_signature_invalid"},
		{name: "changed after signing", change: func(s *story) { s.after = func(a *AIC) { a.Capabilities[0].ID = "*" } }, step: StepSignature, code: "da_signature_invalid"},
		{name: "for another agent key", change: func(s *story) {
			key := s.key
			s.key = newECDSA(t, elliptic.P256())
			s.after = func(*AIC) { s.key = key }
		}, step: StepSignature, code: "da_signature_invalid"},
		{name: "version 1", change: func(s *story) { signVersion1(t, s) }, step: StepVersion, code: "da_version_unsupported"},
		{name: "lives too long", change: func(s *story) { s.aic.Authorization.Lifetime = 5 * time.Minute }, step: StepLifetime, code: "lifetime_exceeded"},
		{name: "signed long before", change: func(s *story) { s.aic.Authorization.Timestamp = noon.Add(-2 * time.Minute) }, step: StepTimestamp, code: "da_timestamp_implausible"},
		{name: "signed long after", change: func(s *story) { s.aic.Authorization.Timestamp = noon.Add(2 * time.Minute) }, step: StepTimestamp, code: "da_timestamp_implausible"},
		{name: "from outside", change: func(s *story) { s.aic.Constraints = grants(t, `constraint:network:cidr["10.0.0.0/8"]`) }, op: withRemote("192.0.2.1"), step: StepAgentConstraints, code: capability.CodeNetwork},
		{name: "unknown constraint", change: func(s *story) {
			s.aic.Constraints = []capability.Capability{{Scheme: "constraint", ID: "moon:phase"}}
		}, step: StepExtension, code: "aic_invalid"},
		{name: "beyond the principal's grants", change: func(s *story) { s.aic.Capabilities = grants(t, "calendar:read", "mail:send") }, step: StepMode, code: capability.CodeNotGranted},
		{name: "representative without leave", change: func(s *story) { s.aic.Mode = Representative }, step: StepMode, code: "representative_not_allowed"},
		{name: "operation not delegated", op: capability.Operation{Name: "calendar:write"}, step: StepOperation, code: capability.CodeNotGranted},
		{name: "agent revoked", policy: Policy{Revoked: revokes("scheduler")}, step: StepRevocation, code: "agent_revoked"},
		{name: "principal revoked", policy: Policy{Revoked: revokes("Alice")}, step: StepRevocation, code: "principal_revoked"},
		{name: "standing approval", person: held, change: approved},
		{name: "standing approval where the own key is demanded", person: held, policy: Policy{RequireOwnKey: true}, change: approved, step: StepOwnKey, code: "own_key_required"},
		{name: "own key where it is demanded", policy: Policy{RequireOwnKey: true}},
		{name: "standing approval that is not named", person: held, step: StepOwnKey, code: "standing_approval_unstated"},
		{name: "principal of another root", person: foreign.person(t, calendarOwner(t)), step: StepPrincipal, code: "principal_untrusted"},
		{name: "principal expired", person: ca.person(t, calendarOwner(t), func(c *x509.Certificate) { c.NotAfter = noon }), step: StepPrincipal, code: "principal_expired"},
		{name: "principal may not sign", person: ca.person(t, calendarOwner(t), func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment }), step: StepPrincipal, code: "principal_usage"},
		{name: "principal without authorization", person: ca.person(t, calendarOwner(t), func(c *x509.Certificate) { c.ExtraExtensions = nil }), step: StepPrincipal, code: "pa_missing"},
		{name: "principal's authorization malformed", person: ca.person(t, calendarOwner(t), func(c *x509.Certificate) { c.ExtraExtensions[0].Value = []byte{5, 0} }), step: StepPrincipal, code: "pa_malformed"},
		{name: "principal's condition", person: ca.person(t, &PrincipalAuthorization{Version: 1, Grants: grants(t, "calendar:*"), Constraints: grants(t, "constraint:op:readonly")}),
			op: capability.Operation{Name: "calendar:read"}, step: StepPrincipalConstraints, code: capability.CodeReadOnly},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.person == nil {
				tt.person = plain
			}
			if tt.op.Name == "" {
				tt.op = read
			}
			s := newStory(t, tt.person, "calendar:read")
			if tt.change != nil {
				tt.change(s)
			}
			agent := s.issue(t, ca)
			v := ca.verifier(tt.policy)
			for range 2 { // cold and warm
				d, err := v.Verify(t.Context(), []*x509.Certificate{agent, ca.issuing}, []*x509.Certificate{tt.person.cert}, tt.op)
				expect(t, d, err, tt.step, tt.code)
			}
		})
	}
}

// expect compares a decision with the step and code of a refusal, or with permission if code is empty.
func expect(t *testing.T, d Decision, err error, step, code string) {
	t.Helper()
	r, _ := errors.AsType[*Refusal](err)
	if code == "" && err != nil || code != "" && (r == nil || r.Step != step || r.Code != code) {
		t.Fatalf("got %v (%+v), want step %q, code %q", err, r, step, code)
	}
	if code == "" {
		return
	}
	lines := d.Steps()
	if last := lines[len(lines)-1]; last.OK || last.Code != step || last.Text != r.Text {
		t.Errorf("the explanation ends with %+v, want the refusal", last)
	}
	if d.Obligations != (capability.Obligations{}) {
		t.Error("a refusal carries obligations")
	}
}

func at(d time.Duration) func() time.Time { return func() time.Time { return noon.Add(d) } }

func many(n int) []capability.Capability {
	list := make([]capability.Capability, n)
	for i := range list {
		list[i] = capability.Capability{Scheme: "calendar", ID: "read"}
	}
	return list
}

func withRemote(ip string) capability.Operation {
	op := read
	op.Remote = netip.MustParseAddr(ip)
	return op
}

func revokes(name string) func(context.Context, *x509.Certificate) error {
	return func(_ context.Context, c *x509.Certificate) error {
		if c.Subject.CommonName == name {
			return errors.New("revoked")
		}
		return nil
	}
}

// signVersion1 signs as older authorities let principals sign: without the agent's key.
func signVersion1(t *testing.T, s *story) {
	t.Helper()
	s.aic.Version = 1
	d := &s.aic.Authorization
	d.Nonce, d.Algorithm = octets(1, 32), x509.ECDSAWithSHA256
	tbs, err := s.aic.SignedBytes(nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(tbs)
	if d.Signature, err = s.signer.Sign(rand.Reader, sum[:], crypto.SHA256); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyRefusesChains(t *testing.T) {
	t.Parallel()
	ca, foreign := newAuthority(t, "Example"), newAuthority(t, "Foreign")
	alice := ca.person(t, calendarOwner(t))
	agent := newStory(t, alice, "calendar:read").issue(t, ca)
	people := []*x509.Certificate{alice.cert}
	v := ca.verifier(Policy{})
	verify := func(chain, principals []*x509.Certificate, step, code string) {
		t.Helper()
		d, err := v.Verify(t.Context(), chain, principals, read)
		expect(t, d, err, step, code)
	}
	verify(nil, people, StepChain, "chain_size")
	verify(make([]*x509.Certificate, maxChain+1), people, StepChain, "chain_size")
	verify([]*x509.Certificate{agent}, people, StepChain, "chain_untrusted")
	verify([]*x509.Certificate{agent, foreign.issuing}, people, StepChain, "chain_untrusted")
	verify([]*x509.Certificate{alice.cert, ca.issuing}, people, StepExtension, "aic_missing")
	verify([]*x509.Certificate{agent, ca.issuing}, nil, StepPrincipal, "principal_absent")
	verify([]*x509.Certificate{agent, ca.issuing}, []*x509.Certificate{agent, ca.issuing}, StepPrincipal, "principal_absent")
	imposter := newStory(t, alice, "calendar:read").issue(t, foreign)
	verify([]*x509.Certificate{imposter, foreign.issuing, foreign.root}, people, StepChain, "chain_untrusted")
	// The same name and another key: what is remembered about the real issuer must not help.
	twin := newAuthority(t, "Example")
	imposter = newStory(t, alice, "calendar:read").issue(t, twin)
	verify([]*x509.Certificate{agent, ca.issuing}, people, "", "")
	verify([]*x509.Certificate{imposter, twin.issuing}, people, StepChain, "chain_untrusted")
	verify([]*x509.Certificate{imposter, ca.issuing}, people, StepChain, "chain_untrusted")
}

func TestVerifyRefusesAnotherAnchor(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "Example"), newAuthority(t, "Other")
	bob := other.person(t, calendarOwner(t))
	agent := newStory(t, bob, "calendar:read").issue(t, ca)
	v := NewVerifier([]*x509.Certificate{ca.root, other.root}, atNoon(Policy{Intermediates: []*x509.Certificate{ca.issuing, other.issuing}}))
	d, err := v.Verify(t.Context(), []*x509.Certificate{agent}, []*x509.Certificate{bob.cert}, read)
	expect(t, d, err, StepAnchor, "anchor_differs")
}

func TestVerifyRefusesAnAgentThatDelegates(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "Example")
	alice := ca.person(t, calendarOwner(t))
	first := newStory(t, alice, "calendar:read")
	middle := &person{key: first.key, cert: first.issue(t, ca)}
	agent := newStory(t, middle, "calendar:read").issue(t, ca)
	d, err := ca.verifier(Policy{}).Verify(t.Context(), []*x509.Certificate{agent, ca.issuing}, []*x509.Certificate{middle.cert}, read)
	expect(t, d, err, StepPrincipal, "agent_delegates")
}

// A representative does no more than the principal may now, and an older certificate of the principal does not help.
func TestRepresentative(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "Example")
	policy := &DelegationPolicy{Version: 1, MaxAgents: 1, AllowedMode: Representative}
	alice := ca.person(t, &PrincipalAuthorization{Version: 1, Grants: grants(t, "calendar:*"), Policy: policy})
	s := newStory(t, alice, "calendar:*", "mail:read")
	s.aic.Mode = Representative
	chain := []*x509.Certificate{s.issue(t, ca), ca.issuing}
	v := ca.verifier(Policy{})
	write := capability.Operation{Name: "calendar:write"}
	d, err := v.Verify(t.Context(), chain, []*x509.Certificate{alice.cert}, write)
	expect(t, d, err, "", "")
	d, err = v.Verify(t.Context(), chain, []*x509.Certificate{alice.cert}, capability.Operation{Name: "mail:read"})
	expect(t, d, err, StepOperation, capability.CodeNotGranted)

	narrow := &PrincipalAuthorization{Version: 1, Grants: grants(t, "calendar:read"), Policy: policy}
	renewed := ca.certifyPerson(t, alice.key, narrow, func(c *x509.Certificate) { c.NotBefore = noon })
	for _, presented := range [][]*x509.Certificate{{renewed}, {alice.cert}, {alice.cert, renewed}, nil} {
		d, err = v.Verify(t.Context(), chain, presented, write)
		expect(t, d, err, StepOperation, capability.CodeNotGranted)
	}
}

func TestPrincipalIsForgotten(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "Example")
	alice := ca.person(t, calendarOwner(t))
	chain := []*x509.Certificate{newStory(t, alice, "calendar:read").issue(t, ca), ca.issuing}
	now := noon
	v := ca.verifier(Policy{MaxPrincipalAge: time.Minute, Now: func() time.Time { return now }})
	if _, err := v.Verify(t.Context(), chain, []*x509.Certificate{alice.cert}, read); err != nil {
		t.Fatal(err)
	}
	now = noon.Add(time.Minute)
	if _, err := v.Verify(t.Context(), chain, nil, read); err != nil {
		t.Errorf("within its age: %v", err)
	}
	now = noon.Add(time.Minute + time.Second)
	d, err := v.Verify(t.Context(), chain, nil, read)
	expect(t, d, err, StepPrincipal, "principal_absent")
}

// A path with name constraints is validated for each certificate, never taken from memory.
func TestNameConstraintsHoldWarm(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "Example")
	rootKey := newECDSA(t, elliptic.P256())
	ca.root = certify(t, caTemplate(1, "Root"), nil, rootKey.Public(), rootKey)
	issuing := caTemplate(2, "Issuing")
	issuing.PermittedDNSDomains = []string{"example.org"}
	ca.issuing = certify(t, issuing, ca.root, ca.key.Public(), rootKey)
	alice := ca.person(t, calendarOwner(t))
	v := ca.verifier(Policy{})
	for host, code := range map[string]string{"a.example.org": "", "a.example.net": "chain_untrusted"} {
		s := newStory(t, alice, "calendar:read")
		s.template.DNSNames = []string{host}
		chain := []*x509.Certificate{s.issue(t, ca), ca.issuing}
		for range 2 {
			d, err := v.Verify(t.Context(), chain, []*x509.Certificate{alice.cert}, read)
			expect(t, d, err, StepChain, code)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := newCache[int](3)
	for i := range 100 {
		c.put([]byte{byte(i)}, i)
	}
	if len(c.byKey) != 3 {
		t.Errorf("%d entries, want 3", len(c.byKey))
	}
	if got, found := c.get([]byte{99}); !found || got != 99 {
		t.Error("the last entry is gone")
	}
}

func TestStepsReadAsText(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "Example")
	alice := ca.person(t, calendarOwner(t))
	chain := []*x509.Certificate{newStory(t, alice, "calendar:read").issue(t, ca), ca.issuing}
	d, _ := ca.verifier(Policy{}).Verify(t.Context(), chain, []*x509.Certificate{alice.cert}, capability.Operation{Name: "calendar:write"})
	var got []string
	for _, s := range d.Steps() {
		got = append(got, s.Text)
	}
	want := []string{
		`The agent's certificate is valid until 2026-03-04 12:09:59 UTC and was issued by "Example Issuing", under the trusted root "Example Root".`,
		`It names the agent "scheduler", for whom "alice" at "example.org" answers.`,
		`The principal's certificate, "Alice", is trusted, valid until 2026-03-04 20:00:00 UTC, and has the key that the agent's certificate names.`,
		`Both certificates come from the root "Example Root".`,
		`Revocation is not looked up here; the certificate's short life limits the harm.`,
		`The authorization names the agent's key, so that no other key can use it.`,
		`The principal's signature over it is good (ECDSA-SHA256).`,
		`The principal signed with their own key, for the reason "CALENDAR": "plan my week".`,
		`The certificate lives no longer than authorized: 10m.`,
		`It was signed at 2026-03-04 12:00:00 UTC, when the certificate was made.`,
		`No further conditions bind the principal.`,
		`No further conditions bind the agent.`,
		`What was delegated is the principal's to give: calendar:read.`,
		`calendar:write was not granted; the agent may calendar:read`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Many goroutines share a verifier whose clock makes it forget and learn again.
func TestVerifyConcurrently(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "Example")
	alice := ca.person(t, calendarOwner(t))
	chain := []*x509.Certificate{newStory(t, alice, "calendar:read").issue(t, ca), ca.issuing}
	var ticks atomic.Int64
	v := ca.verifier(Policy{MaxPrincipalAge: 5 * time.Second, Now: func() time.Time { return noon.Add(time.Duration(ticks.Add(1)) * time.Second) }})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				if _, err := v.Verify(context.Background(), chain, []*x509.Certificate{alice.cert}, read); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// warmVerification gives a verification of a usual agent certificate whose issuer and principal are remembered.
func warmVerification(t testing.TB) func() error {
	t.Helper()
	ca := newAuthority(t, "Example")
	alice := ca.person(t, calendarOwner(t))
	s := newStory(t, alice, "calendar:read", "calendar:freebusy:*")
	s.aic.Constraints = grants(t, "constraint:op:readonly")
	chain := []*x509.Certificate{s.issue(t, ca), ca.issuing}
	people := []*x509.Certificate{alice.cert}
	v := ca.verifier(Policy{})
	verify := func() error {
		_, err := v.Verify(context.Background(), chain, people, read)
		return err
	}
	if err := verify(); err != nil {
		t.Fatal(err)
	}
	return verify
}

// Two signatures are checked, each with about ten allocations in the standard library.
func TestVerifyWarmAllocations(t *testing.T) {
	verify := warmVerification(t)
	if n := testing.AllocsPerRun(100, func() { _ = verify() }); n > 40 {
		t.Errorf("%v allocations, at most 40 are wanted", n)
	}
}

// BenchmarkVerifyWarm is to be read beside BenchmarkECDSAVerify, of which it does two.
func BenchmarkVerifyWarm(b *testing.B) {
	verify := warmVerification(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := verify(); err != nil {
			b.Fatal(err)
		}
	}
}
