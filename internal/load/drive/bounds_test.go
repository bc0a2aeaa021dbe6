package drive

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// speak starts a server that reads one request on each connection and writes what it is told to, until the client is gone.
func speak(t *testing.T, say func(io.Writer) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				in := bufio.NewReader(c)
				for {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if say(c) != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// within fails where something takes longer than it may.
func within(t *testing.T, most time.Duration, do func()) {
	t.Helper()
	began := time.Now()
	do()
	if took := time.Since(began); took > most {
		t.Errorf("took %s, want %s at most", took, most)
	}
}

// TestWhoIsToComeAfterTheEndWaitsForIt lets a server ask for more patience than the run has.
func TestWhoIsToComeAfterTheEndWaitsForIt(t *testing.T) {
	for _, after := range []string{"60", "99999999999", "99999999999999999999999999"} {
		address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		within(t, 2*time.Second, func() {
			got := Load{Address: address, Connections: 3, Stages: []Stage{{For: 300 * time.Millisecond}}, Next: post}.Run(t.Context())
			if got.Refused != 3 {
				t.Errorf("Retry-After %s: %d refusals of three clients", after, got.Refused)
			}
			if time.Now().Before(got.Until) {
				t.Errorf("Retry-After %s: the run ended before its time", after)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "soon": 0, "-1": 0, "-99999999999999999999": 0, "3": 3 * time.Second, "99999999999": retryAfterMax, "99999999999999999999": retryAfterMax} {
		if got := retryAfter(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestAPauseEndsWithTheRun(t *testing.T) {
	address := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, think := range []time.Duration{time.Minute, math.MaxInt64} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		within(t, 2*time.Second, func() {
			Load{Address: address, Connections: 4, Stages: []Stage{{For: 300 * time.Millisecond}}, Think: think, Next: post}.Run(ctx)
		})
	}
}

// TestRatesOfAnySize go to the ends of what a number holds.
func TestRatesOfAnySize(t *testing.T) {
	for _, rate := range []float64{math.SmallestNonzeroFloat64, 1e-12, 0, -1, math.NaN(), math.Inf(-1)} {
		if at, _, ok := Poisson([]Stage{{Rate: rate, For: time.Hour}}, 1).next(); ok {
			t.Errorf("%g a second: somebody comes after %s", rate, at)
		}
	}
	if at, _, ok := Poisson([]Stage{{Rate: math.Inf(1), For: time.Hour}}, 1).next(); !ok || at != 0 {
		t.Errorf("without bound: %v after %s", ok, at)
	}
}

// TestAPlanOfAnyLengthEndsWithItsContext has more arrivals than anybody can count, before a server that stands still.
func TestAPlanOfAnyLengthEndsWithItsContext(t *testing.T) {
	address := speak(t, func(io.Writer) error { return nil })
	for _, end := range []time.Duration{200 * time.Millisecond, time.Second} { // in the run, and when it counts what is left
		ctx, cancel := context.WithTimeout(t.Context(), end)
		defer cancel()
		stages := []Stage{{For: 400 * time.Millisecond}}
		l := Load{Address: address, Connections: 2, Stages: stages, Arrivals: Steady(1_000_000, time.Nanosecond, stages, 1), Next: post, Patience: 100 * time.Millisecond}
		within(t, end+time.Second, func() { l.Run(ctx) })
	}
}

// TestWhatNeverArrivedIsCountedInOneStep has billions of arrivals left that nobody could count one by one.
func TestWhatNeverArrivedIsCountedInOneStep(t *testing.T) {
	stages := []Stage{{Rate: 1_000_000, For: time.Hour / 4}, {Rate: 500_000, For: 3*time.Hour/4 - 1500*time.Millisecond}}
	for name, c := range map[string]struct {
		plan          Arrivals
		first, second int
		about         float64
	}{
		"independent": {Poisson(stages, 1), 900_000_000, 1_349_250_000, 1e-6},
		"steady":      {Steady(1000, time.Millisecond, stages, 1), 900_000_000, 2_698_500_000, 0},
		"at once":     {AtOnce(1 << 40), 1 << 40, 0, 0},
	} {
		tally := newTally(time.Now().Add(-time.Hour), stages)
		q := &line{load: &Load{Arrivals: c.plan}, tally: tally, ready: make(chan *arrival)}
		close(q.ready)
		q.advance()
		within(t, 5*time.Second, q.rest)
		near := func(got, want int) bool { return math.Abs(float64(got-want)) <= c.about*float64(want) }
		a, b := tally.Stages[0], tally.Stages[1]
		if !near(a.Offered, c.first) || !near(b.Offered, c.second) {
			t.Errorf("%s: %d and %d offered, want %d and %d", name, a.Offered, b.Offered, c.first, c.second)
		}
		if a.Errors[Unserved] != a.Offered || b.Errors[Unserved] != b.Offered || tally.Errors[Unserved] != a.Offered+b.Offered {
			t.Errorf("%s: offered %d and %d, unserved %v and %v, all %v", name, a.Offered, b.Offered, a.Errors, b.Errors, tally.Errors)
		}
		seconds := 0
		for _, s := range tally.Seconds {
			if seconds += s.Offered; s.Failed > 0 {
				t.Errorf("%s: %d failed in a second", name, s.Failed)
			}
		}
		if seconds != a.Offered+b.Offered {
			t.Errorf("%s: %d offered by seconds, %d by stages", name, seconds, a.Offered+b.Offered)
		}
	}
}

// TestSkippingCountsWhatWouldCome skips to all kinds of moments, from after all kinds of arrivals.
func TestSkippingCountsWhatWouldCome(t *testing.T) {
	const end = 3500 * time.Millisecond
	for walked := 1; walked <= 35; walked++ {
		walk := func() (s Arrivals, last time.Duration) {
			s = Steady(10, time.Second, []Stage{{For: end}}, uint64(walked))
			for range walked {
				last, _, _ = s.next()
			}
			return s, last
		}
		for _, further := range []time.Duration{0, 1, 200 * time.Millisecond, time.Second, end} {
			s, last := walk()
			until, want := min(last+further, end), 0
			for at, _, ok := s.next(); ok && at < until; at, _, ok = s.next() {
				want++
			}
			s, _ = walk()
			if got := s.skip(until); got != want {
				t.Errorf("after %d arrivals, the last at %s, %d are skipped before %s, want %d", walked, last, got, until, want)
			}
			if got := s.skip(until); got != 0 {
				t.Errorf("%d are skipped twice", got)
			}
		}
	}
}

// TestAnAnswerJudgedLateCounts: one that came in time is right or wrong, also where the judgment ends after patience.
func TestAnAnswerJudgedLateCounts(t *testing.T) {
	address := serve(t, func(http.ResponseWriter, *http.Request) {})
	for name, plan := range map[string]Arrivals{"closed": nil, "open": AtOnce(1)} {
		end := time.Now().Add(300 * time.Millisecond)
		next := func(turn int) (Job, error) {
			j, err := post(turn)
			j.Judge = func(Answer) error {
				Pause(context.WithoutCancel(t.Context()), time.Until(end))
				return errors.New("wrong")
			}
			return j, err
		}
		got := Load{Address: address, Connections: 1, Stages: []Stage{{For: 50 * time.Millisecond}}, Arrivals: plan, Next: next, Patience: 100 * time.Millisecond}.Run(t.Context())
		if got.Wrongs != 1 || len(got.Errors) > 0 {
			t.Errorf("%s: %d wrong, errors %v; want one that is wrong", name, got.Wrongs, got.Errors)
		}
	}
}

// TestAServerThatIsNotTrustedIsNamed by the check of crypto/tls, and by one in its place.
func TestAServerThatIsNotTrustedIsNamed(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	own := func(err error) *tls.Config {
		return &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error { return err }}
	}
	for name, c := range map[string]*tls.Config{
		"unknown root": {RootCAs: x509.NewCertPool(), ServerName: "example.com"},
		"another root": own(x509.UnknownAuthorityError{}), "another name": own(x509.HostnameError{Certificate: server.Certificate(), Host: "x"}),
		"expired": own(x509.CertificateInvalidError{Cert: server.Certificate(), Reason: x509.Expired}),
	} {
		_, err := (&Connection{Address: server.Listener.Addr().String(), TLS: c}).Ask(t.Context(), Question{Method: http.MethodGet, Path: "/"})
		if err == nil || kind(err) != "server not trusted" {
			t.Errorf("%s: %v is called %q", name, err, kind(err))
		}
	}
}

// TestAnswersThatDoNotEnd are what a server may send without ever saying anything.
func TestAnswersThatDoNotEnd(t *testing.T) {
	stand := func(io.Writer) error { return nil }
	endless := func(head, line string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, head)
			for err == nil {
				_, err = io.WriteString(w, line)
			}
			return err
		}
	}
	for name, c := range map[string]struct {
		say  func(io.Writer) error
		want string
	}{
		"nothing": {stand, "timeout"},
		"half a body": {func(w io.Writer) error {
			_, err := io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
			return err
		}, "timeout"},
		"one interim":   {func(w io.Writer) error { _, err := io.WriteString(w, "HTTP/1.1 103 Early Hints\r\n\r\n"); return err }, "timeout"},
		"all interim":   {endless("", "HTTP/1.1 103 Early Hints\r\n\r\n"), "no final answer"},
		"a protocol":    {endless("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "x"), "no final answer"},
		"one header":    {endless("HTTP/1.1 200 OK\r\nX: ", strings.Repeat("a", 1000)), "answer too long"},
		"headers":       {endless("HTTP/1.1 200 OK\r\n", "X: a\r\n"), "answer too long"},
		"one body":      {endless("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("a", 1<<20)), "answer too long"},
		"body in parts": {endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "100000\r\n"+strings.Repeat("a", 1<<20)+"\r\n"), "answer too long"},
	} {
		t.Run(name, func(t *testing.T) {
			var late int
			l := Load{Address: speak(t, c.say), Connections: 1, Stages: []Stage{{For: 300 * time.Millisecond}}, Next: post, Patience: 20 * time.Second, Late: func(left int) { late = left }}
			silent := c.want == "timeout"
			if silent { // all others are ended by what they say, however slow the machine is
				l.Patience = 1200 * time.Millisecond
			}
			within(t, 30*time.Second, func() {
				got := l.Run(t.Context())
				if s := counted(got); s.Latency.TotalCount() > 0 || s.Errors["no answer: "+c.want] == 0 || len(s.Errors) > 1 {
					t.Errorf("answered %d, errors %v; want %q", s.Latency.TotalCount(), s.Errors, c.want)
				}
			})
			if silent && late != 1 {
				t.Errorf("was told that %d are waited for", late)
			}
		})
	}
}

func TestInterimAnswersAreNoAnswers(t *testing.T) {
	c := &Connection{Address: speak(t, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n", interimMax)+"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok")
		return err
	})}
	defer c.Close()
	for range 2 {
		if a, err := c.Ask(t.Context(), Question{Method: http.MethodGet, Path: "/"}); err != nil || a.Status != http.StatusCreated || string(a.Body) != "ok" {
			t.Fatalf("status %d, body %q, %v", a.Status, a.Body, err)
		}
	}
}

// TestKindsOfErrorsAreBounded whatever a server makes up.
func TestKindsOfErrorsAreBounded(t *testing.T) {
	tally := newTally(time.Now(), []Stage{{For: time.Minute}, {For: time.Minute}})
	for i := range 1000 {
		tally.fail(tally.Began, Answer{Status: 400, Body: fmt.Appendf(nil, `{"code":"%d\u001b[2J\n%s"}`, i, strings.Repeat("x", 1000))}.Refusal())
		tally.fail(tally.Began.Add(90*time.Second), fmt.Sprint(i))
	}
	tally.fail(tally.Began, Unserved)
	tally.settle(tally.Began, tally.Began, errors.New(strings.Repeat("wrong\n", 1000)))
	n := 0
	for kind, count := range tally.Errors {
		n += count
		if len([]rune(kind)) > kindLength+1 || strings.ContainsAny(kind, "\x1b\n") {
			t.Errorf("a kind of errors is %q", kind)
		}
	}
	if most := kindsMax + 2; n != 2001 || len(tally.Errors) > most || len(tally.Stages[0].Errors) > most || tally.Errors[Unserved] != 1 || tally.Errors[otherErrors] == 0 {
		t.Errorf("%d errors of %d kinds, %d of them unserved", n, len(tally.Errors), tally.Errors[Unserved])
	}
	if len(tally.Wrong[0]) > 2*wrongLength || strings.Contains(tally.Wrong[0], "\n") {
		t.Errorf("a wrong answer is shown as %q", tally.Wrong[0])
	}
}

// TestAnArrivalAMomentEarly is counted in the second in which it was to start: a signal ends the last sleep before it.
func TestAnArrivalAMomentEarly(t *testing.T) {
	tally := newTally(time.Now(), []Stage{{For: time.Minute}})
	tally.offer(tally.Began.Add(time.Second))
	if len(tally.Seconds) != 2 || tally.Seconds[1].Offered != 1 {
		t.Errorf("%+v", tally.Seconds)
	}
}
