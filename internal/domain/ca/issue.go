package ca

import (
	"context"
	"fmt"
	"strings"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/base/name"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
	"chancery/internal/domain/ca/pkix"
)

// An Order asks for an ordinary certificate.
type Order struct {
	Authority string
	Profile   string
	CSR       []byte // PKCS #10 in DER; its signature proves possession of the key
	// SPKI stands in for CSR where the caller has seen the key proved otherwise, as in the TLS handshake.
	SPKI       []byte
	Subject    *Subject      // nil: as the CSR asks
	Names      []name.Name   // nil: as the CSR asks
	Lifetime   time.Duration // zero: the profile's default; more than its maximum is cut
	NotAfter   time.Time     // a further bound; zero: none
	Owner      string        // whom the certificate belongs to and falls with: a person, a service account; may be empty
	Extensions []Extension   // those that the profile lets orders bring
	Request    string        // idempotency key with its caller, unique among all orders; may be empty
}

// Issued is a certificate that is stored.
type Issued struct {
	Serial              id.Serial
	DER                 []byte
	NotBefore, NotAfter time.Time
	Again               bool // it was issued before, for the same request
}

// hotCertificate describes ordinary certificates to the store: one insert each, refused where the authority or the
// owner is revoked.
var hotCertificate = &store.Hot{
	Table: "certificate",
	Columns: []store.Column{
		{Name: "serial", Kind: store.Bytes}, {Name: "key_hash", Kind: store.Bytes}, {Name: "authority", Kind: store.Text},
		{Name: "profile", Kind: store.Text}, {Name: "owner", Kind: store.Text}, {Name: "request", Kind: store.Text}, {Name: "names", Kind: store.Text},
		{Name: "not_before", Kind: store.Int}, {Name: "not_after", Kind: store.Int}, {Name: "der", Kind: store.Bytes},
	},
	Keys:  [][]string{{"request"}, {"serial"}},
	Guard: store.Guard{Table: "revocation", Column: "target", Of: []string{"authority", "owner"}},
}

// Issue signs and stores an ordinary certificate. It is durable on return. An order with the Request of an earlier one
// and the same key gives the certificate of that one.
//
// Faults: Conflict idempotency_key_reused (for something else); those of ReadRequest and of pkix.Template.Content;
// NotFound authority_unknown, profile_unknown; Denied profile_unfit, permission_missing, nothing_left,
// authority_revoked, principal_revoked; Unavailable authority_offline; those of the store.
// Issue is safe for concurrent use and holds no lock while signing.
func (h *Hierarchy) Issue(ctx context.Context, o Order) (Issued, error) {
	a, t, err := h.template(ctx, o.Authority, o.Profile)
	if err != nil {
		return Issued{}, err
	}
	if err := o.fits(ctx, &t.Profile); err != nil {
		return Issued{}, err
	}
	request, err := o.request()
	if err != nil {
		return Issued{}, err
	}
	if err := h.notAnAgent(request.Names); err != nil {
		return Issued{}, err
	}
	now := h.now()
	c, err := t.Content(request, o.Extensions)
	if err != nil {
		return Issued{}, err
	}
	c.Serial = h.serials.Next(now)
	if err := t.Date(c, now, o.Lifetime, o.NotAfter); err != nil {
		return Issued{}, err
	}
	r := newRow(c, a.target, t.Profile.Name, o.Owner, request.Names)
	r.request = o.Request
	return h.keep(ctx, a, t, c, r)
}

// fits refuses profiles that an ordinary order cannot have. Whoever may issue gets neither an authority nor an agent,
// nor a principal about whom nothing was decided, nor a responder, who could call good what an authority revoked.
func (o *Order) fits(ctx context.Context, p *Profile) error {
	switch {
	case p.Authority || p.ForAgents():
		return fault.New(fault.Denied, "profile_unfit", "profile %s is not for ordinary certificates", p.Name)
	case p.ForPrincipals() && len(o.Extensions) == 0:
		return fault.New(fault.Denied, "profile_unfit", "a certificate of profile %s says what its holder may delegate, and this order does not", p.Name).
			WithHint("`chancery user certify` issues it")
	case p.ForResponders():
		return who.From(ctx).Need(who.AuthorityManage)
	}
	return nil
}

// notAnAgent refuses an ordinary certificate for a name under which agents are known.
func (h *Hierarchy) notAnAgent(names []name.Name) error {
	for _, n := range names {
		if n.Kind == name.URI && h.config.TrustDomain != "" && strings.HasPrefix(strings.ToLower(n.Text), h.spiffe("").Text) {
			return fault.New(fault.Denied, "name_not_permitted", "the name %.80q is an agent's", n.Text)
		}
	}
	return nil
}

// keep signs a content and stores the certificate.
func (h *Hierarchy) keep(ctx context.Context, a *authority, t *pkix.Template, c *pkix.Content, r row) (_ Issued, err error) {
	if err := h.alive(ctx, append([]string{r.owner}, a.above...)); err != nil {
		return Issued{}, err
	}
	if r.der, err = h.signed(t, c); err != nil {
		return Issued{}, err
	}
	got, err := h.db.Append(ctx, hotCertificate, r.values())
	switch {
	case err != nil:
		return Issued{}, fmt.Errorf("storing the certificate: %w", err)
	case got.Outcome == store.Refused:
		return Issued{}, errRevoked(got.Because)
	case got.Outcome == store.Exists:
		return r.stands(got.Stored)
	}
	return Issued{Serial: c.Serial, DER: r.der, NotBefore: c.NotBefore, NotAfter: c.NotAfter}, nil
}

// signed makes the certificate of a content.
func (h *Hierarchy) signed(t *pkix.Template, c *pkix.Content) ([]byte, error) {
	start := time.Now()
	der, err := t.Issue(c)
	h.config.Observe("sign", time.Since(start))
	return der, err
}

// stands answers an order whose request was made before.
func (r *row) stands(stored []any) (Issued, error) {
	column := func(name string) any { return stored[hotCertificate.Index(name)] }
	if request, _ := column("request").(string); request == "" || request != r.request {
		return Issued{}, fmt.Errorf("serial %s was given twice", r.serial)
	}
	if string(column("key_hash").([]byte)) != string(r.keyHash[:]) || column("authority") != r.authority ||
		column("profile") != r.profile || column("owner") != r.owner || column("names") != r.names {
		return Issued{}, errKeyReused
	}
	return Issued{
		Serial: column("serial").([]byte), DER: column("der").([]byte), Again: true,
		NotBefore: milli(column("not_before").(int64)), NotAfter: milli(column("not_after").(int64)),
	}, nil
}

// errKeyReused refuses an idempotency key that stands for something else already.
var errKeyReused = fault.New(fault.Conflict, "idempotency_key_reused", "this idempotency key was used already, for something else").
	WithHint("use a fresh idempotency key for each request")

// errRevoked says which of the things above a certificate is revoked.
func errRevoked(target string) error {
	what, code := "owner", "owner_revoked"
	for prefix, kind := range targetKinds {
		if strings.HasPrefix(target, prefix) {
			what, code = string(kind), strings.ReplaceAll(string(kind), " ", "_")+"_revoked"
		}
	}
	return fault.New(fault.Denied, code, "the %s %s is revoked, and nothing is issued below it", what, target)
}

// request gives what the order asks for: the CSR's word, overridden by the order's.
func (o *Order) request() (Request, error) {
	var r Request
	var err error
	if len(o.CSR) > 0 || len(o.SPKI) == 0 {
		r, err = ReadRequest(o.CSR)
	} else {
		r, err = pkix.BareRequest(o.SPKI)
	}
	if err != nil {
		return r, err
	}
	if o.Subject != nil {
		r.Subject = *o.Subject
	}
	if o.Names != nil {
		r.Names = o.Names
	}
	return r, nil
}

// A row is an ordinary certificate as it is stored.
type row struct {
	serial              id.Serial
	keyHash             [32]byte
	authority           string // as a revocation target
	profile             string
	owner               string // as a revocation target, or empty
	request             string // idempotency key, or empty
	names               string // kind:text, separated by spaces
	notBefore, notAfter time.Time
	der                 []byte
}

func newRow(c *pkix.Content, authority, profile, owner string, names []name.Name) row {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = n.String()
	}
	return row{
		serial: c.Serial, keyHash: key.Hash(c.SPKI), authority: authority, profile: profile, owner: owner,
		names: strings.Join(texts, " "), notBefore: c.NotBefore, notAfter: c.NotAfter,
	}
}

// values gives the row in the column order of hotCertificate.
func (r *row) values() []any {
	return []any{
		[]byte(r.serial), r.keyHash[:], r.authority, r.profile, r.owner, orNull(r.request), r.names,
		r.notBefore.UnixMilli(), r.notAfter.UnixMilli(), r.der,
	}
}

// insert stores a certificate that is made in the same transaction as something else.
func (r *row) insert(tx *store.Tx) error {
	_, err := tx.Exec("INSERT INTO certificate (serial, key_hash, authority, profile, owner, request, names, not_before, not_after, der) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		r.values()...)
	return err
}
