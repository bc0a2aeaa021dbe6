package agentcert

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"chancery/capability"
)

// The sentences for steps that were passed; each runs only after its check.

func (x *verification) sayChain() string {
	return fmt.Sprintf("The agent's certificate is valid until %s and was issued by %s, under the trusted root %s.",
		stamp(x.chain[0].NotAfter), name(x.path.issuer), name(x.path.anchor))
}

func (x *verification) sayExtension() string {
	return fmt.Sprintf("It names the agent %s, for whom %s at %s answers.", quoted(x.agent.AgentID), quoted(x.agent.Principal.Identifier), quoted(x.agent.Principal.Realm))
}

func (x *verification) sayPrincipal() string {
	return fmt.Sprintf("The principal's certificate, %s, is trusted, valid until %s, and has the key that the agent's certificate names.",
		name(x.principal.cert), stamp(x.principal.cert.NotAfter))
}

func (x *verification) sayAnchor() string {
	return fmt.Sprintf("Both certificates come from the root %s.", name(x.path.anchor))
}

func (x *verification) sayRevocation() string {
	if x.verifier.policy.Revoked == nil {
		return "Revocation is not looked up here; the certificate's short life limits the harm."
	}
	return "Neither certificate is revoked."
}

func (x *verification) sayVersion() string {
	return "The authorization names the agent's key, so that no other key can use it."
}

func (x *verification) saySignature() string {
	return fmt.Sprintf("The principal's signature over it is good (%s).", x.agent.Authorization.Algorithm)
}

func (x *verification) sayOwnKey() string {
	reason := x.agent.Authorization.Reason
	if x.principal.standing {
		return fmt.Sprintf("Not asked for: a server signed it under the principal's standing approval %.12s….", reason.Description)
	}
	return fmt.Sprintf("The principal signed with their own key, for the reason %s: %s.", quoted(reason.Code), quoted(reason.Description))
}

func (x *verification) sayLifetime() string {
	return fmt.Sprintf("The certificate lives no longer than authorized: %s.", span(x.agent.Authorization.Lifetime))
}

func (x *verification) sayTimestamp() string {
	return fmt.Sprintf("It was signed at %s, when the certificate was made.", stamp(x.agent.Authorization.Timestamp))
}

func (x *verification) sayPrincipalConstraints() string {
	return sayConstraints("the principal", x.principal.authorization.Constraints)
}

func (x *verification) sayAgentConstraints() string {
	return sayConstraints("the agent", x.agent.Constraints)
}

func sayConstraints(whose string, constraints []capability.Capability) string {
	if len(constraints) == 0 {
		return fmt.Sprintf("No further conditions bind %s.", whose)
	}
	return fmt.Sprintf("The conditions on %s hold: %s.", whose, listed(constraints))
}

func (x *verification) sayMode() string {
	if x.agent.Mode == Representative {
		return "The agent represents the principal and may do no more than the principal may now."
	}
	return fmt.Sprintf("What was delegated is the principal's to give: %s.", listed(x.agent.Capabilities))
}

func (x *verification) sayOperation() string {
	return fmt.Sprintf("The operation %s is among what was delegated.", quoted(x.op.Name))
}

// name gives the common name of a certificate's subject, or the whole subject without one.
func name(cert *x509.Certificate) string {
	if cert.Subject.CommonName != "" {
		return quoted(cert.Subject.CommonName)
	}
	return quoted(cert.Subject.String())
}

// quoted makes text from a certificate safe to print: a terminal must not obey it.
func quoted(s string) string { return fmt.Sprintf("%q", s) }

// listed names a few capabilities, and how many there are beyond that.
func listed(list []capability.Capability) string {
	const most = 5
	var names []string
	for _, c := range list[:min(len(list), most)] {
		names = append(names, c.String())
	}
	text := strings.Join(names, ", ")
	if len(list) > most {
		text += fmt.Sprintf(" and %d more", len(list)-most)
	}
	return text
}

// span writes a duration without the zeros at its end: 10m, not 10m0s.
func span(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
