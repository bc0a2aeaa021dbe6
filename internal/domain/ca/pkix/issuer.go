package pkix

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	tag "golang.org/x/crypto/cryptobyte/asn1"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
)

// An Issuer signs certificates, CRLs and OCSP answers under one name with one key. It is immutable and safe for
// concurrent use; it holds no lock while signing.
type Issuer struct {
	subject   []byte // DER Name
	keyID     []byte // subject key identifier
	keyBits   []byte // content of subjectPublicKey, which OCSP names issuers by
	signer    crypto.Signer
	algorithm []byte // DER AlgorithmIdentifier of the signatures
	hash      crypto.Hash
	Cert      *x509.Certificate // its own; nil while a root signs itself
	bounds    []constraints     // of its certificate and of those above
	outside   bool              // the key lives outside the process, so what it signs is checked
}

// ErrOffline is the fault of signing without a key.
var ErrOffline = fault.New(fault.Unavailable, "authority_offline", "the key of this authority was taken away, so it signs nothing").
	WithHint("import the key again, or use an authority below it")

// A scheme is how keys of one kind sign: the weakest hash is SHA-256, and P-384 takes SHA-384.
type scheme struct {
	oid    asn1.ObjectIdentifier
	hash   crypto.Hash
	isNull bool // parameters are NULL rather than absent (RFC 4055 §5; RFC 5758 §3.2, RFC 8410 §3 for absent)
}

func schemeOf(public crypto.PublicKey) (scheme, error) {
	kind, err := key.KindOf(public)
	if err != nil {
		return scheme{}, err
	}
	switch kind {
	case key.P256:
		return scheme{asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}, crypto.SHA256, false}, nil
	case key.P384:
		return scheme{asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 3}, crypto.SHA384, false}, nil
	case key.Ed25519:
		return scheme{asn1.ObjectIdentifier{1, 3, 101, 112}, 0, false}, nil
	default:
		return scheme{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}, crypto.SHA256, true}, nil
	}
}

// NewIssuer makes an issuer of a subject and a key, such as a root before it has signed itself.
func NewIssuer(subject Subject, public crypto.PublicKey, signer crypto.Signer) (*Issuer, error) {
	if err := subject.check(); err != nil {
		return nil, err
	}
	encoded, err := subject.encode()
	if err != nil {
		return nil, err
	}
	return newIssuer(encoded, public, signer)
}

// newIssuer makes an issuer of a Name in DER. Without a signer, because the key was taken away, it still recognises
// questions about its certificates, and refuses to sign.
func newIssuer(subject []byte, public crypto.PublicKey, signer crypto.Signer) (*Issuer, error) {
	how, err := schemeOf(public)
	if err != nil {
		return nil, err
	}
	spki, err := key.SPKI(public)
	if err != nil {
		return nil, err
	}
	bits, err := publicKeyBits(spki)
	if err != nil {
		return nil, err
	}
	var b cryptobyte.Builder
	b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(how.oid)
		if how.isNull {
			b.AddASN1NULL()
		}
	})
	algorithm, err := b.Bytes()
	return &Issuer{
		subject: subject, keyID: keyID(bits), keyBits: bits, signer: signer,
		algorithm: algorithm, hash: how.hash, outside: !inProcess(signer),
	}, err
}

// IssuerOf makes an issuer of a stored certificate, the key that belongs to it, or nil where the key is gone, and the
// issuer above, or nil for a root.
func IssuerOf(cert *x509.Certificate, signer crypto.Signer, above *Issuer) (*Issuer, error) {
	if signer != nil {
		spki, err := key.SPKI(signer.Public())
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(spki, cert.RawSubjectPublicKeyInfo) {
			return nil, fmt.Errorf("key and certificate of %s do not belong together", cert.Subject)
		}
	}
	i, err := newIssuer(cert.RawSubject, cert.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	i.keyID, i.Cert = cert.SubjectKeyId, cert
	if above != nil {
		i.bounds = slices.Clone(above.bounds)
	}
	i.bounds = append(i.bounds, constraintsOf(cert))
	return i, nil
}

// inProcess reports whether a signer computes here: a plain private key, or a wrapped one that says so.
func inProcess(signer crypto.Signer) bool {
	switch s := signer.(type) {
	case *ecdsa.PrivateKey, ed25519.PrivateKey, *rsa.PrivateKey:
		return true
	case interface{ InProcess() bool }:
		return s.InProcess()
	}
	return false
}

// keyID gives the key identifier of a public key: the leftmost 160 bits of the SHA-256 of its bit string (RFC 7093 §2,
// method 1).
func keyID(bits []byte) []byte {
	sum := sha256.Sum256(bits)
	return sum[:20]
}

// publicKeyBits gives the content of subjectPublicKey, without tag, length and count of unused bits.
func publicKeyBits(spki []byte) ([]byte, error) {
	input, outer, bits := cryptobyte.String(spki), cryptobyte.String(nil), []byte(nil)
	if !input.ReadASN1(&outer, tag.SEQUENCE) || !input.Empty() || !outer.SkipASN1(tag.SEQUENCE) ||
		!outer.ReadASN1BitStringAsBytes(&bits) || !outer.Empty() {
		return nil, fault.New(fault.Invalid, "key_malformed", "this is not a public key in SubjectPublicKeyInfo form")
	}
	return bits, nil
}

// seal signs to-be-signed bytes: SEQUENCE { tbs, signatureAlgorithm, signature } (RFC 5280 §4.1, §5.1; RFC 6960 §4.2.1).
// The fault of an authority without its key is Unavailable, code authority_offline.
func (i *Issuer) seal(tbs []byte) ([]byte, error) {
	if i.signer == nil {
		return nil, ErrOffline
	}
	message, opts := tbs, crypto.SignerOpts(i.hash)
	if i.hash != 0 {
		h := i.hash.New()
		h.Write(tbs)
		message = h.Sum(nil)
	}
	signature, err := i.signer.Sign(rand.Reader, message, opts)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	b := cryptobyte.NewBuilder(make([]byte, 0, len(tbs)+len(signature)+len(i.algorithm)+24))
	b.AddASN1(tag.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddBytes(tbs)
		b.AddBytes(i.algorithm)
		b.AddASN1BitString(signature)
	})
	return b.Bytes()
}
