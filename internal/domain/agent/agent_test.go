package agent_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"testing"
	"time"

	"chancery/agentcert"
	"chancery/capability"
	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/core/store/storetest"
	"chancery/internal/domain/agent"
)

// authority is a certificate authority in memory: it signs real certificates and keeps evidence and revocations as
// the real one promises to.
type authority struct {
	t       *testing.T
	mu      sync.Mutex
	key     crypto.Signer
	cert    *x509.Certificate
	serials id.Serials
	issued  map[string]agent.Order
	stored  map[string]agent.Certificate
	revoked []string
	now     func() time.Time
}

func newAuthority(t *testing.T, now func() time.Time) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t), issued: map[string]agent.Order{}, stored: map[string]agent.Certificate{}, now: now}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, NotBefore: now().Add(-time.Hour),
		NotAfter: now().Add(1000 * time.Hour * 24), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert = a.sign(template, a.key.Public(), template)
	return a
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	k, err := key.Generate(key.P256)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (a *authority) sign(template *x509.Certificate, public crypto.PublicKey, parent *x509.Certificate) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

func (a *authority) certify(name string, spki []byte, notAfter time.Time, oid []int, value []byte) agent.Certificate {
	public, err := key.ParsePublic(spki)
	if err != nil {
		a.t.Fatal(err)
	}
	cert := a.sign(&x509.Certificate{
		SerialNumber: a.serials.Next(a.now()).Big(), Subject: pkix.Name{CommonName: name}, NotBefore: a.now().Truncate(time.Second), NotAfter: notAfter,
		ExtraExtensions: []pkix.Extension{{Id: oid, Value: value}},
	}, public, a.cert)
	return agent.Certificate{Serial: id.SerialOf(cert.SerialNumber).String(), DER: cert.Raw, NotBefore: cert.NotBefore, NotAfter: cert.NotAfter}
}

func (a *authority) CertifyPrincipal(_ context.Context, o agent.PrincipalOrder) (agent.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.certify(o.Name, o.SPKI, o.NotAfter, agentcert.OIDPrincipalAuthorization, o.Authorization), nil
}

func evidence(signedAt time.Time, nonce []byte) string {
	return fmt.Sprintf("%d %x", signedAt.Unix(), nonce)
}

func (a *authority) CertifyAgent(_ context.Context, o agent.Order) (agent.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := evidence(o.SignedAt, o.Nonce)
	if before, ok := a.issued[e]; ok {
		if !bytes.Equal(before.SPKI, o.SPKI) {
			return agent.Certificate{}, fault.New(fault.Conflict, "da_replayed", "used before")
		}
		c := a.stored[e]
		c.Again = true
		return c, nil
	}
	a.issued[e] = o
	notAfter := a.now().Truncate(time.Second).Add(o.Lifetime - time.Second)
	a.stored[e] = a.certify(o.Name, o.SPKI, notAfter, agentcert.OIDExtension, o.AIC)
	return a.stored[e], nil
}

func (a *authority) FindByEvidence(_ context.Context, signedAt time.Time, nonce []byte) (agent.Certificate, [32]byte, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := evidence(signedAt, nonce)
	c, found := a.stored[e]
	return c, key.Hash(a.issued[e].SPKI), found, nil
}

func (a *authority) Revoked(targets ...string) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, target := range targets {
		if slices.Contains(a.revoked, target) {
			return target, true
		}
	}
	return "", false
}

func (a *authority) Revoke(_ context.Context, target, _ string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revoked = append(a.revoked, target)
	return nil
}

// people knows everybody by the identifier's own text, but for the disabled.
type people struct{ disabled string }

func (p *people) Person(_ context.Context, person string) (string, error) {
	if person == p.disabled {
		return "", fault.New(fault.Denied, "account_disabled", "%s is disabled", person)
	}
	return "name-of-" + person, nil
}

type keys struct {
	mu   sync.Mutex
	held map[string]crypto.Signer
}

func (k *keys) Signer(_ context.Context, name string) (crypto.Signer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s, ok := k.held[name]; ok {
		return s, nil
	}
	return nil, fault.New(fault.NotFound, "key_unknown", "no key %s", name)
}

func (k *keys) Create(_ context.Context, name string) (crypto.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.held[name]; !ok {
		s, err := key.Generate(key.P256)
		if err != nil {
			return nil, err
		}
		k.held[name] = s
	}
	return k.held[name].Public(), nil
}

// world is a registry with one person who may hand on calendar:* and one enrolled agent under calendar:read.
type world struct {
	*agent.Registry
	t          *testing.T
	authority  *authority
	people     *people
	clock      time.Time
	admin      context.Context
	person     string
	self       context.Context // the person
	personKey  crypto.Signer
	agentKey   crypto.Signer
	agent      agent.Agent
	delegation agent.Delegation
}

func newWorld(t *testing.T, standing bool) *world {
	t.Helper()
	w := &world{t: t, clock: time.Now().UTC().Truncate(time.Second), personKey: newKey(t), agentKey: newKey(t), people: &people{disabled: "per_disabled"}}
	now := func() time.Time { return w.clock }
	w.authority = newAuthority(t, now)
	w.Registry = agent.New(storetest.Open(t), w.authority, w.people, &keys{held: map[string]crypto.Signer{}}, agent.Config{Realm: "corp.example"}, now)
	w.person = id.New(id.Person, w.clock)
	w.admin = who.With(t.Context(), who.Caller{Kind: who.Operator, Permissions: who.Permissions()})
	w.self = who.With(t.Context(), who.Caller{Kind: who.Person, ID: w.person, Permissions: who.Set{who.AgentOwn, who.DelegationOwn}})
	must(w.Certify(w.admin, agent.PrincipalTerms{Person: w.person, Grants: caps(t, "calendar:*"), MaxAgents: 10}, w.request(w.personKey)))(t)
	w.agent = must(w.Create(w.self, w.person, "helper"))(t)
	w.delegation = must(w.Delegate(w.self, w.terms(standing)))(t)
	invitation := must(w.Invite(w.self, w.agent.ID, w.delegation.ID))(t)
	w.agent = must(w.Enrol(t.Context(), invitation.Secret, w.request(w.agentKey)))(t)
	return w
}

func (w *world) terms(standing bool) agent.Terms {
	return agent.Terms{Principal: w.person, Name: "calendar", Capabilities: []string{"calendar:read:*"}, Constraints: []string{`constraint:network:cidr["10.0.0.0/8"]`},
		Standing: standing, Until: w.clock.Add(30 * 24 * time.Hour), LifetimeSec: 600, MaxAgents: 1}
}

// must gives the value of a call that may not fail: must(call())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func caps(t *testing.T, texts ...string) (set []capability.Capability) {
	t.Helper()
	for _, text := range texts {
		set = append(set, must(capability.Parse(text))(t))
	}
	return set
}

func (w *world) request(k crypto.Signer) []byte {
	w.t.Helper()
	return must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, k))(w.t)
}

// identity is an agent identity signed by the person's own key, changed by edit before it is signed.
func (w *world) identity(edit func(*agentcert.AIC)) []byte {
	w.t.Helper()
	personHash := key.Hash(spki(w.t, w.personKey))
	aic := agentcert.AIC{
		Version: 2, AgentID: w.agent.ID, Capabilities: caps(w.t, "calendar:read:events"), Constraints: w.delegation.Constrained,
		Principal:     agentcert.PrincipalUID{Version: 1, Realm: "corp.example", Identifier: "name-of-" + w.person, KeyHash: personHash[:]},
		Authorization: agentcert.DelegationAuthorization{Reason: agentcert.Reason{Code: "TEST", Description: "a test"}, Lifetime: time.Hour, Timestamp: w.clock},
	}
	if edit != nil {
		edit(&aic)
	}
	if err := agentcert.Sign(&aic, spki(w.t, w.agentKey), w.personKey, nil); err != nil {
		w.t.Fatal(err)
	}
	return must(aic.Encode())(w.t)
}

func spki(t testing.TB, k crypto.Signer) []byte {
	t.Helper()
	return must(key.SPKI(k.Public()))(t)
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if got := fault.CodeOf(err); got != code {
		t.Errorf("got %q (%v), want %q", got, err, code)
	}
}

func TestIssueByOwnKey(t *testing.T) {
	w := newWorld(t, false)
	identity := w.identity(nil)
	first := must(w.Issue(w.self, w.request(w.agentKey), identity))(t)
	if want := w.clock.Add(600*time.Second - time.Second); !first.NotAfter.Equal(want) {
		t.Errorf("not after %v, want the delegation's 600 s: %v", first.NotAfter, want)
	}
	again := must(w.Issue(w.self, w.request(w.agentKey), identity))(t)
	if !again.Again || !bytes.Equal(again.DER, first.DER) {
		t.Error("the same evidence and key gave another certificate")
	}
	w.clock = w.clock.Add(5 * time.Minute)
	late := must(w.Issue(w.self, w.request(w.agentKey), identity))(t)
	if !bytes.Equal(late.DER, first.DER) {
		t.Error("the same evidence and key, no longer fresh, gave another certificate")
	}
}

func TestIdentityInsideTheRequest(t *testing.T) {
	w := newWorld(t, false)
	csr := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		ExtraExtensions: []pkix.Extension{{Id: agentcert.OIDExtension, Value: w.identity(nil)}},
	}, w.agentKey))(t)
	must(w.Issue(w.self, csr, nil))(t)
}

func TestIssueRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*world, *agentcert.AIC)
		code string
	}{
		"capability beyond the delegation": {func(w *world, a *agentcert.AIC) { a.Capabilities = caps(w.t, "calendar:write:events") }, "capability_beyond_grant"},
		"constraint left out":              {func(_ *world, a *agentcert.AIC) { a.Constraints = nil }, "constraint_missing"},
		"another mode":                     {func(_ *world, a *agentcert.AIC) { a.Mode = agentcert.Representative }, "mode_denied"},
		"unknown agent":                    {func(_ *world, a *agentcert.AIC) { a.AgentID = "agt_unknown" }, "agent_unknown"},
		"unknown principal":                {func(_ *world, a *agentcert.AIC) { a.Principal.KeyHash = make([]byte, 32) }, "principal_unknown"},
		"another realm":                    {func(_ *world, a *agentcert.AIC) { a.Principal.Realm = "evil.example" }, "principal_foreign"},
		"signed a minute ago":              {func(w *world, a *agentcert.AIC) { a.Authorization.Timestamp = w.clock.Add(-time.Minute) }, "da_stale"},
		"signed in a minute":               {func(w *world, a *agentcert.AIC) { a.Authorization.Timestamp = w.clock.Add(time.Minute) }, "da_stale"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			_, err := w.Issue(w.self, w.request(w.agentKey), w.identity(func(a *agentcert.AIC) { c.edit(w, a) }))
			wantCode(t, err, c.code)
			if len(w.authority.issued) != 0 {
				t.Error("a refusal issued something")
			}
		})
	}
}

func TestIssueRefusesCallersAndKeys(t *testing.T) {
	w := newWorld(t, false)
	identity, csr := w.identity(nil), w.request(w.agentKey)
	_, err := w.Issue(t.Context(), csr, identity)
	wantCode(t, err, "credentials_required")
	_, err = w.Issue(who.With(t.Context(), who.Caller{Kind: who.Agent, ID: w.agent.ID, Permissions: who.Permissions()}), csr, identity)
	wantCode(t, err, "agent_delegation_denied")
	_, err = w.Issue(who.With(t.Context(), who.Caller{Kind: who.Person, ID: "per_other", Permissions: who.Set{who.AgentOwn}}), csr, identity)
	wantCode(t, err, "principal_foreign")
	_, err = w.Issue(w.self, w.request(newKey(t)), identity)
	wantCode(t, err, "da_signature_invalid")
	tampered := bytes.Clone(identity)
	tampered[len(tampered)-3] ^= 1
	_, err = w.Issue(w.self, csr, tampered)
	wantCode(t, err, "da_signature_invalid")
	must(w.Issue(w.self, csr, identity))(t)
}

func TestStopEndsEverythingBelow(t *testing.T) {
	for _, target := range []func(*world) string{
		func(w *world) string { return w.agent.ID }, func(w *world) string { return w.delegation.ID }, func(w *world) string { return w.person },
	} {
		w := newWorld(t, true)
		must(w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(w.agentKey)}))(t)
		if err := w.Stop(w.self, target(w)); err != nil {
			t.Fatal(err)
		}
		_, err := w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(w.agentKey)})
		wantCode(t, err, "agent_stopped")
	}
}

func TestRenewUnderStandingApproval(t *testing.T) {
	w := newWorld(t, true)
	c := must(w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(w.agentKey)}))(t)
	aic := must(agentcert.FromCertificate(must(x509.ParseCertificate(c.DER))(t)))(t)
	if aic.Authorization.Reason.Code != agentcert.ReasonStandingApproval || aic.Authorization.Reason.Description != w.delegation.Hash {
		t.Errorf("reason %+v, want the standing approval's hash %s", aic.Authorization.Reason, w.delegation.Hash)
	}
	if err := (capability.Set{}).Covers(aic.Capabilities); err == nil {
		t.Error("the certificate carries no capability")
	}
	self := who.With(t.Context(), who.Caller{Kind: who.Agent, ID: w.agent.ID, KeyHash: key.Hash(spki(t, w.agentKey))})
	must(w.Renew(self, agent.Renewal{ClientKey: spki(t, w.agentKey)}))(t)

	next := newKey(t)
	_, err := w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(next)})
	wantCode(t, err, "key_mismatch")
	must(w.Renew(self, agent.Renewal{Request: w.request(next)}))(t)
	must(w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(next)}))(t)
	_, err = w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(w.agentKey)})
	wantCode(t, err, "key_mismatch")
	_, err = w.Renew(self, agent.Renewal{Agent: "agt_other", Request: w.request(next)})
	wantCode(t, err, "agent_foreign")
}

func TestAnEarlierKeyDoesNotTakeAnAgentBack(t *testing.T) {
	w := newWorld(t, true)
	old := who.With(t.Context(), who.Caller{Kind: who.Agent, ID: w.agent.ID, KeyHash: key.Hash(spki(t, w.agentKey))})
	recovered := newKey(t)
	must(w.Enrol(t.Context(), must(w.Invite(w.self, w.agent.ID, w.delegation.ID))(t).Secret, w.request(recovered)))(t)
	for name, n := range map[string]agent.Renewal{
		"its own key": {ClientKey: spki(t, w.agentKey)}, "a third key": {Request: w.request(newKey(t))},
	} {
		_, err := w.Renew(old, n)
		if wantCode(t, err, "key_mismatch"); t.Failed() {
			t.Fatalf("an earlier key renews %s", name)
		}
	}
	must(w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(recovered)}))(t)
}

func TestNothingIsIssuedBelowADisabledPerson(t *testing.T) {
	w := newWorld(t, true)
	w.people.disabled = w.person
	_, err := w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(w.agentKey)})
	wantCode(t, err, "account_disabled")
	_, err = w.Issue(w.self, w.request(w.agentKey), w.identity(nil))
	wantCode(t, err, "account_disabled")
}

func TestAgentsMakeNoCredentials(t *testing.T) {
	w := newWorld(t, true)
	w.clock = w.clock.Add(time.Second)
	must(w.Certify(w.admin, agent.PrincipalTerms{Person: w.person, Grants: caps(t, "calendar:*", "chancery:*"), MaxAgents: 10}, w.request(w.personKey)))(t)
	terms := w.terms(true)
	terms.Capabilities = []string{"chancery:*"}
	d := must(w.Delegate(w.self, terms))(t)
	must(w.Enrol(t.Context(), must(w.Invite(w.self, w.agent.ID, d.ID))(t).Secret, w.request(w.agentKey)))(t)
	c := must(w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(w.agentKey)}))(t)
	caller := must(w.Caller(t.Context(), must(x509.ParseCertificate(c.DER))(t), who.Caller{Permissions: who.Permissions()}))(t)
	for _, p := range []who.Permission{who.TokenOwn, who.TokenManage, who.AccountManage} {
		if caller.May(p) {
			t.Errorf("an agent may %s, and what it makes outlives it", p)
		}
	}
}

func TestARevokedHeldKeyIsNotApprovedAnew(t *testing.T) {
	w := newWorld(t, true)
	for _, p := range must(w.Principals(w.self, w.person))(t) {
		if p.HeldAs != "" {
			w.authority.revoked = append(w.authority.revoked, "crt:"+p.Serial)
		}
	}
	_, err := w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(w.agentKey)})
	wantCode(t, err, "principal_revoked")
	_, err = w.Delegate(w.self, w.terms(true))
	wantCode(t, err, "principal_revoked")
	must(w.Delegate(w.self, w.terms(false)))(t)
}

func TestStoppingAllLeavesThePersonFreeToDelegateAnew(t *testing.T) {
	w := newWorld(t, true)
	if err := w.Stop(w.self, w.person); err != nil {
		t.Fatal(err)
	}
	terms := w.terms(true)
	terms.MaxAgents = 2
	d := must(w.Delegate(w.self, terms))(t)
	must(w.Enrol(t.Context(), must(w.Invite(w.self, w.agent.ID, d.ID))(t).Secret, w.request(w.agentKey)))(t)
	must(w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(w.agentKey)}))(t)
}

func TestHeldKeyIsWorthNothingWithoutThePersonsOwn(t *testing.T) {
	w := newWorld(t, true)
	own := must(w.Principals(w.self, w.person))(t)
	for _, p := range own {
		if p.HeldAs == "" {
			if err := w.authority.Revoke(t.Context(), "crt:"+p.Serial, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(w.agentKey)})
	wantCode(t, err, "principal_required")
}

func TestRenewNeedsStandingApproval(t *testing.T) {
	w := newWorld(t, false)
	_, err := w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(w.agentKey)})
	wantCode(t, err, "standing_approval_missing")
}

func TestEnrolmentTokenIsForOneKey(t *testing.T) {
	w := newWorld(t, true)
	second := must(w.Create(w.self, w.person, "second"))(t)
	wider := w.terms(true)
	wider.MaxAgents = 2
	d := must(w.Delegate(w.self, wider))(t)
	invitation := must(w.Invite(w.self, second.ID, d.ID))(t)
	k := newKey(t)
	must(w.Enrol(t.Context(), invitation.Secret, w.request(k)))(t)
	must(w.Enrol(t.Context(), invitation.Secret, w.request(k)))(t)
	_, err := w.Enrol(t.Context(), invitation.Secret, w.request(newKey(t)))
	wantCode(t, err, "enrolment_refused")
	_, err = w.Enrol(t.Context(), "che_wrong", w.request(k))
	wantCode(t, err, "enrolment_refused")

	late := must(w.Invite(w.self, w.agent.ID, d.ID))(t)
	if !late.Until.Equal(w.clock.Add(time.Hour)) {
		t.Errorf("an invitation stands until %v, want an hour", late.Until)
	}
}

func TestARequestSignedOverSHA1ProvesNothing(t *testing.T) {
	w := newWorld(t, true)
	k := must(key.Generate(key.RSA2048))(t)
	csr := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{SignatureAlgorithm: x509.SHA1WithRSA}, k))(t)
	_, err := w.Enrol(t.Context(), must(w.Invite(w.self, w.agent.ID, w.delegation.ID))(t).Secret, csr)
	wantCode(t, err, "csr_signature")
}

func TestMaxAgentsIsCountedAtEnrolment(t *testing.T) {
	w := newWorld(t, true)
	second := must(w.Create(w.self, w.person, "second"))(t)
	invitation := must(w.Invite(w.self, second.ID, w.delegation.ID))(t)
	_, err := w.Enrol(t.Context(), invitation.Secret, w.request(newKey(t)))
	wantCode(t, err, "max_agents_exceeded")
}

func TestDelegateRefuses(t *testing.T) {
	w := newWorld(t, false)
	for name, c := range map[string]struct {
		edit func(*agent.Terms)
		code string
	}{
		"beyond the grants":  {func(d *agent.Terms) { d.Capabilities = []string{"mail:send"} }, "capability_beyond_grant"},
		"no capability":      {func(d *agent.Terms) { d.Capabilities = nil }, "terms_invalid"},
		"bare wildcard":      {func(d *agent.Terms) { d.Capabilities = []string{"*"} }, "terms_invalid"},
		"unknown constraint": {func(d *agent.Terms) { d.Constraints = []string{"constraint:moon:phase"} }, "terms_invalid"},
		"in the past":        {func(d *agent.Terms) { d.Until = w.clock.Add(-time.Second) }, "terms_invalid"},
		"for two years":      {func(d *agent.Terms) { d.Until = w.clock.Add(2 * 366 * 24 * time.Hour) }, "terms_invalid"},
		"for two days each":  {func(d *agent.Terms) { d.LifetimeSec = 172800 }, "terms_invalid"},
		"more agents":        {func(d *agent.Terms) { d.MaxAgents = 11 }, "max_agents_exceeded"},
		"representative":     {func(d *agent.Terms) { d.Representative = true }, "representative_denied"},
		"somebody else":      {func(d *agent.Terms) { d.Principal = "per_other" }, "permission_missing"},
		"disabled person":    {func(d *agent.Terms) { d.Principal = "per_disabled" }, "account_disabled"},
	} {
		terms := w.terms(false)
		c.edit(&terms)
		ctx := w.self
		if terms.Principal == "per_disabled" {
			ctx = w.admin
		}
		if _, err := w.Delegate(ctx, terms); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}

// TestRightsOverOthers holds a caller with one permission to just what that permission is for.
func TestRightsOverOthers(t *testing.T) {
	w := newWorld(t, true)
	csr := w.request(newKey(t))
	foreign := func(permissions ...who.Permission) context.Context {
		return who.With(t.Context(), who.Caller{Kind: who.Person, ID: "per_other", Permissions: permissions})
	}
	acts := map[string]func(context.Context) error{
		"read agent":       func(ctx context.Context) error { _, err := w.Agent(ctx, w.agent.ID); return err },
		"list agents":      func(ctx context.Context) error { _, err := w.Agents(ctx, "", "", 10); return err },
		"read delegation":  func(ctx context.Context) error { _, err := w.Delegation(ctx, w.delegation.ID); return err },
		"list delegations": func(ctx context.Context) error { _, err := w.Delegations(ctx, w.person, "", 10); return err },
		"list principals":  func(ctx context.Context) error { _, err := w.Principals(ctx, w.person); return err },
		"create agent":     func(ctx context.Context) error { _, err := w.Create(ctx, w.person, rand.Text()); return err },
		"invite":           func(ctx context.Context) error { _, err := w.Invite(ctx, w.agent.ID, w.delegation.ID); return err },
		"certify": func(ctx context.Context) error {
			_, err := w.Certify(ctx, agent.PrincipalTerms{Person: w.person, Grants: caps(t, "calendar:*"), MaxAgents: 10}, csr)
			return err
		},
		"delegate":    func(ctx context.Context) error { _, err := w.Delegate(ctx, w.terms(false)); return err },
		"stop person": func(ctx context.Context) error { return w.Stop(ctx, id.New(id.Person, w.clock)) },
		"stop agent":  func(ctx context.Context) error { return w.Stop(ctx, id.New(id.Agent, w.clock)) },
	}
	reads := []string{"read agent", "list agents", "read delegation", "list delegations", "list principals"}
	for _, c := range []struct {
		caller context.Context
		may    []string
	}{
		{foreign(), nil},
		{foreign(who.AgentOwn, who.DelegationOwn), nil},
		{foreign(who.AgentRead), reads},
		{foreign(who.AgentStop), []string{"stop person"}},
		{foreign(who.AgentManage), []string{"create agent", "certify"}},
		{foreign(who.AgentManage, who.AgentRead), append([]string{"create agent", "certify", "invite"}, reads...)},
		{foreign(who.DelegationManage), []string{"delegate"}},
		{who.With(t.Context(), who.Caller{Kind: who.Agent, ID: w.agent.ID, Owner: w.person, Permissions: who.Permissions()}), nil},
		{who.With(t.Context(), who.Caller{Kind: who.Service, ID: w.person, Permissions: who.Set{who.AgentOwn, who.DelegationOwn}}), nil},
	} {
		for name, act := range acts {
			err := act(c.caller)
			if may := slices.Contains(c.may, name); may != (err == nil) {
				t.Errorf("%s with %v: %v", name, who.From(c.caller).Permissions, err)
			}
			if kind := fault.KindOf(err); err != nil && kind != fault.Denied && kind != fault.NotFound {
				t.Errorf("%s with %v is refused as %v", name, who.From(c.caller).Permissions, err)
			}
		}
	}
}

func TestAgentCallsWithWhatItsDelegationAndOwnerAllow(t *testing.T) {
	w := newWorld(t, true)
	w.clock = w.clock.Add(time.Second)
	must(w.Certify(w.admin, agent.PrincipalTerms{Person: w.person, Grants: caps(t, "calendar:*", "chancery:*"), MaxAgents: 10}, w.request(w.personKey)))(t)
	terms := w.terms(true)
	terms.Capabilities, terms.Name = []string{"chancery:certificate:*"}, "certificates"
	d := must(w.Delegate(w.self, terms))(t)
	must(w.Enrol(t.Context(), must(w.Invite(w.self, w.agent.ID, d.ID))(t).Secret, w.request(w.agentKey)))(t)
	c := must(w.Renew(t.Context(), agent.Renewal{Agent: w.agent.ID, Request: w.request(w.agentKey)}))(t)
	caller := must(w.Caller(t.Context(), must(x509.ParseCertificate(c.DER))(t), who.Caller{Permissions: who.Set{who.CertificateRead, who.AccountManage}, Authorities: []string{"machines"}}))(t)
	if !caller.MayUse("machines") || caller.MayUse("people") {
		t.Errorf("the agent may use %v, not what its owner may", caller.Authorities)
	}
	if !caller.May(who.CertificateRead) || !caller.May(who.AgentSelf) {
		t.Errorf("%v lacks what delegation and owner both allow", caller.Permissions)
	}
	if caller.May(who.CertificateIssue) || caller.May(who.AccountManage) {
		t.Errorf("%v goes beyond owner or delegation", caller.Permissions)
	}
	if err := w.authority.Revoke(t.Context(), "crt:"+c.Serial, ""); err != nil {
		t.Fatal(err)
	}
	_, err := w.Caller(t.Context(), must(x509.ParseCertificate(c.DER))(t), who.Caller{Permissions: who.Permissions()})
	wantCode(t, err, "certificate_revoked")
}

func TestListsGiveEachLastingRowOnce(t *testing.T) {
	w := newWorld(t, false)
	for i := range 7 {
		must(w.Create(w.self, w.person, fmt.Sprintf("agent %d", i)))(t)
	}
	seen := map[string]int{}
	after := ""
	for {
		page := must(w.Agents(w.self, w.person, after, 3))(t)
		for _, a := range page.Items {
			seen[a.ID]++
		}
		if after = page.Next; after == "" {
			break
		}
		must(w.Create(w.self, w.person, "latecomer "+after))(t)
		if len(seen) > 20 {
			break
		}
	}
	for a, n := range seen {
		if n != 1 {
			t.Errorf("agent %s was given %d times", a, n)
		}
	}
	if len(seen) < 8 {
		t.Errorf("%d agents were given, want all 8 that were there before", len(seen))
	}
}

func FuzzIssue(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----"), []byte{0x30, 0})
	f.Fuzz(func(t *testing.T, csr, identity []byte) {
		r := agent.New(storetest.Open(t), nil, nil, nil, agent.Config{Realm: "corp.example"}, time.Now)
		ctx := who.With(t.Context(), who.Caller{Kind: who.Service, Permissions: who.Set{who.AgentIssue}})
		if _, err := r.Issue(ctx, csr, identity); fault.KindOf(err) == fault.Internal {
			t.Errorf("hostile bytes gave %v, want a refusal", err)
		}
	})
}
