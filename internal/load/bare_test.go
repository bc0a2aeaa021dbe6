package load

import (
	"crypto/ecdsa"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"chancery/internal/load/bare"
)

// A standIn is a bare handler in this process.
type standIn struct {
	*bare.Handler
	hello bare.Greeting
	order order
	key   *ecdsa.PrivateKey
}

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	b, hello, err := bare.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	all, err := newOrders(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParsePKCS8PrivateKey(hello.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &standIn{Handler: b, hello: hello, order: all[0], key: key.(*ecdsa.PrivateKey)}
}

func (s *standIn) ask(path, token string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body)))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestBareHandlerIssuesValidCertificates(t *testing.T) {
	s := newStandIn(t)
	once, err := bare.SignOneTime(s.key, s.order.body)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(s.hello.Root))
	for path, token := range map[string]string{bare.Bearer: s.hello.Tokens[0], bare.Renewal: s.hello.Tokens[1], bare.OneTime: once} {
		w := s.ask(path, token, s.order.body)
		_, cert, err := s.order.expect.examine(w.Body.Bytes(), nil)
		if err != nil {
			t.Fatalf("%s: %d: %v", path, w.Code, err)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestBareHandlerRefuses(t *testing.T) {
	s := newStandIn(t)
	once, err := bare.SignOneTime(s.key, s.order.body)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(s.order.body), "MIH", "MIG", 1)
	if w := s.ask(bare.OneTime, once, s.order.body); w.Code != http.StatusCreated {
		t.Fatalf("a fresh one-time token: %d %s", w.Code, w.Body)
	}
	for what, w := range map[string]*httptest.ResponseRecorder{
		"an unknown token":           s.ask(bare.Bearer, "nobody's", s.order.body),
		"a one-time token again":     s.ask(bare.OneTime, once, s.order.body),
		"a token for something else": s.ask(bare.OneTime, strings.Replace(once, ".", "x.", 1), s.order.body),
		"a broken request":           s.ask(bare.Bearer, s.hello.Tokens[0], []byte(forged)),
	} {
		if w.Code < 400 {
			t.Errorf("%s was accepted", what)
		}
	}
}

func TestExamineNoticesWhatIsWrong(t *testing.T) {
	s := newStandIn(t)
	body := s.ask(bare.Bearer, s.hello.Tokens[0], s.order.body).Body.Bytes()
	for what, change := range map[string]func(*expectation){
		"another key":      func(e *expectation) { e.spki = append([]byte{0}, e.spki...) },
		"another name":     func(e *expectation) { e.commonName = "someone" },
		"another lifetime": func(e *expectation) { e.lifetime = 2 * time.Hour },
		"no identity":      func(e *expectation) { e.identity = []byte{1} },
	} {
		e := s.order.expect
		change(&e)
		if _, _, err := e.examine(body, nil); err == nil {
			t.Errorf("%s went unnoticed", what)
		}
	}
}

func TestLimits(t *testing.T) {
	c := LimitConfig{Dir: t.TempDir(), Sample: time.Millisecond, Loop: Loop{Duration: 500 * time.Millisecond, Warmup: 200 * time.Millisecond, Clients: 4}, Log: t.Logf}
	r, err := Limits(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"p256_sign", "csr", "issue", "fsync", "journal", "sqlite", "http", "bare_renewal", "bare_bearer", "bare_one_time"} {
		if !slices.ContainsFunc(r.Limits, func(l Limit) bool { return l.Key == key && l.Both.PerSecond > 0 }) {
			t.Errorf("limit %s is missing", key)
		}
	}
}
