package agentcert

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"chancery/capability"
)

// calendarRoutes is how a service names its operations.
func calendarRoutes(r *http.Request) (capability.Operation, error) {
	switch r.Method {
	case http.MethodGet:
		return capability.Operation{Name: "calendar:read", ReadOnly: true}, nil
	case http.MethodPost:
		return capability.Operation{Name: "calendar:write"}, nil
	}
	return capability.Operation{}, errors.New("no such operation")
}

// service runs the middleware behind TLS, around a handler that answers with the agent's name.
func service(t *testing.T, v *Verifier) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(v.Middleware(calendarRoutes)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := DecisionFrom(r.Context())
		_, _ = w.Write([]byte(d.AgentID))
	})))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// call sends a request with a chain of certificates, on a connection of its own.
func call(t *testing.T, server *httptest.Server, s *story, method string, chain ...*x509.Certificate) (int, map[string]any) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	config := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}
	if len(chain) > 0 {
		own := tls.Certificate{PrivateKey: s.key}
		for _, c := range chain {
			own.Certificate = append(own.Certificate, c.Raw)
		}
		config.Certificates = []tls.Certificate{own}
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	problem := map[string]any{}
	if response.StatusCode != http.StatusOK {
		if got := response.Header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("a refusal has the type %q", got)
		}
		if err := json.NewDecoder(response.Body).Decode(&problem); err != nil {
			t.Error(err)
		}
	}
	return response.StatusCode, problem
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "Example")
	alice := ca.person(t, calendarOwner(t))
	s := newStory(t, alice, "calendar:read")
	s.aic.Constraints = grants(t, `constraint:network:cidr["127.0.0.0/8","::1/128"]`)
	agent := s.issue(t, ca)
	server := service(t, ca.verifier(Policy{}))
	for _, tt := range []struct {
		name   string
		method string
		chain  []*x509.Certificate
		status int
		step   string
		code   string
	}{
		{"no certificate", "GET", nil, 401, StepRequest, "client_certificate_missing"},
		{"no principal", "GET", []*x509.Certificate{agent, ca.issuing}, 403, StepPrincipal, "principal_absent"},
		{"allowed", "GET", []*x509.Certificate{agent, ca.issuing, alice.cert}, 200, "", ""},
		{"principal remembered", "GET", []*x509.Certificate{agent, ca.issuing}, 200, "", ""},
		{"not delegated", "POST", []*x509.Certificate{agent, ca.issuing}, 403, StepOperation, capability.CodeNotGranted},
		{"no operation", "DELETE", []*x509.Certificate{agent, ca.issuing}, 403, StepRequest, "operation_unknown"},
	} {
		status, problem := call(t, server, s, tt.method, tt.chain...)
		if status != tt.status {
			t.Errorf("%s: %d %v, want %d", tt.name, status, problem, tt.status)
		}
		if tt.code != "" && (problem["step"] != tt.step || problem["code"] != tt.code || problem["detail"] == "") {
			t.Errorf("%s: %v, want step %s, code %s", tt.name, problem, tt.step, tt.code)
		}
	}
}

// A floor is where agents work under obligations, with a clock to move.
type floor struct {
	*sessions
	now  time.Time
	next func() Decision // each with another certificate of the same agent
}

func (f *floor) start(d Decision) (func(), *Refusal) {
	return f.begin(d, func() time.Time { return f.now })
}

func newFloor(t *testing.T, constraints ...string) *floor {
	t.Helper()
	ca := newAuthority(t, "Example")
	alice := ca.person(t, calendarOwner(t))
	f := &floor{now: noon}
	v := ca.verifier(Policy{Now: func() time.Time { return f.now }})
	f.sessions = v.sessions
	f.next = func() Decision {
		s := newStory(t, alice, "calendar:read")
		s.aic.Constraints = grants(t, constraints...)
		d, err := v.Verify(t.Context(), []*x509.Certificate{s.issue(t, ca), ca.issuing}, []*x509.Certificate{alice.cert}, read)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	return f
}

func TestMaxConcurrentIsPerAgent(t *testing.T) {
	t.Parallel()
	f := newFloor(t, `constraint:max-concurrent{"max":2}`)
	var ends []func()
	for range 2 {
		d := f.next()
		end, refusal := f.start(d)
		if refusal != nil {
			t.Fatal(refusal)
		}
		ends = append(ends, end)
	}
	d := f.next()
	if _, refusal := f.start(d); refusal == nil || refusal.Code != "too_many_concurrent" {
		t.Fatalf("a third operation: %v", refusal)
	}
	ends[0]()
	end, refusal := f.start(d)
	if refusal != nil {
		t.Fatalf("after one has ended: %v", refusal)
	}
	end()
	ends[1]()
	if len(f.running) != 0 {
		t.Errorf("%d agents are still counted as running", len(f.running))
	}
}

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	f := newFloor(t, `constraint:session:idle-timeout{"seconds":60}`)
	d := f.next()
	for _, tt := range []struct {
		pause time.Duration
		code  string
	}{{0, ""}, {60 * time.Second, ""}, {61 * time.Second, "session_idle"}, {0, "session_idle"}} {
		f.now = f.now.Add(tt.pause)
		end, refusal := f.start(d)
		if tt.code == "" && refusal != nil || tt.code != "" && (refusal == nil || refusal.Code != tt.code) {
			t.Fatalf("after %s: %v, want code %q", tt.pause, refusal, tt.code)
		}
		if end != nil {
			end()
		}
	}
	// A long operation is no idle time.
	d = f.next()
	end, _ := f.start(d)
	f.now = f.now.Add(2 * time.Minute)
	if _, refusal := f.start(d); refusal != nil {
		t.Errorf("beside a running operation: %v", refusal)
	}
	end()
}

func TestHardTimeout(t *testing.T) {
	t.Parallel()
	f := newFloor(t, `constraint:session:hard-timeout{"seconds":120}`)
	d := f.next()
	for range 3 {
		end, refusal := f.start(d)
		if refusal != nil {
			t.Fatal(refusal)
		}
		end()
		f.now = f.now.Add(time.Minute)
	}
	if _, refusal := f.start(d); refusal == nil || refusal.Code != "session_over" {
		t.Errorf("after three minutes: %v", refusal)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFloor(t, `constraint:max-concurrent{"max":10}`)
	f.most = 2
	for range 2 {
		d := f.next()
		end, refusal := f.start(d)
		if refusal != nil {
			t.Fatal(refusal)
		}
		end()
	}
	d := f.next()
	if _, refusal := f.start(d); refusal == nil || refusal.Code != "sessions_full" {
		t.Fatalf("a third session: %v", refusal)
	}
	f.now = noon.Add(11 * time.Minute) // the first two certificates have expired
	end, refusal := f.start(d)
	if refusal != nil {
		t.Fatalf("after the others expired: %v", refusal)
	}
	end()
	if len(f.byCertificate) != 1 {
		t.Errorf("%d sessions are kept, want 1", len(f.byCertificate))
	}
}
