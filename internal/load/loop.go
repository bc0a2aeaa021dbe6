package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/go-json-experiment/json"

	"chancery/api"
)

// A scenario is what clients ask for, and how an answer is judged.
type scenario struct {
	path   string
	next   func(client int) (job, error)                      // the next request of a client; called by that client's goroutine
	verify func(leaf *x509.Certificate, got api.Issued) error // the whole verification, for a sample
	read   func(body []byte) (api.Issued, error)              // an answer in another form than ours; nil: ours
	// observe is told of every job that was sent: got is nil where the server refused, err says that no answer came.
	// nil: nobody is told.
	observe func(j job, got *issued, err error)
}

// A job is one request for a certificate.
type job struct {
	token  string
	body   []byte
	expect expectation
	actor  *actor // of an agent's job: who asks
}

// A loop drives a scenario as fast as a number of clients can: each sends its next request when it has its answer.
type loop struct {
	address          string // host:port
	tls              *tls.Config
	clients          int
	warmup, duration time.Duration
	scenario         scenario
	begin, end       func() // called when the counted time begins and ends; nil: nothing to do
}

// sampleEvery is how many answers go by for one that is verified in full.
const sampleEvery = 100

// A window is the counted time of a run.
type window struct{ from, until time.Time }

// sample gives the sample that a moment falls into, or -1 outside the window.
func (w window) sample(t time.Time) int {
	if t.Before(w.from) || !t.Before(w.until) {
		return -1
	}
	return int(samples * t.Sub(w.from) / w.until.Sub(w.from))
}

// A tally is what was counted: of one client, and of all together.
type tally struct {
	window   window
	latency  *hdrhistogram.Histogram // microseconds
	done     [samples]int            // answers in each part of the window
	answered []issued                // in the window or not
	errors   map[string]int
	refused  int // asked to come again
	verified int
	wrong    []string // the first few
	wrongs   int
}

const latencyMax = 120 * time.Second

func newTally(w window) *tally {
	return &tally{window: w, latency: newHistogram(), errors: map[string]int{}}
}

func (t *tally) add(o *tally) {
	t.latency.Merge(o.latency)
	for i, n := range o.done {
		t.done[i] += n
	}
	for code, n := range o.errors {
		t.errors[code] += n
	}
	t.answered = append(t.answered, o.answered...)
	t.refused += o.refused
	t.verified += o.verified
	t.wrongs += o.wrongs
	t.wrong = append(t.wrong, o.wrong...)
}

// run drives all clients until the time is over or ctx ends, and adds up what they counted.
func (l *loop) run(ctx context.Context) *tally {
	now := time.Now()
	w := window{from: now.Add(l.warmup), until: now.Add(l.warmup + l.duration)}
	var clients, clock sync.WaitGroup
	clock.Go(func() { l.watch(ctx, w) })
	tallies := make([]*tally, l.clients)
	for i := range tallies {
		tallies[i] = newTally(w)
		clients.Go(func() { l.client(ctx, i, tallies[i]) })
	}
	clients.Wait()
	clock.Wait()
	total := newTally(w)
	for _, t := range tallies {
		total.add(t)
	}
	return total
}

func (l *loop) watch(ctx context.Context, w window) {
	if pause(ctx, time.Until(w.from)) && l.begin != nil {
		l.begin()
	}
	pause(ctx, time.Until(w.until))
	if l.end != nil {
		l.end()
	}
}

func (l *loop) client(ctx context.Context, number int, t *tally) {
	c := &connection{address: l.address, tls: l.tls}
	defer c.close()
	for ctx.Err() == nil && time.Now().Before(t.window.until) {
		j, err := l.scenario.next(number)
		if err != nil {
			t.fail("client: " + err.Error())
			return
		}
		l.see(ctx, c, j, t)
	}
}

// see sees one job through: asked to come again, it does.
func (l *loop) see(ctx context.Context, c *connection, j job, t *tally) {
	for ctx.Err() == nil {
		a, err := c.ask(ctx, question{method: http.MethodPost, path: l.scenario.path, token: j.token, contentType: "application/json", body: j.body})
		if err != nil {
			l.tell(j, nil, err)
			if ctx.Err() == nil {
				t.fail("no answer")
				pause(ctx, 20*time.Millisecond) // before dialling a server that may be down
			}
			return
		}
		if wait, again := patience(a, t.window); again {
			t.refused++
			pause(ctx, wait)
			continue
		}
		l.judge(j, a, t)
		return
	}
}

// patience says how long to wait when the server asks for it. At the end of the window nobody waits any more.
func patience(a answer, w window) (wait time.Duration, again bool) {
	if a.status != http.StatusServiceUnavailable && a.status != http.StatusTooManyRequests {
		return 0, false
	}
	wait = max(a.retryAfter, 10*time.Millisecond)
	return wait, time.Now().Add(wait).Before(w.until)
}

func (l *loop) judge(j job, a answer, t *tally) {
	now := time.Now()
	if a.status >= http.StatusBadRequest {
		l.tell(j, nil, nil)
		t.fail(refusal(a))
		return
	}
	got, cert, err := j.expect.examine(a.body, l.scenario.read)
	if err == nil && len(t.answered)%sampleEvery == 0 {
		err = l.scenario.verify(cert, got)
		t.verified++
	}
	if err != nil {
		t.mistrust(err)
		return
	}
	known := remember(got, cert)
	l.tell(j, &known, nil)
	t.answered = append(t.answered, known)
	if i := t.window.sample(now); i >= 0 {
		t.done[i]++
		record(t.latency, a.took)
	}
}

func (l *loop) tell(j job, got *issued, err error) {
	if l.scenario.observe != nil {
		l.scenario.observe(j, got, err)
	}
}

// fail counts an error outside the answers that are right: kinds of them, since there may be many.
func (t *tally) fail(kind string) { t.errors[kind]++ }

// mistrust counts an answer that was not what it should have been.
func (t *tally) mistrust(err error) {
	t.wrongs++
	if len(t.wrong) < 3 {
		t.wrong = append(t.wrong, err.Error())
	}
}

func refusal(a answer) string {
	var p api.Problem
	if json.Unmarshal(a.body, &p) != nil || p.Code == "" {
		return fmt.Sprint(a.status)
	}
	return fmt.Sprintf("%d %s", a.status, p.Code)
}

// rates gives the answers per second of each sample.
func (t *tally) rates() []float64 {
	part := t.window.until.Sub(t.window.from).Seconds() / samples
	rates := make([]float64, samples)
	for i, n := range t.done {
		rates[i] = float64(n) / part
	}
	return rates
}

// doubles counts serials that were answered more than once.
func (t *tally) doubles() int {
	seen := make(map[string]struct{}, len(t.answered))
	for _, i := range t.answered {
		seen[i.serial] = struct{}{}
	}
	return len(t.answered) - len(seen)
}

// A Latency is the distribution of the time from the first octet sent to the last one read; milliseconds.
type Latency struct {
	Mean float64 `json:"mean_ms"`
	P50  float64 `json:"p50_ms"`
	P90  float64 `json:"p90_ms"`
	P95  float64 `json:"p95_ms"`
	P99  float64 `json:"p99_ms"`
	P999 float64 `json:"p999_ms"`
	Max  float64 `json:"max_ms"`
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	at := func(percentile float64) float64 { return float64(h.ValueAtQuantile(percentile)) / 1000 }
	return Latency{Mean: h.Mean() / 1000, P50: at(50), P90: at(90), P95: at(95), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1000}
}

// kinds lists errors, the most frequent first.
func kinds(errors map[string]int) []string {
	return slices.SortedFunc(maps.Keys(errors), func(a, b string) int { return errors[b] - errors[a] })
}
