package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"chancery/agentcert"
	"chancery/api"
	"chancery/client"
	"chancery/internal/base/fault"
	"chancery/internal/base/key"
)

// The commands of an agent itself work with two files, NAME.key and NAME.pem, and with no account: the one-time token,
// and later the agent's own certificate, say who it is.

func (t *terminal) agentEnrol() *cobra.Command {
	var out, invitation, csr, kind string
	c := &cobra.Command{
		Use: "enrol", Short: "Enrol this agent with a one-time token", Args: cobra.NoArgs,
		Long:    "Makes the agent's key, in OUT.key for this user alone, unless it is there already, and binds it with the one-time token.\nUnder a standing delegation the first certificate goes into OUT.pem. The token is taken from --invitation, from\nCHANCERY_INVITATION, or asked for. The same token and key can be tried again.",
		Example: "  chancery agent enrol --server https://ca.internal:8443 --root root.pem --invitation invitation.txt --out helper",
		RunE: t.remote(func(ctx context.Context, server *client.Client, _ []string) error {
			secret, err := t.secret("enrolment token", invitation, "CHANCERY_INVITATION")
			if err != nil {
				return err
			}
			request, err := pair(out).request(csr, key.Kind(kind), "")
			if err != nil {
				return err
			}
			var enrolled api.Enrolled
			if err := server.Call(ctx, "POST", "/api/v1/enrol", api.Enrolment{Secret: secret, Request: request}, &enrolled); err != nil {
				return err
			}
			return t.welcome(enrolled, pair(out))
		}),
	}
	c.Flags().StringVar(&out, "out", "", "OUT.key and OUT.pem are written")
	c.Flags().StringVar(&invitation, "invitation", "", "file with the one-time token; - for standard input")
	c.Flags().StringVar(&csr, "csr", "", "file with a certificate request, in place of a key made here")
	keyKind(c, &kind)
	return c
}

func (t *terminal) welcome(enrolled api.Enrolled, to pair) error {
	first := enrolled.Certificate
	if first != nil {
		if err := t.keep(to, bundle(*first)); err != nil {
			return err
		}
	}
	return t.show(enrolled, func() {
		t.card("Agent", enrolled.Agent.ID, "Name", enrolled.Agent.Name, "Delegation", enrolled.Agent.Delegation)
		if first == nil {
			t.say("The person signs each certificate: chancery agent issue %s", enrolled.Agent.ID)
			return
		}
		t.card("Serial", first.Serial, "Valid until", stamp(first.NotAfter), "Certificate", to.cert(), "Private key", presentFile(to.key()))
	})
}

// bundle is an issued certificate with all that a verifier needs beside it.
func bundle(issued api.Issued) string { return issued.PEM + issued.Chain + issued.Principal }

func (t *terminal) agentRenew() *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use: "renew NAME", Short: "Renew this agent's certificate under its standing delegation", Args: cobra.ExactArgs(1),
		Long:    "Renews the certificate in NAME.pem with the key in NAME.key and replaces the file in one step. The agent calls with its\ncertificate over mTLS; once that has expired, a request signed by the same key proves it. With --watch it goes on, at two\nthirds of each lifetime, until it is interrupted or refused.",
		Example: "  chancery agent renew helper --server https://ca.internal:8444 --root root.pem --watch",
		RunE: func(cmd *cobra.Command, args []string) error {
			if t.server == "" {
				return usageError{errors.New("say with --server where the mTLS listener is, such as https://localhost:8444")}
			}
			r := renewal{t, pair(args[0])}
			if watch {
				return r.watch(cmd.Context())
			}
			issued, err := r.once(cmd.Context())
			if err != nil {
				return err
			}
			return t.announce(issued, r.files)
		},
	}
	c.Flags().BoolVar(&watch, "watch", false, "keep renewing until interrupted")
	return c
}

func (t *terminal) announce(issued api.Issued, at pair) error {
	return t.show(issued, func() {
		t.card("Serial", issued.Serial, "Valid until", stamp(issued.NotAfter), "Certificate", at.cert())
	})
}

// A renewal renews the certificate of one pair of files.
type renewal struct {
	*terminal
	files pair
}

// once gets the next certificate and puts it in the place of the last.
func (r renewal) once(ctx context.Context) (issued api.Issued, err error) {
	held, err := tls.LoadX509KeyPair(r.files.cert(), r.files.key())
	if err != nil {
		return issued, fault.New(fault.Invalid, "key_pair_invalid", "%s and %s are not a certificate and its key: %v", r.files.cert(), r.files.key(), err)
	}
	server, order, err := r.prepare(held)
	if err != nil {
		return issued, err
	}
	if err := server.Call(ctx, "POST", "/api/v1/agent-certificates/renew", order, &issued); err != nil {
		return issued, err
	}
	return issued, r.keep(r.files, bundle(issued))
}

// prepare says how to ask: with the certificate over TLS while it is valid, afterwards by a request of the same key.
func (r renewal) prepare(held tls.Certificate) (*client.Client, api.AgentRenewRequest, error) {
	var order api.AgentRenewRequest
	config := client.Config{URL: r.server}
	if time.Now().Before(held.Leaf.NotAfter) {
		config.Certificate = &held
	} else {
		identity, err := agentcert.FromCertificate(held.Leaf)
		if err != nil {
			return nil, order, err
		}
		order.Agent = identity.AgentID
		if order.Request, err = r.files.request("", "", ""); err != nil {
			return nil, order, err
		}
	}
	var err error
	if config.Roots, err = r.roots(); err != nil {
		return nil, order, err
	}
	server, err := dial(config)
	return server, order, err
}

const (
	retryFirst = time.Second
	retryMost  = time.Minute
)

// watch renews at two thirds of each lifetime until ctx ends, which is its ordinary end. It tries again after a failure;
// a refusal is final.
func (r renewal) watch(ctx context.Context) error {
	wait, retry := time.Duration(0), retryFirst
	for {
		if !sleep(ctx, wait) {
			return nil
		}
		issued, err := r.once(ctx)
		switch {
		case err == nil:
			if err := r.announce(issued, r.files); err != nil {
				return err
			}
			retry, wait = retryFirst, time.Until(issued.NotBefore.Add(issued.NotAfter.Sub(issued.NotBefore)*2/3))
		case ctx.Err() != nil:
			return nil
		case final(err):
			return err
		default:
			fmt.Fprintf(r.err, "chancery: %v; trying again in %v\n", err, retry)
			wait, retry = retry, min(2*retry, retryMost)
		}
	}
}

// final reports whether asking again is in vain.
func final(err error) bool {
	var answered *client.Error
	if errors.As(err, &answered) {
		return answered.Status < http.StatusInternalServerError && answered.Status != http.StatusTooManyRequests
	}
	_, ours := fault.As(err)
	return ours
}

// sleep waits and reports whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
