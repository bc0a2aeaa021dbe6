package api

import "time"

// A PrincipalRequest asks for a principal certificate: it lets a person's key sign delegations within the grants.
type PrincipalRequest struct {
	Person         string   `json:"person" maxLength:"64"`
	Request        string   `json:"csr" maxLength:"32768" doc:"PKCS#10 certificate request in PEM, signed by the person's key"`
	Grants         []string `json:"grants" minItems:"1" maxItems:"256" doc:"what the person may hand on, such as calendar:*"`
	Constraints    []string `json:"constraints,omitempty" maxItems:"32"`
	Representative bool     `json:"representative,omitempty" doc:"agents may follow the person's current grants"`
	MaxAgents      int      `json:"max_agents,omitempty" minimum:"0"`
	LifetimeSec    int      `json:"lifetime_sec,omitempty" minimum:"0"`
}

// A Principal is a certificate under which a person's key signs delegations.
type Principal struct {
	Serial   string    `json:"serial"`
	Person   string    `json:"person"`
	UID      string    `json:"uid" doc:"realm:identifier:hash of the key"`
	HeldHere bool      `json:"held_here,omitempty" doc:"the key is in the keyring and signs under standing approvals"`
	Grants   []string  `json:"grants"`
	NotAfter time.Time `json:"not_after"`
	PEM      string    `json:"certificate"`
}

// A NewAgent registers an agent.
type NewAgent struct {
	Name  string `json:"name" maxLength:"64"`
	Owner string `json:"owner,omitempty" maxLength:"64" doc:"the person who answers for it; default: the caller"`
}

// An Agent is a piece of software that acts for its owner.
type Agent struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Owner      string    `json:"owner"`
	Delegation string    `json:"delegation,omitempty"`
	KeyHash    string    `json:"key_hash,omitempty"`
	Stopped    bool      `json:"stopped,omitempty" doc:"it, its delegation or its person was stopped: it gets no certificate"`
	CreatedAt  time.Time `json:"created_at"`
	EnrolledAt time.Time `json:"enrolled_at,omitzero"`
}

// A NewDelegation is what a person approves once.
type NewDelegation struct {
	Principal      string    `json:"principal,omitempty" maxLength:"64" doc:"the person who delegates; default: the caller"`
	Name           string    `json:"name" maxLength:"128"`
	Capabilities   []string  `json:"capabilities" minItems:"1" maxItems:"256"`
	Constraints    []string  `json:"constraints,omitempty" maxItems:"32"`
	Representative bool      `json:"representative,omitempty"`
	Standing       bool      `json:"standing,omitempty" doc:"a key held here signs for each renewal; otherwise only the person's own key does"`
	Until          time.Time `json:"until"`
	LifetimeSec    int       `json:"lifetime_sec" minimum:"1" maximum:"86400" doc:"longest validity of each certificate"`
	MaxAgents      int       `json:"max_agents,omitempty" minimum:"0" doc:"counted at enrolment; default 1"`
}

// A Delegation is approved terms; they never change.
type Delegation struct {
	ID string `json:"id"`
	NewDelegation
	Hash      string    `json:"hash" doc:"SHA-256 of the approved terms"`
	Stopped   bool      `json:"stopped,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// An InvitationRequest asks for a one-time enrolment token.
type InvitationRequest struct {
	Delegation string `json:"delegation" maxLength:"64"`
}

// An Invitation is a one-time enrolment token; the secret is shown once.
type Invitation struct {
	ID     string    `json:"id"`
	Secret string    `json:"secret"`
	Until  time.Time `json:"until"`
}

// An Enrolment binds an agent's key to the agent that the secret was made for.
type Enrolment struct {
	Secret  string `json:"secret" maxLength:"128"`
	Request string `json:"csr" maxLength:"32768" doc:"PKCS#10 certificate request in PEM, signed by the agent's key"`
}

// An Enrolled is the answer to an enrolment: the agent, and under a standing delegation its first certificate.
type Enrolled struct {
	Agent       Agent   `json:"agent"`
	Certificate *Issued `json:"issued,omitempty"`
}

// An AgentIssueRequest hands in a delegation authorization that the person signed.
type AgentIssueRequest struct {
	Request  string `json:"csr" maxLength:"32768" doc:"PKCS#10 certificate request in PEM, signed by the agent's key"`
	Identity []byte `json:"identity,omitempty" maxLength:"24576" doc:"agent identity extension value (DER); absent where the request carries it as an extension"`
}

// An AgentRenewRequest asks for the next certificate under a standing delegation.
type AgentRenewRequest struct {
	Agent   string `json:"agent,omitempty" maxLength:"64" doc:"needed where the agent's certificate has expired"`
	Request string `json:"csr,omitempty" maxLength:"32768" doc:"PKCS#10 certificate request in PEM; absent for the TLS client key"`
}
