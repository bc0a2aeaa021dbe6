package cli

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chancery/agentcert"
	"chancery/capability"
	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/domain/account"
	"chancery/internal/domain/agent"
	"chancery/internal/server"
)

// What quickstart shows: a person who may hand on the whole calendar lets an agent read events.
const (
	sampleGrant     = "calendar:*"
	sampleAllowed   = "calendar:read:events"
	sampleForbidden = "calendar:delete:events"
	sampleAgent     = "calendar-helper"
)

func (t *terminal) quickstart() *cobra.Command {
	var exit bool
	c := t.settings(&cobra.Command{
		Use: "quickstart", Short: "Make everything, show it at work, and serve", Args: cobra.NoArgs,
		Long: "Makes a data directory with a root and issuing authorities, a person, an agent, a delegation and an agent certificate,\nverifies the certificate offline and explains each step, then serves until Ctrl-C. Run again, it uses what is there.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			t.set = append([]string{"log.level=warn"}, t.set...) // a tour is for reading
			s, err := t.open(cmd.Context(), true)
			if err != nil {
				return err
			}
			if err := t.demonstrate(cmd.Context(), s); err != nil || exit {
				t.close(s)
				return err
			}
			t.say("")
			return t.run(cmd.Context(), s)
		},
	})
	c.Flags().BoolVar(&exit, "exit", false, "end after the verification")
	return c
}

// A tour is quickstart's way through one installation.
type tour struct {
	*terminal
	*server.Server
	operator   context.Context
	self       context.Context // the person
	person     account.Account
	personKey  crypto.Signer
	agentKey   crypto.Signer
	principal  *agent.Principal
	agent      agent.Agent
	delegation agent.Delegation
}

func (t *terminal) demonstrate(ctx context.Context, s *server.Server) error {
	made, err := t.establish(ctx, s)
	if err != nil {
		return err
	}
	t.say("Root certificate: %s", made.Root)
	t.greet(made)
	q := &tour{terminal: t, Server: s, operator: server.AsOperator(ctx)}
	for _, step := range []func() error{q.makeKeys, q.findPerson, q.certifyPerson, q.findAgent, q.delegate, q.enrol} {
		if err := step(); err != nil {
			return err
		}
	}
	issued, err := q.issue()
	if err != nil {
		return err
	}
	if err := q.keep(issued); err != nil {
		return err
	}
	return q.verify(issued)
}

func (q *tour) path(name string) string { return filepath.Join(q.data, "quickstart", name) }

func (q *tour) makeKeys() (err error) {
	if q.personKey, err = keyAt(q.path("person.key"), key.P256); err != nil {
		return err
	}
	q.agentKey, err = keyAt(q.path("agent.key"), key.P256)
	return err
}

var unfitForName = regexp.MustCompile(`[^a-z0-9._-]+`)

// personName is the name of whoever runs this.
func personName() string {
	current, err := user.Current()
	if err != nil {
		return "owner"
	}
	name := current.Username[strings.LastIndexByte(current.Username, '\\')+1:]
	if name = unfitForName.ReplaceAllString(strings.ToLower(name), "-"); name == "" {
		return "owner"
	}
	return name
}

func (q *tour) findPerson() (err error) {
	q.person, err = q.Accounts.FindByName(q.operator, personName())
	if fault.KindOf(err) == fault.NotFound {
		q.person, err = q.Accounts.Create(q.operator, account.Spec{Kind: who.Person, Name: personName(), Roles: []account.Role{account.Self}})
	}
	q.self = who.With(q.operator, who.Caller{Kind: who.Person, ID: q.person.ID, Name: q.person.Name, Credential: "quickstart",
		Permissions: who.Set{who.AgentOwn, who.DelegationOwn}})
	q.say("Person:           %s (%s)", q.person.Name, q.person.ID)
	return err
}

// certifyPerson makes sure that the person's key has a principal certificate that is good for another day.
func (q *tour) certifyPerson() error {
	if q.ownPrincipal() == nil {
		csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, q.personKey)
		if err != nil {
			return err
		}
		grant, err := capability.Parse(sampleGrant)
		if err != nil {
			return err
		}
		if _, err = q.Agents.Certify(q.operator, agent.PrincipalTerms{Person: q.person.ID, Grants: capability.Set{grant}, MaxAgents: 10}, csr); err != nil {
			return err
		}
	}
	if q.principal = q.ownPrincipal(); q.principal == nil {
		return errors.New("the principal certificate that was just issued is not there")
	}
	q.say("  may hand on     %s (principal certificate %s…)", sampleGrant, q.principal.Serial[:16])
	return nil
}

func (q *tour) ownPrincipal() *agent.Principal {
	spki, err := key.SPKI(q.personKey.Public())
	if err != nil {
		return nil
	}
	all, err := q.Agents.Principals(q.operator, q.person.ID)
	i := slices.IndexFunc(all, func(p *agent.Principal) bool {
		return p.KeyHash == key.Hash(spki) && time.Until(p.NotAfter) > 24*time.Hour
	})
	if err != nil || i < 0 {
		return nil
	}
	return all[i]
}

func (q *tour) findAgent() error {
	page, err := q.Agents.Agents(q.self, q.person.ID, "", 1000)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(page.Items, func(a agent.Agent) bool { return a.Name == sampleAgent })
	if i >= 0 {
		q.agent = page.Items[i]
	} else if q.agent, err = q.Agents.Create(q.self, q.person.ID, sampleAgent); err != nil {
		return err
	}
	q.say("Agent:            %s (%s)", q.agent.Name, q.agent.ID)
	return nil
}

// delegate takes the delegation that the agent works under, or has the person approve one.
func (q *tour) delegate() (err error) {
	if q.agent.Delegation != "" {
		q.delegation, err = q.Agents.Delegation(q.self, q.agent.Delegation)
	}
	if q.delegation.ID == "" || time.Until(q.delegation.Until) < time.Hour {
		q.delegation, err = q.Agents.Delegate(q.self, agent.Terms{
			Principal: q.person.ID, Name: "read the calendar", Capabilities: []string{sampleAllowed}, Standing: true,
			Until: time.Now().Add(30 * 24 * time.Hour), LifetimeSec: 600, MaxAgents: 1,
		})
	}
	if err != nil {
		return err
	}
	q.say("Delegation:       %s until %s (%s)", sampleAllowed, q.delegation.Until.Format("2006-01-02"), q.delegation.ID)
	return nil
}

func (q *tour) enrol() error {
	spki, err := key.SPKI(q.agentKey.Public())
	if err != nil {
		return err
	}
	if hash := key.Hash(spki); q.agent.Delegation == q.delegation.ID && q.agent.KeyHash == fmt.Sprintf("%x", hash) {
		return nil
	}
	invitation, err := q.Agents.Invite(q.self, q.agent.ID, q.delegation.ID)
	if err != nil {
		return err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, q.agentKey)
	if err != nil {
		return err
	}
	q.agent, err = q.Agents.Enrol(q.operator, invitation.Secret, csr)
	return err
}

// issue signs a delegation authorization with the person's own key and gets the agent's certificate for it.
func (q *tour) issue() (agent.Certificate, error) {
	spki, err := key.SPKI(q.agentKey.Public())
	if err != nil {
		return agent.Certificate{}, err
	}
	aic := agentcert.AIC{
		Version: 2, AgentID: q.agent.ID, Principal: q.principal.UID, Capabilities: q.delegation.Granted, Constraints: q.delegation.Constrained,
		Authorization: agentcert.DelegationAuthorization{
			Reason:    agentcert.Reason{Code: "QUICKSTART", Description: "the first agent certificate of this installation"},
			Lifetime:  time.Duration(q.delegation.LifetimeSec) * time.Second,
			Timestamp: time.Now().UTC().Truncate(time.Second),
		},
	}
	if err := agentcert.Sign(&aic, spki, q.personKey, nil); err != nil {
		return agent.Certificate{}, err
	}
	identity, err := aic.Encode()
	if err != nil {
		return agent.Certificate{}, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, q.agentKey)
	if err != nil {
		return agent.Certificate{}, err
	}
	return q.Agents.Issue(q.self, csr, identity)
}

// keep writes the certificate with its chain and the principal's certificate, ready for an mTLS client.
func (q *tour) keep(c agent.Certificate) error {
	bundle := slices.Concat(encodeCertificate(c.DER), encodeCertificate(c.Issuer), encodeCertificate(c.Principal), encodeCertificate(c.PrincipalIssuer))
	if err := os.WriteFile(q.path("agent.pem"), bundle, 0o644); err != nil {
		return err
	}
	q.say("Certificate:      %s (valid until %s)", c.Serial, c.NotAfter.Format(time.TimeOnly))
	q.say("                  %s with its chain; the key is in %s", q.path("agent.pem"), q.path("agent.key"))
	return nil
}

// verify does what a service does: it takes the files alone, asks nobody, and explains.
func (q *tour) verify(c agent.Certificate) error {
	if q.json {
		return q.show(map[string]string{"serial": c.Serial, "agent": q.agent.ID, "delegation": q.delegation.ID, "person": q.person.ID, "certificate": q.path("agent.pem"), "root": q.rootPath()}, nil)
	}
	q.say("\nVerified offline, as a service would, for %s:", sampleAllowed)
	ctx, file := q.operator, q.path("agent.pem")
	if err := q.verifyOperation(ctx, file, capability.Operation{Name: sampleAllowed}, agentcert.Policy{}); err != nil {
		return err
	}
	chain, err := readCertificates(file)
	if err != nil {
		return err
	}
	roots, err := readCertificates(q.rootPath())
	if err != nil {
		return err
	}
	var refusal *agentcert.Refusal
	_, err = agentcert.NewVerifier(roots, agentcert.Policy{}).Verify(ctx, chain, chain, capability.Operation{Name: sampleForbidden})
	if !errors.As(err, &refusal) {
		return fmt.Errorf("the verification should have refused %s: %w", sampleForbidden, err)
	}
	q.say("\nAnd for %s, which nobody allowed:\n  NO   %-22s %s", sampleForbidden, refusal.Step, refusal.Text)
	q.say("\nTry it yourself:  chancery verify %s%s --operation %s", file, q.here(), sampleAllowed)
	return nil
}
