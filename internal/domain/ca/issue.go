package ca

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"strings"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/key"
	"chancery/internal/base/name"
	"chancery/internal/core/store"
)

// An Order asks for an ordinary certificate.
type Order struct {
	Authority string
	Profile   string
	CSR       []byte // PKCS #10 in DER; its signature proves possession of the key
	// SPKI stands in for CSR where the caller has seen the key proved otherwise, as in the TLS handshake.
	SPKI       []byte
	Subject    *Subject         // nil: as the CSR asks
	Names      []name.Name      // nil: as the CSR asks
	Lifetime   time.Duration    // zero: the profile's default; more than its maximum is cut
	NotAfter   time.Time        // a further bound; zero: none
	Owner      string           // whom the certificate belongs to and falls with: a person, a service account; may be empty
	Extensions []pkix.Extension // those that the profile lets orders bring
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
		{Name: "profile", Kind: store.Text}, {Name: "owner", Kind: store.Text}, {Name: "names", Kind: store.Text},
		{Name: "not_before", Kind: store.Int}, {Name: "not_after", Kind: store.Int}, {Name: "der", Kind: store.Bytes},
	},
	Keys:  [][]string{{"serial"}},
	Guard: store.Guard{Table: "revocation", Column: "target", Of: []string{"authority", "owner"}},
}

// Issue signs and stores an ordinary certificate. It is durable on return.
//
// Faults: those of ReadRequest; NotFound authority_unknown, profile_unknown; Denied profile_unfit, name_not_permitted,
// authority_revoked, owner_revoked, extension_not_permitted; Invalid key_refused, name_kind_refused, names_too_few,
// names_too_many, common_name_missing, common_name_unproved, subject_invalid; Unavailable authority_offline; those of
// the store. Issue is safe for concurrent use and holds no lock while signing.
func (h *Hierarchy) Issue(ctx context.Context, o Order) (Issued, error) {
	a, t, err := h.template(ctx, o.Authority, o.Profile)
	if err != nil {
		return Issued{}, err
	}
	if t.profile.Authority || t.profile.forAgents() {
		return Issued{}, fault.New(fault.Denied, "profile_unfit", "profile %s is not for ordinary certificates", o.Profile)
	}
	request, err := o.request(&t.profile)
	if err != nil {
		return Issued{}, err
	}
	now := h.now()
	c, err := t.content(request, o.Extensions)
	if err != nil {
		return Issued{}, err
	}
	c.serial = h.serials.Next(now)
	c.notBefore, c.notAfter = t.profile.period(now, o.Lifetime)
	c.end(o.NotAfter)
	return h.append(ctx, a, t, c, o.Owner, request.Names)
}

// append signs a content and stores the certificate.
func (h *Hierarchy) append(ctx context.Context, a *authority, t *template, c *content, owner string, names []name.Name) (Issued, error) {
	if err := h.alive(ctx, append([]string{owner}, a.above...)); err != nil {
		return Issued{}, err
	}
	c.end(t.issuer.notAfter())
	if err := c.checkPeriod(); err != nil {
		return Issued{}, err
	}
	der, err := t.issue(c)
	if err != nil {
		return Issued{}, err
	}
	r := newRow(c, der, a.target, t.profile.Name, owner, names)
	got, err := h.db.Append(ctx, hotCertificate, r.values())
	switch {
	case err != nil:
		return Issued{}, fmt.Errorf("storing the certificate: %w", err)
	case got.Outcome == store.Refused:
		return Issued{}, errRevoked(got.Because)
	case got.Outcome == store.Exists:
		return Issued{}, fmt.Errorf("serial %s was given twice", c.serial)
	}
	return Issued{Serial: c.serial, DER: der, NotBefore: c.notBefore, NotAfter: c.notAfter}, nil
}

// end keeps a certificate from lasting longer than a limit; zero is none.
func (c *content) end(limit time.Time) {
	if limit = limit.UTC().Truncate(time.Second); !limit.IsZero() && limit.Before(c.notAfter) {
		c.notAfter = limit
	}
}

func (c *content) checkPeriod() error {
	if c.notAfter.Before(c.notBefore) {
		return fault.New(fault.Denied, "nothing_left", "what the certificate stands on has ended: the authority, the principal's certificate or the delegation")
	}
	return nil
}

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
func (o *Order) request(p *Profile) (Request, error) {
	var r Request
	var err error
	if len(o.CSR) > 0 {
		r, err = ReadRequest(o.CSR)
	} else {
		r, err = bareRequest(o.SPKI)
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
	return r, p.fits(&r)
}

func bareRequest(spki []byte) (Request, error) {
	public, err := key.ParsePublic(spki)
	if err != nil {
		return Request{}, err
	}
	kind, err := key.KindOf(public)
	return Request{SPKI: spki, Kind: kind}, err
}

// fits refuses a request that the profile does not take.
func (p *Profile) fits(r *Request) error {
	if err := p.keyRefused(r.Kind); err != nil {
		return err
	}
	if len(r.Names) < p.NamesMin {
		return fault.New(fault.Invalid, "names_too_few", "profile %s needs at least %d names of the kinds %v", p.Name, p.NamesMin, p.NameKinds)
	}
	if len(r.Names) > p.NamesMax {
		return fault.New(fault.Invalid, "names_too_many", "profile %s takes at most %d names", p.Name, p.NamesMax)
	}
	for _, n := range r.Names {
		if !p.allowsName(n.Kind) {
			return fault.New(fault.Invalid, "name_kind_refused", "profile %s does not take %s names, such as %s", p.Name, n.Kind, n.Text)
		}
	}
	return p.commonNameFits(r)
}

func (p *Profile) commonNameFits(r *Request) error {
	cn := r.Subject.CommonName
	switch {
	case p.CommonName == CommonNameRequired && cn == "":
		return fault.New(fault.Invalid, "common_name_missing", "profile %s needs a common name in the subject", p.Name)
	case p.CommonName == CommonNameIsName && cn != "" && !slices.ContainsFunc(r.Names, func(n name.Name) bool { return strings.EqualFold(n.Text, cn) }):
		return fault.New(fault.Invalid, "common_name_unproved", "the common name %.64q is none of the names that the certificate is for", cn).
			WithHint("leave the common name out, or add it to the names")
	}
	return r.Subject.check()
}

// content turns a request into what varies in its certificate, and holds names and extensions to what is permitted.
func (t *template) content(r Request, extensions []pkix.Extension) (*content, error) {
	for _, n := range r.Names {
		if err := t.names.check(n); err != nil {
			return nil, err
		}
		if err := t.above.check(n); err != nil {
			return nil, err
		}
	}
	for i, e := range extensions {
		same := func(other pkix.Extension) bool { return other.Id.Equal(e.Id) }
		if !slices.Contains(t.profile.Extensions, e.Id.String()) || slices.ContainsFunc(extensions[:i], same) || len(e.Value) > extensionMax {
			return nil, fault.New(fault.Denied, "extension_not_permitted", "profile %s does not let an order bring the extension %s once more or at this size", t.profile.Name, e.Id)
		}
	}
	subject, err := r.Subject.encode()
	if err != nil {
		return nil, fmt.Errorf("encode subject: %w", err)
	}
	names, err := encodeNames(r.Names)
	return &content{subject: subject, spki: r.SPKI, names: names, extensions: extensions}, err
}

// extensionMax bounds an extension that an order brings; a certificate beyond 16 KB fits few handshakes.
const extensionMax = 12 << 10

// A row is an ordinary certificate as it is stored.
type row struct {
	serial              id.Serial
	keyHash             [32]byte
	authority           string // as a revocation target
	profile             string
	owner               string // as a revocation target, or empty
	names               string // kind:text, separated by spaces
	notBefore, notAfter time.Time
	der                 []byte
}

func newRow(c *content, der []byte, authority, profile, owner string, names []name.Name) row {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = n.String()
	}
	return row{
		serial: c.serial, keyHash: key.Hash(c.spki), authority: authority, profile: profile, owner: owner,
		names: strings.Join(texts, " "), notBefore: c.notBefore, notAfter: c.notAfter, der: der,
	}
}

// values gives the row in the column order of hotCertificate.
func (r *row) values() []any {
	return []any{
		[]byte(r.serial), r.keyHash[:], r.authority, r.profile, r.owner, r.names,
		r.notBefore.UnixMilli(), r.notAfter.UnixMilli(), r.der,
	}
}

// insert stores a certificate that is made in the same transaction as something else.
func (r *row) insert(tx *store.Tx) error {
	_, err := tx.Exec("INSERT INTO certificate (serial, key_hash, authority, profile, owner, names, not_before, not_after, der) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		r.values()...)
	return err
}
