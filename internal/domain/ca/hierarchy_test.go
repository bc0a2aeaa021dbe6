package ca

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	x509pkix "crypto/x509/pkix"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ocsp"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/base/name"
	"chancery/internal/base/who"
	"chancery/internal/core/keyring"
	"chancery/internal/core/store"
	"chancery/internal/core/store/storetest"

	"chancery/internal/domain/ca/pkix"
	"chancery/internal/domain/ca/pkix/pkixtest"
)

// A clock is set by tests; it starts at the real time, which openssl compares with.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Now().UTC()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// A world is one instance over a store, with the authorities root, people, machines and agents.
type world struct {
	*Hierarchy
	db    *store.Store
	clock *clock
}

var passphrase = []byte("correct horse battery staple")

// open starts an instance on a store that may have authorities already.
func open(t testing.TB, c store.Config, at *clock) *world {
	t.Helper()
	c.Now = at.now
	return over(t, storetest.OpenAt(t, c), at)
}

func over(t testing.TB, db *store.Store, at *clock) *world {
	t.Helper()
	ring, err := keyring.Open(t.Context(), db, passphrase)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ring.Close)
	h, err := New(t.Context(), db, ring, Config{BaseURL: "http://ca.example.org", TrustDomain: "example.org", Now: at.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return &world{Hierarchy: h, db: db, clock: at}
}

// found creates the authorities.
func (w *world) found(t testing.TB) *world {
	t.Helper()
	for _, s := range []Spec{
		{Name: "root", Subject: Subject{CommonName: "Example Root"}},
		{Name: "people", Parent: "root", Subject: Subject{CommonName: "Example People"}},
		{Name: "machines", Parent: "root", Subject: Subject{CommonName: "Example Machines"}},
		{Name: "agents", Parent: "root", Subject: Subject{CommonName: "Example Agents"}},
	} {
		if _, err := w.Create(operator(t), s); err != nil {
			t.Fatalf("creating %s: %v", s.Name, err)
		}
	}
	return w
}

func operator(t testing.TB) context.Context {
	t.Helper()
	return who.With(t.Context(), who.Caller{Kind: who.Operator, Permissions: who.Permissions()})
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return open(t, store.Config{URL: storetest.SQLite(t).URL}, newClock()).found(t)
}

// targets are the databases that tests run on.
var targets = map[string]func(testing.TB) storetest.Target{
	"sqlite": storetest.SQLite, "postgres": storetest.Postgres, "mariadb": storetest.MariaDB,
}

// onEach runs a test on every database.
func onEach(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	for name, target := range targets {
		t.Run(name, func(t *testing.T) {
			test(t, open(t, store.Config{URL: target(t).URL}, newClock()).found(t))
		})
	}
}

func (w *world) certificate(t testing.TB, o Order) Issued {
	t.Helper()
	i, err := w.Issue(operator(t), o)
	if err != nil {
		t.Fatalf("issuing: %v", err)
	}
	return i
}

func serverOrder(t testing.TB, host string) Order {
	t.Helper()
	n, err := name.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	return Order{Authority: "machines", Profile: "tls-server", SPKI: pkixtest.SPKI(t, key.P256), Names: []name.Name{n}}
}

// principal issues a person's certificate.
func (w *world) principal(t testing.TB, person string) Issued {
	t.Helper()
	return w.certificate(t, Order{
		Authority: "people", Profile: "principal", SPKI: pkixtest.SPKI(t, key.P384), Subject: &Subject{CommonName: "Ada"}, Owner: person,
		Extensions: []Extension{{Id: []int{1, 3, 6, 1, 4, 1, 66257, 1, 2}, Value: []byte{0x30, 0}}},
	})
}

// order is an agent order with fresh evidence.
func (w *world) order(t testing.TB, principal Issued, person, agent, delegation string) AgentOrder {
	t.Helper()
	o := AgentOrder{
		Authority: "agents", SPKI: pkixtest.SPKI(t, key.P256), AgentID: agent, Name: "Planner", AIC: []byte{0x30, 3, 2, 1, 1},
		Lifetime: 10 * time.Minute, NotAfterMax: principal.NotAfter, SignedAt: w.now().Unix(),
		Principal: person, PrincipalSerial: principal.Serial, Delegation: delegation,
	}
	rand.Read(o.Nonce[:])
	return o
}

func (w *world) agent(t testing.TB, o AgentOrder) Issued {
	t.Helper()
	i, err := w.IssueAgent(operator(t), o)
	if err != nil {
		t.Fatalf("issuing an agent certificate: %v", err)
	}
	return i
}

func (w *world) revoke(t testing.TB, target string, reason Reason) {
	t.Helper()
	parsed, err := ParseTarget(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Revoke(operator(t), parsed, reason, "test"); err != nil {
		t.Fatalf("revoking %s: %v", target, err)
	}
}

// listed gives the reason of a serial in an authority's current list, or false.
func (w *world) listed(t testing.TB, authority string, serial id.Serial) (Reason, bool) {
	t.Helper()
	got, err := w.CRL(t.Context(), authority)
	if err != nil {
		t.Fatal(err)
	}
	list, err := x509.ParseRevocationList(got.DER)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.RevokedCertificateEntries {
		if bytes.Equal(id.SerialOf(e.SerialNumber), serial) {
			return Reason(e.ReasonCode), true
		}
	}
	return 0, false
}

// ask puts an OCSP question about a serial and gives the answer as x/crypto/ocsp reads it.
func (w *world) ask(t testing.TB, authority string, serial id.Serial, nonce int) (State, Reason) {
	t.Helper()
	a, err := w.authority(t.Context(), authority)
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.OCSP(t.Context(), pkixtest.Question(t, a.issuer.Cert, serial, crypto.SHA1, nonce))
	if err != nil {
		t.Fatal(err)
	}
	return readOCSP(t, got.DER, a.issuer.Cert)
}

func (w *world) wantStatus(t testing.TB, authority string, serial id.Serial, want State, reason Reason) {
	t.Helper()
	if state, got := w.ask(t, authority, serial, -1); state != want || got != reason {
		t.Errorf("OCSP says %s for %s, want %s for %s", state, got, want, reason)
	}
	if state, _ := w.ask(t, authority, serial, 32); state != want {
		t.Errorf("OCSP with a nonce says %s, want %s", state, want)
	}
	status, err := w.Status(t.Context(), authority, serial)
	if err != nil || status.State != want || status.Reason != reason {
		t.Errorf("status %+v, %v; want %s for %s", status, err, want, reason)
	}
}

func TestAuthorities(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		root, err := w.Authority(t.Context(), "root")
		if err != nil {
			t.Fatal(err)
		}
		if k, err := key.KindOf(pkixtest.Parse(t, root.Certificate).PublicKey); err != nil || k != key.P384 {
			t.Errorf("the root's key is %s, %v", k, err)
		}
		agents, err := w.Authority(t.Context(), "agents")
		if err != nil || len(agents.Chain) != 2 || !agents.Online {
			t.Fatalf("%+v, %v", agents, err)
		}
		o := serverOrder(t, "dns:a.example.org")
		leaf := w.certificate(t, o)
		machines, err := w.Authority(t.Context(), "machines")
		if err != nil {
			t.Fatal(err)
		}
		chain := pkixtest.PEM(t, "CERTIFICATE", machines.Certificate)
		pkixtest.OpenSSL(t, "verify", "-x509_strict", "-CAfile", pkixtest.PEM(t, "CERTIFICATE", root.Certificate), "-untrusted", chain, pkixtest.PEM(t, "CERTIFICATE", leaf.DER))
		cert := pkixtest.Parse(t, leaf.DER)
		if cert.OCSPServer[0] != "http://ca.example.org/pki/ocsp" || cert.CRLDistributionPoints[0] != "http://ca.example.org/pki/machines.crl" {
			t.Errorf("links %v %v", cert.OCSPServer, cert.CRLDistributionPoints)
		}
		_, err = w.Create(operator(t), Spec{Name: "root", Subject: Subject{CommonName: "Another"}})
		pkixtest.WantFault(t, "authority_exists", err)
		_, err = w.Create(operator(t), Spec{Name: "below", Parent: "agents", Subject: Subject{CommonName: "x"}, Profile: "tls-server"})
		pkixtest.WantFault(t, "profile_unfit", err)
	})
}

func TestOrdersRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for code, change := range map[string]func(*Order){
		"authority_unknown":       func(o *Order) { o.Authority = "none" },
		"profile_unknown":         func(o *Order) { o.Profile = "none" },
		"profile_unfit":           func(o *Order) { o.Profile = "agent" },
		"names_too_few":           func(o *Order) { o.Names = nil },
		"name_kind_refused":       func(o *Order) { o.Names = []name.Name{{Kind: name.Email, Text: "a@example.org"}} },
		"common_name_unproved":    func(o *Order) { o.Subject = &Subject{CommonName: "other.example.org"} },
		"subject_invalid":         func(o *Order) { o.Subject = &Subject{Organization: "a\nb"} },
		"extension_not_permitted": func(o *Order) { o.Extensions = []Extension{{Id: []int{1, 2, 3}}} },
		"key_malformed":           func(o *Order) { o.SPKI = []byte{1} },
		"nothing_left":            func(o *Order) { o.NotAfter = w.now().Add(-time.Hour) },
	} {
		o := serverOrder(t, "dns:a.example.org")
		change(&o)
		_, err := w.Issue(operator(t), o)
		pkixtest.WantFault(t, code, err)
	}
	p := profileNamed(t, "tls-server")
	p.Name, p.PermittedNames, p.KeyKinds = "inside", []string{"dns:corp.example"}, []key.Kind{key.P384}
	if err := w.SaveProfile(operator(t), p); err != nil {
		t.Fatal(err)
	}
	o := serverOrder(t, "dns:a.example.org")
	o.Profile = "inside"
	_, err := w.Issue(operator(t), o)
	pkixtest.WantFault(t, "key_refused", err)
	o.SPKI = pkixtest.SPKI(t, key.P384)
	_, err = w.Issue(operator(t), o)
	pkixtest.WantFault(t, "name_not_permitted", err)
	o.Names = []name.Name{{Kind: name.DNS, Text: "a.corp.example"}}
	w.certificate(t, o)
}

func TestProfilesAreSaved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := profileNamed(t, "agent")
	p.LifetimeMaxSec = 900
	if err := w.SaveProfile(operator(t), p); err != nil {
		t.Fatal(err)
	}
	person := id.New(id.Person, w.now())
	o := w.order(t, w.principal(t, person), person, id.New(id.Agent, w.now()), "")
	o.Lifetime = time.Hour
	if i := w.agent(t, o); i.NotAfter.Sub(i.NotBefore) != 899*time.Second {
		t.Errorf("lives %s under a saved cap of 900 s", i.NotAfter.Sub(i.NotBefore))
	}
	p.BackdateSec = 60
	pkixtest.WantFault(t, "profile_built_in", w.SaveProfile(operator(t), p))
	bad := profileNamed(t, "tls-client")
	bad.Name, bad.Policies = "twice", []string{"1.2.3", "1.2.3"}
	pkixtest.WantFault(t, "profile_lint", w.SaveProfile(operator(t), bad))
}

// TestAgentEvidenceIsUsedOnce: a repeated order gives the same certificate, another key is refused, on each database.
func TestAgentEvidenceIsUsedOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		person, agent, delegation := id.New(id.Person, w.now()), id.New(id.Agent, w.now()), id.New(id.Delegation, w.now())
		principal := w.principal(t, person)
		o := w.order(t, principal, person, agent, delegation)
		first := w.agent(t, o)
		cert := pkixtest.Parse(t, first.DER)
		if got := cert.NotAfter.Sub(cert.NotBefore); got != 10*time.Minute-time.Second || cert.NotBefore.After(w.now()) || w.now().Sub(cert.NotBefore) >= time.Second {
			t.Errorf("valid from %s for %s at %s", cert.NotBefore, got, w.now())
		}
		if cert.Subject.CommonName != "Planner" || cert.URIs[0].String() != "spiffe://example.org/agent/"+agent {
			t.Errorf("subject %s, names %v", cert.Subject, cert.URIs)
		}
		second := w.agent(t, o)
		if !second.Again || !bytes.Equal(second.DER, first.DER) || !second.NotAfter.Equal(first.NotAfter) {
			t.Errorf("the same order gave %+v", second)
		}
		found, keyHash, ok, err := w.FindByEvidence(t.Context(), o.SignedAt, o.Nonce)
		if err != nil || !ok || !bytes.Equal(found.DER, first.DER) || keyHash != key.Hash(o.SPKI) {
			t.Errorf("found %+v %v, %v", found, ok, err)
		}
		thief := o
		thief.SPKI = pkixtest.SPKI(t, key.Ed25519)
		_, err = w.IssueAgent(operator(t), thief)
		pkixtest.WantFault(t, "da_replayed", err)

		keyed := w.order(t, principal, person, agent, delegation)
		keyed.Request = "request-1"
		third := w.agent(t, keyed)
		retry := w.order(t, principal, person, agent, delegation) // the keyring signed a new one
		retry.Request = "request-1"
		if again := w.agent(t, retry); !again.Again || !bytes.Equal(again.DER, third.DER) {
			t.Errorf("the same request gave another certificate")
		}
		retry.SPKI = pkixtest.SPKI(t, key.Ed25519)
		_, err = w.IssueAgent(operator(t), retry)
		pkixtest.WantFault(t, "idempotency_key_reused", err)
		other := w.order(t, principal, id.New(id.Person, w.now()), agent, delegation)
		_, err = w.IssueAgent(operator(t), other)
		pkixtest.WantFault(t, "principal_unknown", err)
		other = w.order(t, first, person, agent, delegation) // an agent is no principal
		_, err = w.IssueAgent(operator(t), other)
		pkixtest.WantFault(t, "principal_unknown", err)
		late := w.order(t, principal, person, agent, delegation)
		late.NotAfterMax = w.now().Add(-time.Second)
		_, err = w.IssueAgent(operator(t), late)
		pkixtest.WantFault(t, "nothing_left", err)
	})
}

// TestEachLevelKills revokes what stands above an agent certificate, level by level.
func TestEachLevelKills(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for _, level := range []struct {
			code   string
			target func(person, agent, delegation string, principal, leaf Issued) string
		}{
			{"", func(_, _, _ string, _, leaf Issued) string { return "crt:" + leaf.Serial.String() }},
			{"agent_revoked", func(_, agent, _ string, _, _ Issued) string { return agent }},
			{"delegation_revoked", func(_, _, delegation string, _, _ Issued) string { return delegation }},
			{"principal_revoked", func(person, _, _ string, _, _ Issued) string { return person }},
			{"certificate_revoked", func(_, _, _ string, principal, _ Issued) string { return "crt:" + principal.Serial.String() }},
		} {
			person, agent, delegation := id.New(id.Person, w.now()), id.New(id.Agent, w.now()), id.New(id.Delegation, w.now())
			principal := w.principal(t, person)
			o := w.order(t, principal, person, agent, delegation)
			leaf := w.agent(t, o)
			w.wantStatus(t, "agents", leaf.Serial, Good, 0)
			if _, there := w.listed(t, "agents", leaf.Serial); there {
				t.Errorf("%s: listed before it was revoked", level.code)
			}
			w.revoke(t, level.target(person, agent, delegation, principal, leaf), CessationOfOperation)
			w.wantStatus(t, "agents", leaf.Serial, Revoked, CessationOfOperation)
			w.clock.advance(listPause)
			if reason, there := w.listed(t, "agents", leaf.Serial); !there || reason != CessationOfOperation {
				t.Errorf("%s: listed %v for %s", level.code, there, reason)
			}
			_, err := w.IssueAgent(operator(t), w.order(t, principal, person, agent, delegation))
			pkixtest.WantFault(t, level.code, err)
			if level.code == "principal_revoked" {
				w.wantStatus(t, "people", principal.Serial, Revoked, CessationOfOperation)
				if _, there := w.listed(t, "people", principal.Serial); !there {
					t.Error("the person's own certificate is not listed")
				}
			}
			if level.code != "" {
				_, _, _, err := w.FindByEvidence(t.Context(), o.SignedAt, o.Nonce)
				pkixtest.WantFault(t, level.code, err)
			}
		}
	})
}

func TestAuthorityFalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	person := id.New(id.Person, w.now())
	principal := w.principal(t, person)
	leaf := w.agent(t, w.order(t, principal, person, id.New(id.Agent, w.now()), ""))
	w.revoke(t, "aut:people", CACompromise)
	w.wantStatus(t, "people", principal.Serial, Revoked, CACompromise)
	w.wantStatus(t, "agents", leaf.Serial, Revoked, CACompromise) // its principal's certificate fell
	if page, err := w.Find(t.Context(), Query{Serial: leaf.Serial}); err != nil || len(page.Certificates) != 1 || page.Certificates[0].Status.State != Revoked {
		t.Errorf("a search finds %+v, %v, want the same status as in OCSP", page.Certificates, err)
	}
	people, err := w.Authority(t.Context(), "people")
	if err != nil {
		t.Fatal(err)
	}
	serial := id.SerialOf(pkixtest.Parse(t, people.Certificate).SerialNumber)
	w.wantStatus(t, "root", serial, Revoked, CACompromise)
	if reason, there := w.listed(t, "root", serial); !there || reason != CACompromise {
		t.Errorf("the root lists it: %v, %s", there, reason)
	}
	_, err = w.Issue(operator(t), Order{Authority: "people", Profile: "tls-client", SPKI: pkixtest.SPKI(t, key.P256), Subject: &Subject{CommonName: "x"}})
	pkixtest.WantFault(t, "authority_revoked", err)
	_, err = w.IssueAgent(operator(t), w.order(t, principal, person, id.New(id.Agent, w.now()), ""))
	pkixtest.WantFault(t, "authority_revoked", err)
	w.revoke(t, "aut:root", CACompromise)
	_, err = w.Issue(operator(t), serverOrder(t, "dns:a.example.org"))
	pkixtest.WantFault(t, "authority_revoked", err)
}

func TestHoldCanEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	leaf := w.certificate(t, serverOrder(t, "dns:a.example.org"))
	target := "crt:" + leaf.Serial.String()
	parsed, err := ParseTarget(target)
	if err != nil {
		t.Fatal(err)
	}
	pkixtest.WantFault(t, "reason_unfit", w.Revoke(operator(t), parsed, RemoveFromCRL, ""))
	w.revoke(t, target, CertificateHold)
	w.wantStatus(t, "machines", leaf.Serial, Revoked, CertificateHold)
	if _, there := w.listed(t, "machines", leaf.Serial); !there {
		t.Error("a held certificate is not listed")
	}
	w.revoke(t, target, RemoveFromCRL)
	w.clock.advance(listPause)
	w.wantStatus(t, "machines", leaf.Serial, Good, 0)
	if _, there := w.listed(t, "machines", leaf.Serial); there {
		t.Error("a released certificate is listed")
	}
	w.revoke(t, target, KeyCompromise)
	w.revoke(t, target, Superseded) // the first reason stands
	w.wantStatus(t, "machines", leaf.Serial, Revoked, KeyCompromise)
	pkixtest.WantFault(t, "reason_unfit", w.Revoke(operator(t), parsed, RemoveFromCRL, ""))
	pkixtest.WantFault(t, "reason_unfit", w.Revoke(operator(t), parsed, CACompromise, ""))
	pkixtest.WantFault(t, "certificate_unknown", w.Revoke(operator(t), Target{Certificate, "0badc0de"}, KeyCompromise, ""))
	pkixtest.WantFault(t, "authority_unknown", w.Revoke(operator(t), Target{AuthorityItself, "none"}, KeyCompromise, ""))
	pkixtest.WantFault(t, "target_invalid", w.Revoke(operator(t), Target{Agent, "x"}, KeyCompromise, ""))
}

func FuzzParseTarget(f *testing.F) {
	for _, text := range []string{"crt:01a2", "aut:agents", "agt_06f4kz2v9c8q1x7n3b5d", "per_x", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseTarget(text)
		if err != nil {
			return
		}
		key, err := target.key()
		if err != nil || len(key) > 64 {
			t.Errorf("%q is accepted and gives %q, %v", text, key, err)
		}
	})
}

// TestOpenSSLAcceptsStatus also sees that an unspecified reason is left out (RFC 5280 §5.3.1).
func TestOpenSSLAcceptsStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	leaf := w.certificate(t, serverOrder(t, "dns:a.example.org"))
	w.revoke(t, "crt:"+leaf.Serial.String(), Unspecified)
	got, err := w.CRL(t.Context(), "machines")
	if err != nil {
		t.Fatal(err)
	}
	machines, err := w.authority(t.Context(), "machines")
	if err != nil {
		t.Fatal(err)
	}
	pkixtest.OpenSSL(t, "crl", "-in", pkixtest.PEM(t, "X509 CRL", got.DER), "-CAfile", pkixtest.PEM(t, "CERTIFICATE", machines.Certificate), "-noout")
	question := pkixtest.Question(t, machines.issuer.Cert, leaf.Serial, crypto.SHA256, 32)
	answer, err := w.OCSP(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	said := pkixtest.AskOpenSSL(t, machines.issuer.Cert, question, answer.DER)
	if !bytes.Contains([]byte(said), []byte("Cert Status: revoked")) || bytes.Contains([]byte(said), []byte("Revocation Reason")) {
		t.Errorf("openssl says\n%s", said)
	}
}

func TestWhoIssuesGetsNothingThatRulesOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	issuer := who.With(t.Context(), who.Caller{Kind: who.Service, ID: "svc_x", Permissions: who.Set{who.CertificateIssue}, AllAuthorities: true})
	saved := Profile{
		Name: "responder", KeyUsages: []string{"digitalSignature"}, ExtKeyUsages: []string{"1.3.6.1.5.5.7.3.9"}, KeyKinds: key.Kinds(),
		CommonName: "required", LifetimeSec: 60, LifetimeMaxSec: 60,
	}
	if err := w.SaveProfile(operator(t), saved); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ profile, name, code string }{
		{"root", "", "profile_unfit"},
		{"issuing", "", "profile_unfit"},
		{"agent", "", "profile_unfit"},
		{"principal", "", "profile_unfit"},
		{"ocsp-signer", "", "permission_missing"},
		{"responder", "", "permission_missing"},
		{"tls-client", w.spiffe("agt_x").Text, "name_not_permitted"},
		{"tls-client", strings.ToUpper(w.spiffe("agt_x").Text[:20]) + w.spiffe("agt_x").Text[20:], "name_not_permitted"},
	} {
		o := Order{Authority: "machines", Profile: c.profile, SPKI: pkixtest.SPKI(t, key.P256), Subject: &Subject{CommonName: "x"}}
		if c.name != "" {
			n, err := name.Parse(c.name)
			if err != nil {
				t.Fatal(err)
			}
			o.Names = []name.Name{n}
		}
		_, err := w.Issue(issuer, o)
		pkixtest.WantFault(t, c.code, err)
	}
	if _, err := w.Issue(operator(t), Order{Authority: "machines", Profile: "ocsp-signer", SPKI: pkixtest.SPKI(t, key.P256), Subject: &Subject{CommonName: "x"}}); err != nil {
		t.Errorf("who manages authorities gets no responder's certificate: %v", err)
	}
}

func (w *world) renew(t *testing.T, serial id.Serial, csr []byte) (Issued, error) {
	t.Helper()
	before, err := w.Ordinary(operator(t), serial)
	if err != nil {
		return Issued{}, err
	}
	return w.Renew(operator(t), Renewal{Of: before, CSR: csr})
}

func TestRenew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	person := id.New(id.Person, w.now())
	before := w.certificate(t, Order{Authority: "people", Profile: "tls-client", SPKI: pkixtest.SPKI(t, key.P384), Subject: &Subject{CommonName: "Ada"}, Owner: person})
	w.clock.advance(24 * time.Hour)
	after, err := w.renew(t, before.Serial, nil)
	if err != nil {
		t.Fatal(err)
	}
	old, renewed := pkixtest.Parse(t, before.DER), pkixtest.Parse(t, after.DER)
	if !bytes.Equal(old.RawSubject, renewed.RawSubject) || !bytes.Equal(old.RawSubjectPublicKeyInfo, renewed.RawSubjectPublicKeyInfo) ||
		len(old.Extensions) != len(renewed.Extensions) || renewed.NotAfter.Sub(old.NotAfter) != 24*time.Hour {
		t.Errorf("renewed as %s with %d extensions until %s", renewed.Subject, len(renewed.Extensions), renewed.NotAfter)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: x509pkix.Name{CommonName: "Mallory"}}, pkixtest.Key(t, key.Ed25519))
	if err != nil {
		t.Fatal(err)
	}
	rekeyed, err := w.renew(t, before.Serial, csr)
	if err != nil {
		t.Fatal(err)
	}
	if c := pkixtest.Parse(t, rekeyed.DER); c.Subject.CommonName != "Ada" || !bytes.Equal(c.RawSubjectPublicKeyInfo, pkixtest.SPKI(t, key.Ed25519)) {
		t.Errorf("rekeyed for %s", c.Subject)
	}
	_, err = w.renew(t, w.principal(t, person).Serial, nil)
	pkixtest.WantFault(t, "profile_unfit", err)
	w.revoke(t, person, Superseded)
	_, err = w.renew(t, after.Serial, nil)
	pkixtest.WantFault(t, "principal_revoked", err)
	server := w.certificate(t, serverOrder(t, "dns:a.example.org"))
	w.clock.advance(91 * 24 * time.Hour)
	_, err = w.renew(t, server.Serial, nil)
	pkixtest.WantFault(t, "certificate_expired", err)
	_, err = w.renew(t, id.Serial{1}, nil)
	pkixtest.WantFault(t, "certificate_unknown", err)
}

// TestTwoInstances revokes on one instance while the other appends: whatever came through is dead within a second.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]func(testing.TB) storetest.Target{"postgres": storetest.Postgres, "mariadb": storetest.MariaDB} {
		t.Run(name, func(t *testing.T) {
			at := newClock()
			url := target(t).URL
			one := open(t, store.Config{URL: url}, at).found(t)
			two := open(t, store.Config{URL: url}, at)
			person, agent, delegation := id.New(id.Person, at.now()), id.New(id.Agent, at.now()), id.New(id.Delegation, at.now())
			principal := one.principal(t, person)
			var mu sync.Mutex
			var issued []Issued
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					for {
						i, err := two.IssueAgent(operator(t), two.order(t, principal, person, agent, delegation))
						if err != nil {
							pkixtest.WantFault(t, "agent_revoked", err)
							return
						}
						mu.Lock()
						issued = append(issued, i)
						mu.Unlock()
					}
				})
			}
			one.wantWithin(t, 10*time.Second, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(issued) > 20
			})
			one.revoke(t, agent, KeyCompromise)
			group.Wait()
			for _, w := range []*world{one, two} {
				w.wantWithin(t, time.Second, func() bool {
					last := issued[len(issued)-1]
					state, _ := w.ask(t, "agents", last.Serial, -1)
					return state == Revoked
				})
				w.clock.advance(listPause)
				for _, i := range issued {
					if _, there := w.listed(t, "agents", i.Serial); !there {
						t.Fatalf("%s is not listed", i.Serial)
					}
				}
			}
		})
	}
}

func (w *world) wantWithin(t testing.TB, limit time.Duration, holds func() bool) {
	t.Helper()
	end, look := time.After(limit), time.NewTicker(5*time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-end:
			t.Fatal("not within the time")
		case <-look.C:
		}
	}
}

// TestRestartContinues: serials and list numbers go on after a restart, even with the clock set back.
func TestRestartContinues(t *testing.T) {
	t.Parallel()
	at := newClock()
	url := "sqlite:" + filepath.Join(t.TempDir(), "chancery.db")
	first, err := store.Open(t.Context(), store.Config{URL: url, Now: at.now, Accept: []string{"file_system"}})
	if err != nil {
		t.Fatal(err)
	}
	w := over(t, first, at).found(t)
	before := w.certificate(t, serverOrder(t, "dns:a.example.org"))
	w.revoke(t, "crt:"+before.Serial.String(), Superseded)
	list, err := w.CRL(t.Context(), "machines")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	at.advance(-30 * time.Minute)
	w = open(t, store.Config{URL: url}, at)
	after := w.certificate(t, serverOrder(t, "dns:b.example.org"))
	if bytes.Compare(after.Serial[:6], before.Serial[:6]) < 0 {
		t.Errorf("serial %s after %s", after.Serial, before.Serial)
	}
	next, err := w.CRL(t.Context(), "machines")
	if err != nil {
		t.Fatal(err)
	}
	if next.Number <= list.Number || next.ThisUpdate.After(at.now()) {
		t.Errorf("list %d of %s after %d of %s", next.Number, next.ThisUpdate, list.Number, list.ThisUpdate)
	}
	w.wantStatus(t, "machines", before.Serial, Revoked, Superseded)
	w.wantStatus(t, "machines", after.Serial, Good, 0)
}

func TestListsAreSignedSparingly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	crl := func() List {
		t.Helper()
		l, err := w.CRL(t.Context(), "machines")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := crl()
	w.clock.advance(11 * time.Hour)
	if again := crl(); again.Number != first.Number {
		t.Error("signed anew without a change and before half of its time")
	}
	w.clock.advance(2 * time.Hour)
	second := crl()
	if second.Number <= first.Number || !second.ThisUpdate.Equal(w.now().Truncate(time.Second)) {
		t.Errorf("after half of its time: %+v", second)
	}
	w.clock.advance(-48 * time.Hour)
	leaf := w.certificate(t, serverOrder(t, "dns:a.example.org"))
	w.revoke(t, "crt:"+leaf.Serial.String(), KeyCompromise)
	third := crl()
	if third.Number <= second.Number || third.ThisUpdate.After(w.now()) {
		t.Errorf("with the clock set back: %+v after %+v", third, second)
	}
}

func TestExpiredLeaveTheList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := serverOrder(t, "dns:a.example.org")
	o.Lifetime = time.Hour
	leaf := w.certificate(t, o)
	w.revoke(t, "crt:"+leaf.Serial.String(), KeyCompromise)
	for _, step := range []struct {
		after time.Duration
		there bool
	}{{2 * time.Hour, true /* one list beyond its end, RFC 5280 §3.3 */}, {48 * time.Hour, false}} {
		w.clock.advance(step.after)
		if _, there := w.listed(t, "machines", leaf.Serial); there != step.there {
			t.Errorf("listed %v after %s", there, step.after)
		}
	}
}

func TestDetachedRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.Detach(operator(t), "root", w.now().AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	root, err := w.Authority(t.Context(), "root")
	if err != nil || root.Online {
		t.Fatalf("%+v, %v", root, err)
	}
	left, err := w.CRL(t.Context(), "root")
	if err != nil || !left.NextUpdate.After(w.now().AddDate(0, 11, 0)) {
		t.Errorf("the list left behind: %+v, %v", left, err)
	}
	_, err = w.Create(operator(t), Spec{Name: "more", Parent: "root", Subject: Subject{CommonName: "x"}})
	pkixtest.WantFault(t, "authority_offline", err)
	pkixtest.WantFault(t, "authority_not_root", w.Detach(operator(t), "agents", w.now()))
	w.certificate(t, serverOrder(t, "dns:a.example.org"))
	question := pkixtest.Question(t, must(w.authority(t.Context(), "root")).issuer.Cert, root.serial(t), crypto.SHA1, -1)
	answer, err := w.OCSP(t.Context(), question)
	if err != nil || !bytes.Equal(answer.DER, pkix.OCSPTryLater) {
		t.Errorf("answer %x, %v", answer.DER, err)
	}
}

func (a Authority) serial(t testing.TB) id.Serial {
	t.Helper()
	return id.SerialOf(pkixtest.Parse(t, a.Certificate).SerialNumber)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestOCSPQuestionsThatAreNotForUs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got, err := w.OCSP(t.Context(), []byte("hello"))
	if err != nil || !bytes.Equal(got.DER, pkix.OCSPMalformed) {
		t.Errorf("malformed: %x, %v", got.DER, err)
	}
	got, err = w.OCSP(t.Context(), pkixtest.Question(t, stranger(t), newSerial(), crypto.SHA1, -1))
	if err != nil || !bytes.Equal(got.DER, pkix.OCSPUnauthorized) {
		t.Errorf("another issuer: %x, %v", got.DER, err)
	}
	if state, _ := w.ask(t, "machines", newSerial(), -1); state != Unknown {
		t.Errorf("a serial that was never issued is %s", state)
	}
	leaf := w.certificate(t, serverOrder(t, "dns:a.example.org"))
	if state, _ := w.ask(t, "agents", leaf.Serial, -1); state != Unknown {
		t.Errorf("another authority's serial is %s", state)
	}
}

// TestOCSPAnswersAreKept: the same question costs one signature until half of the answer's time is over.
func TestOCSPAnswersAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	leaf := w.certificate(t, serverOrder(t, "dns:a.example.org"))
	issuer := must(w.authority(t.Context(), "machines")).issuer
	ask := func(hash crypto.Hash, nonce int) OCSPAnswer {
		t.Helper()
		a, err := w.OCSP(t.Context(), pkixtest.Question(t, issuer.Cert, leaf.Serial, hash, nonce))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first, second := ask(crypto.SHA1, -1), ask(crypto.SHA1, -1)
	if !first.Signed || second.Signed || !bytes.Equal(first.DER, second.DER) || !first.Shared {
		t.Error("the second answer is not the first again")
	}
	if fresh := ask(crypto.SHA1, 16); !fresh.Signed || fresh.Shared {
		t.Error("an answer with a nonce is shared")
	}
	if other := ask(crypto.SHA256, -1); bytes.Equal(other.DER, first.DER) {
		t.Error("the answer names the certificate by another hash than the question")
	}
	w.clock.advance(31 * time.Minute)
	if later := ask(crypto.SHA256, -1); !later.Signed {
		t.Error("an old answer is given")
	}
}

// TestWarmAgentIsOneInsert counts what a warm agent issuance asks of the store: one append, no read, no transaction.
// The store's own sealing may fall into the same moment and only adds to the count, once a second: it spoils a few of
// many, and most have to show the issuance alone.
func TestWarmAgentIsOneInsert(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[store.Phase]int{}
	at := newClock()
	w := open(t, store.Config{URL: storetest.SQLite(t).URL, Observe: func(p store.Phase, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		seen[p]++
	}}, at).found(t)
	person, agent := id.New(id.Person, at.now()), id.New(id.Agent, at.now())
	principal := w.principal(t, person)
	w.agent(t, w.order(t, principal, person, agent, ""))
	cost := func() map[store.Phase]int {
		mu.Lock()
		clear(seen)
		mu.Unlock()
		w.agent(t, w.order(t, principal, person, agent, ""))
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(seen)
	}
	var others []map[store.Phase]int
	const all = 10
	for range all {
		if c := cost(); c[store.QueueWait] != 1 || c[store.Sync] != 1 || c[store.PoolWait] != 0 {
			others = append(others, c)
		}
	}
	if len(others) > all*4/10 {
		t.Errorf("%d of %d warm issuances did %v; want one wait and one sync", len(others), all, others)
	}
}

// A signature counts when one of the authorities made it, also one that came later; a name does not.
func TestSigned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := func(what string, der []byte, want bool) {
		t.Helper()
		if got, err := w.Signed(t.Context(), pkixtest.Parse(t, der)); got != want || err != nil {
			t.Errorf("%s: signed %v, %v", what, got, err)
		}
	}
	ours := w.certificate(t, serverOrder(t, "dns:a.example.org"))
	want("our own", ours.DER, true)
	forged := slices.Clone(ours.DER)
	forged[len(forged)-1] ^= 1 // in the signature
	want("our name under another signature", forged, false)
	want("a stranger's", stranger(t).Raw, false)
	if _, err := w.Create(operator(t), Spec{Name: "more", Parent: "root", Subject: Subject{CommonName: "Example More"}}); err != nil {
		t.Fatal(err)
	}
	order := serverOrder(t, "dns:b.example.org")
	order.Authority = "more"
	want("that of an authority made since", w.certificate(t, order).DER, true)
	other := newWorld(t).certificate(t, serverOrder(t, "dns:a.example.org"))
	want("another installation's, of the same names", other.DER, false)
}

// The status of an agent certificate that was not asked for before is one look into the store, since what the
// principal's hangs on is known from another agent's.
func TestStatusOfAgentIsOneQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	person := id.New(id.Person, w.now())
	principal := w.principal(t, person)
	issue := func() Issued {
		return w.agent(t, w.order(t, principal, person, id.New(id.Agent, w.now()), ""))
	}
	first, second := issue(), issue()
	w.wantStatus(t, "agents", first.Serial, Good, 0)
	ordinary, _, err := w.records.Get(t.Context(), string(principal.Serial))
	if err != nil {
		t.Fatal(err)
	}
	known := ordinary.authority
	ordinary.authority = "remembered"
	defer func() { ordinary.authority = known }()
	r, _, err := w.records.Get(t.Context(), string(second.Serial))
	if err != nil || !slices.Contains(r.above, "aut:remembered") {
		t.Errorf("the record hangs on %v, %v; want what is remembered of the principal's", r.above, err)
	}
}

func TestAuditAndFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	leaf := w.certificate(t, serverOrder(t, "dns:a.example.org"))
	heard := make(chan string, 10)
	t.Cleanup(w.db.Subscribe("revocation", func(c store.Change) { heard <- c.Key }))
	w.revoke(t, "crt:"+leaf.Serial.String(), KeyCompromise)
	if got := <-heard; got != "crt:"+leaf.Serial.String() {
		t.Errorf("heard %q", got)
	}
	var actions []string
	err := w.db.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Each("SELECT action FROM audit ORDER BY seq", nil, func(r store.Row) error {
			var a string
			err := r.Scan(&a)
			actions = append(actions, a)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "[keyring.create authority.create key.create authority.create key.create authority.create key.create authority.create key.create revoke]"
	if fmt.Sprint(actions) != want {
		t.Errorf("audit %v, want %s", actions, want)
	}
	boom := errors.New("changed my mind")
	err = w.db.Write(operator(t), func(tx *store.Tx) error {
		return errors.Join(w.revokeIn(tx, Target{Agent, id.New(id.Agent, w.now())}, Superseded, ""), boom)
	})
	if !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

// readOCSP gives what an answer says, as x/crypto/ocsp reads it.
func readOCSP(t testing.TB, der []byte, issuer *x509.Certificate) (State, Reason) {
	t.Helper()
	got, err := ocsp.ParseResponse(der, issuer)
	if err != nil {
		t.Fatal(err)
	}
	return map[int]State{ocsp.Good: Good, ocsp.Unknown: Unknown, ocsp.Revoked: Revoked}[got.Status], Reason(got.RevocationReason)
}

// stranger is the certificate of an authority that is not ours.
func stranger(t testing.TB) *x509.Certificate {
	t.Helper()
	issuer, err := pkix.NewIssuer(Subject{CommonName: "Stranger"}, pkixtest.Key(t, key.P256).Public(), pkixtest.Key(t, key.P256))
	if err != nil {
		t.Fatal(err)
	}
	template, err := pkix.NewTemplate(issuer, pkix.Links{}, profileNamed(t, "root"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := template.Content(Request{SPKI: pkixtest.SPKI(t, key.P256), Kind: key.P256, Subject: Subject{CommonName: "Stranger"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Serial = newSerial()
	if err := template.Date(c, time.Now(), 0); err != nil {
		t.Fatal(err)
	}
	der, err := template.Issue(c)
	if err != nil {
		t.Fatal(err)
	}
	return pkixtest.Parse(t, der)
}

func newSerial() id.Serial { return new(id.Serials).Next(time.Now()) }

func profileNamed(t testing.TB, wanted string) Profile {
	t.Helper()
	for _, p := range BuiltIn() {
		if p.Name == wanted {
			return p
		}
	}
	t.Fatalf("no built-in profile %s", wanted)
	return Profile{}
}

// TestIdempotencyKeyIssuesOnce: the same key and the same subject key give the stored certificate, another key nothing.
func TestIdempotencyKeyIssuesOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		o := serverOrder(t, "once.example.org")
		o.Request = "svc_1 key-1"
		first, again := w.certificate(t, o), w.certificate(t, o)
		if !again.Again || again.Serial.String() != first.Serial.String() || string(again.DER) != string(first.DER) {
			t.Errorf("the second order gave %s (again %v), want %s again", again.Serial, again.Again, first.Serial)
		}
		elsewhere := serverOrder(t, "another.example.org")
		elsewhere.Request, elsewhere.SPKI = o.Request, o.SPKI
		if _, err := w.Issue(operator(t), elsewhere); fault.CodeOf(err) != "idempotency_key_reused" {
			t.Errorf("another name under the same idempotency key: %v, want idempotency_key_reused", err)
		}
		other := serverOrder(t, "once.example.org")
		other.Request, other.SPKI = o.Request, pkixtest.SPKI(t, key.P384)
		if _, err := w.Issue(operator(t), other); fault.CodeOf(err) != "idempotency_key_reused" {
			t.Errorf("another key under the same idempotency key: %v, want idempotency_key_reused", err)
		}
		w.certificate(t, serverOrder(t, "none.example.org"))
		w.certificate(t, serverOrder(t, "none.example.org"))
	})
}
