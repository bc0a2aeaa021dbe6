// Package who names the caller of a request: what kind of party it is, what it may do, and with which authorities.
//
// An edge room establishes the caller once and puts it into the context; domain rooms read it from there. A context
// without a caller holds Nobody, who may do nothing but what is public.
package who

import (
	"context"
	"slices"

	"chancery/internal/base/fault"
)

// A Kind says what kind of party calls.
type Kind uint8

// The kinds of callers.
const (
	Nobody   Kind = iota // not authenticated
	Person               // a person, by token or bound certificate
	Service              // a service account, by token or bound certificate
	Agent                // an agent, by its own certificate
	Operator             // the person at the machine, through the admin socket
	Machine              // the holder of a certificate from here whose key is bound to no account; it may renew that
)

var kindNames = [...]string{"nobody", "person", "service", "agent", "operator", "machine"}

// String gives the kind in lower case.
func (k Kind) String() string { return kindNames[min(int(k), len(kindNames)-1)] }

// A Caller is an authenticated party with the rights that it has right now. It is a value made afresh for each
// request; nothing of it outlives a change of role.
type Caller struct {
	Kind           Kind
	ID             string   // identifier of the person, service account or agent
	Name           string   // for people to read, in the audit
	Permissions    Set      // what the caller may do
	Authorities    []string // authorities that it may use; nil with AllAuthorities means every one
	AllAuthorities bool     // the role is not limited to named authorities
	Credential     string   // identifier of the token, or serial of the certificate, that proved it
	KeyHash        [32]byte // SHA-256 of the SubjectPublicKeyInfo of the TLS client key; zero without one
	Owner          string   // of an agent: the person who answers for it
}

type contextKey struct{}

// With gives a context that carries the caller.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// From gives the context's caller; without one it gives Nobody.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(contextKey{}).(Caller)
	return c
}

// May reports whether the caller holds the permission. Everybody holds Public.
func (c Caller) May(p Permission) bool { return p == Public || c.Permissions.Has(p) }

// Need refuses a caller without the permission: Unauthenticated for Nobody, Denied for all others.
func (c Caller) Need(p Permission) error {
	switch {
	case c.May(p):
		return nil
	case c.Kind == Machine:
		return fault.New(fault.Unauthenticated, "key_unbound", "this needs the permission %s, and the key of the client certificate is bound to no account", p).
			WithHint("an administrator can bind it: `chancery user bind`")
	case c.Kind == Nobody:
		return fault.New(fault.Unauthenticated, "credentials_required", "this needs the permission %s, and no credentials were given", p).
			WithHint("send an API token as `Authorization: Bearer …`, over HTTPS, or use a client certificate on the mTLS listener")
	default:
		return fault.New(fault.Denied, "permission_missing", "%s %s does not hold the permission %s", c.Kind, c.Name, p).
			WithHint("an administrator can give a role that holds it: `chancery user change --role …`")
	}
}

// MayUse reports whether the caller may use the named authority.
func (c Caller) MayUse(authority string) bool {
	return c.AllAuthorities || slices.Contains(c.Authorities, authority)
}

// Actor gives the caller's name in audit lines: its identifier, or its kind where it has none, as for the operator.
func (c Caller) Actor() string {
	if c.ID != "" {
		return c.ID
	}
	return c.Kind.String()
}
