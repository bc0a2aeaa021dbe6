package load

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"chancery/api"
	"chancery/internal/load/bare"
	"chancery/internal/load/drive"
)

// serve starts a TLS server with an authority of its own.
func serve(t *testing.T, h http.Handler) (address string, root *x509.Certificate) {
	t.Helper()
	key, root, err := bare.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	if s.TLS, err = bare.ServerTLS(key, root); err != nil {
		t.Fatal(err)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "https://"), root
}

func (s *standIn) heat(t *testing.T, h http.Handler) heat {
	t.Helper()
	address, root := serve(t, h)
	return heat{
		Loop: Loop{Clients: 2, Duration: 200 * time.Millisecond}, address: address, tls: trusting(loopback, root),
		scenario: scenario{
			path: bare.Bearer,
			next: func(int) (job, error) {
				return job{token: s.hello.Tokens[0], body: s.order.body, expect: s.order.expect}, nil
			},
			verify: func(*x509.Certificate, api.Issued) error { return nil },
		},
	}
}

func TestHeatCountsAnswersAndObeysRefusals(t *testing.T) {
	s := newStandIn(t)
	var asked atomic.Int64
	counted := s.heat(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= 2 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s.ServeHTTP(w, r)
	})).run(t.Context())
	if err := counted.sound(); err != nil {
		t.Error(err)
	}
	if counted.Refused != 2 || len(counted.answered) == 0 || counted.requests() == 0 || counted.verified == 0 {
		t.Errorf("refused %d, want 2; answered %d, timed %d, verified %d, want some of each", counted.Refused, len(counted.answered), counted.requests(), counted.verified)
	}
}

func TestHeatNoticesWhatIsWrong(t *testing.T) {
	s := newStandIn(t)
	stale := s.ask(bare.Bearer, s.hello.Tokens[0], s.order.body).Body.Bytes()
	for what, h := range map[string]http.HandlerFunc{
		"the same certificate each time": func(w http.ResponseWriter, _ *http.Request) { w.Write(stale) },
		"garbage":                        func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
		"errors":                         func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"a hung-up connection":           func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		if err := s.heat(t, h).run(t.Context()).sound(); err == nil {
			t.Errorf("%s went unnoticed", what)
		}
	}
}

// TestHeatEndsAtOnce interrupts clients whose server never answers.
func TestHeatEndsAtOnce(t *testing.T) {
	s := newStandIn(t)
	ctx, cancel := context.WithCancel(t.Context())
	arrived, release := make(chan struct{}, 16), make(chan struct{})
	defer close(release)
	l := s.heat(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	l.Duration = time.Hour
	go func() {
		<-arrived
		cancel()
	}()
	if counted := l.run(ctx); len(counted.Errors) > 0 {
		t.Errorf("the interruption was counted as %v", counted.Errors)
	}
}

func TestLookUpNoticesWhatIsLost(t *testing.T) {
	s := newStandIn(t)
	got, cert, err := s.order.expect.examine(s.ask(bare.Bearer, s.hello.Tokens[0], s.order.body).Body.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	address, root := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, got.Serial) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Write([]byte(`{"serial":"` + got.Serial + `","certificate":"` + strings.ReplaceAll(got.PEM, "\n", `\n`) + `"}`))
	}))
	target := &target{address: address, tls: trusting(loopback, root)}
	good := remember(got, cert)
	changed := good
	changed.sum[0] ^= 1
	l := target.lookUpStored(t.Context(), []issued{good, changed, {serial: "00ff"}})
	if l.LookedUp != 3 || l.Lost != 1 || l.Differ != 1 || l.Unknown != 0 {
		t.Errorf("found %+v, want one there, one changed, one lost", l)
	}
}

func TestLatency(t *testing.T) {
	h := drive.NewHistogram()
	for ms := range 1000 {
		drive.Record(h, time.Duration(ms+1)*time.Millisecond)
	}
	got := latencyOf(h)
	for what, pair := range map[string][2]float64{"p50": {got.P50, 500}, "p99": {got.P99, 990}, "max": {got.Max, 1000}} {
		if off := pair[0]/pair[1] - 1; off < -0.002 || off > 0.002 {
			t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
		}
	}
}

func TestAServerThatEndedByItselfIsNoticed(t *testing.T) {
	s := &server{child: &child{ended: make(chan struct{}), stderr: &tail{last: []byte("panic")}}}
	if err := s.gone(); err != nil {
		t.Errorf("it runs: %v", err)
	}
	going, stop := s.while(t.Context())
	defer stop()
	if going.Err() != nil {
		t.Errorf("it runs, and its run is over: %v", going.Err())
	}
	s.err = errors.New("signal: killed")
	close(s.ended)
	select {
	case <-going.Done():
	case <-time.After(10 * time.Second):
		t.Error("its run goes on without it")
	}
	if err := s.gone(); err == nil || !strings.HasPrefix(err.Error(), "the server ended during the run: signal: killed; ") || !strings.HasSuffix(err.Error(), "panic") {
		t.Errorf("it ended: %v", err)
	}
}

func TestNothingBeginsAfterAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var done atomic.Int64
	err := side(ctx, 2, 1_000_000, func(i int) error {
		if done.Add(1) == 10 {
			cancel()
		}
		return nil
	})
	if err == nil || done.Load() > 1000 { // of a million: some may be under way before the end is seen
		t.Errorf("%d things done, the end came after ten: %v", done.Load(), err)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.of); got != c.want {
			t.Errorf("of %v: %v, want %v", c.of, got, c.want)
		}
	}
}

func TestSharesAddUp(t *testing.T) {
	sum := 0
	for i := range 7 {
		sum += share(64, 7, i)
	}
	if sum != 64 {
		t.Errorf("64 things for 7 are %d", sum)
	}
}
