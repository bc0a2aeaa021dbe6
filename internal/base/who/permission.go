package who

import "slices"

// A Permission is the right to do one kind of thing, written `area:verb`. Every route names the one that it needs.
type Permission string

// The permissions. Public is held by everybody; a route has to name it to be open.
const (
	Public            Permission = "public"
	CertificateIssue  Permission = "certificate:issue"
	CertificateRead   Permission = "certificate:read"
	CertificateRevoke Permission = "certificate:revoke"
	CertificateRenew  Permission = "certificate:renew" // by the key that the certificate certifies
	AgentManage       Permission = "agent:manage"      // anybody's agents, and what people may hand on
	AgentRead         Permission = "agent:read"        // anybody's agents and delegations
	AgentStop         Permission = "agent:stop"        // end anybody's agents and delegations
	AgentOwn          Permission = "agent:own"         // agents that the caller answers for
	AgentIssue        Permission = "agent:issue"       // hand in signed delegation authorizations, for any person
	AgentSelf         Permission = "agent:self"        // an agent about itself
	DelegationManage  Permission = "delegation:manage" // approve in anybody's name
	DelegationOwn     Permission = "delegation:own"    // the caller's own delegations
	AuthorityManage   Permission = "authority:manage"
	AuthorityRead     Permission = "authority:read"
	ProfileManage     Permission = "profile:manage"
	AccountManage     Permission = "account:manage"
	AccountRead       Permission = "account:read"
	TokenManage       Permission = "token:manage" // anybody's tokens
	TokenOwn          Permission = "token:own"    // the caller's own tokens
	AuditRead         Permission = "audit:read"
	BackupWrite       Permission = "backup:write"
	ConfigRead        Permission = "config:read"
	HealthRead        Permission = "health:read" // details of health; liveness itself is public
)

// Permissions lists all permissions but Public, in a fixed order.
func Permissions() []Permission {
	return []Permission{
		CertificateIssue, CertificateRead, CertificateRevoke, CertificateRenew, AgentManage, AgentRead, AgentStop, AgentOwn,
		AgentIssue, AgentSelf, DelegationManage, DelegationOwn, AuthorityManage, AuthorityRead, ProfileManage, AccountManage,
		AccountRead, TokenManage, TokenOwn, AuditRead, BackupWrite, ConfigRead, HealthRead,
	}
}

// A Set is a set of permissions. Sets are immutable once shared.
type Set []Permission

// Has reports whether p is in the set.
func (s Set) Has(p Permission) bool { return slices.Contains(s, p) }

// And gives the permissions that stand in both sets. It can only narrow.
func (s Set) And(other Set) Set {
	both := Set{}
	for _, p := range s {
		if other.Has(p) {
			both = append(both, p)
		}
	}
	return both
}
