package agentcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"time"
)

const minRSABits, maxRSABits = 2048, 8192

// SignedBytes gives the DER that the principal signs (DelegationAuthTBS). Version 2 binds the agent's key by the
// SHA-256 of agentSPKI, its DER SubjectPublicKeyInfo; version 1 ignores agentSPKI.
func (a *AIC) SignedBytes(agentSPKI []byte) ([]byte, error) {
	if a.Version != 1 && a.Version != 2 {
		return nil, refuse(StepVersion, "da_version_unsupported", "version %d of the authorization is not known", a.Version)
	}
	e := &encoder{out: make([]byte, 0, 512)}
	e.nest(tagSequence, func() {
		d := &a.Authorization
		e.int(int64(a.Version))
		e.text(a.AgentID)
		e.principal(&a.Principal)
		e.reason(&d.Reason)
		e.capabilities(a.Capabilities)
		e.int(int64(a.Mode))
		e.constraints(a.Constraints)
		e.int(int64(d.Lifetime / time.Second))
		e.time(d.Timestamp)
		e.bytes(tagOctets, d.Nonce)
		if a.Version == 2 {
			e.binding(agentSPKI)
		}
	})
	return e.out, e.err
}

func (e *encoder) binding(agentSPKI []byte) {
	hash := KeyHash(agentSPKI)
	e.nest(tagContext+1, func() {
		e.nest(tagSequence, func() {
			e.bytes(tagOctets, hash[:])
			e.hashAlgorithm(crypto.SHA256)
		})
	})
}

// Sign makes a version 2 authorization with the principal's key: it sets algorithm and signature, and nonce and
// timestamp unless they are set already. Random is the source of nonce and signature; nil means crypto/rand. RSA keys
// sign with SHA-256, P-256, P-384 and P-521 keys with the hash of their size, Ed25519 keys the bytes themselves.
func Sign(a *AIC, agentSPKI []byte, key crypto.Signer, random io.Reader) error {
	if a.Version != 2 {
		return refuse(StepVersion, "da_version_unsupported", "only authorizations of version 2 are made")
	}
	algorithm, hash, err := algorithmFor(key.Public())
	if err != nil {
		return err
	}
	if random == nil {
		random = rand.Reader
	}
	d := &a.Authorization
	if d.Nonce == nil {
		d.Nonce = make([]byte, NonceSize)
		if _, err := io.ReadFull(random, d.Nonce); err != nil {
			return fmt.Errorf("drawing a nonce: %w", err)
		}
	}
	if d.Timestamp.IsZero() {
		d.Timestamp = time.Now().UTC().Truncate(time.Second)
	}
	tbs, err := a.SignedBytes(agentSPKI)
	if err != nil {
		return err
	}
	signature, err := key.Sign(random, prehash(hash, tbs), hash)
	if err != nil {
		return fmt.Errorf("signing the authorization: %w", err)
	}
	d.Algorithm, d.Signature = algorithm, signature
	return nil
}

func algorithmFor(key crypto.PublicKey) (x509.SignatureAlgorithm, crypto.Hash, error) {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			return x509.ECDSAWithSHA256, crypto.SHA256, nil
		case elliptic.P384():
			return x509.ECDSAWithSHA384, crypto.SHA384, nil
		case elliptic.P521():
			return x509.ECDSAWithSHA512, crypto.SHA512, nil
		}
	case *rsa.PublicKey:
		if acceptableRSA(k) {
			return x509.SHA256WithRSA, crypto.SHA256, nil
		}
	case ed25519.PublicKey:
		return x509.PureEd25519, 0, nil
	}
	return 0, 0, refuse(StepSignature, "da_key_unsupported", "a %T of this kind cannot sign an authorization", key)
}

// prehash gives the digest of tbs, or tbs itself for algorithms that hash on their own.
func prehash(hash crypto.Hash, tbs []byte) []byte {
	if hash == 0 {
		return tbs
	}
	return digest(make([]byte, 0, sha256.Size), hash, tbs)
}

// VerifyAuthorization reports whether the principal's key signed a's authorization for the agent's key, whose DER
// SubjectPublicKeyInfo is agentSPKI. Only version 2 and the algorithms that belong to the key's type pass. It checks
// the signature and nothing else; the error is a *Refusal. It is safe for concurrent use.
func VerifyAuthorization(a *AIC, agentSPKI []byte, principal crypto.PublicKey) error {
	if a.Version != 2 {
		return refuse(StepVersion, "da_version_unsupported",
			"the authorization has version %d, which does not name the agent's key; only version 2 is accepted", a.Version)
	}
	tbs, err := a.SignedBytes(agentSPKI)
	if err != nil {
		return err
	}
	d := &a.Authorization
	good := false
	switch key := principal.(type) {
	case *ecdsa.PublicKey:
		good, err = verifyECDSA(key, d, tbs)
	case *rsa.PublicKey:
		good, err = verifyRSA(key, d, tbs)
	case ed25519.PublicKey:
		good, err = verifyEd25519(key, d, tbs)
	default:
		err = errAlgorithm
	}
	if err != nil {
		return refuse(StepSignature, "da_algorithm_refused", "the authorization is signed with %s, which does not fit the principal's key", d.Algorithm)
	}
	if !good {
		return refuse(StepSignature, "da_signature_invalid", "the authorization does not carry the principal's signature: it was changed, or made for another agent key")
	}
	return nil
}

var errAlgorithm = errors.New("algorithm does not fit the key")

func verifyECDSA(key *ecdsa.PublicKey, d *DelegationAuthorization, tbs []byte) (bool, error) {
	if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() && key.Curve != elliptic.P521() {
		return false, errAlgorithm
	}
	switch d.Algorithm {
	case x509.ECDSAWithSHA256:
		return ecdsa.VerifyASN1(key, prehash(crypto.SHA256, tbs), d.Signature), nil
	case x509.ECDSAWithSHA384:
		return ecdsa.VerifyASN1(key, prehash(crypto.SHA384, tbs), d.Signature), nil
	case x509.ECDSAWithSHA512:
		return ecdsa.VerifyASN1(key, prehash(crypto.SHA512, tbs), d.Signature), nil
	}
	return false, errAlgorithm
}

func verifyRSA(key *rsa.PublicKey, d *DelegationAuthorization, tbs []byte) (bool, error) {
	if !acceptableRSA(key) {
		return false, errAlgorithm
	}
	pkcs1 := func(hash crypto.Hash) (bool, error) {
		return rsa.VerifyPKCS1v15(key, hash, prehash(hash, tbs), d.Signature) == nil, nil
	}
	switch d.Algorithm {
	case x509.SHA256WithRSA:
		return pkcs1(crypto.SHA256)
	case x509.SHA384WithRSA:
		return pkcs1(crypto.SHA384)
	case x509.SHA512WithRSA:
		return pkcs1(crypto.SHA512)
	case x509.SHA256WithRSAPSS:
		options := &rsa.PSSOptions{SaltLength: sha256.Size}
		return rsa.VerifyPSS(key, crypto.SHA256, prehash(crypto.SHA256, tbs), d.Signature, options) == nil, nil
	}
	return false, errAlgorithm
}

func verifyEd25519(key ed25519.PublicKey, d *DelegationAuthorization, tbs []byte) (bool, error) {
	if d.Algorithm != x509.PureEd25519 || len(key) != ed25519.PublicKeySize {
		return false, errAlgorithm
	}
	return ed25519.Verify(key, tbs, d.Signature), nil
}

// acceptableRSA keeps out keys that are too weak, and those so long that checking a signature is an attack.
func acceptableRSA(key *rsa.PublicKey) bool {
	bits := key.N.BitLen()
	return bits >= minRSABits && bits <= maxRSABits
}
