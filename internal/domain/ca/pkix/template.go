package pkix

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/cryptobyte"
	tag "golang.org/x/crypto/cryptobyte/asn1"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/name"
)

// A Template is everything that the certificates of one authority and one profile share, encoded once. Issuing
// patches in the rest and signs: no encoding by reflection, and no second look at what was just signed but for the
// first certificate and for keys outside the process, whose answers are not ours to trust.
type Template struct {
	Issuer  *Issuer
	Profile Profile
	names   constraints // of the profile
	fixed   []byte      // the extensions that never vary
	checked atomic.Bool // a certificate of this template was parsed and verified
}

// Extension is a certificate extension; its value is in DER.
type Extension = pkix.Extension

// Links are the addresses of an authority's documents; an empty one is left out of certificates.
type Links struct{ Certificate, CRL, OCSP string }

// A Content is what varies between the certificates of a template. Names and extensions are in DER.
type Content struct {
	Serial              id.Serial
	NotBefore, NotAfter time.Time // whole seconds, UTC
	Subject             []byte    // Name
	SPKI                []byte    // SubjectPublicKeyInfo
	Names               []byte    // GeneralNames; nil = none
	Extensions          []Extension
}

// emptyName is a Name without attributes; a certificate with it needs a critical subject alternative name.
const emptyName = 2

// NewTemplate encodes what the certificates of a profile share under an issuer, with addresses in them.
func NewTemplate(i *Issuer, l Links, p Profile) (*Template, error) {
	own, err := newConstraints(p.PermittedNames, p.ExcludedNames)
	if err != nil {
		return nil, err
	}
	t := &Template{Issuer: i, Profile: p, names: own}
	var b cryptobyte.Builder
	addAuthorityKeyID(&b, i.keyID)
	addUsages(&b, p)
	if p.Authority {
		addAuthority(&b, p, own)
	}
	addLinks(&b, l)
	t.fixed, err = b.Bytes()
	return t, err
}

func addAuthorityKeyID(b *cryptobyte.Builder, keyID []byte) { // RFC 5280 §4.2.1.1
	addExtension(b, oidAuthorityKeyID, false, sequence(func(b *cryptobyte.Builder) {
		b.AddASN1(tag.Tag(0).ContextSpecific(), octets(keyID))
	}))
}

func addUsages(b *cryptobyte.Builder, p Profile) {
	addExtension(b, oidKeyUsage, true, octets(encodeKeyUsage(p.KeyUsages)))
	if len(p.ExtKeyUsages) > 0 {
		addExtension(b, oidExtKeyUsage, false, sequence(func(b *cryptobyte.Builder) {
			for _, usage := range p.ExtKeyUsages {
				addOID(b, usage)
			}
		}))
	}
	if len(p.Policies) > 0 {
		addExtension(b, oidPolicies, false, sequence(func(b *cryptobyte.Builder) {
			for _, policy := range p.Policies { // PolicyInformation without qualifiers (RFC 5280 §4.2.1.4)
				b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) { addOID(b, policy) })
			}
		}))
	}
	if p.NoCheck {
		addExtension(b, oidNoCheck, false, (*cryptobyte.Builder).AddASN1NULL)
	}
}

// encodeKeyUsage writes KeyUsage as a named bit list without its trailing zero bits (RFC 5280 §4.2.1.3, X.690 §11.2.2).
func encodeKeyUsage(names []string) []byte {
	var usage x509.KeyUsage
	for _, n := range names {
		usage |= keyUsageBits[n]
	}
	var octet byte
	unused := 8
	for bit := range 8 {
		if usage&(1<<bit) != 0 {
			octet |= 0x80 >> bit
			unused = 7 - bit
		}
	}
	return []byte{byte(tag.BIT_STRING), 2, byte(unused), octet}
}

func addAuthority(b *cryptobyte.Builder, p Profile, c constraints) {
	addExtension(b, oidBasicConstraints, true, sequence(func(b *cryptobyte.Builder) {
		b.AddASN1Boolean(true)
		if p.PathLength >= 0 {
			b.AddASN1Int64(int64(p.PathLength))
		}
	}))
	if len(c.permitted)+len(c.excluded) > 0 {
		addExtension(b, oidNameConstraints, true, c.encode)
	}
}

func addLinks(b *cryptobyte.Builder, l Links) {
	uri := func(b *cryptobyte.Builder, text string) {
		b.AddASN1(nameTags[name.URI].ContextSpecific(), octets([]byte(text)))
	}
	access := func(b *cryptobyte.Builder, method asn1.ObjectIdentifier, text string) {
		if text != "" {
			b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(method); uri(b, text) })
		}
	}
	if l.OCSP != "" || l.Certificate != "" { // RFC 5280 §4.2.2.1
		addExtension(b, oidAuthorityInfo, false, sequence(func(b *cryptobyte.Builder) {
			access(b, oidOCSP, l.OCSP)
			access(b, oidCAIssuers, l.Certificate)
		}))
	}
	if l.CRL != "" { // DistributionPoint.distributionPoint.fullName (RFC 5280 §4.2.1.13)
		addExtension(b, oidCRLPoints, false, sequence(sequence(func(b *cryptobyte.Builder) {
			b.AddASN1(explicit(0), func(b *cryptobyte.Builder) {
				b.AddASN1(explicit(0), func(b *cryptobyte.Builder) { uri(b, l.CRL) })
			})
		})))
	}
}

// Issue patches, signs and gives the certificate in DER. The first of a template is parsed and verified.
func (t *Template) Issue(c *Content) ([]byte, error) {
	tbs, err := t.patch(c)
	if err != nil {
		return nil, fmt.Errorf("build certificate: %w", err)
	}
	der, err := t.Issuer.seal(tbs)
	if err != nil {
		return nil, err
	}
	if t.Issuer.outside || !t.checked.Load() {
		if err := t.verify(der); err != nil {
			return nil, fmt.Errorf("check what was signed: %w", err)
		}
		t.checked.Store(true)
	}
	return der, nil
}

// patch writes the TBSCertificate (RFC 5280 §4.1.2) of a content.
func (t *Template) patch(c *Content) ([]byte, error) {
	bits, err := publicKeyBits(c.SPKI)
	if err != nil {
		return nil, err
	}
	size := 256 + len(t.fixed) + len(t.Issuer.subject) + len(c.Subject) + len(c.SPKI) + len(c.Names)
	for _, e := range c.Extensions {
		size += 32 + len(e.Value)
	}
	b := cryptobyte.NewBuilder(make([]byte, 0, size))
	b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddBytes([]byte{0xa0, 3, 2, 1, 2}) // version [0] v3
		addSerial(b, c.Serial)
		b.AddBytes(t.Issuer.algorithm)
		b.AddBytes(t.Issuer.subject)
		b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
			addTime(b, c.NotBefore)
			addTime(b, c.NotAfter)
		})
		b.AddBytes(c.Subject)
		b.AddBytes(c.SPKI)
		b.AddASN1(explicit(3), func(b *cryptobyte.Builder) {
			b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) { t.addExtensions(b, c, keyID(bits)) })
		})
	})
	return b.Bytes()
}

func (t *Template) addExtensions(b *cryptobyte.Builder, c *Content, keyID []byte) {
	b.AddBytes(t.fixed)
	addExtension(b, oidSubjectKeyID, false, func(b *cryptobyte.Builder) { b.AddASN1OctetString(keyID) }) // RFC 5280 §4.2.1.2
	if c.Names != nil {
		addExtension(b, oidSubjectAltName, len(c.Subject) == emptyName, octets(c.Names)) // RFC 5280 §4.2.1.6
	}
	for _, e := range c.Extensions {
		addExtension(b, e.Id, false, octets(e.Value))
	}
}

// verify reads a certificate as a relying party would, and checks its signature.
func (t *Template) verify(der []byte) error {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	parent := t.Issuer.Cert
	if parent == nil { // a root signs itself
		parent = cert
	}
	return cert.CheckSignatureFrom(parent)
}

// Content turns a request into what varies in its certificate, but for serial and validity. It holds key, subject, names
// and extensions to the profile and to the constraints of the authority.
//
// Faults: Invalid key_refused, names_too_few, names_too_many, name_kind_refused, common_name_missing,
// common_name_unproved, subject_invalid, extension_repeated; Denied name_not_permitted, extension_not_permitted; TooLarge
// extension_too_large.
func (t *Template) Content(r Request, extensions []Extension) (*Content, error) {
	if err := t.Profile.fits(&r); err != nil {
		return nil, err
	}
	if err := t.Profile.takes(extensions); err != nil {
		return nil, err
	}
	for _, c := range append(slices.Clone(t.Issuer.bounds), t.names) {
		if err := c.checkAll(r.Names); err != nil {
			return nil, err
		}
	}
	subject, err := r.Subject.encode()
	if err != nil {
		return nil, fmt.Errorf("encode subject: %w", err)
	}
	names, err := encodeNames(r.Names)
	return &Content{Subject: subject, SPKI: r.SPKI, Names: names, Extensions: extensions}, err
}

// Date sets the validity of a content that is issued now: as the profile gives it for a wish, and never past the
// issuer's own end or a further limit (zero: none). The fault is Denied, code nothing_left.
func (t *Template) Date(c *Content, now time.Time, wish time.Duration, limits ...time.Time) error {
	c.NotBefore, c.NotAfter = t.Profile.period(now, wish)
	if t.Issuer.Cert != nil {
		limits = append(limits, t.Issuer.Cert.NotAfter)
	}
	for _, limit := range limits {
		if limit = limit.UTC().Truncate(time.Second); !limit.IsZero() && limit.Before(c.NotAfter) {
			c.NotAfter = limit
		}
	}
	if c.NotAfter.Before(c.NotBefore) {
		return fault.New(fault.Denied, "nothing_left", "what the certificate stands on has ended: the authority, the principal's certificate or the delegation")
	}
	return nil
}
