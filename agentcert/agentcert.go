// Package agentcert is the agent certificate: who the agent is, which person answers for it, what exactly that person
// allowed, and that person's signature over it.
//
// An agent certificate is an X.509 certificate of the agent's key with one more extension, AIC. Inside it stands the
// delegation authorization (DA), signed by the person's key over the agent's name, key, capabilities and lifetime. The
// person's own certificate carries a PrincipalAuthorization: what that person may delegate at all. A service that holds
// both certificates and the root decides offline (Verifier, Middleware).
//
// Encode enforces nothing, Parse is strict about form, Validate holds the limits, and a Verifier trusts only what
// passed all three. Signatures of version 1 do not name the agent's key; they can be read and never pass. The package
// knows no server and no store; the standard library, x/crypto/cryptobyte and capability are all that it needs.
package agentcert

import (
	"encoding/asn1"
	"time"

	"crypto"
	"crypto/x509"

	"chancery/capability"
)

// Object identifiers of the format.
var (
	OIDExtension              = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 66257, 1, 1}    // AIC, in agent certificates
	OIDPrincipalAuthorization = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 66257, 1, 2}    // in principals' certificates
	OIDDepthControl           = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 66257, 1, 1, 4} // inside an AIC
	OIDMarketAccess           = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 66257, 3, 1}    // inside an AIC

	// OIDStandingApproval is the certificate policy that marks a principal's certificate whose key is held by a server
	// and signs under a standing approval. Its arc keeps to 31 bits because common readers refuse longer ones.
	OIDStandingApproval = asn1.ObjectIdentifier{2, 25, 1823641957}
)

// ReasonStandingApproval is the reason code of an authorization that a server signed under a standing approval; the
// reason's description is then the SHA-256 of the approval in lower-case hex.
const ReasonStandingApproval = "STANDING_APPROVAL"

// A Mode says how an agent's rights follow its principal's.
type Mode int

// The delegation modes.
const (
	Authorized     Mode = 0 // the rights were fixed when the certificate was issued
	Representative Mode = 1 // the rights shrink with the principal's own at every use
)

// String gives the mode in a lower-case word.
func (m Mode) String() string {
	switch m {
	case Authorized:
		return "authorized"
	case Representative:
		return "representative"
	}
	return "unknown"
}

// An AIC is the value of the agent certificate's extension. Byte slices of a parsed AIC share memory with the DER that
// it was parsed from; treat both as read-only.
type AIC struct {
	Version       int    // of the authorization's signature; 2 binds the agent's key
	AgentID       string // the agent's name, 1 to 256 octets
	Principal     PrincipalUID
	Capabilities  []capability.Capability // what the agent may do, 1 to 256
	Mode          Mode
	Constraints   []capability.Capability // under which conditions, at most 32; all must hold
	Authorization DelegationAuthorization
	Extensions    []Extension // at most 32
}

// A PrincipalUID names the person who answers for an agent, and the key that signs for that person.
type PrincipalUID struct {
	Version       int         // 1
	Realm         string      // such as the organisation's domain, 1 to 128 octets
	Identifier    string      // the person within the realm, 1 to 256 octets
	KeyHash       []byte      // digest of the DER SubjectPublicKeyInfo of the principal's certificate
	HashAlgorithm crypto.Hash // of KeyHash; 0 if it is not written, which means SHA-256
}

// A DelegationAuthorization is a principal's signed word that an agent may act. SignedBytes gives what is signed.
type DelegationAuthorization struct {
	Reason    Reason
	Lifetime  time.Duration // longest lifetime of a certificate made from it, whole seconds up to a day
	Timestamp time.Time     // when it was signed, whole seconds
	Nonce     []byte        // 32 random octets, used once
	Algorithm x509.SignatureAlgorithm
	Signature []byte
}

// A Reason says why a principal authorized an agent.
type Reason struct {
	Code        string // 1 to 64 octets
	Description string // 1 to 512 octets
}

// An Extension is a field of later versions inside an AIC or a PrincipalAuthorization.
type Extension struct {
	ID       asn1.ObjectIdentifier
	Critical bool
	Value    []byte
}

// A PrincipalAuthorization says what a person may delegate. It stands in that person's certificate.
type PrincipalAuthorization struct {
	Version     int                     // 1
	Grants      []capability.Capability // at most 256
	Constraints []capability.Capability // at most 32; they bind every agent of the person
	Policy      *DelegationPolicy       // nil means the defaults: one agent, authorized mode
	Extensions  []Extension             // at most 32
}

// A DelegationPolicy limits how a person may delegate.
type DelegationPolicy struct {
	Version         int  // 1
	MaxAgents       int  // how many agents the person may have; kept by the authority at enrolment
	AllowedMode     Mode // Representative allows both modes
	MaxSessionHours int  // longest session of an agent; 0 means no limit
}
