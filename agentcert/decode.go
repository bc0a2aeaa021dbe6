package agentcert

import (
	"crypto"
	"crypto/x509"
	"time"

	"golang.org/x/crypto/cryptobyte"
	der "golang.org/x/crypto/cryptobyte/asn1"

	"chancery/capability"
)

const (
	maxAIC = 16 << 10 // the largest agent certificate that the format allows
	maxPA  = 128 << 10
)

// ParseAIC reads the extension's value. It accepts minimal DER of exactly the format, with DEFAULT values written or
// left out, and knows only the algorithms of the format. It does not hold the limits: see Validate. The result shares
// memory with input. The error is a *Refusal.
func ParseAIC(input []byte) (*AIC, error) {
	var failure *Refusal
	outer := newDecoder("aic", input, maxAIC, &failure)
	d := outer.sequence("the outer sequence")
	a := &AIC{
		Version:       d.intOr(1, "version"),
		AgentID:       d.text("agentId"),
		Principal:     d.principal(),
		Capabilities:  d.capabilities("capabilities"),
		Mode:          Mode(d.intOr(0, "delegationMode")),
		Constraints:   d.constraints(),
		Authorization: d.authorization(),
		Extensions:    d.extensions(1),
	}
	d.end("the last field")
	outer.end("the end")
	if failure != nil {
		return nil, failure
	}
	return a, nil
}

// ParsePrincipalAuthorization reads the extension's value as strictly as ParseAIC does. The result shares memory with
// input. The error is a *Refusal.
func ParsePrincipalAuthorization(input []byte) (*PrincipalAuthorization, error) {
	var failure *Refusal
	outer := newDecoder("pa", input, maxPA, &failure)
	d := outer.sequence("the outer sequence")
	p := &PrincipalAuthorization{
		Version:     d.intOr(1, "version"),
		Grants:      d.capabilities("grants"),
		Constraints: d.constraints(),
		Policy:      d.policy(),
		Extensions:  d.extensions(2),
	}
	d.end("the last field")
	outer.end("the end")
	if failure != nil {
		return nil, failure
	}
	return p, nil
}

func (d *decoder) policy() *DelegationPolicy {
	outer, found := d.explicit(1, "delegationPolicy")
	if !found {
		return nil
	}
	in := outer.sequence("delegationPolicy")
	p := &DelegationPolicy{
		Version:     in.intOr(1, "delegationPolicy.version"),
		MaxAgents:   in.intOr(1, "delegationPolicy.maxAgents"),
		AllowedMode: Mode(in.intOr(0, "delegationPolicy.allowedMode")),
	}
	if hours, found := in.explicit(0, "delegationPolicy.maxSessionHours"); found {
		p.MaxSessionHours = hours.int("delegationPolicy.maxSessionHours")
		hours.end("delegationPolicy.maxSessionHours")
	}
	in.end("delegationPolicy")
	outer.end("delegationPolicy")
	return p
}

func (d *decoder) principal() (p PrincipalUID) {
	in := d.sequence("principalUid")
	p.Version = in.intOr(1, "principalUid.version")
	p.Realm = in.text("principalUid.realm")
	p.Identifier = in.text("principalUid.identifier")
	p.KeyHash = in.octets("principalUid.keyHash")
	if outer, found := in.explicit(0, "principalUid.hashAlgo"); found {
		p.HashAlgorithm = outer.hashAlgorithm()
	}
	in.end("principalUid")
	return p
}

func (d *decoder) hashAlgorithm() crypto.Hash {
	identifier := d.sequence("principalUid.hashAlgo")
	hash := hashOf(identifier.rest)
	if hash == 0 {
		d.fail("principalUid.hashAlgo, which is no algorithm of the format")
	}
	d.end("principalUid.hashAlgo")
	return hash
}

func (d *decoder) capabilities(field string) []capability.Capability {
	in := d.sequence(field)
	list := make([]capability.Capability, 0, in.count())
	for !in.rest.Empty() {
		list = append(list, in.capability(field))
	}
	return list
}

func (d *decoder) capability(field string) (c capability.Capability) {
	in := d.sequence(field)
	c.Scheme = in.text(field)
	c.ID = in.text(field)
	if parameters, found := in.explicit(0, field); found {
		c.Parameters = parameters.octets(field)
		parameters.end(field)
	}
	in.end(field)
	return c
}

// constraints refuses an empty list that is written: no encoder writes it, and the signed bytes would not have it.
func (d *decoder) constraints() []capability.Capability {
	outer, found := d.explicit(0, "authorizationConstraints")
	if !found {
		return nil
	}
	list := outer.capabilities("authorizationConstraints")
	outer.end("authorizationConstraints")
	if len(list) == 0 {
		d.fail("authorizationConstraints")
	}
	return list
}

func (d *decoder) authorization() (a DelegationAuthorization) {
	in := d.sequence("delegationAuthorization")
	reason := in.sequence("reason")
	a.Reason.Code = reason.text("reason.reasonCode")
	a.Reason.Description = reason.text("reason.description")
	reason.end("reason")
	a.Lifetime = time.Duration(in.int("requestedLifetime")) * time.Second
	a.Timestamp = in.time("timestamp")
	a.Nonce = in.octets("nonce")
	a.Algorithm = in.signatureAlgorithm()
	a.Signature = in.octets("signatureValue")
	in.end("delegationAuthorization")
	return a
}

func (d *decoder) signatureAlgorithm() x509.SignatureAlgorithm {
	var element cryptobyte.String
	if !d.rest.ReadASN1Element(&element, der.SEQUENCE) {
		d.fail("signatureAlgorithm")
		return x509.UnknownSignatureAlgorithm
	}
	algorithm := signatureAlgorithmOf(element)
	if algorithm == x509.UnknownSignatureAlgorithm {
		d.fail("signatureAlgorithm, which is no algorithm of the format")
	}
	return algorithm
}

func (d *decoder) extensions(number uint8) []Extension {
	outer, found := d.explicit(number, "extensions")
	if !found {
		return nil
	}
	in := outer.sequence("extensions")
	outer.end("extensions")
	if in.rest.Empty() {
		d.fail("extensions")
	}
	list := make([]Extension, 0, in.count())
	for !in.rest.Empty() {
		list = append(list, in.extension())
	}
	return list
}

func (d *decoder) extension() (x Extension) {
	in := d.sequence("extensions")
	x.ID = in.oid("extensions.extnID")
	x.Critical = in.boolOr(false, "extensions.critical")
	x.Value = in.octets("extensions.extnValue")
	in.end("extensions")
	return x
}
