package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"chancery/agentcert"
	"chancery/capability"
	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

// Terms are what a person approves once. Their canonical JSON is hashed, and the hash stands in every delegation
// authorization that is signed under them by a key held here.
type Terms struct {
	Principal      string    `json:"principal"` // person
	Name           string    `json:"name"`
	Capabilities   []string  `json:"capabilities"` // text form of package capability
	Constraints    []string  `json:"constraints,omitempty"`
	Representative bool      `json:"representative,omitempty"`
	Standing       bool      `json:"standing"` // a key held here may sign; otherwise only the person's own key
	Until          time.Time `json:"until"`
	LifetimeSec    int       `json:"lifetime_sec"` // longest validity of each certificate
	MaxAgents      int       `json:"max_agents"`   // counted at enrolment
}

// A Delegation is approved terms. They never change; a person who wants others stops it and approves new ones.
type Delegation struct {
	ID string
	Terms
	Hash        string // SHA-256 of the canonical terms, in hexadecimal
	Proof       string // what proved the person: kind of caller and credential
	CreatedAt   time.Time
	Granted     capability.Set // Capabilities, parsed
	Constrained capability.Set // Constraints, parsed
}

const (
	delegationMax   = 366 * 24 * time.Hour
	maxAgentsMax    = 1_000_000
	capabilitiesMax = 256 // agent identity extension
	constraintsMax  = 32
	termsBytesMax   = 10 << 10 // capabilities and constraints; a certificate has room for an identity of 12 KB
)

// Delegate records what a person approved, durable on return. The caller is the person, or manages delegations for
// everybody. Capabilities have to lie within the grants of the person's certificate. Under standing terms a key for
// the person is made in the keyring and certified, unless there is one.
func (r *Registry) Delegate(ctx context.Context, terms Terms) (Delegation, error) {
	if err := mayActFor(ctx, terms.Principal, who.DelegationManage, who.DelegationOwn); err != nil {
		return Delegation{}, err
	}
	if _, err := r.people.Person(ctx, terms.Principal); err != nil {
		return Delegation{}, err
	}
	terms.Until = terms.Until.UTC().Truncate(time.Second)
	d := Delegation{ID: id.New(id.Delegation, r.now()), Terms: terms, Proof: proof(who.From(ctx))}
	if err := d.understand(); err != nil {
		return Delegation{}, err
	}
	if err := r.judge(ctx, d); err != nil {
		return Delegation{}, err
	}
	if terms.Standing {
		if err := r.holdKey(ctx, d); err != nil {
			return Delegation{}, err
		}
	}
	err := r.db.Write(ctx, func(tx *store.Tx) error {
		d.CreatedAt = fromMillis(tx.Now())
		if _, err := tx.Exec("INSERT INTO delegation ("+delegationColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			d.ID, d.Principal, d.Name, d.canonical(), d.Hash, d.Proof, d.Until.UnixMilli(), tx.Now()); err != nil {
			return err
		}
		return record(ctx, tx, "delegation", d.ID, "delegation.approve")
	})
	return d, err
}

func proof(c who.Caller) string { return fmt.Sprintf("%s %s", c.Kind, c.Credential) }

func (t Terms) canonical() []byte {
	out, _ := json.Marshal(t) // strings, numbers and a time: cannot fail
	return out
}

// understand checks the terms' own bounds and parses what is checked against for each certificate.
func (d *Delegation) understand() error {
	if err := checkLabel("delegation", d.Name, delegationNameMax); err != nil {
		return err
	}
	if len(d.Capabilities) == 0 || len(d.Capabilities) > capabilitiesMax || len(d.Constraints) > constraintsMax {
		return invalidTerms("a delegation has 1 to %d capabilities and at most %d constraints", capabilitiesMax, constraintsMax)
	}
	size := 0
	for _, text := range slices.Concat(d.Capabilities, d.Constraints) {
		size += len(text) + 10 // and what DER puts around it
	}
	if size > termsBytesMax {
		return invalidTerms("capabilities and constraints take %d bytes in each certificate, and there is room for %d", size, termsBytesMax)
	}
	if d.LifetimeSec < 1 || d.LifetimeSec > 86400 {
		return invalidTerms("each certificate lives 1 to 86400 seconds, not %d", d.LifetimeSec)
	}
	if d.MaxAgents < 1 || d.MaxAgents > maxAgentsMax {
		return invalidTerms("a delegation is for 1 to %d agents, not %d", maxAgentsMax, d.MaxAgents)
	}
	var err error
	if d.Granted, err = parseSet(d.Capabilities, capability.Capability.Validate); err != nil {
		return err
	}
	if d.Constrained, err = parseSet(d.Constraints, capability.Capability.ValidateConstraint); err != nil {
		return err
	}
	sum := sha256.Sum256(d.canonical())
	d.Hash = hex.EncodeToString(sum[:])
	return nil
}

func invalidTerms(format string, args ...any) error {
	return fault.New(fault.Invalid, "terms_invalid", format, args...)
}

func parseSet(texts []string, validate func(capability.Capability) error) (capability.Set, error) {
	var set capability.Set
	for _, text := range texts {
		c, err := capability.Parse(text)
		if err == nil {
			err = validate(c)
		}
		if err != nil {
			return nil, invalidTerms("%.100q: %s", text, plain(err))
		}
		set = append(set, c)
	}
	return set, nil
}

// judge checks terms against the clock and against what the person may hand on.
func (r *Registry) judge(ctx context.Context, d Delegation) error {
	if now := r.now(); !d.Until.After(now) || d.Until.After(now.Add(delegationMax)) {
		return invalidTerms("a delegation ends in the future and within a year, not at %s", d.Until.Format(time.RFC3339))
	}
	own, err := r.ownPrincipal(ctx, d.Principal)
	if err != nil {
		return err
	}
	return withinGrants(own, d.Representative, d.Granted, d.MaxAgents)
}

// ownPrincipal gives the youngest live certificate of a key that the person holds; its grants are what the person
// may hand on.
func (r *Registry) ownPrincipal(ctx context.Context, person string) (*Principal, error) {
	all, _, err := r.certified.Get(ctx, person)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if _, revoked := r.authority.Revoked("crt:" + p.Serial); p.HeldAs == "" && !revoked && r.now().Before(p.NotAfter) {
			return p, nil
		}
	}
	return nil, fault.New(fault.Denied, "principal_required", "%s has no valid principal certificate, so there is nothing to hand on", person).
		WithHint("`chancery user certify` issues one with grants")
}

// plain gives what a capability's refusal says, without its code.
func plain(err error) string {
	var refusal *capability.Refusal
	if errors.As(err, &refusal) {
		return refusal.Text
	}
	return err.Error()
}

func withinGrants(p *Principal, representative bool, wanted capability.Set, agents int) error {
	if err := capability.Set(p.Grants.Grants).Covers(wanted); err != nil {
		return fault.New(fault.Denied, "capability_beyond_grant", "the person may not hand this on: %s", plain(err))
	}
	policy := p.Grants.Policy
	if representative && (policy == nil || policy.AllowedMode != agentcert.Representative) {
		return fault.New(fault.Denied, "representative_denied", "the person's certificate allows no agent in representative mode")
	}
	if policy != nil && agents > policy.MaxAgents {
		return fault.New(fault.Denied, "max_agents_exceeded", "the person's certificate allows %d agents, and %d are asked for", policy.MaxAgents, agents)
	}
	return nil
}

const delegationColumns = "id, principal, name, terms, terms_hash, proof, until, created_at"

func (r *Registry) loadDelegation(ctx context.Context, id string) (d Delegation, found bool, err error) {
	err = r.db.Read(ctx, func(tx *store.Tx) error {
		d, found, err = readDelegation(tx, id)
		return err
	})
	return d, found, err
}

func readDelegation(tx *store.Tx, id string) (d Delegation, found bool, err error) {
	err = tx.Each("SELECT "+delegationColumns+" FROM delegation WHERE id = ?", []any{id}, func(row store.Row) error {
		found = true
		d, err = scanDelegation(row.Scan)
		return err
	})
	return d, found, err
}

func scanDelegation(scan func(...any) error) (Delegation, error) {
	var d Delegation
	var principal, name string
	var terms []byte
	var until, created int64
	if err := scan(&d.ID, &principal, &name, &terms, &d.Hash, &d.Proof, &until, &created); err != nil {
		return d, err
	}
	return d, d.decode(terms, created)
}

func (d *Delegation) decode(terms []byte, created int64) error {
	stored := d.Hash
	if err := json.Unmarshal(terms, &d.Terms); err != nil {
		return fmt.Errorf("delegation %s: %w", d.ID, err)
	}
	d.CreatedAt = fromMillis(created)
	if err := d.understand(); err != nil {
		return fmt.Errorf("delegation %s: %w", d.ID, err)
	}
	if d.Hash != stored {
		return fmt.Errorf("delegation %s: its terms are not those that were approved", d.ID)
	}
	return nil
}

// Delegation gives one delegation to its principal or to whoever may read agents.
func (r *Registry) Delegation(ctx context.Context, id string) (Delegation, error) {
	d, found, err := r.delegations.Get(ctx, id)
	if err != nil {
		return Delegation{}, err
	}
	if !found || mayActFor(ctx, d.Principal, who.AgentRead, who.DelegationOwn) != nil {
		return Delegation{}, fault.New(fault.NotFound, "delegation_unknown", "there is no delegation %.40q that you may see", id).
			WithHint("name it by its identifier; `chancery delegation list` shows them")
	}
	return d, nil
}
