package load

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"chancery/agentcert"
	"chancery/api"
	"chancery/internal/base/id"
)

// An expectation is what the certificate in an answer has to say.
type expectation struct {
	spki       []byte
	commonName string // empty: the server's choice
	lifetime   time.Duration
	identity   []byte // of an agent certificate: the extension's value
	agent      string // of one that the server composes: the agent
}

// An issued is a certificate that the server answered: what it must find again.
type issued struct {
	serial string   // canonical: id.Serial.String
	sum    [32]byte // SHA-256 of the DER
}

// clockTolerance is how far the validity may lie from the client's clock: the request's own time and whole seconds.
const clockTolerance = 90 * time.Second

// examine parses an answer and compares everything that does not need a signature to be verified. read is for an answer
// in another form than ours; nil is ours.
func (e expectation) examine(body []byte, read func([]byte) (api.Issued, error)) (api.Issued, *x509.Certificate, error) {
	if read == nil {
		read = readIssued
	}
	got, err := read(body)
	if err != nil {
		return got, nil, fmt.Errorf("the answer is not what was promised: %w", err)
	}
	block, _ := pem.Decode([]byte(got.PEM))
	if block == nil {
		return got, nil, fmt.Errorf("the answer holds no certificate in PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return got, nil, err
	}
	return got, cert, e.compare(got, cert)
}

func readIssued(body []byte) (got api.Issued, err error) {
	err = json.Unmarshal(body, &got)
	return got, err
}

func (e expectation) compare(got api.Issued, cert *x509.Certificate) error {
	now := time.Now()
	end := now.Add(e.lifetime)
	switch {
	case serialOf(cert) != got.Serial:
		return fmt.Errorf("the answer says serial %s, the certificate %x", got.Serial, cert.SerialNumber)
	case !bytes.Equal(cert.RawSubjectPublicKeyInfo, e.spki):
		return fmt.Errorf("certificate %s is for another key", got.Serial)
	case e.commonName != "" && cert.Subject.CommonName != e.commonName:
		return fmt.Errorf("certificate %s is for %q, not for %q", got.Serial, cert.Subject.CommonName, e.commonName)
	case now.Before(cert.NotBefore.Add(-time.Second)), cert.NotAfter.Before(end.Add(-clockTolerance)), cert.NotAfter.After(end.Add(time.Second)):
		return fmt.Errorf("certificate %s is valid from %s to %s, asked for %s at %s", got.Serial, cert.NotBefore, cert.NotAfter, e.lifetime, now)
	case e.identity != nil && !bytes.Equal(extension(cert), e.identity):
		return fmt.Errorf("certificate %s carries another agent identity", got.Serial)
	case e.agent != "":
		return e.compareAgent(cert)
	}
	return nil
}

func (e expectation) compareAgent(cert *x509.Certificate) error {
	identity, err := agentcert.ParseAIC(extension(cert))
	if err != nil {
		return err
	}
	if identity.AgentID != e.agent {
		return fmt.Errorf("certificate %s is for agent %s, not for %s", serialOf(cert), identity.AgentID, e.agent)
	}
	return nil
}

// serialOf gives a serial as the API writes it.
func serialOf(cert *x509.Certificate) string { return id.SerialOf(cert.SerialNumber).String() }

func extension(cert *x509.Certificate) []byte {
	for _, e := range cert.Extensions {
		if e.Id.Equal(agentcert.OIDExtension) {
			return e.Value
		}
	}
	return nil
}

func remember(got api.Issued, cert *x509.Certificate) issued {
	return issued{serial: got.Serial, sum: sha256.Sum256(cert.Raw)}
}

// parseChain reads all certificates of a text in PEM.
func parseChain(text string) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, cert)
	}
	return all, nil
}
