package agentcert

import (
	"crypto"
	"time"
	"unicode/utf8"

	"chancery/capability"
)

// Limits of the format.
const (
	MaxLifetime     = 24 * time.Hour // of one agent certificate
	NonceSize       = 32             // octets
	maxAgentID      = 256
	maxRealm        = 128
	maxIdentifier   = 256
	maxCapabilities = 256
	maxConstraints  = 32
	maxExtensions   = 32
	maxReasonCode   = 64
	maxDescription  = 512
)

// Validate holds the limits of the format: lengths, counts, ranges, capabilities and constraints that mean something,
// no critical extension that is not known. It does not check the signature. The error is a *Refusal.
func (a *AIC) Validate() error {
	switch {
	case a.Version != 1 && a.Version != 2:
		return invalid("aic", "version %d is not known", a.Version)
	case !sized(a.AgentID, maxAgentID):
		return invalid("aic", "the agent's name must have 1 to %d octets", maxAgentID)
	case len(a.Capabilities) == 0 || len(a.Capabilities) > maxCapabilities:
		return invalid("aic", "%d capabilities stand in the certificate; 1 to %d are allowed", len(a.Capabilities), maxCapabilities)
	case a.Mode != Authorized && a.Mode != Representative:
		return invalid("aic", "the delegation mode %d is not known", a.Mode)
	}
	if err := a.Principal.validate(); err != nil {
		return err
	}
	if err := validateCapabilities("aic", a.Capabilities, a.Constraints); err != nil {
		return err
	}
	if err := a.Authorization.validate(); err != nil {
		return err
	}
	return validateExtensions("aic", a.Extensions)
}

// Validate holds the limits of the format as AIC.Validate does. The error is a *Refusal.
func (p *PrincipalAuthorization) Validate() error {
	if p.Version != 1 {
		return invalid("pa", "version %d is not known", p.Version)
	}
	if len(p.Grants) > maxCapabilities {
		return invalid("pa", "%d grants stand in the certificate; at most %d are allowed", len(p.Grants), maxCapabilities)
	}
	if err := validateCapabilities("pa", p.Grants, p.Constraints); err != nil {
		return err
	}
	if err := p.Policy.validate(); err != nil {
		return err
	}
	return validateExtensions("pa", p.Extensions)
}

func (p *DelegationPolicy) validate() error {
	const year = 366 * 24
	switch {
	case p == nil:
		return nil
	case p.Version != 1:
		return invalid("pa", "version %d of the delegation policy is not known", p.Version)
	case p.MaxAgents < 0:
		return invalid("pa", "the number of agents is negative")
	case p.AllowedMode != Authorized && p.AllowedMode != Representative:
		return invalid("pa", "the delegation mode %d is not known", p.AllowedMode)
	case p.MaxSessionHours < 0 || p.MaxSessionHours > year:
		return invalid("pa", "a session of %d hours is beyond a year", p.MaxSessionHours)
	}
	return nil
}

func (p *PrincipalUID) validate() error {
	hash := p.HashAlgorithm
	if hash == 0 {
		hash = crypto.SHA256
	}
	_, known := hashIdentifier(hash)
	switch {
	case p.Version != 1:
		return invalid("principal", "version %d of a principal is not known", p.Version)
	case !sized(p.Realm, maxRealm):
		return invalid("principal", "the realm must have 1 to %d octets", maxRealm)
	case !sized(p.Identifier, maxIdentifier):
		return invalid("principal", "the identifier must have 1 to %d octets", maxIdentifier)
	case !known || len(p.KeyHash) != hash.Size():
		return invalid("principal", "the key hash has %d octets, which does not fit its algorithm", len(p.KeyHash))
	}
	return nil
}

func (d *DelegationAuthorization) validate() error {
	switch {
	case !sized(d.Reason.Code, maxReasonCode):
		return invalid("aic", "the reason's code must have 1 to %d octets", maxReasonCode)
	case !sized(d.Reason.Description, maxDescription):
		return invalid("aic", "the reason's description must have 1 to %d octets", maxDescription)
	case d.Lifetime < time.Second || d.Lifetime > MaxLifetime || d.Lifetime%time.Second != 0:
		return invalid("aic", "the requested lifetime %s is not between a second and a day", d.Lifetime)
	case d.Timestamp.IsZero() || d.Timestamp.Nanosecond() != 0:
		return invalid("aic", "the authorization's time is missing or not in whole seconds")
	case len(d.Nonce) != NonceSize:
		return invalid("aic", "the nonce has %d octets instead of %d", len(d.Nonce), NonceSize)
	case len(d.Signature) == 0:
		return invalid("aic", "the authorization is not signed")
	}
	return nil
}

func validateCapabilities(what string, capabilities, constraints []capability.Capability) error {
	if len(constraints) > maxConstraints {
		return invalid(what, "%d constraints stand in the certificate; at most %d are allowed", len(constraints), maxConstraints)
	}
	for _, c := range capabilities {
		if err := c.Validate(); err != nil {
			return invalid(what, "a capability is not valid").because(err)
		}
	}
	for _, c := range constraints {
		if err := c.ValidateConstraint(); err != nil {
			return invalid(what, "a constraint is not valid").because(err)
		}
	}
	return nil
}

// validateExtensions refuses a critical extension that is not known. The known ones need no action here: agents never
// delegate on, so the depth is always zero; a principal's authorization counts only in the principal's certificate.
func validateExtensions(what string, list []Extension) error {
	if len(list) > maxExtensions {
		return invalid(what, "%d extensions stand in the certificate; at most %d are allowed", len(list), maxExtensions)
	}
	for _, x := range list {
		known := x.ID.Equal(OIDPrincipalAuthorization) || x.ID.Equal(OIDDepthControl) || x.ID.Equal(OIDMarketAccess)
		if x.Critical && !known {
			return refuse(StepExtension, what+"_extension_unknown", "the extension %s is critical and not known", x.ID)
		}
	}
	return nil
}

func sized(s string, most int) bool { return s != "" && len(s) <= most && utf8.ValidString(s) }
