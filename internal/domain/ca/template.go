package ca

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/cryptobyte"
	tag "golang.org/x/crypto/cryptobyte/asn1"

	"chancery/internal/base/id"
	"chancery/internal/base/name"
)

// A template is everything that the certificates of one authority and one profile share, encoded once. Issuing
// patches in the rest and signs: no encoding by reflection, and no second look at what was just signed but for the
// first certificate and for keys outside the process, whose answers are not ours to trust.
type template struct {
	issuer  *issuer
	profile Profile
	names   constraints // of the profile
	above   constraints // of the authority's certificate
	fixed   []byte      // the extensions that never vary
	checked atomic.Bool // a certificate of this template was parsed and verified
}

// links are the addresses of an authority's documents; an empty one is left out of certificates.
type links struct{ certificate, crl, ocsp string }

// A content is what varies between the certificates of a template. Names and extensions are in DER.
type content struct {
	serial              id.Serial
	notBefore, notAfter time.Time
	subject             []byte // Name
	spki                []byte // SubjectPublicKeyInfo
	names               []byte // GeneralNames; nil = none
	extensions          []pkix.Extension
}

// emptyName is a Name without attributes; a certificate with it needs a critical subject alternative name.
const emptyName = 2

func newTemplate(i *issuer, l links, p Profile) (*template, error) {
	own, err := newConstraints(p.PermittedNames, p.ExcludedNames)
	if err != nil {
		return nil, err
	}
	t := &template{issuer: i, profile: p, names: own}
	if i.cert != nil {
		t.above = constraintsOf(i.cert)
	}
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

func addLinks(b *cryptobyte.Builder, l links) {
	uri := func(b *cryptobyte.Builder, text string) {
		b.AddASN1(nameTags[name.URI].ContextSpecific(), octets([]byte(text)))
	}
	access := func(b *cryptobyte.Builder, method asn1.ObjectIdentifier, text string) {
		if text != "" {
			b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(method); uri(b, text) })
		}
	}
	if l.ocsp != "" || l.certificate != "" { // RFC 5280 §4.2.2.1
		addExtension(b, oidAuthorityInfo, false, sequence(func(b *cryptobyte.Builder) {
			access(b, oidOCSP, l.ocsp)
			access(b, oidCAIssuers, l.certificate)
		}))
	}
	if l.crl != "" { // DistributionPoint.distributionPoint.fullName (RFC 5280 §4.2.1.13)
		addExtension(b, oidCRLPoints, false, sequence(sequence(func(b *cryptobyte.Builder) {
			b.AddASN1(explicit(0), func(b *cryptobyte.Builder) {
				b.AddASN1(explicit(0), func(b *cryptobyte.Builder) { uri(b, l.crl) })
			})
		})))
	}
}

// issue patches, signs and gives the certificate in DER. The first of a template is parsed and verified.
func (t *template) issue(c *content) ([]byte, error) {
	tbs, err := t.patch(c)
	if err != nil {
		return nil, fmt.Errorf("build certificate: %w", err)
	}
	der, err := t.issuer.seal(tbs)
	if err != nil {
		return nil, err
	}
	if t.issuer.outside || !t.checked.Load() {
		if err := t.verify(der); err != nil {
			return nil, fmt.Errorf("check what was signed: %w", err)
		}
		t.checked.Store(true)
	}
	return der, nil
}

// patch writes the TBSCertificate (RFC 5280 §4.1.2) of a content.
func (t *template) patch(c *content) ([]byte, error) {
	bits, err := publicKeyBits(c.spki)
	if err != nil {
		return nil, err
	}
	size := 256 + len(t.fixed) + len(t.issuer.subject) + len(c.subject) + len(c.spki) + len(c.names)
	for _, e := range c.extensions {
		size += 32 + len(e.Value)
	}
	b := cryptobyte.NewBuilder(make([]byte, 0, size))
	b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddBytes([]byte{0xa0, 3, 2, 1, 2}) // version [0] v3
		addSerial(b, c.serial)
		b.AddBytes(t.issuer.algorithm)
		b.AddBytes(t.issuer.subject)
		b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
			addTime(b, c.notBefore)
			addTime(b, c.notAfter)
		})
		b.AddBytes(c.subject)
		b.AddBytes(c.spki)
		b.AddASN1(explicit(3), func(b *cryptobyte.Builder) {
			b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) { t.addExtensions(b, c, keyID(bits)) })
		})
	})
	return b.Bytes()
}

func (t *template) addExtensions(b *cryptobyte.Builder, c *content, keyID []byte) {
	b.AddBytes(t.fixed)
	addExtension(b, oidSubjectKeyID, false, func(b *cryptobyte.Builder) { b.AddASN1OctetString(keyID) }) // RFC 5280 §4.2.1.2
	if c.names != nil {
		addExtension(b, oidSubjectAltName, len(c.subject) == emptyName, octets(c.names)) // RFC 5280 §4.2.1.6
	}
	for _, e := range c.extensions {
		addExtension(b, e.Id, false, octets(e.Value))
	}
}

// verify reads a certificate as a relying party would, and checks its signature.
func (t *template) verify(der []byte) error {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	parent := t.issuer.cert
	if parent == nil { // a root signs itself
		parent = cert
	}
	return cert.CheckSignatureFrom(parent)
}
