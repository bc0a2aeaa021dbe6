package load

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"

	"chancery/api"
	"chancery/internal/load/drive"
)

// A scenario is what clients ask for, and how an answer is judged.
type scenario struct {
	path   string                                             // of jobs that name none
	issuer string                                             // the authority whose certificates are answered; empty: none are
	next   func(turn int) (job, error)                        // the request of a turn; called concurrently
	verify func(leaf *x509.Certificate, got api.Issued) error // the whole verification, for a sample
	read   func(body []byte) (api.Issued, error)              // an answer in another form than ours; nil: ours

	address string                           // host:port of another listener than HTTPS
	plain   bool                             // that speaks plain HTTP
	people  []string                         // who takes part, where it matters
	begin   func(Phase)                      // told of the first of some phases before they begin; nil: nobody is
	tells   func(PhaseReport) Figure         // what the first phase says beside its rate; nil: nothing
	aside   func(ctx context.Context) Figure // goes on beside the requests until ctx ends; nil: nothing does
}

// A job is one request for a certificate.
type job struct {
	path     string // empty: the scenario's
	token    string
	tls      *tls.Config // of a caller with a certificate of its own
	body     []byte
	expect   expectation
	actor    *actor                                          // of an agent's job: who asks
	again    func() (job, error)                             // makes it anew, where what it carries grows stale
	accepted func(leaf *x509.Certificate, got api.Issued)    // told of the certificate; nil: nobody is
	ask      func(drive.Question) (drive.Question, judgment) // of a job for something else than a certificate
	do       func(context.Context) error                     // of a job without a request
}

// A judgment says whether an answer is right.
type judgment func(drive.Answer) error

// A book holds what a server has answered: all of it must be found again.
type book struct {
	scenario scenario
	shown    func(*x509.Certificate) // is shown what was verified in full; nil: nobody is

	mu       sync.Mutex
	answered []issued
	verified int
}

// sampleEvery is how many answers go by for one that is verified in full.
const sampleEvery = 100

// next makes the request of a turn, whose answer will stand in the book.
func (b *book) next(turn int) (drive.Job, error) {
	j, err := b.scenario.next(turn)
	return b.job(j), err
}

func (b *book) job(j job) drive.Job {
	d := drive.Job{
		Question: drive.Question{Method: http.MethodPost, Path: cmp.Or(j.path, b.scenario.path), Token: j.token, ContentType: "application/json", Body: j.body},
		TLS:      j.tls, Do: j.do,
		Judge: func(a drive.Answer) error { return b.enter(j, a) },
	}
	if j.ask != nil {
		d.Question, d.Judge = j.ask(d.Question)
	}
	if j.again != nil {
		d.Again = func() (drive.Job, error) {
			anew, err := j.again()
			return b.job(anew), err
		}
	}
	return d
}

// enter judges an answer and, when it is right, writes it down.
func (b *book) enter(j job, a drive.Answer) error {
	got, cert, err := j.expect.examine(a.Body, b.scenario.read)
	if err != nil {
		return err
	}
	if b.due() {
		if err := b.scenario.verify(cert, got); err != nil {
			return err
		}
		if b.shown != nil {
			b.shown(cert)
		}
	}
	if j.accepted != nil {
		j.accepted(cert, got)
	}
	known := remember(got, cert)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answered = append(b.answered, known)
	return nil
}

// due says whether the answer at hand is one of those that are verified in full.
func (b *book) due() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.verified*sampleEvery > len(b.answered) {
		return false
	}
	b.verified++
	return true
}

// doubles counts serials that were answered more than once. It sorts what was answered.
func (b *book) doubles() int {
	slices.SortFunc(b.answered, func(a, b issued) int { return strings.Compare(a.serial, b.serial) })
	twice := 0
	for i := 1; i < len(b.answered); i++ {
		if b.answered[i].serial == b.answered[i-1].serial {
			twice++
		}
	}
	return twice
}

// A Latency is the distribution of latencies; milliseconds.
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
