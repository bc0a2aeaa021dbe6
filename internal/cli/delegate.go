package cli

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"chancery/agentcert"
	"chancery/api"
	"chancery/capability"
	"chancery/client"
	"chancery/internal/base/conf"
	"chancery/internal/base/fault"
	"chancery/internal/base/key"
)

func (t *terminal) agentIssue() *cobra.Command {
	w := word{}
	var person, out, csr, kind string
	lifetime := conf.Duration(0)
	c := &cobra.Command{
		Use: "issue AGENT", Short: "Sign for an agent with a person's own key and get its certificate", Args: cobra.ExactArgs(1),
		Long:    "Signs a delegation authorization with the person's key in PERSON.key, which does not leave this machine, and gets the\nagent's certificate for it into OUT.pem. The agent's key is in OUT.key, or its certificate request in --csr.",
		Example: "  chancery agent issue calendar-helper --person alice --out helper",
		RunE: t.remote(func(ctx context.Context, server *client.Client, args []string) error {
			var err error
			if w.signer, err = existingKey(pair(person).key()); err != nil {
				return err
			}
			if w.request, err = pair(out).request(csr, key.Kind(kind), ""); err != nil {
				return err
			}
			w.lifetime = time.Duration(lifetime)
			issued, err := w.send(ctx, server, args[0])
			if err != nil {
				return err
			}
			return t.deliver(issued, pair(out), container{})
		}),
	}
	f := c.Flags()
	f.StringVar(&person, "person", "", "PERSON.key is the person's key, as chancery user certify wrote it (required)")
	f.StringVar(&out, "out", "", "OUT.key is the agent's key, and OUT.pem is written")
	f.StringVar(&csr, "csr", "", "file with the agent's certificate request")
	f.StringArrayVar(&w.capabilities, "capability", nil, "allow only this of what the delegation allows; may be repeated")
	durationFlag(c, &lifetime, "lifetime", "validity; default and most: what the delegation says")
	f.StringVar(&w.reason.Code, "reason", "PERSON", "short code of why, in the certificate")
	f.StringVar(&w.reason.Description, "description", "signed on the command line", "why, in words, in the certificate")
	keyKind(c, &kind)
	_ = c.MarkFlagRequired("person")
	return c
}

func existingKey(path string) (crypto.Signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the person's key: %w", err)
	}
	return key.ParsePrivate(text)
}

// A word is a person's signed word that an agent may act.
type word struct {
	signer       crypto.Signer
	request      string // the agent's, PEM
	capabilities []string
	lifetime     time.Duration
	reason       agentcert.Reason
}

// send signs for an agent within its delegation and hands the authorization in.
func (w word) send(ctx context.Context, server *client.Client, agent string) (issued api.Issued, err error) {
	found, err := findAgent(ctx, server, agent)
	if err != nil {
		return issued, err
	}
	if found.Delegation == "" {
		return issued, fault.New(fault.Denied, "agent_not_enrolled", "agent %s works under no delegation yet", found.ID).
			WithHint("enrol it first: `chancery agent invite`, then `chancery agent enrol`")
	}
	var terms api.Delegation
	if err := server.Call(ctx, "GET", "/api/v1/delegations/"+found.Delegation, nil, &terms); err != nil {
		return issued, err
	}
	uid, err := w.principal(ctx, server, found.Owner)
	if err != nil {
		return issued, err
	}
	identity, err := w.identity(found.ID, uid, terms)
	if err != nil {
		return issued, err
	}
	return issued, server.Call(ctx, "POST", "/api/v1/agent-certificates", api.AgentIssueRequest{Request: w.request, Identity: identity}, &issued)
}

// principal finds the certified name of the key that signs.
func (w word) principal(ctx context.Context, server *client.Client, person string) (uid agentcert.PrincipalUID, err error) {
	spki, err := key.SPKI(w.signer.Public())
	if err != nil {
		return uid, err
	}
	var page api.Page[api.Principal]
	if err := server.Call(ctx, "GET", "/api/v1/principals/"+person, nil, &page); err != nil {
		return uid, err
	}
	own := key.Hash(spki)
	for _, p := range page.Items {
		uid, err := agentcert.ParsePrincipalUID(p.UID)
		if err == nil && [32]byte(uid.KeyHash) == own {
			return uid, nil
		}
	}
	return uid, fault.New(fault.Denied, "principal_unknown", "the key has no principal certificate of %s, who answers for the agent", person).
		WithHint("`chancery user certify` issues one")
}

// identity writes the agent's identity with the person's signature inside.
func (w word) identity(agent string, uid agentcert.PrincipalUID, terms api.Delegation) ([]byte, error) {
	capabilities := terms.Capabilities
	if len(w.capabilities) > 0 {
		capabilities = w.capabilities
	}
	aic := agentcert.AIC{Version: 2, AgentID: agent, Principal: uid, Authorization: agentcert.DelegationAuthorization{
		Reason: w.reason, Lifetime: time.Duration(terms.LifetimeSec) * time.Second, Timestamp: time.Now().UTC().Truncate(time.Second),
	}}
	if w.lifetime > 0 {
		aic.Authorization.Lifetime = w.lifetime
	}
	if terms.Representative {
		aic.Mode = agentcert.Representative
	}
	var err error
	if aic.Capabilities, err = parseAll(capabilities); err != nil {
		return nil, err
	}
	if aic.Constraints, err = parseAll(terms.Constraints); err != nil {
		return nil, err
	}
	spki, err := subjectKey(w.request)
	if err != nil {
		return nil, err
	}
	if err := agentcert.Sign(&aic, spki, w.signer, nil); err != nil {
		return nil, err
	}
	return aic.Encode()
}

func parseAll(texts []string) (set []capability.Capability, err error) {
	for _, text := range texts {
		c, err := capability.Parse(text)
		if err != nil {
			return nil, fault.New(fault.Invalid, "capability_malformed", "%.100q: %v", text, err)
		}
		set = append(set, c)
	}
	return set, nil
}

// subjectKey gives the SubjectPublicKeyInfo of a certificate request in PEM.
func subjectKey(request string) ([]byte, error) {
	block, _ := pem.Decode([]byte(request))
	if block == nil {
		return nil, errors.New("the certificate request is not in PEM")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fault.New(fault.Invalid, "csr_malformed", "the certificate request cannot be read: %v", err)
	}
	return csr.RawSubjectPublicKeyInfo, nil
}
