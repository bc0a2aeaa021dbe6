package account

import (
	"slices"

	"chancery/internal/base/fault"
	"chancery/internal/base/who"
)

// A Role is a job with the permissions that it needs and no more.
type Role string

// The roles.
const (
	Administrator Role = "administrator" // lets people in and says what they may hand on; can give itself every other role, in the audit's sight
	Operator      Role = "operator"      // runs authorities and profiles
	Issuer        Role = "issuer"        // issues and renews, for machines and as registration desk of agents
	Revoker       Role = "revoker"       // ends certificates, agents and delegations
	Auditor       Role = "auditor"       // reads everything, the audit included, and changes nothing
	Reader        Role = "reader"        // reads certificates and authorities
	Self          Role = "person"        // looks after own agents, delegations and tokens
)

// Roles lists all roles.
func Roles() []Role {
	return []Role{Administrator, Operator, Issuer, Revoker, Auditor, Reader, Self}
}

// Permissions gives what a role may do; of an unknown role, nothing.
func (r Role) Permissions() who.Set {
	switch r {
	case Administrator:
		return who.Set{
			who.AccountManage, who.AccountRead, who.TokenManage, who.TokenOwn, who.AuditRead, who.ConfigRead, who.HealthRead,
			who.AuthorityRead, who.CertificateRead, who.AgentManage, who.AgentRead, who.AgentStop, who.DelegationManage,
		}
	case Operator:
		return who.Set{
			who.AuthorityManage, who.AuthorityRead, who.ProfileManage, who.CertificateRead, who.BackupWrite, who.ConfigRead,
			who.HealthRead, who.TokenOwn,
		}
	case Issuer:
		return who.Set{who.CertificateIssue, who.CertificateRenew, who.CertificateRead, who.AuthorityRead, who.AgentIssue}
	case Revoker:
		return who.Set{who.CertificateRevoke, who.CertificateRead, who.AuthorityRead, who.AgentRead, who.AgentStop}
	case Auditor:
		return who.Set{who.AuditRead, who.AccountRead, who.AuthorityRead, who.CertificateRead, who.AgentRead, who.ConfigRead, who.HealthRead}
	case Reader:
		return who.Set{who.CertificateRead, who.AuthorityRead}
	case Self:
		return who.Set{who.AgentOwn, who.DelegationOwn, who.TokenOwn, who.CertificateRenew, who.AuthorityRead}
	}
	return nil
}

// everywhere reports whether the role is for all authorities, whatever the account names. It widens the account's
// other roles too, so only the role that runs the authorities has it.
func (r Role) everywhere() bool { return r == Operator }

// ParseRole reads a role by name. The fault is Invalid, code role_unknown.
func ParseRole(s string) (Role, error) {
	if r := Role(s); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", fault.New(fault.Invalid, "role_unknown", "%.40q is not a role", s).WithHint("the roles are %v", Roles())
}

// permissionsOf gives the union of roles, in the order of who.Permissions.
func permissionsOf(roles []Role) who.Set {
	var all who.Set
	for _, p := range who.Permissions() {
		if slices.ContainsFunc(roles, func(r Role) bool { return r.Permissions().Has(p) }) {
			all = append(all, p)
		}
	}
	return all
}
