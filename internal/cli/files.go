package cli

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/term"

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
	return parseCertificates(path, text)
}

func parseCertificates(source string, text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fault.New(fault.Invalid, "certificate_malformed", "%s holds a certificate that cannot be read: %v", source, err)
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, fault.New(fault.Invalid, "certificate_malformed", "%s holds no certificate in PEM", source)
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
	return private, replace(path, text, 0o600)
}

// A pair is the two files of a subject: NAME.key with its private key and NAME.pem with its certificate and chain.
type pair string

func (p pair) key() string  { return p.file(".key") }
func (p pair) cert() string { return p.file(".pem") }

func (p pair) file(ending string) string {
	if p == "" {
		return ""
	}
	return string(p) + ending
}

// request gives a certificate request in PEM: the one in the file csr, or a new one with the key of the pair, which is
// made if it is not there.
func (p pair) request(csr string, kind key.Kind, commonName string) (string, error) {
	if csr != "" {
		text, err := os.ReadFile(csr)
		if err != nil {
			return "", fmt.Errorf("read the certificate request: %w", err)
		}
		return string(text), nil
	}
	if p == "" {
		return "", usageError{errors.New("say with --out NAME where key and certificate go, or bring a certificate request with --csr FILE")}
	}
	private, err := keyAt(p.key(), kind)
	if err != nil {
		return "", err
	}
	return newRequest(private, commonName)
}

// newRequest makes a certificate request in PEM (RFC 2986).
func newRequest(private crypto.Signer, commonName string) (string, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName}}, private)
	if err != nil {
		return "", fmt.Errorf("make a certificate request: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// keep writes a certificate with its chain, or shows it where no file is named.
func (t *terminal) keep(p pair, chain string) error {
	if p == "" {
		if !t.json {
			fmt.Fprint(t.out, chain)
		}
		return nil
	}
	return replace(p.cert(), []byte(chain), 0o644)
}

// replace puts content in the place of a file in one step: a reader, or a crash, finds the old file or the new one.
func replace(path string, content []byte, mode fs.FileMode) error {
	return replaceWith(path, mode, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// replaceWith is replace for content that is written as it comes. If that fails, the old file stays.
func replaceWith(path string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after the rename there is nothing to remove
	if err = write(f); err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}

const secretBytesMax = 64 << 10

// readSecret reads a one-line secret from a file, or from standard input for "-".
func readSecret(path string) ([]byte, error) {
	f := os.Stdin
	if path != "-" {
		var err error
		if f, err = os.Open(path); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	text, err := io.ReadAll(io.LimitReader(f, secretBytesMax))
	return bytes.TrimSpace(text), err
}

// putAway writes a secret into a file for this user alone, where one is named, and forgets it.
func putAway(secret *string, path string) error {
	if path == "" {
		return nil
	}
	if err := replace(path, []byte(*secret+"\n"), 0o600); err != nil {
		return err
	}
	*secret = ""
	return nil
}

// secret finds a secret where a command line does not show it to everybody: in a file, in the environment, or by
// asking on a terminal.
func (t *terminal) secret(what, file, variable string) (string, error) {
	if file != "" {
		text, err := readSecret(file)
		return string(text), err
	}
	if text := os.Getenv(variable); text != "" {
		return text, nil
	}
	in, isFile := t.in.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return "", fault.New(fault.Invalid, "secret_missing", "the %s is needed, and there is no terminal to ask on", what).
			WithHint("put it into a file or into the environment variable %s", variable)
	}
	fmt.Fprintf(t.err, "%s: ", what)
	text, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(t.err)
	return string(text), err
}
