package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"chancery/agentcert"
	"chancery/capability"
)

// An agent that was allowed to read may read, and is told why it may not write.
func TestCalendar(t *testing.T) {
	t.Parallel()
	root, rootKey := certificate(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "Root"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	alice, aliceKey := certificate(t, person(t, "calendar:*"), root, rootKey)
	reader := client(t, agent(t, root, rootKey, alice, aliceKey, "calendar:read:events"))
	writer := client(t, agent(t, root, rootKey, alice, aliceKey, "calendar:*"))
	server := httptest.NewUnstartedServer(newCalendar(agentcert.NewVerifier([]*x509.Certificate{root}, agentcert.Policy{})))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)

	for _, tt := range []struct {
		client       *http.Client
		method, path string
		status       int
		answer       string
	}{
		{reader, "GET", "/events", 200, "[]"},
		{reader, "POST", "/events", 403, "calendar:write:events was not granted"},
		{writer, "POST", "/events", 201, ""},
		{reader, "GET", "/events", 200, `[{"title":"Dentist","agent":"scheduler","for":"alice"}]`},
		{writer, "GET", "/secrets", 403, "operation_unknown"},
		{client(t, tls.Certificate{}), "GET", "/events", 401, "client_certificate_missing"},
	} {
		status, answer := send(t, tt.client, tt.method, server.URL+tt.path, `{"title":"Dentist"}`)
		if status != tt.status || !strings.Contains(answer, tt.answer) {
			t.Errorf("%s %s: %d %s, want %d with %q", tt.method, tt.path, status, answer, tt.status, tt.answer)
		}
	}
}

func TestReadCertificates(t *testing.T) {
	t.Parallel()
	root, _ := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "Root"}, IsCA: true}, nil, nil)
	file := filepath.Join(t.TempDir(), "root.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readCertificates(file)
	if err != nil || len(got) != 1 || !cmp.Equal(got[0].Raw, root.Raw) {
		t.Errorf("got %d certificates, %v", len(got), err)
	}
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readCertificates(file); err == nil {
		t.Error("a file without certificates passes")
	}
}

func send(t *testing.T, c *http.Client, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func client(t *testing.T, own tls.Certificate) *http.Client {
	t.Helper()
	// The test server's own certificate is none of the story.
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	if own.PrivateKey != nil {
		config.Certificates = []tls.Certificate{own}
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// certificate makes a key and its certificate for an hour; without a parent it signs itself.
func certificate(t *testing.T, template, parent *x509.Certificate, parentKey crypto.Signer) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	return sign(t, template, parent, parentKey, key), key
}

func sign(t *testing.T, template, parent *x509.Certificate, parentKey crypto.Signer, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	template.SerialNumber, template.BasicConstraintsValid = big.NewInt(time.Now().UnixNano()), true
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	}
	if !template.IsCA {
		template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func granted(t *testing.T, text string) []capability.Capability {
	t.Helper()
	c, err := capability.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return []capability.Capability{c}
}

// person is the template of somebody who may delegate.
func person(t *testing.T, grant string) *x509.Certificate {
	t.Helper()
	value, err := (&agentcert.PrincipalAuthorization{Version: 1, Grants: granted(t, grant)}).Encode()
	return extended(t, "Alice", agentcert.OIDPrincipalAuthorization, value, err)
}

func extended(t *testing.T, name string, id asn1.ObjectIdentifier, value []byte, err error) *x509.Certificate {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtraExtensions: []pkix.Extension{{Id: id, Value: value}}}
}

// agent makes what an agent presents with TLS: its certificate, its key, and the principal's certificate.
func agent(t *testing.T, root *x509.Certificate, rootKey crypto.Signer, alice *x509.Certificate, aliceKey crypto.Signer, grant string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	hash, now := agentcert.KeyHash(alice.RawSubjectPublicKeyInfo), time.Now().UTC().Truncate(time.Second)
	a := &agentcert.AIC{
		Version: 2, AgentID: "scheduler", Capabilities: granted(t, grant),
		Principal: agentcert.PrincipalUID{Version: 1, Realm: "example.org", Identifier: "alice", KeyHash: hash[:]},
		Authorization: agentcert.DelegationAuthorization{
			Reason: agentcert.Reason{Code: "CALENDAR", Description: "plan my week"}, Lifetime: 10 * time.Minute, Timestamp: now,
		},
	}
	if err := agentcert.Sign(a, spki, aliceKey, nil); err != nil {
		t.Fatal(err)
	}
	value, err := a.Encode()
	template := extended(t, "scheduler", agentcert.OIDExtension, value, err)
	template.NotBefore, template.NotAfter = now, now.Add(10*time.Minute-time.Second)
	cert := sign(t, template, root, rootKey, key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw, alice.Raw}, PrivateKey: key}
}
