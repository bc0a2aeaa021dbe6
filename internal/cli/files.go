package cli

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"chancery/internal/base/fault"
	"chancery/internal/base/key"
)

// encodeCertificate gives a certificate in PEM.
func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// readCertificates reads all certificates of a PEM file.
func readCertificates(path string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fault.New(fault.Invalid, "certificate_malformed", "%s holds a certificate that cannot be read: %v", path, err)
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, fault.New(fault.Invalid, "certificate_malformed", "%s holds no certificate in PEM", path)
	}
	return all, nil
}

// keyAt reads the private key of a file, or makes one there for this user alone.
func keyAt(path string, kind key.Kind) (crypto.Signer, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		return key.ParsePrivate(text)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	private, err := key.Generate(kind)
	if err != nil {
		return nil, err
	}
	if text, err = key.EncodePrivate(private); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return private, os.WriteFile(path, text, 0o600)
}
