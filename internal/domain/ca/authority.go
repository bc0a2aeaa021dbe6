package ca

import (
	"context"
	"fmt"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/core/keyring"
	"chancery/internal/core/store"
	"chancery/internal/domain/ca/pkix"
)

// An Authority is what anybody may know of one.
type Authority struct {
	Name                string
	Parent              string // the authority that certified it; empty for a root
	Key                 string // its key in the keyring, from where it can be exported
	Certificate         []byte // DER
	Chain               [][]byte
	NotBefore, NotAfter time.Time
	Created             time.Time
	Online              bool // its key is here
}

// An authority is an Authority at work. It is immutable but for the templates' self-checks.
type authority struct {
	Authority
	target    string   // as revocations and guards name it
	above     []string // its own target and those of the authorities above
	issuer    *pkix.Issuer
	templates map[string]*pkix.Template // by profile
}

func authorityTarget(name string) string { return "aut:" + name }

// A Spec says which authority to create.
type Spec struct {
	Name     string   // 1 to 32 of a-z, 0-9 and hyphen
	Parent   string   // the authority that certifies it; empty for a root
	Subject  Subject  // the common name is needed
	Kind     key.Kind // empty: P-384 for a root, P-256 for others
	Profile  string   // empty: root or issuing
	Lifetime time.Duration
}

func (s Spec) withDefaults() Spec {
	kind, profile := key.P256, "issuing"
	if s.Parent == "" {
		kind, profile = key.P384, "root"
	}
	if s.Kind == "" {
		s.Kind = kind
	}
	if s.Profile == "" {
		s.Profile = profile
	}
	return s
}

// Create makes an authority with a new key: a root that signs itself, or one that its parent certifies. Key, authority
// and certificate are durable on return, with an audit line in the name of the context's caller.
//
// Faults: Invalid authority_name_invalid and those of an order; Exists authority_exists; NotFound authority_unknown,
// profile_unknown; Denied profile_unfit; Unavailable authority_offline.
func (h *Hierarchy) Create(ctx context.Context, s Spec) (Authority, error) {
	s = s.withDefaults()
	if !pkix.IsLabel(s.Name) {
		return Authority{}, fault.New(fault.Invalid, "authority_name_invalid", "%.40q cannot name an authority", s.Name).
			WithHint("use 1 to 32 of a-z, 0-9 and hyphen")
	}
	fresh, err := keyring.Prepare(s.Kind)
	if err != nil {
		return Authority{}, err
	}
	made, err := h.certify(ctx, s, fresh)
	if err != nil {
		return Authority{}, err
	}
	err = h.db.Write(ctx, func(tx *store.Tx) error {
		row := Authority{Name: s.Name, Parent: s.Parent, Key: keyPrefix + s.Name, Certificate: made.der}
		if err := insertAuthority(tx, row); err != nil {
			return err
		}
		if err := h.keys.Keep(tx, row.Key, fresh); err != nil {
			return err
		}
		return made.insert(tx)
	})
	if err != nil {
		return Authority{}, fmt.Errorf("creating authority %s: %w", s.Name, err)
	}
	return h.Authority(ctx, s.Name)
}

func insertAuthority(tx *store.Tx, a Authority) error {
	created, err := tx.InsertNew("INSERT INTO authority (name, parent, signing_key, created_at, der) VALUES (?, ?, ?, ?, ?)",
		a.Name, a.Parent, a.Key, tx.Now(), a.Certificate)
	if err != nil {
		return err
	}
	if !created {
		return fault.New(fault.Exists, "authority_exists", "there is an authority named %s already", a.Name)
	}
	if err := tx.Audit(line(tx, "authority.create", authorityTarget(a.Name), "")); err != nil {
		return err
	}
	return tx.Publish(store.Change{Topic: topicAuthority, Key: a.Name})
}

// line is an audit line in the name of the caller.
func line(tx *store.Tx, action, target, detail string) store.Line {
	return store.Line{Actor: who.From(tx.Context()).Actor(), Action: action, Target: target, Detail: detail}
}

// certify signs the certificate of a new authority with the parent's key, or of a root with its own.
func (h *Hierarchy) certify(ctx context.Context, s Spec, fresh keyring.Fresh) (row, error) {
	spki, err := key.SPKI(fresh.Public())
	if err != nil {
		return row{}, err
	}
	signedBy, t, err := h.authorityTemplate(ctx, s, fresh)
	if err != nil {
		return row{}, err
	}
	c, err := t.Content(Request{SPKI: spki, Kind: s.Kind, Subject: s.Subject}, nil)
	if err != nil {
		return row{}, err
	}
	now := h.now()
	c.Serial = h.serials.Next(now)
	if err := t.Date(c, now, s.Lifetime); err != nil {
		return row{}, err
	}
	der, err := t.Issue(c)
	if err != nil {
		return row{}, err
	}
	r := newRow(c, authorityTarget(signedBy), s.Profile, authorityTarget(s.Name), nil)
	r.der = der
	return r, nil
}

// authorityTemplate gives what a new authority's certificate is made from, and who signs it.
func (h *Hierarchy) authorityTemplate(ctx context.Context, s Spec, fresh keyring.Fresh) (signedBy string, t *pkix.Template, err error) {
	snapshot, err := h.snapshot(ctx)
	if err != nil {
		return "", nil, err
	}
	p, ok := snapshot.profiles[s.Profile]
	switch {
	case !ok:
		return "", nil, fault.New(fault.NotFound, "profile_unknown", "there is no profile named %.40q", s.Profile)
	case !p.Authority:
		return "", nil, fault.New(fault.Denied, "profile_unfit", "profile %s does not certify authorities", p.Name)
	case s.Parent == "":
		self, err := pkix.NewIssuer(s.Subject, fresh.Public(), fresh.Signer())
		if err != nil {
			return "", nil, err
		}
		t, err = pkix.NewTemplate(self, pkix.Links{}, p)
		return s.Name, t, err
	}
	parent, t, err := h.template(ctx, s.Parent, s.Profile)
	if err != nil {
		return "", nil, err
	}
	return s.Parent, t, h.alive(ctx, parent.above)
}

// Detach takes an authority's key away for good, after signing a revocation list that stands until the given time: an
// offline root. Export the key from the keyring before. What the authority signed
// stays valid, it signs nothing more, and its questions are answered from that list alone.
//
// Faults: NotFound authority_unknown; Unavailable authority_offline; Denied authority_not_root.
func (h *Hierarchy) Detach(ctx context.Context, name string, until time.Time) error {
	a, err := h.authority(ctx, name)
	if err != nil {
		return err
	}
	if a.Parent != "" {
		return fault.New(fault.Denied, "authority_not_root", "%s is no root: it signs every day, and its key has to be here", name)
	}
	if _, err := h.sign(ctx, a, h.lists.of(name), until); err != nil {
		return fmt.Errorf("signing the list that %s leaves behind: %w", name, err)
	}
	if err := h.keys.Delete(ctx, a.Key); err != nil {
		return fmt.Errorf("taking the key of %s away: %w", name, err)
	}
	return nil
}
