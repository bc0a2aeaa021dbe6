package front

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"chancery/internal/base/who"
	"chancery/internal/edge/rest"
)

// BenchmarkChain compares a small JSON POST through the whole chain (gate, token, permission, metrics; no access log)
// with a bare handler that does the same work, both without a network. The difference is what the house costs.
func BenchmarkChain(b *testing.B) {
	h := &house{doorman: &doorman{}}
	api := h.routes()
	rest.Raw(api, rest.Operation{Method: "POST", Path: "/raw", Permission: who.CertificateRead, Gated: true},
		rest.Media{In: map[string]any{rest.TypeJSON: message{}}}, func(r *rest.Request) (*rest.Answer, error) {
			var m message
			if err := r.Decode(&m); err != nil {
				return nil, err
			}
			return &rest.Answer{JSON: m}, nil
		})
	f, err := New(Config{}, api, h.doorman, NewMetrics())
	if err != nil {
		b.Fatal(err)
	}
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.UnmarshalRead(r.Body, &m); err != nil {
			b.Error(err)
		}
		json.MarshalWrite(w, m)
	})
	b.Run("bare", func(b *testing.B) { post(b, bare, "/work", `{"text":"hi"}`, 200) })
	b.Run("raw", func(b *testing.B) { post(b, http.HandlerFunc(f.serveRequest), "/raw", `{"text":"hi"}`, 200) })
	b.Run("typed", func(b *testing.B) { post(b, http.HandlerFunc(f.serveRequest), "/work", `{"text":"hi"}`, 200) })
	f.gate.capacity.Bytes = 1
	b.Run("refused", func(b *testing.B) { post(b, http.HandlerFunc(f.serveRequest), "/raw", `{"text":"hi"}`, 503) })
}

func post(b *testing.B, h http.Handler, path, body string, want int) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		r, _ := http.NewRequest("POST", path, io.NopCloser(strings.NewReader(body)))
		r.ContentLength = int64(len(body))
		r.Header["Authorization"] = []string{"Bearer hunter2"}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			b.Fatal(w.Code, w.Body)
		}
	}
}

// BenchmarkTLS is the round trip over TLS on loopback with one kept connection, through the chain and bare.
func BenchmarkTLS(b *testing.B) {
	h := open(b, func(c *Config) { c.Log = nil })
	c := h.client(b)
	c.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	bare := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.UnmarshalRead(r.Body, &m); err != nil {
			b.Error(err)
		}
		json.MarshalWrite(w, m)
	}))
	bare.TLS = &tls.Config{Certificates: []tls.Certificate{h.authority.issue(b, "localhost", time.Now().Add(time.Hour))}}
	bare.StartTLS()
	defer bare.Close()
	for _, s := range []struct{ name, url string }{{"chain", h.url(HTTPS, "/work")}, {"bare", bare.URL}} {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				send(b, c, "POST", s.url, `{"text":"hi"}`, "Authorization", "Bearer hunter2")
			}
		})
	}
}
