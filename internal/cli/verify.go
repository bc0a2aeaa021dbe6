package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chancery/agentcert"
	"chancery/capability"
)

func (t *terminal) verify() *cobra.Command {
	var operation, remote string
	var readOnly, ownKey bool
	c := &cobra.Command{
		Use: "verify FILE", Short: "Verify an agent certificate offline and explain each step", Args: cobra.ExactArgs(1),
		Long: "Verifies the agent certificate in FILE, which also holds its chain and the principal's certificate, against the root in\n--root. Nobody is asked. Without --operation it is checked for an operation that its first capability names.",
		RunE: func(cmd *cobra.Command, args []string) error {
			op := capability.Operation{Name: operation, Time: time.Now(), ReadOnly: readOnly}
			if remote != "" {
				address, err := netip.ParseAddr(remote)
				if err != nil {
					return usageError{fmt.Errorf("--remote %s: %w", remote, err)}
				}
				op.Remote = address
			}
			return t.verifyOperation(cmd.Context(), args[0], op, agentcert.Policy{RequireOwnKey: ownKey})
		},
	}
	c.Flags().StringVar(&operation, "operation", "", "what the agent wants to do, such as calendar:read:events")
	c.Flags().StringVar(&remote, "remote", "", "address from which it wants to")
	c.Flags().BoolVar(&readOnly, "read-only", false, "the operation changes nothing")
	c.Flags().BoolVar(&ownKey, "require-own-key", false, "refuse authorizations that a server signed under a standing approval")
	return c
}

// verifyOperation verifies from files alone and shows every step. The error is the refusal.
func (t *terminal) verifyOperation(ctx context.Context, path string, op capability.Operation, policy agentcert.Policy) error {
	chain, err := readCertificates(path)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	roots, err := readCertificates(t.trusted())
	if err != nil {
		return fmt.Errorf("read the root certificate: %w", err)
	}
	if op.Name == "" {
		if op.Name, err = firstCapability(chain[0]); err != nil {
			return err
		}
	}
	decision, refused := agentcert.NewVerifier(roots, policy).Verify(ctx, chain, chain, op)
	if err := t.show(explained(decision, op, refused), func() { t.steps(decision) }); err != nil {
		return err
	}
	return refused
}

func (t *terminal) trusted() string {
	if t.root != "" {
		return t.root
	}
	return t.rootPath()
}

// firstCapability gives the operation that the certificate's first capability names.
func firstCapability(cert *x509.Certificate) (string, error) {
	aic, err := agentcert.FromCertificate(cert)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(aic.Capabilities[0].Name(), ":*"), nil
}

func (t *terminal) steps(d agentcert.Decision) {
	for _, step := range d.Steps() {
		mark := "yes"
		if !step.OK {
			mark = "NO "
		}
		fmt.Fprintf(t.out, "  %s  %-22s %s\n", mark, step.Code, step.Text)
	}
}

// A verification is the answer of `chancery verify --json`.
type verification struct {
	Allowed   bool             `json:"allowed"`
	Operation string           `json:"operation"`
	Agent     string           `json:"agent,omitempty"`
	Principal string           `json:"principal,omitempty"`
	Code      string           `json:"code,omitempty"`
	Steps     []agentcert.Step `json:"steps"`
}

func explained(d agentcert.Decision, op capability.Operation, refused error) verification {
	v := verification{Allowed: refused == nil, Operation: op.Name, Agent: d.AgentID, Steps: d.Steps()}
	if d.Principal.Identifier != "" {
		v.Principal = d.Principal.String()
	}
	var refusal *agentcert.Refusal
	if errors.As(refused, &refusal) {
		v.Code = refusal.Code
	}
	return v
}
