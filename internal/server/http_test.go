package server_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"chancery/api"
	"chancery/internal/base/who"
	"chancery/internal/domain/account"
	"chancery/internal/domain/ca"
	"chancery/internal/server"
)

// An office is a house that listens.
type office struct {
	*house
	https, mtls string
	roots       *x509.CertPool
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{house: newHouse(t), roots: x509.NewCertPool()}
	var err error
	if o.https, o.mtls, err = o.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := o.Unlisten(ctx); err != nil {
			t.Errorf("stop listening: %v", err)
		}
	})
	root := must(o.Authority.Authority(t.Context(), server.Root))(t)
	o.roots.AddCert(must(x509.ParseCertificate(root.Certificate))(t))
	return o
}

// A visitor is a caller of the office, by token or by client certificate.
type visitor struct {
	client *http.Client
	base   string
	token  string
	id     string
}

func (o *office) visitor(t *testing.T, certificates ...tls.Certificate) visitor {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: o.roots, Certificates: certificates}}
	t.Cleanup(transport.CloseIdleConnections)
	v := visitor{client: &http.Client{Transport: transport, Timeout: 10 * time.Second}, base: o.https}
	if len(certificates) > 0 {
		v.base = o.mtls
	}
	return v
}

// holder makes an account with roles and gives a visitor with a token of it, narrowed to permissions if there are any.
func (o *office) holder(t *testing.T, s account.Spec, permissions ...who.Permission) visitor {
	t.Helper()
	a := must(o.Accounts.Create(o.operator, s))(t)
	return o.bearer(t, a.ID, permissions...)
}

func (o *office) bearer(t *testing.T, accountID string, permissions ...who.Permission) visitor {
	t.Helper()
	v := o.visitor(t)
	var err error
	if _, v.token, err = o.Accounts.CreateToken(o.operator, accountID, account.TokenSpec{Permissions: permissions}); err != nil {
		t.Fatal(err)
	}
	v.id = accountID
	return v
}

// machine gives a visitor with a fresh TLS client certificate that is bound to no account.
func (o *office) machine(t *testing.T, name string) (v visitor, issued ca.Issued, k crypto.Signer) {
	t.Helper()
	k = newKey(t)
	issued = must(o.Authority.Issue(o.operator, ca.Order{
		Authority: server.Machines, Profile: "tls-client", CSR: o.request(t, k), Subject: &ca.Subject{CommonName: name},
	}))(t)
	return o.visitor(t, tls.Certificate{Certificate: [][]byte{issued.DER}, PrivateKey: k}), issued, k
}

// A reply is an answer, read.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (v visitor) send(t *testing.T, method, path, body string, header ...string) reply {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), method, v.base+path, strings.NewReader(body)))(t)
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := must(v.client.Do(r))(t)
	defer answer.Body.Close()
	return reply{answer.StatusCode, answer.Header, must(io.ReadAll(answer.Body))(t)}
}

func (v visitor) call(t *testing.T, method, path string, in any) reply {
	t.Helper()
	return v.send(t, method, path, string(must(json.Marshal(in))(t)))
}

func (r reply) problem(t *testing.T) api.Problem {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal(r.body, &p); err != nil {
		t.Fatalf("%d %q is no problem: %v", r.status, r.body, err)
	}
	return p
}

// want checks status and, of a refusal, its code and form.
func (r reply) want(t *testing.T, what string, status int, code string) {
	t.Helper()
	if r.status != status {
		t.Errorf("%s: %d %.300s, want %d", what, r.status, r.body, status)
		return
	}
	if status < 400 {
		return
	}
	if p := r.problem(t); p.Code != code || p.RequestID == "" || r.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: code %q (%s) as %s, want %q", what, p.Code, p.Detail, r.header.Get("Content-Type"), code)
	}
}

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// A described route, as the server itself describes it.
type described struct{ method, path, permission string }

func (o *office) routes(t *testing.T) (all []described) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			Permission string `json:"x-permission"`
		}
	}
	if err := json.Unmarshal(o.visitor(t).send(t, "GET", "/api/v1/openapi.json", "").body, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, operation := range methods {
			all = append(all, described{strings.ToUpper(method), path, operation.Permission})
		}
	}
	if len(all) < 30 {
		t.Fatalf("the server describes %d routes only", len(all))
	}
	return all
}

// example puts something into the braces of a path.
func (d described) example() string {
	return strings.NewReplacer("{id}", "x", "{serial}", "01a22de3731552e4ab89bfa4dd68ff88f736", "{name}", "x", "{file}", "x.cer", "{request}", "x").Replace(d.path)
}

func TestOnlyTheseRoutesAreOpenToAll(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	open := []string{
		"GET /api/v1/openapi.json", "GET /api/v1/openapi.yaml", "GET /api/v1/whoami", "GET /healthz", "GET /readyz",
		"GET /pki/ocsp/{request}", "POST /pki/ocsp", "GET /pki/{file}",
		"POST /api/v1/setup",                    // the code is the credential
		"POST /api/v1/enrol",                    // the one-time token is
		"POST /api/v1/agent-certificates/renew", // the agent's last key is
	}
	nobody := o.visitor(t)
	var found []string
	for _, route := range o.routes(t) {
		name := route.method + " " + route.path
		if route.permission == string(who.Public) {
			found = append(found, name)
			continue
		}
		nobody.send(t, route.method, route.example(), "{}").want(t, name, 401, "credentials_required")
	}
	slices.Sort(open)
	slices.Sort(found)
	if !slices.Equal(open, found) {
		t.Errorf("open to all are\n%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(open, "\n"))
	}
}

// TestEachPermissionOpensItsRoutesAlone goes to every route with every permission, one at a time.
func TestEachPermissionOpensItsRoutesAlone(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	everybody := must(o.Accounts.Create(o.operator, account.Spec{Kind: who.Person, Name: "everybody", Roles: account.Roles()}))(t)
	routes := o.routes(t)
	for _, p := range who.Permissions() {
		v := o.bearer(t, everybody.ID, p)
		for _, route := range routes {
			opens := route.permission == string(who.Public) || p != who.AgentSelf && slices.Contains(strings.Split(route.permission, " or "), string(p))
			if opens && (route.permission == string(who.Public) || route.path == "/api/v1/principals/{id}") {
				continue // the second asks whose they are, too
			}
			r := v.send(t, route.method, route.example(), "{}")
			if refused := r.status == 401 || r.status == 403; refused == opens {
				t.Errorf("%s %s with %s alone: %d %.200s", route.method, route.path, p, r.status, r.body)
			}
		}
	}
}

// selfSigned makes a certificate of a key's own.
func selfSigned(t *testing.T, k crypto.Signer) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der := must(x509.CreateCertificate(rand.Reader, template, template, k.Public(), k))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k}
}
