package agentcert

import (
	"time"

	"chancery/capability"
)

// Steps of a verification, in order. They are stable.
const (
	StepChain                = "chain"                 // the agent's certificate comes from a trusted authority and is in force
	StepExtension            = "extension"             // it says who the agent is and what it may do
	StepPrincipal            = "principal"             // the principal's certificate is there, trusted and in force
	StepAnchor               = "anchor"                // both certificates end at the same root
	StepRevocation           = "revocation"            // neither is revoked
	StepVersion              = "version"               // the authorization names the agent's key
	StepSignature            = "signature"             // the principal signed it
	StepOwnKey               = "own_key"               // with a key that the policy accepts
	StepLifetime             = "lifetime"              // the certificate lives no longer than authorized
	StepTimestamp            = "timestamp"             // the authorization was signed when the certificate was made
	StepPrincipalConstraints = "principal_constraints" // the principal's conditions hold
	StepAgentConstraints     = "agent_constraints"     // the agent's conditions hold
	StepMode                 = "mode"                  // what was delegated was the principal's to give
	StepOperation            = "operation"             // the operation is among what was delegated
	StepObligation           = "obligation"            // the conditions over time hold; see Middleware
	StepRequest              = "request"               // the request says who asks and for what; see Middleware
)

// A Decision is the outcome of a verification. Its fields are set as far as the verification came.
type Decision struct {
	AgentID     string
	Principal   PrincipalUID
	Mode        Mode
	Expires     time.Time              // end of the agent's certificate
	Obligations capability.Obligations // what the service must keep; only with permission

	verification *verification
}

// A Step is one line of an explanation.
type Step struct {
	Code string `json:"code"` // one of the Step constants
	Text string `json:"text"` // what was found, in plain words
	OK   bool   `json:"ok"`
}

// Steps explains the decision: every step that was passed, and then the one that was not. The texts are made here, so
// that a verification that nobody asks about does not pay for them.
func (d Decision) Steps() []Step {
	x := d.verification
	if x == nil {
		return nil
	}
	list := make([]Step, 0, len(steps))
	for _, s := range steps[:x.passed] {
		list = append(list, Step{Code: s.code, Text: s.text(x), OK: true})
	}
	if x.refusal != nil {
		list = append(list, Step{Code: x.refusal.Step, Text: x.refusal.Text})
	}
	return list
}

func (x *verification) decision() Decision {
	d := Decision{verification: x}
	if x.agent == nil {
		return d
	}
	d.AgentID, d.Principal, d.Mode, d.Expires = x.agent.AgentID, x.agent.Principal, x.agent.Mode, x.chain[0].NotAfter
	if x.refusal == nil {
		d.Obligations = x.obligations
	}
	return d
}
