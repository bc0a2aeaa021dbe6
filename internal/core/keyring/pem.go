package keyring

import (
	"context"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/core/store"
)

const (
	encryptedBlock = "ENCRYPTED PRIVATE KEY" // RFC 7468 §11

	// iterations slows guessing at the passphrase of an exported key; iterationsMax bounds what an imported one may
	// ask of us (about two seconds).
	iterations    = 600_000
	iterationsMax = 10_000_000

	importBytesMax = 64 << 10
)

// The algorithms of an exported key: PBES2 with PBKDF2, HMAC-SHA-256 and AES-256-CBC (RFC 8018 §6.2), which every
// current tool reads.
var (
	oidPBES2      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
	oidHMACSHA256 = asn1.ObjectIdentifier{1, 2, 840, 113549, 2, 9}
	oidAES256CBC  = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 1, 42}
)

// An encryptedKey is EncryptedPrivateKeyInfo (RFC 5958 §3) for that one choice of algorithms.
type encryptedKey struct {
	Scheme struct {
		OID    asn1.ObjectIdentifier
		Params struct {
			Derivation struct {
				OID    asn1.ObjectIdentifier
				Params pbkdf2Params
			}
			Cipher struct {
				OID asn1.ObjectIdentifier
				IV  []byte
			}
		}
	}
	Data []byte
}

// pbkdf2Params is PBKDF2-params (RFC 8018 appendix A.2).
type pbkdf2Params struct {
	Salt       []byte
	Iterations int
	Length     int `asn1:"optional"`
	PRF        struct {
		OID  asn1.ObjectIdentifier
		Null asn1.RawValue `asn1:"optional"`
	} `asn1:"optional"`
}

// Export gives a key as an encrypted PKCS#8 PEM block that openssl and others read. The audit line is durable before
// it returns. A key that lies in a Source cannot be exported.
//
// Faults: NotFound key_unknown; Invalid passphrase_missing; Conflict key_elsewhere.
func (r *Ring) Export(ctx context.Context, name string, passphrase []byte) ([]byte, error) {
	if len(passphrase) == 0 {
		return nil, fault.New(fault.Invalid, "passphrase_missing", "a private key leaves the keyring only under a passphrase")
	}
	row, err := r.row(ctx, name)
	if err != nil {
		return nil, err
	}
	if row.Source != sealedHere {
		return nil, fault.New(fault.Conflict, "key_elsewhere", "the key %s lies in %s and cannot leave it", name, row.Source)
	}
	der, ok := openBytes(r.seal, row.sealed, row.context())
	if !ok {
		return nil, fmt.Errorf("key %s: %w", name, ErrDamaged)
	}
	defer clear(der)
	text, err := encryptPKCS8(der, passphrase)
	if err != nil {
		return nil, fmt.Errorf("encrypting key %s: %w", name, err)
	}
	err = r.db.Write(ctx, func(tx *store.Tx) error {
		return tx.Audit(store.Line{Actor: who.From(tx.Context()).Actor(), Action: "key.export", Target: name})
	})
	if err != nil {
		return nil, err
	}
	return text, nil
}

// Import stores a private key in PEM under a name: PKCS#8, encrypted as Export does or not at all, or the older EC
// and RSA forms. passphrase is looked at only for an encrypted one.
//
// Faults: Exists key_exists; Invalid key_malformed, key_refused, key_name_invalid; Denied passphrase_wrong.
func (r *Ring) Import(ctx context.Context, name string, text, passphrase []byte) error {
	private, err := parsePrivate(text, passphrase)
	if err != nil {
		return err
	}
	f, err := fresh(private)
	if err != nil {
		return err
	}
	return r.db.Write(ctx, func(tx *store.Tx) error { return r.Keep(tx, name, f) })
}

func parsePrivate(text, passphrase []byte) (crypto.Signer, error) {
	if len(text) > importBytesMax {
		return nil, fault.New(fault.TooLarge, "key_malformed", "a private key is at most %d bytes long", importBytesMax)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != encryptedBlock {
		return key.ParsePrivate(text)
	}
	der, err := decryptPKCS8(block.Bytes, passphrase)
	if err != nil {
		return nil, err
	}
	defer clear(der)
	private, err := x509.ParsePKCS8PrivateKey(der)
	signer, ok := private.(crypto.Signer)
	if err != nil || !ok {
		return nil, errImportPassphrase // CBC does not tell a wrong passphrase from a damaged key
	}
	return signer, nil
}

var errImportPassphrase = fault.New(fault.Denied, "passphrase_wrong", "the passphrase does not open this private key")

func encryptPKCS8(der, passphrase []byte) ([]byte, error) {
	salt, iv := make([]byte, 16), make([]byte, aes.BlockSize)
	rand.Read(salt)
	rand.Read(iv)
	var e encryptedKey
	e.Scheme.OID = oidPBES2
	params := &e.Scheme.Params
	params.Derivation.OID = oidPBKDF2
	params.Derivation.Params = pbkdf2Params{Salt: salt, Iterations: iterations}
	params.Derivation.Params.PRF.OID = oidHMACSHA256
	params.Derivation.Params.PRF.Null = asn1.NullRawValue
	params.Cipher.OID, params.Cipher.IV = oidAES256CBC, iv
	block, err := e.cipher(passphrase)
	if err != nil {
		return nil, err
	}
	e.Data = pad(der)
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(e.Data, e.Data)
	encoded, err := asn1.Marshal(e)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: encryptedBlock, Bytes: encoded}), nil
}

func decryptPKCS8(encoded, passphrase []byte) ([]byte, error) {
	var e encryptedKey
	rest, err := asn1.Unmarshal(encoded, &e)
	if err != nil || len(rest) > 0 || !e.readable() {
		return nil, fault.New(fault.Invalid, "key_malformed", "the key is not encrypted by PBES2 with PBKDF2, HMAC-SHA-256 and AES-256-CBC").
			WithHint("convert it: openssl pkcs8 -topk8 -v2 aes-256-cbc -v2prf hmacWithSHA256 -in KEY")
	}
	block, err := e.cipher(passphrase)
	if err != nil {
		return nil, err
	}
	plain := make([]byte, len(e.Data))
	cipher.NewCBCDecrypter(block, e.Scheme.Params.Cipher.IV).CryptBlocks(plain, e.Data)
	der, ok := unpad(plain)
	if !ok {
		return nil, errImportPassphrase
	}
	return der, nil
}

// readable reports whether the key is encrypted by the one choice of algorithms, with bearable parameters.
func (e *encryptedKey) readable() bool {
	p := e.Scheme.Params
	d := p.Derivation.Params
	return e.Scheme.OID.Equal(oidPBES2) && p.Derivation.OID.Equal(oidPBKDF2) && d.PRF.OID.Equal(oidHMACSHA256) &&
		p.Cipher.OID.Equal(oidAES256CBC) && len(p.Cipher.IV) == aes.BlockSize &&
		d.Iterations > 0 && d.Iterations <= iterationsMax && (d.Length == 0 || d.Length == 32) &&
		len(e.Data) > 0 && len(e.Data)%aes.BlockSize == 0
}

func (e *encryptedKey) cipher(passphrase []byte) (cipher.Block, error) {
	d := e.Scheme.Params.Derivation.Params
	secret, err := pbkdf2.Key(sha256.New, string(passphrase), d.Salt, d.Iterations, 32)
	if err != nil {
		return nil, fmt.Errorf("deriving the key: %w", err)
	}
	return aes.NewCipher(secret)
}

// pad fills the last block as RFC 8018 §6.1.1 step 4 says, in a new slice.
func pad(plain []byte) []byte {
	n := aes.BlockSize - len(plain)%aes.BlockSize
	padded := make([]byte, len(plain)+n)
	for i := copy(padded, plain); i < len(padded); i++ {
		padded[i] = byte(n)
	}
	return padded
}

func unpad(padded []byte) ([]byte, bool) {
	n := int(padded[len(padded)-1])
	if n == 0 || n > aes.BlockSize || n > len(padded) {
		return nil, false
	}
	plain, filling := padded[:len(padded)-n], padded[len(padded)-n:]
	for _, b := range filling {
		if int(b) != n {
			return nil, false
		}
	}
	return plain, true
}
