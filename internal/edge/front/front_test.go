package front

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/base/who"
	"chancery/internal/edge/rest"
)

// An authority issues what a test needs.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key, cert, x509.NewCertPool()}
	a.pool.AddCert(cert)
	return a
}

func (a *authority) issue(t testing.TB, name string, notAfter time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: notAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A doorman knows the token "hunter2" and the certificates of one authority, and counts how often it was asked.
type doorman struct {
	authority *authority
	asked     atomic.Int64
}

func (d *doorman) ByToken(_ context.Context, raw string) (who.Caller, error) {
	d.asked.Add(1)
	if raw != "hunter2" {
		return who.Caller{}, fault.New(fault.Unauthenticated, "token_unknown", "this token is not known")
	}
	return who.Caller{Kind: who.Person, ID: "per_1", Permissions: who.Set{who.CertificateRead}}, nil
}

func (d *doorman) ByCertificate(_ context.Context, chain []*x509.Certificate) (who.Caller, error) {
	d.asked.Add(1)
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: d.authority.pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return who.Caller{}, fault.New(fault.Unauthenticated, "certificate_expired", "your certificate has expired")
	case err != nil:
		return who.Caller{}, fault.New(fault.Unauthenticated, "certificate_foreign", "your certificate is not ours").Because(err)
	}
	return who.Caller{Kind: who.Agent, ID: chain[0].Subject.CommonName, Permissions: who.Set{who.CertificateRead}}, nil
}

// A house is a started front with its surroundings.
type house struct {
	*Front
	authority *authority
	doorman   *doorman
	log       *lockedBuffer
	ran       atomic.Int64  // calls of /work
	enter     chan struct{} // receives when /hold runs
	release   chan struct{} // /hold waits for
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// open starts a front on all listeners with the routes that the tests ask for.
func open(t testing.TB, change func(*Config)) *house {
	t.Helper()
	h := &house{authority: newAuthority(t, "ours"), log: &lockedBuffer{}, enter: make(chan struct{}, 100), release: make(chan struct{})}
	h.doorman = &doorman{authority: h.authority}
	server := h.authority.issue(t, "localhost", time.Now().Add(time.Hour))
	c := Config{
		Listen: map[Listener]string{HTTPS: "127.0.0.1:0", MTLS: "127.0.0.1:0", Loopback: "127.0.0.1:0", Public: "127.0.0.1:0", Private: "127.0.0.1:0"},
		Certificates: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &server, nil
		},
		Log: slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
	if change != nil {
		change(&c)
	}
	f, err := New(c, h.routes(), h.doorman, NewMetrics())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Front = f
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		f.Stop(ctx)
	})
	return h
}

type message struct {
	Text string `json:"text"`
}

type said struct{ Body message }

func (h *house) routes() *rest.API {
	api := rest.New("test", "1")
	rest.Route(api, rest.Operation{Method: "GET", Path: "/me", Permission: who.CertificateRead}, func(ctx context.Context, _ *struct{}) (*said, error) {
		return &said{message{who.From(ctx).ID}}, nil
	})
	rest.Route(api, rest.Operation{Method: "POST", Path: "/work", Permission: who.CertificateRead, Gated: true, MaxBody: 1000}, func(_ context.Context, in *said) (*said, error) {
		h.ran.Add(1)
		return in, nil
	})
	rest.Route(api, rest.Operation{Method: "GET", Path: "/open", Permission: who.Public}, func(context.Context, *struct{}) (*said, error) {
		return &said{message{"open"}}, nil
	})
	hold := func(ctx context.Context, _ *struct{}) (*said, error) {
		h.enter <- struct{}{}
		select {
		case <-h.release:
			return &said{message{"held"}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	rest.Route(api, rest.Operation{Method: "GET", Path: "/hold", Permission: who.Public, Gated: true}, hold)
	rest.Route(api, rest.Operation{Method: "GET", Path: "/long-hold", Permission: who.Public, Deadline: 5 * time.Second}, hold)
	rest.Route(api, rest.Operation{Method: "GET", Path: "/deaf", Permission: who.Public}, func(context.Context, *struct{}) (*said, error) {
		h.enter <- struct{}{}
		<-h.release
		return &said{message{"heard"}}, nil
	})
	rest.Route(api, rest.Operation{Method: "GET", Path: "/panic", Permission: who.Public}, func(context.Context, *struct{}) (*said, error) {
		panic("the roof")
	})
	rest.Raw(api, rest.Operation{Method: "GET", Path: "/half", Permission: who.Public}, rest.Media{}, func(*rest.Request) (*rest.Answer, error) {
		return &rest.Answer{Stream: func(w io.Writer) error { io.WriteString(w, "half"); panic("the roof") }}, nil
	})
	rest.Raw(api, rest.Operation{Method: "GET", Path: "/flood", Permission: who.Public}, rest.Media{}, func(*rest.Request) (*rest.Answer, error) {
		return &rest.Answer{Stream: func(w io.Writer) error {
			h.enter <- struct{}{}
			for block := make([]byte, 1<<20); ; {
				if _, err := w.Write(block); err != nil {
					h.enter <- struct{}{}
					return err
				}
			}
		}}, nil
	})
	return api
}

// client makes a client that trusts the house and shows the given certificates.
func (h *house) client(t testing.TB, certificates ...tls.Certificate) *http.Client {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: h.authority.pool, Certificates: certificates, ClientSessionCache: tls.NewLRUClientSessionCache(4)},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 100,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

func (h *house) url(l Listener, path string) string {
	scheme := "http"
	if l == HTTPS || l == MTLS {
		scheme = "https"
	}
	return scheme + "://" + h.Address(l).String() + path
}

// reply is an answer that was read to its end.
type reply struct {
	status int
	header http.Header
	body   string
	code   string // of a problem
	proto  int
	tls    *tls.ConnectionState
}

func send(t testing.TB, c *http.Client, method, url, body string, headers ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	response, err := c.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	var problem struct {
		Code string `json:"code"`
	}
	if response.Header.Get("Content-Type") == "application/problem+json" {
		if err := json.Unmarshal(text, &problem); err != nil {
			t.Errorf("the problem is not JSON: %s", text)
		}
	}
	return reply{response.StatusCode, response.Header, string(text), problem.Code, response.ProtoMajor, response.TLS}
}

func (r reply) want(t testing.TB, status int, code string) {
	t.Helper()
	if r.status != status || r.code != code {
		t.Errorf("answered %d %q, want %d %q: %s", r.status, r.code, status, code, r.body)
	}
}

func TestTokenOverBothVersionsOfHTTP(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	two := h.client(t)
	one := h.client(t)
	one.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	one.Transport.(*http.Transport).TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	for version, c := range map[int]*http.Client{1: one, 2: two} {
		r := send(t, c, "POST", h.url(HTTPS, "/work"), `{"text":"hi"}`, "Authorization", "Bearer hunter2")
		r.want(t, 200, "")
		if r.proto != version || r.body != `{"text":"hi"}` || !strings.HasPrefix(r.header.Get("X-Request-Id"), "req_") {
			t.Errorf("HTTP/%d: %+v", version, r)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	good := h.authority.issue(t, "agent-7", time.Now().Add(time.Hour))
	expired := h.authority.issue(t, "agent-8", time.Now().Add(-time.Minute))
	foreign := newAuthority(t, "ours").issue(t, "agent-9", time.Now().Add(time.Hour))
	plain, certified := h.client(t), h.client(t, good)
	long := "Bearer " + strings.Repeat("a", 10_000)
	for _, c := range []struct {
		name     string
		client   *http.Client
		listener Listener
		path     string
		token    string
		status   int
		code     string
		body     string
	}{
		{"token", plain, HTTPS, "/me", "Bearer hunter2", 200, "", "per_1"},
		{"scheme in lower case", plain, HTTPS, "/me", "bearer hunter2", 200, "", "per_1"},
		{"nothing", plain, HTTPS, "/me", "", 401, "credentials_required", ""},
		{"nothing on an open route", plain, HTTPS, "/open", "", 200, "", "open"},
		{"wrong token", plain, HTTPS, "/me", "Bearer wrong7", 401, "token_unknown", ""},
		{"wrong token on an open route", plain, HTTPS, "/open", "Bearer wrong7", 401, "token_unknown", ""},
		{"other scheme", plain, HTTPS, "/open", "Basic Z29vZA==", 401, "credential_invalid", ""},
		{"empty token", plain, HTTPS, "/open", "Bearer ", 401, "credential_invalid", ""},
		{"long token", plain, HTTPS, "/open", long, 431, "head_too_large", ""},
		{"in clear", plain, Public, "/open", "Bearer hunter2", 401, "credentials_in_clear", ""},
		{"loopback", plain, Loopback, "/me", "Bearer hunter2", 200, "", "per_1"},
		{"certificate", certified, MTLS, "/me", "", 200, "", "agent-7"},
		{"certificate where none is asked for", certified, HTTPS, "/me", "", 401, "credentials_required", ""},
		{"no certificate", plain, MTLS, "/me", "", 401, "credentials_required", ""},
		{"expired certificate", h.client(t, expired), MTLS, "/me", "", 401, "certificate_expired", ""},
		{"expired certificate on an open route", h.client(t, expired), MTLS, "/open", "", 401, "certificate_expired", ""},
		{"foreign certificate", h.client(t, foreign), MTLS, "/me", "", 401, "certificate_foreign", ""},
		{"token before certificate", certified, MTLS, "/me", "Bearer hunter2", 200, "", "per_1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var headers []string
			if c.token != "" {
				headers = []string{"Authorization", c.token}
			}
			r := send(t, c.client, "GET", h.url(c.listener, c.path), "", headers...)
			r.want(t, c.status, c.code)
			if !strings.Contains(r.body, c.body) {
				t.Errorf("body %s, want %s in it", r.body, c.body)
			}
		})
	}
	r := send(t, plain, "GET", h.url(HTTPS, "/me"), "", "Authorization", "Bearer hunter2", "Authorization", "Bearer wrong7")
	r.want(t, 400, "credential_invalid")
	for _, secret := range []string{"hunter2", "wrong7", "Z29vZA"} {
		if strings.Contains(h.log.String(), secret) {
			t.Errorf("the log holds %q:\n%s", secret, h.log)
		}
	}
}

func TestResumedSessionKeepsTheCertificate(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	c := h.client(t, h.authority.issue(t, "agent-7", time.Now().Add(time.Hour)))
	c.Transport.(*http.Transport).DisableKeepAlives = true
	for i, resumed := range []bool{false, true} {
		r := send(t, c, "GET", h.url(MTLS, "/me"), "")
		r.want(t, 200, "")
		if r.tls.DidResume != resumed || !strings.Contains(r.body, "agent-7") {
			t.Errorf("request %d: resumed %v, want %v: %s", i, r.tls.DidResume, resumed, r.body)
		}
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	_, err := tls.Dial("tcp", h.Address(HTTPS).String(), &tls.Config{RootCAs: h.authority.pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	if err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
}

func TestFormOfRequests(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	c := h.client(t)
	token := []string{"Authorization", "Bearer hunter2"}
	send(t, c, "POST", h.url(HTTPS, "/work"), strings.Repeat(" ", 1001), token...).want(t, 413, "body_too_large")
	send(t, c, "POST", h.url(HTTPS, "/work"), `{}`, append(token, "Content-Type", "text/plain")...).want(t, 415, "content_type_unknown")
	send(t, c, "POST", h.url(HTTPS, "/work"), `{}`, append(token, "Content-Encoding", "gzip")...).want(t, 415, "content_encoding_unknown")
	send(t, c, "BREW", h.url(HTTPS, "/work"), "").want(t, 405, "method_not_allowed")
	send(t, c, "GET", h.url(HTTPS, "/nowhere"), "").want(t, 404, "route_unknown")
	send(t, c, "POST", h.url(HTTPS, "/work"), `{}`, append(token, "Sec-Fetch-Site", "cross-site")...).want(t, 403, "cross_origin")
	send(t, c, "GET", h.url(Loopback, "/open"), "").want(t, 200, "")
	if ran := h.ran.Load(); ran != 0 {
		t.Errorf("the handler ran %d times", ran)
	}
}

func TestChunkedBodyBeyondTheBound(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	r, err := http.NewRequestWithContext(t.Context(), "POST", h.url(HTTPS, "/work"), io.MultiReader(strings.NewReader(strings.Repeat(" ", 5000))))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer hunter2")
	response, err := h.client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 413 {
		t.Errorf("answered %d, want 413", response.StatusCode)
	}
}

func TestLoopbackAnswersForLocalhostOnly(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	for host, status := range map[string]int{"localhost:8080": 200, "[::1]:8080": 200, "127.0.0.1": 200, "evil.example": 421, "localhost.evil.example:8080": 421} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", h.url(Loopback, "/open"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		response, err := h.client(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("host %s: %d, want %d", host, response.StatusCode, status)
		}
	}
	if _, err := listen(t.Context(), Loopback, "0.0.0.0:0"); err == nil {
		t.Error("the loopback listener took an address that others reach")
	}
}

func TestFailedStartListensOnNothing(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	f, err := New(Config{Listen: map[Listener]string{Loopback: "127.0.0.1:0", Public: taken.Addr().String()}}, rest.New("x", "1"), nil, NewMetrics())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(t.Context()); err == nil || f.Address(Loopback) != nil {
		t.Errorf("Start: %v, loopback on %v", err, f.Address(Loopback))
	}
}

func TestPanicIsAnsweredAndSurvived(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	c := h.client(t)
	r := send(t, c, "GET", h.url(HTTPS, "/panic"), "")
	r.want(t, 500, "")
	if strings.Contains(r.body, "roof") || !strings.Contains(r.body, r.header.Get("X-Request-Id")) {
		t.Errorf("the answer to a panic: %s", r.body)
	}
	response, err := c.Get(h.url(HTTPS, "/half"))
	if err == nil {
		if _, err = io.ReadAll(response.Body); err == nil {
			t.Error("half an answer passed for a whole one")
		}
		response.Body.Close()
	}
	send(t, c, "GET", h.url(HTTPS, "/open"), "").want(t, 200, "")
	if log := h.log.String(); !strings.Contains(log, "the roof") || !strings.Contains(log, r.header.Get("X-Request-Id")) {
		t.Errorf("the log does not tell of the panic:\n%s", log)
	}
}

func TestFullGateRunsNothing(t *testing.T) {
	t.Parallel()
	h := open(t, func(c *Config) { c.Gate.Bytes = requestBytes + 100 })
	c := h.client(t)
	done := make(chan reply, 1)
	go func() {
		defer close(done)
		done <- send(t, c, "GET", h.url(HTTPS, "/hold"), "")
	}()
	<-h.enter
	r := send(t, c, "POST", h.url(HTTPS, "/work"), `{"text":"hi"}`, "Authorization", "Bearer hunter2")
	r.want(t, 503, "overloaded")
	if r.header.Get("Retry-After") == "" || h.ran.Load() != 0 || h.doorman.asked.Load() != 0 {
		t.Errorf("refused with %v; handler ran %d times, the authenticator %d", r.header, h.ran.Load(), h.doorman.asked.Load())
	}
	send(t, c, "GET", h.url(HTTPS, "/me"), "", "Authorization", "Bearer hunter2").want(t, 200, "")
	close(h.release)
	(<-done).want(t, 200, "")
	send(t, c, "POST", h.url(HTTPS, "/work"), `{"text":"hi"}`, "Authorization", "Bearer hunter2").want(t, 200, "")
	if got := h.Recent(); len(got) != 0 {
		t.Errorf("overload pushes other refusals out of the ring: %+v", got)
	}
}

func TestRecentRefusals(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	c := h.client(t)
	send(t, c, "GET", h.url(HTTPS, "/panic"), "")
	r := send(t, c, "GET", h.url(HTTPS, "/me"), "")
	got := h.Recent()
	if len(got) != 2 {
		t.Fatalf("recent refusals: %+v", got)
	}
	if n := got[0]; n.Code != "credentials_required" || n.RequestID != r.header.Get("X-Request-Id") || n.Route != "GET /me" || n.Status != 401 || n.Text == "" {
		t.Errorf("the newest refusal: %+v", n)
	}
	if n := got[1]; n.Code != "" || strings.Contains(n.Text, "roof") || n.Status != 500 {
		t.Errorf("the refusal of a panic: %+v", n)
	}
	for range 2 * len(h.recent.ring) {
		h.recent.add(api.Refusal{})
	}
	if n := len(h.Recent()); n != len(h.recent.ring) {
		t.Errorf("the ring holds %d", n)
	}
}

func TestWorkHasADeadline(t *testing.T) {
	t.Parallel()
	h := open(t, func(c *Config) { c.Work = 20 * time.Millisecond })
	send(t, h.client(t), "GET", h.url(HTTPS, "/hold"), "").want(t, 504, "deadline_passed")
}

func TestRateOfStrangers(t *testing.T) {
	t.Parallel()
	h := open(t, func(c *Config) { c.Rate, c.Burst = 0.001, 2 })
	c := h.client(t)
	send(t, c, "GET", h.url(HTTPS, "/open"), "").want(t, 200, "")
	send(t, c, "GET", h.url(HTTPS, "/me"), "", "Authorization", "Bearer wrong7").want(t, 401, "token_unknown")
	r := send(t, c, "GET", h.url(HTTPS, "/open"), "")
	r.want(t, 429, "rate_limited")
	if r.header.Get("Retry-After") != "1000" {
		t.Errorf("Retry-After %q, want 1000", r.header.Get("Retry-After"))
	}
	send(t, c, "GET", h.url(HTTPS, "/me"), "", "Authorization", "Bearer wrong7").want(t, 429, "rate_limited")
	send(t, c, "GET", h.url(HTTPS, "/me"), "", "Authorization", "Bearer hunter2").want(t, 200, "")
}

func TestMetricsAndProfiles(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	c := h.client(t)
	send(t, c, "GET", h.url(HTTPS, "/me"), "")
	send(t, c, "GET", h.url(HTTPS, "/open"), "")
	h.metrics.Observe("sign", time.Millisecond)
	h.metrics.Committed(5)
	h.metrics.Committed(7)
	body := send(t, c, "GET", h.url(Private, "/metrics"), "").body
	for _, want := range []string{`chancery_phase_seconds_count{phase="sign"} 1`, `chancery_phase_seconds_count{phase="sync"} 0`,
		`chancery_phase_seconds_count{phase="authenticate"} 2`, `chancery_phase_seconds_count{phase="parse"} 1`, `chancery_phase_seconds_count{phase="answer"} 2`,
		`chancery_refusals_total{code="credentials_required"} 1`, `chancery_request_seconds_count{route="GET /me",status="401"} 1`,
		"chancery_commit_rows_count 2", "chancery_commit_rows_sum 12", "chancery_connections 1", "chancery_gate_wait_seconds 0", "go_goroutines"} {
		if !strings.Contains(body, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if got := send(t, c, "GET", h.url(Private, "/debug/pprof/"), "").status; got != 404 {
		t.Errorf("profiles are served without the switch: %d", got)
	}
	if got := send(t, c, "GET", h.url(Private, "/me"), "").status; got != 404 {
		t.Errorf("the private listener serves routes: %d", got)
	}
}
