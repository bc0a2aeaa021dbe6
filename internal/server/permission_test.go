package server_test

import (
	"crypto/tls"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"chancery/api"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/domain/account"
	"chancery/internal/domain/agent"
	"chancery/internal/domain/ca"
	"chancery/internal/server"
)

func person(name string, roles ...account.Role) account.Spec {
	return account.Spec{Kind: who.Person, Name: name, Roles: roles}
}

// agentCertificate gives a visitor with the agent's certificate, which is issued under the standing approval.
func (o *office) agentVisitor(t *testing.T) visitor {
	t.Helper()
	c := must(o.Agents.Renew(t.Context(), agent.Renewal{Agent: o.agent.ID, Request: o.request(t, o.agentKey)}))(t)
	return o.visitor(t, tls.Certificate{Certificate: [][]byte{c.DER}, PrivateKey: o.agentKey})
}

func TestRolesReachNoFurther(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	csr := func() string { return inPEM("CERTIFICATE REQUEST", o.request(t, newKey(t))) }
	issueFrom := func(authority, profile string) api.IssueRequest {
		return api.IssueRequest{Authority: authority, Profile: profile, Request: csr(), Names: []string{"web.internal"}}
	}
	certify := func() api.PrincipalRequest {
		return api.PrincipalRequest{Person: o.agent.Owner, Request: csr(), Grants: []string{"mail:*"}}
	}
	delegate := api.NewDelegation{Principal: o.agent.Owner, Name: "x", Capabilities: []string{"calendar:read:*"}, Until: time.Now().Add(time.Hour), LifetimeSec: 60}
	invite := api.InvitationRequest{Delegation: o.delegation.ID}
	visitors := map[string]visitor{
		"alice":         o.bearer(t, o.agent.Owner),
		"bob":           o.holder(t, person("bob", account.Self)),
		"revoker":       o.holder(t, person("revoker", account.Revoker)),
		"auditor":       o.holder(t, person("auditor", account.Auditor)),
		"reader":        o.holder(t, person("reader", account.Reader)),
		"administrator": o.holder(t, person("administrator", account.Administrator)),
		"operator":      o.holder(t, person("operator", account.Operator)),
		"issuer":        o.holder(t, account.Spec{Kind: who.Service, Name: "issuer", Roles: []account.Role{account.Issuer}, Authorities: []string{server.Machines}}),
		"agent":         o.agentVisitor(t),
	}
	aliceToken := o.bearer(t, o.agent.Owner)
	for _, c := range []struct {
		by, method, path string
		body             any
		status           int
		code             string
	}{
		// Acting for another person.
		{"bob", "POST", "/api/v1/agents", api.NewAgent{Name: "x", Owner: o.agent.Owner}, 403, "permission_missing"},
		{"bob", "GET", "/api/v1/agents?owner=" + o.agent.Owner, nil, 403, "permission_missing"},
		{"bob", "GET", "/api/v1/agents/" + o.agent.ID, nil, 404, "agent_unknown"},
		{"bob", "GET", "/api/v1/delegations?owner=" + o.agent.Owner, nil, 403, "permission_missing"},
		{"bob", "GET", "/api/v1/delegations/" + o.delegation.ID, nil, 404, "delegation_unknown"},
		{"bob", "GET", "/api/v1/principals/" + o.agent.Owner, nil, 403, "permission_missing"},
		{"bob", "GET", "/api/v1/tokens?account=" + o.agent.Owner, nil, 403, "permission_missing"},
		{"bob", "POST", "/api/v1/tokens", api.NewToken{Account: o.agent.Owner}, 403, "permission_missing"},
		{"bob", "POST", "/api/v1/delegations", delegate, 403, "permission_missing"},
		{"bob", "POST", "/api/v1/agents/" + o.agent.ID + "/invitations", invite, 404, "agent_unknown"},
		{"bob", "POST", "/api/v1/stop/" + o.agent.ID, nil, 404, "agent_unknown"},
		{"bob", "POST", "/api/v1/stop/" + o.agent.Owner, nil, 403, "permission_missing"},
		{"bob", "POST", "/api/v1/agent-certificates", o.handIn(t), 403, "principal_foreign"},
		{"bob", "POST", "/api/v1/principals", certify(), 403, "permission_missing"},
		{"alice", "POST", "/api/v1/principals", certify(), 403, "permission_missing"},
		{"alice", "GET", "/api/v1/agents/" + o.agent.ID, nil, 200, ""},
		{"alice", "POST", "/api/v1/agent-certificates", o.handIn(t), 201, ""},
		{"administrator", "GET", "/api/v1/agents?owner=" + o.agent.Owner, nil, 200, ""},
		{"administrator", "POST", "/api/v1/principals", api.PrincipalRequest{Person: o.agent.Owner, Request: csr(), Grants: []string{"calendar:*"}}, 201, ""},
		// A registration desk hands in for anybody, and does nothing else to agents.
		{"issuer", "POST", "/api/v1/agent-certificates", o.handIn(t), 201, ""},
		{"issuer", "GET", "/api/v1/agents", nil, 403, "permission_missing"},
		{"issuer", "POST", "/api/v1/certificates", issueFrom(server.Machines, "tls-server"), 201, ""},
		{"issuer", "POST", "/api/v1/certificates", issueFrom(server.Agents, "tls-server"), 403, "authority_not_allowed"},
		{"issuer", "POST", "/api/v1/certificates", issueFrom(server.Machines, "ocsp-signer"), 403, "permission_missing"},
		{"issuer", "POST", "/api/v1/certificates", issueFrom(server.Machines, "principal"), 403, "profile_unfit"},
		{"issuer", "POST", "/api/v1/certificates", issueFrom(server.Machines, "principal-standing"), 403, "profile_unfit"},
		{"issuer", "POST", "/api/v1/certificates", issueFrom(server.Machines, "agent"), 403, "profile_unfit"},
		{"issuer", "POST", "/api/v1/certificates", issueFrom(server.Machines, "issuing"), 403, "profile_unfit"},
		{"issuer", "POST", "/api/v1/certificates/" + o.principal.Serial + "/renew", api.RenewRequest{}, 403, "authority_not_allowed"},
		{"issuer", "POST", "/api/v1/bindings", api.Binding{Account: o.agent.Owner, KeyHash: strings.Repeat("0", 64)}, 403, "permission_missing"},
		{"operator", "POST", "/api/v1/bindings", api.Binding{Account: o.agent.Owner, KeyHash: strings.Repeat("0", 64)}, 403, "permission_missing"},
		{"operator", "POST", "/api/v1/tokens", api.NewToken{Account: o.agent.Owner}, 403, "permission_missing"},
		{"operator", "PATCH", "/api/v1/accounts/" + visitors["operator"].id, api.AccountChange{Roles: &[]string{"administrator"}}, 403, "permission_missing"},
		// Whoever reads changes nothing.
		{"auditor", "GET", "/api/v1/agents/" + o.agent.ID, nil, 200, ""},
		{"auditor", "GET", "/api/v1/audit", nil, 200, ""},
		{"auditor", "POST", "/api/v1/agents/" + o.agent.ID + "/invitations", invite, 403, "permission_missing"},
		{"auditor", "POST", "/api/v1/stop/" + o.agent.ID, nil, 403, "permission_missing"},
		{"reader", "GET", "/api/v1/audit", nil, 403, "permission_missing"},
		{"reader", "POST", "/api/v1/certificates/" + o.principal.Serial + "/revoke", api.RevokeRequest{Reason: "superseded"}, 403, "permission_missing"},
		// An agent does not delegate on.
		{"agent", "POST", "/api/v1/agent-certificates", o.handIn(t), 403, "permission_missing"},
		{"agent", "POST", "/api/v1/delegations", delegate, 403, "permission_missing"},
		{"agent", "POST", "/api/v1/agents", api.NewAgent{Name: "x"}, 403, "permission_missing"},
		{"agent", "POST", "/api/v1/tokens", api.NewToken{}, 403, "permission_missing"},
		// Who ends things ends them, in the authorities that the account names, and gives nothing.
		{"revoker", "POST", "/api/v1/principals", certify(), 403, "permission_missing"},
		{"revoker", "POST", "/api/v1/delegations", delegate, 403, "permission_missing"},
		{"revoker", "POST", "/api/v1/agents/" + o.agent.ID + "/invitations", invite, 403, "permission_missing"},
		{"revoker", "POST", "/api/v1/certificates/" + o.principal.Serial + "/revoke", api.RevokeRequest{Reason: "superseded"}, 403, "authority_not_allowed"},
		{"revoker", "POST", "/api/v1/stop/" + o.agent.ID, nil, 204, ""},
		{"alice", "POST", "/api/v1/agent-certificates", o.handIn(t), 403, "agent_stopped"},
		{"agent", "GET", "/api/v1/whoami", nil, 403, "agent_stopped"},
		// A disabled account ends at once.
		{"administrator", "PATCH", "/api/v1/accounts/" + o.agent.Owner, json.RawMessage(`{"enabled":false}`), 200, ""},
		{"alice", "GET", "/api/v1/whoami", nil, 403, "account_disabled"},
		{"agent", "GET", "/api/v1/whoami", nil, 403, "account_disabled"},
	} {
		var r reply
		if c.body == nil {
			r = visitors[c.by].send(t, c.method, c.path, "")
		} else {
			r = visitors[c.by].call(t, c.method, c.path, c.body)
		}
		r.want(t, c.by+" "+c.method+" "+c.path, c.status, c.code)
	}
	aliceToken.send(t, "GET", "/api/v1/agents", "").want(t, "another token of a disabled account", 403, "account_disabled")
}

// handIn is a fresh delegation authorization of the person's with the agent's request.
func (o *office) handIn(t *testing.T) api.AgentIssueRequest {
	t.Helper()
	return api.AgentIssueRequest{Request: inPEM("CERTIFICATE REQUEST", o.request(t, o.agentKey)), Identity: o.identity(t)}
}

func TestACertificateIsRenewedByItsKeyAlone(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	machine, issued, _ := o.machine(t, "backup")
	other, _, _ := o.machine(t, "other")
	path := "/api/v1/certificates/" + issued.Serial.String() + "/renew"
	machine.send(t, "POST", path, "{}").want(t, "by its key", 201, "")
	other.send(t, "POST", path, "{}").want(t, "by another machine", 401, "key_unbound")
	o.bearer(t, o.agent.Owner).send(t, "POST", path, "{}").want(t, "by a person without the key", 403, "permission_missing")
	o.visitor(t).send(t, "POST", path, "{}").want(t, "by nobody", 401, "credentials_required")
	machine.send(t, "GET", "/api/v1/certificates", "").want(t, "a machine searches", 401, "key_unbound")

	if err := o.Authority.Revoke(o.operator, ca.Target{Kind: ca.Certificate, ID: issued.Serial.String()}, ca.Superseded, ""); err != nil {
		t.Fatal(err)
	}
	machine.send(t, "POST", path, "{}").want(t, "once revoked", 401, "certificate_revoked")
}

func TestABoundKeyHasTheRightsOfItsAccountWhileItsCertificateIsGood(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	machine, issued, k := o.machine(t, "deploy")
	robot := must(o.Accounts.Create(o.operator, account.Spec{Kind: who.Service, Name: "deploy", Roles: []account.Role{account.Reader}}))(t)
	if err := o.Accounts.BindKey(o.operator, account.Binding{KeyHash: key.Hash(must(key.SPKI(k.Public()))(t)), Account: robot.ID}); err != nil {
		t.Fatal(err)
	}
	machine.send(t, "GET", "/api/v1/certificates", "").want(t, "a bound key", 200, "")
	machine.send(t, "GET", "/api/v1/audit", "").want(t, "beyond its role", 403, "permission_missing")
	auditor := o.holder(t, person("auditor", account.Auditor))
	var bound api.Page[api.Binding]
	if r := auditor.send(t, "GET", "/api/v1/bindings?account="+robot.ID, ""); json.Unmarshal(r.body, &bound) != nil || len(bound.Items) != 1 || bound.Items[0].Account != robot.ID {
		t.Errorf("the bound keys are %d %s", r.status, r.body)
	}

	foreign := selfSigned(t, k)
	o.visitor(t, foreign).send(t, "GET", "/api/v1/certificates", "").want(t, "the same key in a certificate from elsewhere", 401, "certificate_foreign")
	if err := o.Authority.Revoke(o.operator, ca.Target{Kind: ca.Certificate, ID: issued.Serial.String()}, ca.Superseded, ""); err != nil {
		t.Fatal(err)
	}
	machine.send(t, "GET", "/api/v1/certificates", "").want(t, "a revoked certificate", 401, "certificate_revoked")
}

func TestAnAgentFallsWithWhatStandsAboveIt(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]func(*office) ca.Target{
		"the principal's certificate": func(o *office) ca.Target {
			for _, p := range must(o.Agents.Principals(o.self, o.agent.Owner))(t) {
				if p.HeldAs != "" {
					return ca.Target{Kind: ca.Certificate, ID: p.Serial}
				}
			}
			return ca.Target{}
		},
		"the authority": func(*office) ca.Target { return ca.Target{Kind: ca.AuthorityItself, ID: server.Agents} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			helper := o.agentVisitor(t)
			helper.send(t, "GET", "/api/v1/whoami", "").want(t, "before", 200, "")
			if err := o.Authority.Revoke(o.operator, target(o), ca.CessationOfOperation, ""); err != nil {
				t.Fatal(err)
			}
			helper.send(t, "GET", "/api/v1/whoami", "").want(t, "after", 401, "certificate_revoked")
		})
	}
}

func TestAgentsOfADisabledPersonDoNotRenew(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	renew := func() reply {
		return o.visitor(t).call(t, "POST", "/api/v1/agent-certificates/renew", api.AgentRenewRequest{Agent: o.agent.ID, Request: inPEM("CERTIFICATE REQUEST", o.request(t, o.agentKey))})
	}
	renew().want(t, "before", 201, "")
	no := false
	if _, err := o.Accounts.Change(o.operator, o.agent.Owner, account.Change{Enabled: &no}); err != nil {
		t.Fatal(err)
	}
	renew().want(t, "after", 403, "account_disabled")
}

func TestWhatFellWithItsPersonShowsAsStopped(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	auditor := o.holder(t, person("auditor", account.Auditor))
	stopped := func(path string) bool {
		var found struct{ Stopped bool }
		if r := auditor.send(t, "GET", path, ""); r.status != 200 || json.Unmarshal(r.body, &found) != nil {
			t.Fatalf("%s: %d %s", path, r.status, r.body)
		}
		return found.Stopped
	}
	paths := []string{"/api/v1/agents/" + o.agent.ID, "/api/v1/delegations/" + o.delegation.ID}
	for _, path := range paths {
		if stopped(path) {
			t.Errorf("%s is stopped before", path)
		}
	}
	o.bearer(t, o.agent.Owner).send(t, "POST", "/api/v1/stop/"+o.agent.Owner, "").want(t, "stop all", 204, "")
	for _, path := range paths {
		if !stopped(path) {
			t.Errorf("%s stands after its person stopped all", path)
		}
	}
}

func TestTheMarkOfHeldKeysStays(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	profiles := must(o.Authority.Profiles(t.Context()))(t)
	i := slices.IndexFunc(profiles, func(p ca.Profile) bool { return p.Name == "principal-standing" })
	if i < 0 {
		t.Fatal("there is no profile for keys that are held here")
	}
	p := profiles[i]
	operator := o.holder(t, person("operator", account.Operator))
	shorter := p
	shorter.LifetimeSec = 3600
	operator.call(t, "PUT", "/api/v1/profiles/"+p.Name, shorter).want(t, "a shorter life", 200, "")
	p.Policies = nil
	operator.call(t, "PUT", "/api/v1/profiles/"+p.Name, p).want(t, "without the policy", 403, "profile_built_in")
}
