package agent

import (
	"cmp"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"time"

	"chancery/agentcert"
	"chancery/capability"
	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

// A Principal is a person's key with the certificate that says so and what the person may hand on.
type Principal struct {
	Serial, Person string
	HeldAs         string // the name of the key in the keyring; empty for a key that the person holds
	KeyHash        [32]byte
	Key            crypto.PublicKey
	NotAfter       time.Time
	Certificate    []byte // DER
	UID            agentcert.PrincipalUID
	Grants         agentcert.PrincipalAuthorization
}

// PrincipalTerms say what a person may hand on to agents.
type PrincipalTerms struct {
	Person         string // identifier
	Grants         capability.Set
	Constraints    capability.Set
	Representative bool // agents may be given the person's current grants instead of a frozen list
	MaxAgents      int
	Validity       time.Duration
}

const (
	principalValidityMax = 2 * 365 * 24 * time.Hour
	principalValidity    = 365 * 24 * time.Hour
)

// Certify issues a principal certificate for the key of a certificate request, durable on return. What a person may
// hand on is an administrator's to say: it needs AgentManage.
func (r *Registry) Certify(ctx context.Context, terms PrincipalTerms, csr []byte) (Certificate, error) {
	if err := mayActFor(ctx, terms.Person, who.AgentManage, who.AgentManage); err != nil {
		return Certificate{}, err
	}
	req, err := readRequest(csr)
	if err != nil {
		return Certificate{}, err
	}
	return r.certify(ctx, terms, req.spki, "")
}

func (r *Registry) certify(ctx context.Context, terms PrincipalTerms, spki []byte, heldAs string) (Certificate, error) {
	name, err := r.people.Person(ctx, terms.Person)
	if err != nil {
		return Certificate{}, err
	}
	authorization, err := terms.encode()
	if err != nil {
		return Certificate{}, err
	}
	validity := cmp.Or(terms.Validity, principalValidity)
	if validity < time.Minute || validity > principalValidityMax {
		return Certificate{}, fault.New(fault.Invalid, "validity_refused", "a principal certificate is valid for a minute to %v", principalValidityMax)
	}
	c, err := r.authority.CertifyPrincipal(ctx, PrincipalOrder{
		Person: terms.Person, Name: name, SPKI: spki, Authorization: authorization, Standing: heldAs != "", NotAfter: r.now().Add(validity),
	})
	if err != nil {
		return Certificate{}, err
	}
	hash := key.Hash(spki)
	return c, r.db.Write(ctx, func(tx *store.Tx) error {
		keyHash := hex.EncodeToString(hash[:])
		if _, err := tx.InsertNew("INSERT INTO principal (serial, person, key_hash, held_as, not_after, certificate) VALUES (?, ?, ?, ?, ?, ?)",
			c.Serial, terms.Person, keyHash, heldAs, c.NotAfter.UnixMilli(), c.DER); err != nil {
			return err
		}
		if err := tx.Publish(store.Change{Topic: "principal", Key: terms.Person}); err != nil {
			return err
		}
		return record(ctx, tx, "principal", keyHash, "principal.certify")
	})
}

func (t PrincipalTerms) encode() ([]byte, error) {
	mode := agentcert.Authorized
	if t.Representative {
		mode = agentcert.Representative
	}
	pa := agentcert.PrincipalAuthorization{
		Version: 1, Grants: t.Grants, Constraints: t.Constraints,
		Policy: &agentcert.DelegationPolicy{Version: 1, MaxAgents: cmp.Or(t.MaxAgents, 1), AllowedMode: mode},
	}
	if err := pa.Validate(); err != nil {
		return nil, fault.New(fault.Invalid, "grants_invalid", "these grants cannot stand in a certificate: %v", err)
	}
	der, err := pa.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode principal authorization: %w", err)
	}
	return der, nil
}

// loadPrincipal gives the youngest certificate of a key: serials begin with the time.
func (r *Registry) loadPrincipal(ctx context.Context, keyHash string) (*Principal, bool, error) {
	var p Principal
	var found bool
	err := r.db.Read(ctx, func(tx *store.Tx) (err error) {
		found, err = tx.One([]any{&p.Serial, &p.Person, &p.HeldAs, &p.Certificate},
			"SELECT serial, person, held_as, certificate FROM principal WHERE key_hash = ? ORDER BY serial DESC LIMIT 1", keyHash)
		return err
	})
	if err != nil || !found {
		return nil, false, err
	}
	if err := r.understand(&p); err != nil {
		return nil, false, fmt.Errorf("principal certificate %s: %w", p.Serial, err)
	}
	return &p, true, nil
}

// understand parses once what every issuance under this principal needs.
func (r *Registry) understand(p *Principal) error {
	cert, err := x509.ParseCertificate(p.Certificate)
	if err != nil {
		return err
	}
	grants, err := agentcert.AuthorizationFromCertificate(cert)
	if err != nil {
		return err
	}
	p.KeyHash, p.Key, p.NotAfter, p.Grants = key.Hash(cert.RawSubjectPublicKeyInfo), cert.PublicKey, cert.NotAfter, *grants
	p.UID = agentcert.PrincipalUID{Version: 1, Realm: r.conf.Realm, Identifier: cert.Subject.CommonName, KeyHash: p.KeyHash[:]}
	return nil
}

// principal gives a live principal by the hash of its key.
func (r *Registry) principal(ctx context.Context, keyHash string) (*Principal, error) {
	p, found, err := r.principals.Get(ctx, keyHash)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.New(fault.Denied, "principal_unknown", "no person has a certificate here for the key that signed the delegation authorization").
			WithHint("`chancery user certify` issues one")
	}
	if !r.now().Before(p.NotAfter) {
		return nil, fault.New(fault.Denied, "principal_expired", "the principal certificate %s expired at %s", p.Serial, p.NotAfter.Format(time.RFC3339))
	}
	return p, nil
}

// unrevoked refuses a principal whose certificate is revoked.
func (r *Registry) unrevoked(p *Principal) error {
	if _, revoked := r.authority.Revoked("crt:" + p.Serial); revoked {
		return fault.New(fault.Denied, "principal_revoked", "the principal certificate %s is revoked", p.Serial)
	}
	return nil
}

// Principals lists a person's certificates, the youngest first.
func (r *Registry) Principals(ctx context.Context, person string) ([]*Principal, error) {
	if err := mayActFor(ctx, person, who.AgentRead, who.AgentOwn); err != nil {
		return nil, err
	}
	all, _, err := r.certified.Get(ctx, person)
	return all, err
}

// loadCertified gives all principal certificates of a person, the youngest first.
func (r *Registry) loadCertified(ctx context.Context, person string) (all []*Principal, found bool, err error) {
	err = r.db.Read(ctx, func(tx *store.Tx) error {
		all = nil
		return tx.Each("SELECT serial, person, held_as, certificate FROM principal WHERE person = ? ORDER BY serial DESC LIMIT 1000", []any{person}, func(row store.Row) error {
			p := &Principal{}
			if err := row.Scan(&p.Serial, &p.Person, &p.HeldAs, &p.Certificate); err != nil {
				return err
			}
			all = append(all, p)
			return r.understand(p)
		})
	})
	return all, len(all) > 0, err
}
