package load

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"chancery/agentcert"
	"chancery/api"
	"chancery/capability"
)

// A Population is how many take part in a run.
type Population struct {
	People int `json:"people"` // or service accounts, in the scenario regular
	Agents int `json:"agents,omitempty"`
	Tokens int `json:"tokens"`
}

// String says who takes part.
func (p Population) String() string {
	return fmt.Sprintf("%s people, %s agents, %s tokens", thousands(float64(p.People)), thousands(float64(p.Agents)), thousands(float64(p.Tokens)))
}

// populationMax bounds each of the three: making them takes a millisecond or so each.
const populationMax = 5_000_000

func (p Population) check() error {
	for _, n := range []int{p.People, p.Agents, p.Tokens} {
		if n < 1 || n > populationMax {
			return fmt.Errorf("people, agents and tokens are 1 to %d each", populationMax)
		}
	}
	return nil
}

func (p Population) withDefaults() Population {
	return Population{People: cmp.Or(p.People, 16), Agents: cmp.Or(p.Agents, 64), Tokens: cmp.Or(p.Tokens, 64)}
}

// setUp is how many requests make the population side by side.
const setUp = 8

func (t *target) call(ctx context.Context, path string, in, out any) error {
	if err := t.admin.Call(ctx, http.MethodPost, path, in, out); err != nil {
		return fmt.Errorf("prepare the run: POST %s: %w", path, err)
	}
	return nil
}

// admit makes an account with tokens.
func (t *target) admit(ctx context.Context, a api.NewAccount, tokens int) (account api.Account, secrets []string, err error) {
	if err := t.call(ctx, "/api/v1/accounts", a, &account); err != nil {
		return account, nil, err
	}
	secrets = make([]string, tokens)
	for i := range secrets {
		var token api.Token
		if err := t.call(ctx, "/api/v1/tokens", api.NewToken{Account: account.ID, Note: a.Name}, &token); err != nil {
			return account, nil, err
		}
		secrets[i] = token.Secret
	}
	return account, secrets, nil
}

// admitReader makes the account that looks certificates up afterwards.
func (t *target) admitReader(ctx context.Context) error {
	account, secrets, err := t.admit(ctx, api.NewAccount{Kind: "service", Name: label(), Roles: []string{"reader"}}, 1)
	if err == nil {
		t.reader, t.readerID = secrets[0], account.ID
	}
	return err
}

// regular prepares clients that ask for ordinary certificates for machines, each with a bearer token.
func (t *target) regular(ctx context.Context, p Population) (scenario, error) {
	tokens := make([][]string, p.People)
	run := label()
	err := side(ctx, setUp, p.People, func(i int) (err error) {
		a := api.NewAccount{Kind: "service", Name: run + "-" + strconv.Itoa(i), Roles: []string{"issuer"}, Authorities: []string{"machines"}}
		_, tokens[i], err = t.admit(ctx, a, share(p.Tokens, p.People, i))
		return err
	})
	if err != nil {
		return scenario{}, err
	}
	all, err := newOrders(ctx, orders)
	if err != nil {
		return scenario{}, err
	}
	flat := flatten(tokens)
	return scenario{
		path: "/api/v1/certificates", issuer: "machines",
		next: func(turn int) (job, error) {
			o := all[turn%len(all)]
			return job{token: flat[turn%len(flat)], body: o.body, expect: o.expect}, nil
		},
		verify: t.verifyRegular,
	}, nil
}

// share gives how many of n things the i-th of some takes.
func share(n, some, i int) int { return (n*(i+1))/some - (n*i)/some }

// flatten lists tokens so that neighbours belong to different accounts.
func flatten(tokens [][]string) []string {
	var flat []string
	for i := 0; ; i++ {
		before := len(flat)
		for _, of := range tokens {
			if i < len(of) {
				flat = append(flat, of[i])
			}
		}
		if len(flat) == before {
			return flat
		}
	}
}

func (t *target) verifyRegular(leaf *x509.Certificate, got api.Issued) error {
	above, err := parseChain(got.Chain)
	if err != nil {
		return err
	}
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	options.Roots.AddCert(t.root)
	for _, c := range above {
		options.Intermediates.AddCert(c)
	}
	_, err = leaf.Verify(options)
	return err
}

// A person answers for agents and signs for them.
type person struct {
	key    *ecdsa.PrivateKey
	uid    agentcert.PrincipalUID
	id     string
	tokens []string
	works  string                  // the delegation that the agents work under
	hands  []capability.Capability // what it hands on
}

// An actor is an agent with its person.
type actor struct {
	bearer
	id     string
	person *person
	first  *api.Issued // the certificate that its enrolment brought, under a standing approval
}

// What the people of a run hand on, and for how long at a time.
const (
	benchGrant     = "calendar:*"
	benchAllowed   = "calendar:read:events"
	benchLifetime  = 10 * time.Minute
	benchAgentsMax = 1_000_000
)

// agents prepares clients that ask for agent certificates, each with a delegation authorization signed for it alone.
func (t *target) agents(ctx context.Context, p Population) (scenario, error) {
	all, err := t.actors(ctx, p, false)
	if err != nil {
		return scenario{}, err
	}
	verifier := t.verifier()
	return scenario{
		path: "/api/v1/agent-certificates", issuer: "agents", people: peopleOf(all),
		next: func(turn int) (job, error) {
			return all[turn%len(all)].order(turn / len(all))
		},
		verify: func(leaf *x509.Certificate, got api.Issued) error { return verifyAgent(ctx, verifier, leaf, got) },
	}, nil
}

// actors makes people and their agents. Under a standing approval each agent has a first certificate.
func (t *target) actors(ctx context.Context, p Population, standing bool) ([]*actor, error) {
	people := make([]*person, p.People)
	run := label()
	err := side(ctx, setUp, p.People, func(i int) (err error) {
		people[i], err = t.newPerson(ctx, run+"-"+strconv.Itoa(i), share(p.Tokens, p.People, i), standing)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]*actor, p.Agents)
	return all, side(ctx, setUp, p.Agents, func(i int) (err error) {
		all[i], err = t.newActor(ctx, i, people[i%len(people)])
		return err
	})
}

func peopleOf(all []*actor) []string {
	var ids []string
	for _, a := range all {
		ids = append(ids, a.person.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func verifyAgent(ctx context.Context, v *agentcert.Verifier, leaf *x509.Certificate, got api.Issued) error {
	s, err := show(leaf, got)
	if err != nil {
		return err
	}
	return s.verify(ctx, v)
}

// A shown is what an agent shows in a handshake: certificates, parsed already.
type shown struct{ chain, principals []*x509.Certificate }

func show(leaf *x509.Certificate, got api.Issued) (shown, error) {
	above, err := parseChain(got.Chain)
	if err != nil {
		return shown{}, err
	}
	principals, err := parseChain(got.Principal)
	return shown{append([]*x509.Certificate{leaf}, above...), principals}, err
}

// verify verifies as a service does that trusts the root alone.
func (s shown) verify(ctx context.Context, v *agentcert.Verifier) error {
	_, err := v.Verify(ctx, s.chain, s.principals, capability.Operation{Name: benchAllowed, Time: time.Now()})
	return err
}

func (t *target) newPerson(ctx context.Context, name string, tokens int, standing bool) (*person, error) {
	allowed, err := capability.Parse(benchAllowed)
	if err != nil {
		return nil, err
	}
	p := &person{hands: []capability.Capability{allowed}}
	if p.key, err = newKey(); err != nil {
		return nil, err
	}
	account, secrets, err := t.admit(ctx, api.NewAccount{Kind: "person", Name: name, Roles: []string{"person"}}, max(tokens, 1))
	if err != nil {
		return nil, err
	}
	p.id, p.tokens = account.ID, secrets
	csr, err := request(p.key, name)
	if err != nil {
		return nil, err
	}
	if err := t.call(ctx, "/api/v1/principals", api.PrincipalRequest{Person: p.id, Request: csr, Grants: []string{benchGrant}, MaxAgents: benchAgentsMax}, nil); err != nil {
		return nil, err
	}
	var own api.Page[api.Principal]
	if err := t.admin.Call(ctx, http.MethodGet, "/api/v1/principals/"+url.PathEscape(p.id), nil, &own); err != nil {
		return nil, err
	}
	if len(own.Items) != 1 {
		return nil, fmt.Errorf("%s has %d principal certificates, not the one that was just made", p.id, len(own.Items))
	}
	if p.uid, err = agentcert.ParsePrincipalUID(own.Items[0].UID); err != nil {
		return nil, err
	}
	var approved api.Delegation
	err = t.call(ctx, "/api/v1/delegations", api.NewDelegation{
		Principal: p.id, Name: name, Capabilities: []string{benchAllowed}, Standing: standing, Until: time.Now().Add(30 * 24 * time.Hour), LifetimeSec: int(benchLifetime / time.Second), MaxAgents: benchAgentsMax,
	}, &approved)
	p.works = approved.ID
	return p, err
}

func (t *target) newActor(ctx context.Context, number int, p *person) (*actor, error) {
	s, err := newSubject(number)
	if err != nil {
		return nil, err
	}
	var made api.Agent
	if err := t.call(ctx, "/api/v1/agents", api.NewAgent{Name: s.commonName, Owner: p.id}, &made); err != nil {
		return nil, err
	}
	var invitation api.Invitation
	if err := t.call(ctx, "/api/v1/agents/"+made.ID+"/invitations", api.InvitationRequest{Delegation: p.works}, &invitation); err != nil {
		return nil, err
	}
	var enrolled api.Enrolled
	err = t.call(ctx, "/api/v1/enrol", api.Enrolment{Secret: invitation.Secret, Request: s.csr}, &enrolled)
	return &actor{bearer: bearer{subject: s}, id: made.ID, person: p, first: enrolled.Certificate}, err
}

// order signs a fresh delegation authorization and makes the request that hands it in.
func (a *actor) order(turn int) (job, error) {
	identity := agentcert.AIC{
		Version: 2, AgentID: a.id, Principal: a.person.uid, Capabilities: a.person.hands,
		Authorization: agentcert.DelegationAuthorization{
			Reason: agentcert.Reason{Code: "BENCH", Description: "load"}, Lifetime: benchLifetime, Timestamp: time.Now().UTC().Truncate(time.Second),
		},
	}
	if err := agentcert.Sign(&identity, a.spki, a.person.key, nil); err != nil {
		return job{}, err
	}
	der, err := identity.Encode()
	if err != nil {
		return job{}, err
	}
	body, err := json.Marshal(api.AgentIssueRequest{Request: a.csr, Identity: der})
	return job{
		token: a.person.tokens[turn%len(a.person.tokens)], body: body, actor: a,
		again:  func() (job, error) { return a.order(turn) },
		expect: expectation{spki: a.spki, lifetime: benchLifetime, identity: der},
	}, err
}

// reuse makes a request with the evidence of a job, nonce and time, that the person signed once more, for another key.
// Where the nonce counts as used, it is refused.
func (j job) reuse(by subject) ([]byte, error) {
	identity, err := agentcert.ParseAIC(j.expect.identity)
	if err != nil {
		return nil, err
	}
	if err := agentcert.Sign(identity, by.spki, j.actor.person.key, nil); err != nil {
		return nil, err
	}
	der, err := identity.Encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(api.AgentIssueRequest{Request: by.csr, Identity: der})
}
