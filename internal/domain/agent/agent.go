// Package agent keeps agents, the people who answer for them, and what those people allowed: standing delegations,
// enrolment, and agent certificates with a fresh signed delegation authorization inside.
//
// A delegation is a standing fact; its proof is fresh. A person approves once (a delegation: what, until when, how long
// each certificate may live, how many agents). For each certificate a delegation authorization is signed, either by the
// person's own key or, under a delegation that says so, by a key that the keyring holds for that person.
//
// Invariants: an agent answers to one owner and works under one delegation at a time; nothing that it gets exceeds the
// delegation, the person's grants, or the validity of the person's certificate; an agent never delegates on. What is
// stopped is a revocation of the authority's, never a column here, so there is one truth about it.
//
// The room does not know how certificates are made or revoked (Authority does), nor who may log in (People does).
package agent

import (
	"cmp"
	"context"
	"crypto"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

// Config holds what an operator decides about agents. The zero value of a field means its default.
type Config struct {
	Realm      string        // the realm of principals, a full DNS name
	Lifetime   time.Duration // longest validity of an agent certificate; default 1h, at most 24h
	Skew       time.Duration // how far a delegation authorization's time may be off; default 30s
	Invitation time.Duration // validity of an enrolment token; default 1h
	Known      int           // how many agents, delegations and principals are remembered; default 65,536 each

	// Observe is told how long the phase "verify" of each issuance took: everything that is checked before an order, the
	// proof of possession and the person's signature included; nil tells nobody. It is quick and safe for concurrent use.
	Observe func(phase string, d time.Duration)
}

func (c Config) withDefaults() Config {
	c.Lifetime = cmp.Or(c.Lifetime, time.Hour)
	c.Skew = cmp.Or(c.Skew, 30*time.Second)
	c.Invitation = cmp.Or(c.Invitation, time.Hour)
	c.Known = cmp.Or(c.Known, 1<<16)
	if c.Observe == nil {
		c.Observe = func(string, time.Duration) {}
	}
	return c
}

// An Authority makes and revokes certificates.
type Authority interface {
	// CertifyPrincipal issues a certificate for a person's key, durable on return.
	CertifyPrincipal(ctx context.Context, o PrincipalOrder) (Certificate, error)
	// CertifyAgent issues an agent certificate, durable on return. The same evidence and key give the stored
	// certificate with Again set; the same evidence with another key is a Conflict, code da_replayed.
	CertifyAgent(ctx context.Context, o Order) (Certificate, error)
	// FindByEvidence gives the certificate that was issued for a delegation authorization.
	FindByEvidence(ctx context.Context, signedAt time.Time, nonce []byte) (c Certificate, keyHash [32]byte, found bool, err error)
	// Revoked gives the first of the targets that is revoked, from memory.
	Revoked(targets ...string) (target string, revoked bool)
	// Revoke writes one revocation, durable and in force here on return.
	Revoke(ctx context.Context, target, reason string) error
}

// People says who may answer for agents.
type People interface {
	// Person gives the login name of an enabled person; Denied or NotFound otherwise. It is asked for each certificate
	// and answers from memory.
	Person(ctx context.Context, id string) (name string, err error)
}

// Keys are keys that the program holds itself, by name.
type Keys interface {
	Signer(ctx context.Context, name string) (crypto.Signer, error)
	// Create makes a key and keeps it, durable on return; an existing one stays.
	Create(ctx context.Context, name string) (crypto.PublicKey, error)
}

// A PrincipalOrder asks for a principal certificate. Proof of possession is the order giver's to check.
type PrincipalOrder struct {
	Person        string // identifier
	Name          string // common name
	SPKI          []byte
	Authorization []byte // PrincipalAuthorization extension value
	Standing      bool   // the key is held here: mark the certificate with agentcert's policy
	NotAfter      time.Time
}

// An Order asks for an agent certificate.
type Order struct {
	Agent, Name     string
	SPKI            []byte
	AIC             []byte // agent identity extension value
	Lifetime        time.Duration
	NotAfterMax     time.Time
	SignedAt        time.Time // of the delegation authorization
	Nonce           []byte
	Delegation      string
	Principal       string // person
	PrincipalSerial string
	PrincipalDER    []byte // certificate of the principal, for the answer
	Request         string // idempotency key, unique per agent
}

// A Certificate is an issued certificate with those that verifiers need beside it, all in DER.
type Certificate struct {
	Serial              string
	DER                 []byte
	Issuer              []byte // the issuing authority's
	Principal           []byte // of an agent certificate: the principal's
	PrincipalIssuer     []byte // of an agent certificate: that of the authority above the principal
	NotBefore, NotAfter time.Time
	Again               bool // it was issued before, for the same evidence and key
}

// A Registry is the room's whole state. It is safe for concurrent use.
type Registry struct {
	db        *store.Store
	authority Authority
	people    People
	keys      Keys
	conf      Config
	now       func() time.Time

	agents      *store.Memo[Agent]
	delegations *store.Memo[Delegation]
	principals  *store.Memo[*Principal]   // by key hash in hexadecimal
	certified   *store.Memo[[]*Principal] // by person, the youngest first
}

// New makes the registry on top of a store.
func New(db *store.Store, authority Authority, people People, keys Keys, conf Config, now func() time.Time) *Registry {
	conf = conf.withDefaults()
	r := &Registry{db: db, authority: authority, people: people, keys: keys, conf: conf, now: now}
	r.agents = store.NewMemo(db, "agent", conf.Known, r.loadAgent)
	r.delegations = store.NewMemo(db, "delegation", conf.Known, r.loadDelegation)
	r.principals = store.NewMemo(db, "principal", conf.Known, r.loadPrincipal)
	r.certified = store.NewMemo(db, "principal", conf.Known, r.loadCertified)
	return r
}

// An Agent is a piece of software that acts for its owner.
type Agent struct {
	ID, Name   string
	Owner      string // person
	Delegation string // the one that it works under; empty until enrolled
	KeyHash    string // of its last certified key, in hexadecimal; empty until enrolled
	SPKI       []byte
	CreatedAt  time.Time
	EnrolledAt time.Time // zero until enrolled
}

const agentColumns = "id, name, owner, delegation, key_hash, spki, created_at, enrolled_at"

func (r *Registry) loadAgent(ctx context.Context, id string) (a Agent, found bool, err error) {
	err = r.db.Read(ctx, func(tx *store.Tx) error {
		a, found, err = readAgent(tx, "id = ?", id)
		return err
	})
	return a, found, err
}

func readAgent(tx *store.Tx, where string, arg any) (a Agent, found bool, err error) {
	err = tx.Each("SELECT "+agentColumns+" FROM agent WHERE "+where, []any{arg}, func(row store.Row) error {
		found = true
		a, err = scanAgent(row.Scan)
		return err
	})
	return a, found, err
}

func scanAgent(scan func(...any) error) (Agent, error) {
	var a Agent
	var created, enrolled int64
	if err := scan(&a.ID, &a.Name, &a.Owner, &a.Delegation, &a.KeyHash, &a.SPKI, &created, &enrolled); err != nil {
		return a, err
	}
	a.CreatedAt, a.EnrolledAt = fromMillis(created), fromMillis(enrolled)
	return a, nil
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Agent gives one agent to its owner or to whoever may read agents. Anybody else gets NotFound, as for one that does
// not exist.
func (r *Registry) Agent(ctx context.Context, id string) (Agent, error) {
	a, found, err := r.agents.Get(ctx, id)
	if err != nil {
		return Agent{}, err
	}
	if !found || mayActFor(ctx, a.Owner, who.AgentRead, who.AgentOwn) != nil {
		return Agent{}, fault.New(fault.NotFound, "agent_unknown", "there is no agent %.40q that you may see", id)
	}
	return a, nil
}

// mayActFor lets through callers that hold all for anybody, or own for themselves. An agent never acts for its owner
// here: it does not delegate on.
func mayActFor(ctx context.Context, person string, all, own who.Permission) error {
	caller := who.From(ctx)
	switch {
	case caller.Kind == who.Agent:
		return fault.New(fault.Denied, "agent_delegation_denied", "agent %s may not manage agents or delegate on", caller.Name)
	case caller.May(all):
		return nil
	case caller.ID == person && caller.Kind == who.Person:
		return caller.Need(own)
	default:
		return caller.Need(all)
	}
}
