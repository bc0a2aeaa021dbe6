package agentcert

import (
	"crypto"
	"time"

	"chancery/capability"
)

// Encode gives the DER of the extension's value. It writes fields with their DEFAULT values too, as all encoders of the
// format do, and enforces no limit; only what has no encoding is an error.
func (a *AIC) Encode() ([]byte, error) {
	e := &encoder{out: make([]byte, 0, 512)}
	e.nest(tagSequence, func() {
		e.int(int64(a.Version))
		e.text(a.AgentID)
		e.principal(&a.Principal)
		e.capabilities(a.Capabilities)
		e.int(int64(a.Mode))
		e.constraints(a.Constraints)
		e.authorization(&a.Authorization)
		e.extensions(tagContext+1, a.Extensions)
	})
	return e.out, e.err
}

// Encode gives the DER of the extension's value. Like AIC.Encode it enforces no limit.
func (p *PrincipalAuthorization) Encode() ([]byte, error) {
	e := &encoder{out: make([]byte, 0, 256)}
	e.nest(tagSequence, func() {
		e.int(int64(p.Version))
		e.capabilities(p.Grants)
		e.constraints(p.Constraints)
		if p.Policy != nil {
			e.nest(tagContext+1, func() { e.policy(p.Policy) })
		}
		e.extensions(tagContext+2, p.Extensions)
	})
	return e.out, e.err
}

func (e *encoder) policy(p *DelegationPolicy) {
	e.nest(tagSequence, func() {
		e.int(int64(p.Version))
		e.int(int64(p.MaxAgents))
		e.int(int64(p.AllowedMode))
		if p.MaxSessionHours != 0 {
			e.nest(tagContext, func() { e.int(int64(p.MaxSessionHours)) })
		}
	})
}

func (e *encoder) principal(p *PrincipalUID) {
	e.nest(tagSequence, func() {
		e.int(int64(p.Version))
		e.text(p.Realm)
		e.text(p.Identifier)
		e.bytes(tagOctets, p.KeyHash)
		if p.HashAlgorithm != 0 {
			e.hashAlgorithm(p.HashAlgorithm)
		}
	})
}

func (e *encoder) hashAlgorithm(hash crypto.Hash) {
	identifier, ok := hashIdentifier(hash)
	if !ok {
		e.fail(invalid("aic", "%s is no hash algorithm of the format", hash))
		return
	}
	e.nest(tagContext, func() { primitive(e, tagSequence, identifier) })
}

func (e *encoder) capabilities(list []capability.Capability) {
	e.nest(tagSequence, func() {
		for i := range list {
			e.capability(&list[i])
		}
	})
}

func (e *encoder) capability(c *capability.Capability) {
	e.nest(tagSequence, func() {
		e.text(c.Scheme)
		e.text(c.ID)
		if c.Parameters != nil {
			e.nest(tagContext, func() { e.bytes(tagOctets, c.Parameters) })
		}
	})
}

// constraints leaves the field out if the list is empty.
func (e *encoder) constraints(list []capability.Capability) {
	if len(list) > 0 {
		e.nest(tagContext, func() { e.capabilities(list) })
	}
}

func (e *encoder) reason(r *Reason) {
	e.nest(tagSequence, func() {
		e.text(r.Code)
		e.text(r.Description)
	})
}

func (e *encoder) authorization(d *DelegationAuthorization) {
	algorithm, ok := signatureIdentifier(d.Algorithm)
	if !ok {
		e.fail(invalid("aic", "%s is no signature algorithm of the format", d.Algorithm))
	}
	e.nest(tagSequence, func() {
		e.reason(&d.Reason)
		e.int(int64(d.Lifetime / time.Second))
		e.time(d.Timestamp)
		e.bytes(tagOctets, d.Nonce)
		e.out = append(e.out, algorithm...)
		e.bytes(tagOctets, d.Signature)
	})
}

func (e *encoder) extensions(tag byte, list []Extension) {
	if len(list) == 0 {
		return
	}
	e.nest(tag, func() {
		e.nest(tagSequence, func() {
			for i := range list {
				e.extension(&list[i])
			}
		})
	})
}

func (e *encoder) extension(x *Extension) {
	e.nest(tagSequence, func() {
		e.oid(x.ID)
		e.bool(x.Critical)
		e.bytes(tagOctets, x.Value)
	})
}
