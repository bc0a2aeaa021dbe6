package server_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"chancery/agentcert"
	"chancery/capability"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/domain/account"
	"chancery/internal/domain/agent"
	"chancery/internal/server"
)

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

// house is a whole server on a fresh data directory, with one person and one enrolled agent.
type house struct {
	*server.Server
	operator, self context.Context
	personKey      crypto.Signer
	agentKey       crypto.Signer
	principal      *agent.Principal
	agent          agent.Agent
	delegation     agent.Delegation
}

func open(t testing.TB, edit func(*server.Config)) *server.Server {
	t.Helper()
	c := server.Defaults(t.TempDir())
	c.Store.Accept = []string{"file_system"}
	c.Listen = server.Listen{HTTPS: "127.0.0.1:0", MTLS: "127.0.0.1:0"}
	if edit != nil {
		edit(&c)
	}
	s := must(server.New(t.Context(), c, []byte("correct horse"), slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := s.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{Server: open(t, nil), personKey: newKey(t), agentKey: newKey(t)}
	h.operator = server.AsOperator(t.Context())
	person := must(h.Accounts.Create(h.operator, account.Spec{Kind: who.Person, Name: "alice", Roles: []account.Role{account.Self}}))(t)
	h.self = who.With(t.Context(), who.Caller{Kind: who.Person, ID: person.ID, Permissions: account.Self.Permissions()})
	grants := capability.Set{must(capability.Parse("calendar:*"))(t)}
	must(h.Agents.Certify(h.operator, agent.PrincipalTerms{Person: person.ID, Grants: grants, MaxAgents: 10}, h.request(t, h.personKey)))(t)
	h.principal = must(h.Agents.Principals(h.self, person.ID))(t)[0]
	h.agent = must(h.Agents.Create(h.self, person.ID, "helper"))(t)
	h.delegation = must(h.Agents.Delegate(h.self, agent.Terms{Principal: person.ID, Name: "calendar", Capabilities: []string{"calendar:read:*"}, Standing: true,
		Until: time.Now().Add(24 * time.Hour), LifetimeSec: 600, MaxAgents: 1}))(t)
	invitation := must(h.Agents.Invite(h.self, h.agent.ID, h.delegation.ID))(t)
	h.agent = must(h.Agents.Enrol(t.Context(), invitation.Secret, h.request(t, h.agentKey)))(t)
	return h
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	return must(key.Generate(key.P256))(t)
}

func (h *house) request(t testing.TB, k crypto.Signer) []byte {
	t.Helper()
	return must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, k))(t)
}

// identity is a fresh agent identity, signed by the person.
func (h *house) identity(t testing.TB) []byte {
	t.Helper()
	aic := agentcert.AIC{
		Version: 2, AgentID: h.agent.ID, Principal: h.principal.UID, Capabilities: h.delegation.Granted,
		Authorization: agentcert.DelegationAuthorization{Reason: agentcert.Reason{Code: "TEST", Description: "a test"}, Lifetime: 10 * time.Minute, Timestamp: time.Now().UTC().Truncate(time.Second)},
	}
	if err := agentcert.Sign(&aic, must(key.SPKI(h.agentKey.Public()))(t), h.personKey, nil); err != nil {
		t.Fatal(err)
	}
	return must(aic.Encode())(t)
}

// verify checks a certificate as a service would.
func (h *house) verify(t testing.TB, c agent.Certificate, operation string) error {
	t.Helper()
	root := must(h.Authority.Authority(t.Context(), server.Root))(t)
	roots := []*x509.Certificate{must(x509.ParseCertificate(root.Certificate))(t)}
	var chain []*x509.Certificate
	for _, der := range [][]byte{c.DER, c.Issuer, c.Principal, c.PrincipalIssuer} {
		chain = append(chain, must(x509.ParseCertificate(der))(t))
	}
	_, err := agentcert.NewVerifier(roots, agentcert.Policy{}).Verify(t.Context(), chain, chain, capability.Operation{Name: operation})
	return err
}

func TestAgentCertificateHoldsOffline(t *testing.T) {
	h := newHouse(t)
	byPerson := must(h.Agents.Issue(h.self, h.request(t, h.agentKey), h.identity(t)))(t)
	standing := must(h.Agents.Renew(t.Context(), agent.Renewal{Agent: h.agent.ID, Request: h.request(t, h.agentKey)}))(t)
	for name, c := range map[string]agent.Certificate{"signed by the person": byPerson, "under standing approval": standing} {
		if err := h.verify(t, c, "calendar:read:events"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if h.verify(t, c, "calendar:write:events") == nil {
			t.Errorf("%s: an operation that nobody allowed was let through", name)
		}
	}
}

func TestStopReachesRenewalAndStatus(t *testing.T) {
	h := newHouse(t)
	must(h.Agents.Issue(h.self, h.request(t, h.agentKey), h.identity(t)))(t)
	if err := h.Agents.Stop(h.self, h.agent.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Agents.Issue(h.self, h.request(t, h.agentKey), h.identity(t)); err == nil {
		t.Error("a stopped agent got a certificate")
	}
}

// BenchmarkAgentIssue is the server's own work for an agent certificate whose delegation authorization the person
// signed: two verifications, one signature, one durable row. 64 at a time; authorizations are signed beforehand.
func BenchmarkAgentIssue(b *testing.B) {
	h := newHouse(b)
	csr := h.request(b, h.agentKey)
	identities := make([][]byte, b.N)
	for i := range identities {
		identities[i] = h.identity(b)
	}
	var next atomic.Int64
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := h.Agents.Issue(h.self, csr, identities[next.Add(1)-1]); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkAgentRenew is the same under a standing delegation: two signatures, no verification of them.
func BenchmarkAgentRenew(b *testing.B) {
	h := newHouse(b)
	spki := must(key.SPKI(h.agentKey.Public()))(b)
	self := who.With(b.Context(), who.Caller{Kind: who.Agent, ID: h.agent.ID, KeyHash: key.Hash(spki)})
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := h.Agents.Renew(self, agent.Renewal{ClientKey: spki}); err != nil {
				b.Error(err)
			}
		}
	})
}
