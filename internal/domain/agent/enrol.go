package agent

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

// secretPrefix lets people and secret scanners recognise an enrolment token.
const secretPrefix = "che_"

// Create registers an agent for owner, durable on return. Names are unique per owner: Exists, code agent_exists.
func (r *Registry) Create(ctx context.Context, owner, name string) (Agent, error) {
	if err := mayActFor(ctx, owner, who.AgentManage, who.AgentOwn); err != nil {
		return Agent{}, err
	}
	if err := checkLabel("agent", name, agentNameMax); err != nil {
		return Agent{}, err
	}
	if _, err := r.people.Person(ctx, owner); err != nil {
		return Agent{}, err
	}
	a := Agent{ID: id.New(id.Agent, r.now()), Name: name, Owner: owner}
	err := r.db.Write(ctx, func(tx *store.Tx) error {
		a.CreatedAt = fromMillis(tx.Now())
		fresh, err := tx.InsertNew("INSERT INTO agent ("+agentColumns+") VALUES (?, ?, ?, '', '', NULL, ?, 0)", a.ID, a.Name, a.Owner, tx.Now())
		if err != nil {
			return err
		}
		if !fresh {
			return fault.New(fault.Exists, "agent_exists", "%s has an agent named %q already", owner, name)
		}
		return record(ctx, tx, "agent", a.ID, "agent.create")
	})
	return a, err
}

// record writes what was done into the change feed and the audit, in the transaction that did it.
func record(ctx context.Context, tx *store.Tx, topic, key, action string) error {
	if err := tx.Publish(store.Change{Topic: topic, Key: key}); err != nil {
		return err
	}
	return tx.Audit(store.Line{Actor: who.From(ctx).Actor(), Action: action, Target: key})
}

// An agent's name is its certificates' common name (RFC 5280 appendix A.1, ub-common-name).
const (
	agentNameMax      = 64 // characters
	delegationNameMax = 128
)

// checkLabel bounds names that people give: printable characters without surrounding space.
func checkLabel(what, s string, most int) error {
	if s == "" || utf8.RuneCountInString(s) > most || strings.TrimSpace(s) != s || strings.ContainsFunc(s, func(c rune) bool { return unicode.IsControl(c) || c == utf8.RuneError }) {
		return fault.New(fault.Invalid, "name_invalid", "the name of the %s has to have 1 to %d printable characters and no space around them", what, most)
	}
	return nil
}

// An Invitation is a one-time enrolment token. Secret is shown once and is not stored.
type Invitation struct {
	ID, Secret string
	Until      time.Time
}

// Invite makes a one-time token with which the agent's key is bound to the agent under a delegation. It is durable on
// return. The owner of the agent has to be the principal of the delegation. Seeing both is not enough: the caller acts
// for the owner.
func (r *Registry) Invite(ctx context.Context, agentID, delegationID string) (Invitation, error) {
	a, err := r.Agent(ctx, agentID)
	if err != nil {
		return Invitation{}, err
	}
	if err := mayActFor(ctx, a.Owner, who.AgentManage, who.AgentOwn); err != nil {
		return Invitation{}, err
	}
	d, err := r.Delegation(ctx, delegationID)
	if err != nil {
		return Invitation{}, err
	}
	if err := r.standing(a, d); err != nil {
		return Invitation{}, err
	}
	var random [32]byte
	rand.Read(random[:])
	inv := Invitation{ID: id.New(id.Enrolment, r.now()), Secret: secretPrefix + base64.RawURLEncoding.EncodeToString(random[:]), Until: r.now().Add(r.conf.Invitation)}
	err = r.db.Write(ctx, func(tx *store.Tx) error {
		if _, err := tx.Exec("INSERT INTO enrolment (hash, id, agent, delegation, until, used_by) VALUES (?, ?, ?, ?, ?, '')",
			hashSecret(inv.Secret), inv.ID, a.ID, d.ID, inv.Until.UnixMilli()); err != nil {
			return err
		}
		return record(ctx, tx, "enrolment", inv.ID, "agent.invite")
	})
	return inv, err
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// standing refuses an agent and a delegation that do not go together, or that something above has ended.
func (r *Registry) standing(a Agent, d Delegation) error {
	if a.Owner != d.Principal {
		return fault.New(fault.Denied, "delegation_foreign", "delegation %s was given by somebody who does not answer for agent %s", d.ID, a.ID)
	}
	if target, revoked := r.authority.Revoked(a.Owner, a.ID, d.ID); revoked {
		return fault.New(fault.Denied, "agent_stopped", "%s was stopped, and nothing below it gets a certificate any more", target)
	}
	if !r.now().Before(d.Until) {
		return fault.New(fault.Denied, "delegation_ended", "delegation %s ended at %s", d.ID, d.Until.Format(time.RFC3339)).
			WithHint("the person has to approve a new one")
	}
	return nil
}

// Enrol binds the key of a certificate request to the agent that the secret was made for, durable on return. The
// request proves possession of the key. The same secret and key again change nothing; the secret with another key is
// refused.
func (r *Registry) Enrol(ctx context.Context, secret string, request []byte) (Agent, error) {
	csr, err := readRequest(request)
	if err != nil {
		return Agent{}, err
	}
	var a Agent
	err = r.db.Write(ctx, func(tx *store.Tx) error {
		a, err = r.enrol(ctx, tx, secret, csr)
		return err
	})
	return a, err
}

func (r *Registry) enrol(ctx context.Context, tx *store.Tx, secret string, csr request) (Agent, error) {
	var agentID, delegationID, usedBy string
	var until int64
	hash := hashSecret(secret)
	found, err := tx.One([]any{&agentID, &delegationID, &until, &usedBy}, "SELECT agent, delegation, until, used_by FROM enrolment WHERE hash = ?", hash)
	if err != nil {
		return Agent{}, err
	}
	again := usedBy == csr.keyHash
	if !found || (usedBy != "" && !again) || (tx.Now() >= until && !again) {
		return Agent{}, fault.New(fault.Denied, "enrolment_refused", "this enrolment token does not exist, has ended, or was used by another key").
			WithHint("ask the person who answers for the agent for a new one")
	}
	a, _, err := readAgent(tx, "id = ?", agentID)
	if err != nil || again {
		return a, err
	}
	d, _, err := readDelegation(tx, delegationID)
	if err != nil {
		return Agent{}, err
	}
	if err := r.standing(a, d); err != nil {
		return Agent{}, err
	}
	if err := join(tx, d, a); err != nil {
		return Agent{}, err
	}
	a.Delegation, a.KeyHash, a.SPKI, a.EnrolledAt = d.ID, csr.keyHash, csr.spki, fromMillis(tx.Now())
	if _, err := tx.Exec("UPDATE agent SET delegation = ?, key_hash = ?, spki = ?, enrolled_at = ? WHERE id = ?", d.ID, a.KeyHash, a.SPKI, tx.Now(), a.ID); err != nil {
		return Agent{}, err
	}
	if _, err := tx.Exec("UPDATE enrolment SET used_by = ? WHERE hash = ?", csr.keyHash, hash); err != nil {
		return Agent{}, err
	}
	return a, record(ctx, tx, "agent", a.ID, "agent.enrol")
}

// join counts the agent under the delegation. The transaction is serializable, so two cannot take the last place.
func join(tx *store.Tx, d Delegation, a Agent) error {
	var agents int
	if _, err := tx.One([]any{&agents}, "SELECT COUNT(*) FROM agent_delegation WHERE delegation = ? AND agent <> ?", d.ID, a.ID); err != nil {
		return err
	}
	if agents >= d.MaxAgents {
		return fault.New(fault.Denied, "max_agents_exceeded", "delegation %s allows %d agents, and so many are enrolled", d.ID, d.MaxAgents)
	}
	_, err := tx.InsertNew("INSERT INTO agent_delegation (delegation, agent, since) VALUES (?, ?, ?)", d.ID, a.ID, tx.Now())
	return err
}

// keepEnded is how long enrolment tokens are kept after their end, so that a repeated enrolment still gets its answer.
const keepEnded = 7 * 24 * time.Hour

// Retire removes enrolment tokens that ended a week ago, in bounded steps, each with an audit line.
func (r *Registry) Retire(ctx context.Context) error {
	_, err := r.db.Expire(ctx, "enrolment", "hash", "until", r.now().Add(-keepEnded).UnixMilli(), "ended a week ago")
	return err
}
