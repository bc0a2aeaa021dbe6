package agentcert

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
	StepLifetime             = "lifetime"              // the certificate lives no longer than that
	StepTimestamp            = "timestamp"             // it was signed when the certificate was made
	StepPrincipalConstraints = "principal_constraints" // the principal's conditions hold
	StepAgentConstraints     = "agent_constraints"     // the agent's conditions hold
	StepMode                 = "mode"                  // what was delegated was the principal's to give
	StepOperation            = "operation"             // the operation is among it
)
