package server_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/crypto/ocsp"

	"chancery/agentcert"
	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/domain/account"
	"chancery/internal/domain/agent"
	"chancery/internal/server"
)

const (
	typeJSON        = "application/json"
	typeCSR         = "application/pkcs10"
	typeCertificate = "application/pkix-cert"
	typeChain       = "application/pem-certificate-chain"
)

// leafOf reads the certificate of an answer in any of the three forms.
func leafOf(t *testing.T, r reply) *x509.Certificate {
	t.Helper()
	der := r.body
	switch r.header.Get("Content-Type") {
	case typeJSON:
		var issued api.Issued
		if err := json.Unmarshal(r.body, &issued); err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode([]byte(issued.PEM))
		der = block.Bytes
	case typeChain:
		block, rest := pem.Decode(r.body)
		if next, _ := pem.Decode(rest); next == nil {
			t.Error("the chain is one certificate")
		}
		der = block.Bytes
	}
	return must(x509.ParseCertificate(der))(t)
}

// forms are the ways in which a request can come and a certificate can go.
var forms = []struct{ in, accept, out string }{
	{typeJSON, "", typeJSON},
	{typeJSON, "*/*", typeJSON},
	{typeJSON, typeCertificate, typeCertificate},
	{typeJSON, typeChain, typeChain},
	{typeCSR, "", typeCertificate},
	{typeCSR, typeJSON, typeJSON},
	{typeCSR, typeChain, typeChain},
	{typeCSR + "; charset=binary", typeCertificate, typeCertificate},
}

func TestOrdinaryCertificatesComeAndGoInEachForm(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	v := o.holder(t, account.Spec{Kind: who.Service, Name: "desk", Roles: []account.Role{account.Issuer}, Authorities: []string{"*"}})
	for _, form := range forms {
		k := newKey(t)
		der := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"web.internal"}}, k))(t)
		path, body := "/api/v1/certificates?authority=machines&profile=tls-server", string(der)
		if form.in == typeJSON {
			path, body = "/api/v1/certificates", string(must(json.Marshal(api.IssueRequest{Authority: "machines", Profile: "tls-server", Request: inPEM("CERTIFICATE REQUEST", der)}))(t))
		}
		r := v.send(t, "POST", path, body, "Content-Type", form.in, "Accept", form.accept)
		if r.status != 201 || r.header.Get("Content-Type") != form.out || r.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%+v: %d %s %.200s", form, r.status, r.header, r.body)
		}
		if leaf := leafOf(t, r); leaf.VerifyHostname("web.internal") != nil || !leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }).Equal(k.Public()) {
			t.Errorf("%+v: a certificate for %v", form, leaf.DNSNames)
		}
	}
}

func TestAgentCertificatesComeAndGoInEachForm(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	alice, nobody := o.bearer(t, o.agent.Owner), o.visitor(t)
	for _, form := range forms {
		identity := o.identity(t)
		der := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
			ExtraExtensions: []pkix.Extension{{Id: agentcert.OIDExtension, Value: identity}},
		}, o.agentKey))(t)
		issue, renew := string(der), string(der)
		if form.in == typeJSON {
			request := inPEM("CERTIFICATE REQUEST", o.request(t, o.agentKey))
			issue = string(must(json.Marshal(api.AgentIssueRequest{Request: request, Identity: identity}))(t))
			renew = string(must(json.Marshal(api.AgentRenewRequest{Agent: o.agent.ID, Request: request}))(t))
		}
		r := alice.send(t, "POST", "/api/v1/agent-certificates", issue, "Content-Type", form.in, "Accept", form.accept)
		if r.status != 201 || r.header.Get("Content-Type") != form.out {
			t.Fatalf("issue %+v: %d %s %.200s", form, r.status, r.header, r.body)
		}
		if aic, err := agentcert.FromCertificate(leafOf(t, r)); err != nil || aic.AgentID != o.agent.ID {
			t.Errorf("issue %+v: %+v, %v", form, aic, err)
		}
		r = nobody.send(t, "POST", "/api/v1/agent-certificates/renew?agent="+o.agent.ID, renew, "Content-Type", form.in, "Accept", form.accept)
		if r.status != 201 || r.header.Get("Content-Type") != form.out {
			t.Errorf("renew %+v: %d %s %.200s", form, r.status, r.header, r.body)
		}
	}
}

func TestBadInputIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	v := o.bearer(t, must(o.Accounts.Create(o.operator, account.Spec{Kind: who.Person, Name: "desk", Roles: account.Roles(), Authorities: []string{"*"}}))(t).ID)
	der := o.request(t, newKey(t))
	broken := bytes.Clone(der)
	broken[len(broken)-1] ^= 1
	request := func(der []byte) string {
		return string(must(json.Marshal(api.IssueRequest{Authority: "machines", Profile: "tls-server", Names: []string{"a.internal"}, Request: inPEM("CERTIFICATE REQUEST", der)}))(t))
	}
	const certificates, query = "/api/v1/certificates", "?authority=machines&profile=tls-client"
	for _, c := range []struct {
		name, method, path, body, media string
		status                          int
		code                            string
	}{
		{"another type", "POST", certificates, "x", "text/plain", 415, "content_type_unknown"},
		{"too long", "POST", certificates, strings.Repeat("x", 70_000), typeCSR, 413, "body_too_large"},
		{"no JSON", "POST", certificates, "{", typeJSON, 400, "request_invalid"},
		{"an unknown name", "POST", certificates, `{"nope":1}`, typeJSON, 400, "request_invalid"},
		{"a doubled name", "POST", certificates, `{"authority":"a","authority":"b"}`, typeJSON, 400, "request_invalid"},
		{"a name in the wrong case", "POST", certificates, `{"Authority":"machines"}`, typeJSON, 400, "request_invalid"},
		{"no request", "POST", certificates + query, "", typeCSR, 400, "csr_malformed"},
		{"a truncated request", "POST", certificates + query, string(der[:len(der)/2]), typeCSR, 400, "csr_malformed"},
		{"a broken signature", "POST", certificates, request(broken), typeJSON, 400, "csr_signature"},
		{"an unknown authority", "POST", certificates + "?authority=no&profile=tls-client", string(der), typeCSR, 404, "authority_unknown"},
		{"an unknown profile", "POST", certificates + "?authority=machines&profile=no", string(der), typeCSR, 404, "profile_unknown"},
		{"a wrong serial", "GET", certificates + "/zz", "", "", 400, "serial_invalid"},
		{"an unknown serial", "GET", certificates + "/01a22de3731552e4ab89bfa4dd68ff88f736", "", "", 404, "certificate_unknown"},
		{"an unknown parameter", "GET", certificates + "?nope=1", "", "", 422, "request_invalid"},
		{"a foreign cursor", "GET", certificates + "?cursor=%21", "", "", 400, "cursor_invalid"},
		{"a page too large", "GET", certificates + "?limit=100000", "", "", 422, "request_invalid"},
		{"an unknown method", "PUT", certificates, "", "", 405, "method_not_allowed"},
		{"an unknown path", "GET", "/api/v1/nothing", "", "", 404, "route_unknown"},
		{"an unknown reason", "POST", certificates + "/" + o.principal.Serial + "/revoke", `{"reason":"boredom"}`, typeJSON, 422, "request_invalid"},
		{"no identity", "POST", "/api/v1/agent-certificates", string(der), typeCSR, 400, "identity_missing"},
		{"a broken identity", "POST", "/api/v1/agent-certificates", string(must(json.Marshal(api.AgentIssueRequest{Request: inPEM("CERTIFICATE REQUEST", der), Identity: []byte{0x30, 1}}))(t)), typeJSON, 400, "identity_malformed"},
		{"a wrong enrolment token", "POST", "/api/v1/enrol", string(must(json.Marshal(api.Enrolment{Secret: "che_wrong", Request: inPEM("CERTIFICATE REQUEST", der)}))(t)), typeJSON, 403, "enrolment_refused"},
		{"a file of no authority", "GET", "/pki/no.crl", "", "", 404, "authority_unknown"},
		{"a file of no kind", "GET", "/pki/machines.exe", "", "", 404, "file_unknown"},
	} {
		header := []string{}
		if c.media != "" {
			header = append(header, "Content-Type", c.media)
		}
		v.send(t, c.method, c.path, c.body, header...).want(t, c.name, c.status, c.code)
	}
}

// TestEveryNameThatIsTakenCanBeCertified: what is registered under a name must be able to get a certificate with it.
func TestEveryNameThatIsTakenCanBeCertified(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	longest := strings.Repeat("ä", 64)
	alice := o.bearer(t, o.agent.Owner)
	alice.call(t, "POST", "/api/v1/agents", api.NewAgent{Name: longest + "ä"}).want(t, "a name too long", 422, "request_invalid")
	if _, err := o.Agents.Create(o.self, o.agent.Owner, longest+"ä"); err == nil {
		t.Error("an agent has a name that fits no certificate")
	}
	a := must(o.Agents.Create(o.self, o.agent.Owner, longest))(t)
	d := must(o.Agents.Delegate(o.self, o.delegation.Terms))(t)
	csr := o.request(t, newKey(t))
	must(o.Agents.Enrol(t.Context(), must(o.Agents.Invite(o.self, a.ID, d.ID))(t).Secret, csr))(t)
	if _, err := o.Agents.Renew(t.Context(), agent.Renewal{Agent: a.ID, Request: csr}); err != nil {
		t.Errorf("the longest name gets no certificate: %v", err)
	}
}

func TestTermsThatAreApprovedFitACertificate(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	terms := o.delegation.Terms
	for n := range 170 {
		terms.Capabilities = append(terms.Capabilities, fmt.Sprintf("calendar:read:%s:%d", strings.Repeat("x", 30), n))
	}
	d := must(o.Agents.Delegate(o.self, terms))(t)
	csr := o.request(t, newKey(t))
	must(o.Agents.Enrol(t.Context(), must(o.Agents.Invite(o.self, o.agent.ID, d.ID))(t).Secret, csr))(t)
	if _, err := o.Agents.Renew(t.Context(), agent.Renewal{Agent: o.agent.ID, Request: csr}); err != nil {
		t.Errorf("the approved terms get no certificate: %v", err)
	}
	terms.Capabilities = append(terms.Capabilities, "calendar:read:"+strings.Repeat("x", 200), "calendar:read:"+strings.Repeat("y", 200), "calendar:read:"+strings.Repeat("z", 200))
	if _, err := o.Agents.Delegate(o.self, terms); fault.CodeOf(err) != "terms_invalid" {
		t.Errorf("terms that fit no certificate: %v, want terms_invalid", err)
	}
}

func TestIdempotencyKeysDoNotMeet(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	desk := func(name string) visitor {
		return o.holder(t, account.Spec{Kind: who.Service, Name: name, Roles: []account.Role{account.Issuer}, Authorities: []string{"*"}})
	}
	der := string(must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"web.internal"}}, newKey(t)))(t))
	issue := func(v visitor) string {
		r := v.send(t, "POST", "/api/v1/certificates?authority=machines&profile=tls-server", der, "Content-Type", typeCSR, "Idempotency-Key", "one")
		r.want(t, "issue", 201, "")
		return leafOf(t, r).SerialNumber.String()
	}
	first, second := desk("first"), desk("second")
	if a, b := issue(first), issue(first); a != b {
		t.Error("one caller's key issued twice")
	}
	if issue(first) == issue(second) {
		t.Error("two callers with the same key got one certificate")
	}
}

func TestStatusIsServedWithItsTypesAndAges(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	v := o.visitor(t)
	_, machine, _ := o.machine(t, "backup")
	c := must(o.Agents.Renew(t.Context(), agent.Renewal{Agent: o.agent.ID, Request: o.request(t, o.agentKey)}))(t)
	question := func(authority string, der []byte) []byte {
		issuer := must(o.Authority.Authority(t.Context(), authority))(t)
		return must(ocsp.CreateRequest(must(x509.ParseCertificate(der))(t), must(x509.ParseCertificate(issuer.Certificate))(t), &ocsp.RequestOptions{Hash: crypto.SHA256}))(t)
	}
	inPath := func(der []byte) string { return "/pki/ocsp/" + url.PathEscape(base64.StdEncoding.EncodeToString(der)) }
	ordinary, ofAgent := question(server.Machines, machine.DER), question(server.Agents, c.DER)
	const response, request = "application/ocsp-response", "application/ocsp-request"
	malformed := "\x30\x03\x0a\x01\x01"
	for _, s := range []struct{ name, method, path, body, out, age, exactly string }{
		{"OCSP by POST", "POST", "/pki/ocsp", string(ordinary), response, "public, no-transform, must-revalidate, max-age=", ""},
		{"OCSP by GET", "GET", inPath(ordinary), "", response, "public, no-transform, must-revalidate, max-age=", ""},
		{"OCSP of an agent", "POST", "/pki/ocsp", string(ofAgent), response, "no-cache", ""},
		{"OCSP of an agent by GET", "GET", inPath(ofAgent), "", response, "no-cache", ""},
		{"no OCSP by POST", "POST", "/pki/ocsp", "nonsense", response, "no-cache", malformed},
		{"no OCSP by GET", "GET", "/pki/ocsp/%21%21", "", response, "no-cache", malformed},
		{"a CRL", "GET", "/pki/machines.crl", "", "application/pkix-crl", "no-cache", ""},
		{"a certificate", "GET", "/pki/machines.cer", "", typeCertificate, "public, max-age=3600", ""},
		{"a certificate in PEM", "GET", "/pki/machines.pem", "", "application/x-pem-file", "public, max-age=3600", ""},
		{"life", "GET", "/healthz", "", "text/plain; charset=utf-8", "no-store", "ok\n"},
		{"readiness", "GET", "/readyz", "", "text/plain; charset=utf-8", "no-store", "ok\n"},
		{"the description", "GET", "/api/v1/openapi.json", "", "application/openapi+json", "no-store", ""},
	} {
		var header []string
		if s.method == "POST" {
			header = []string{"Content-Type", request}
		}
		r := v.send(t, s.method, s.path, s.body, header...)
		if r.status != 200 || r.header.Get("Content-Type") != s.out || !strings.HasPrefix(r.header.Get("Cache-Control"), s.age) || s.exactly != "" && string(r.body) != s.exactly {
			t.Errorf("%s: %d %v %.100q", s.name, r.status, r.header, r.body)
		}
	}
}
