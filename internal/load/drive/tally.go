package drive

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Samples is how many parts each stage is cut into; the median of their rates is the stage's rate.
const Samples = 5

// LatencyMax is the longest latency that is told apart; longer ones count as this. No run takes longer.
const LatencyMax = 24 * time.Hour

// A Tally is what was counted in a run. It is complete when Run returns.
type Tally struct {
	Began       time.Time
	From, Until time.Time // of the counted time
	Last        time.Time // when the last right answer came
	Stages      []*StageTally
	Seconds     []Second
	Wrongs      int            // answers that their job judged wrong
	Wrong       []string       // the first few of them
	Errors      map[string]int // of the whole run, warm-ups included
	Refused     int            // likewise

	left    atomic.Int64 // offered and not settled
	mu      sync.Mutex
	running second
}

// A StageTally is what was counted of the requests that were to start in a stage. Uncounted stages have one, too.
type StageTally struct {
	Stage
	From, Until time.Time
	Lasted      time.Duration           // For, or less where the run was interrupted
	Offered     int                     // arrivals; in a closed loop, requests
	Done        [Samples]int            // right answers, by when they came
	Latency     *hdrhistogram.Histogram // of right answers, from the intended start, in microseconds
	Service     *hdrhistogram.Histogram // the same from sending, dialling included
	Refused     int                     // times that somebody was refused for want of capacity
	Refusal     *hdrhistogram.Histogram // how long that took, from sending
	Errors      map[string]int          // by kind
	Handshakes  int                     // for connections that were dialled
	Resumed     int                     // of these
	Handshake   *hdrhistogram.Histogram // microseconds
}

// Unserved is the kind of error of what was to start and found no connection, or was told to come again, until patience
// ended.
const Unserved = "not served before the end"

// A Second is what came back in one second of the run; latencies are milliseconds from the intended start.
type Second struct {
	Offered  int     `json:"offered"`
	Answered int     `json:"answered"`
	Refused  int     `json:"refused,omitempty"`
	Failed   int     `json:"failed,omitempty"`
	P50      float64 `json:"p50_ms"`
	P90      float64 `json:"p90_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`
	Partial  bool    `json:"partial,omitempty"` // the last one, which the end of the run cut short: its counts are no rates
}

// A second is the one that is being counted.
type second struct {
	number  int
	latency *hdrhistogram.Histogram
}

// NewHistogram counts microseconds with three digits.
func NewHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, LatencyMax.Microseconds(), 3) }

// Record adds a duration to a histogram.
func Record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(d, 0), LatencyMax).Microseconds()) // in range
}

func newTally(began time.Time, stages []Stage) *Tally {
	t := &Tally{Began: began, Errors: map[string]int{}, running: second{latency: hdrhistogram.New(1, LatencyMax.Microseconds(), 2)}}
	at := began
	for _, s := range stages {
		st := &StageTally{Stage: s, From: at, Until: at.Add(s.For), Latency: NewHistogram(), Service: NewHistogram(), Refusal: NewHistogram(), Handshake: NewHistogram(), Errors: map[string]int{}}
		t.Stages = append(t.Stages, st)
		at = st.Until
		if !s.Uncounted && t.From.IsZero() {
			t.From = st.From
		}
	}
	t.Until = at
	return t
}

// stage gives the stage that a moment belongs to; what comes after the last belongs to that.
func (t *Tally) stage(at time.Time) *StageTally {
	for _, s := range t.Stages {
		if at.Before(s.Until) {
			return s
		}
	}
	return t.Stages[len(t.Stages)-1]
}

// border gives the end of the second or of the stage that a moment belongs to, whichever comes first.
func (t *Tally) border(at time.Time) time.Time {
	second := t.Began.Add((at.Sub(t.Began)/time.Second + 1) * time.Second)
	if stage := t.stage(at).Until; stage.Before(second) {
		return stage
	}
	return second
}

// second gives the running second, after it has closed those before.
func (t *Tally) second(now time.Time) *Second {
	for number := int(now.Sub(t.Began) / time.Second); t.running.number < number; t.running.number++ {
		t.closeSecond()
	}
	for len(t.Seconds) <= t.running.number {
		t.Seconds = append(t.Seconds, Second{})
	}
	return &t.Seconds[t.running.number]
}

func (t *Tally) closeSecond() {
	h := t.running.latency
	for len(t.Seconds) <= t.running.number {
		t.Seconds = append(t.Seconds, Second{})
	}
	s := &t.Seconds[t.running.number]
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	s.P50, s.P90, s.P99, s.Max = at(50), at(90), at(99), float64(h.Max())/1000
	h.Reset()
}

// gone gives a second that is over.
func (t *Tally) gone(number int) Second {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.second(time.Now())
	return t.Seconds[number]
}

func (t *Tally) finish(interrupted bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.second(now)
	t.closeSecond()
	if *last == (Second{}) {
		t.Seconds = t.Seconds[:len(t.Seconds)-1]
	} else {
		last.Partial = now.Sub(t.Began)%time.Second < 9*time.Second/10
	}
	for _, s := range t.Stages {
		if s.Lasted = s.For; interrupted {
			s.Lasted = min(s.For, max(0, now.Sub(s.From)))
		}
	}
}

// offer counts an arrival, in the second in which it was to start; that may have gone by, or be a moment ahead.
func (t *Tally) offer(intended time.Time) {
	t.left.Add(1)
	now := time.Now()
	if now.Before(intended) {
		now = intended
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.second(now)
	t.Seconds[intended.Sub(t.Began)/time.Second].Offered++
	t.stage(intended).Offered++
}

// settle counts an answer by what its job says of it.
func (t *Tally) settle(intended, sent time.Time, wrong error) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if wrong != nil {
		t.Wrongs++
		if len(t.Wrong) < 3 {
			t.Wrong = append(t.Wrong, printable(wrong.Error(), wrongLength))
		}
		return
	}
	s := t.second(now)
	s.Answered++
	Record(t.running.latency, now.Sub(intended))
	st := t.stage(intended)
	if by := t.stage(now); now.Before(by.Until) {
		by.Done[int(Samples*now.Sub(by.From)/by.For)]++
	}
	t.Last = now
	Record(st.Latency, now.Sub(intended))
	Record(st.Service, now.Sub(sent))
}

// refuse counts a refusal for want of capacity.
func (t *Tally) refuse(intended, sent time.Time) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.second(now).Refused++
	t.Refused++
	s := t.stage(intended)
	s.Refused++
	Record(s.Refusal, now.Sub(sent))
}

// What a server answers ends up in reports: it has so many kinds of errors, in so many characters.
const (
	kindsMax    = 64
	kindLength  = 80
	wrongLength = 400
)

// otherErrors is the kind of those errors that came when there were enough kinds.
const otherErrors = "other errors"

// fail counts an error by its kind: there may be many.
func (t *Tally) fail(intended time.Time, kind string) {
	if kind != Unserved {
		kind = printable(kind, kindLength)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Errors[kind] == 0 && len(t.Errors) >= kindsMax && kind != Unserved {
		kind = otherErrors
	}
	if kind != Unserved { // at no moment in particular
		t.second(time.Now()).Failed++
	}
	t.Errors[kind]++
	t.stage(intended).Errors[kind]++
}

// unserved counts n that never arrived and were to start in the stage and the second of a moment. They fail at no moment
// in particular.
func (t *Tally) unserved(intended time.Time, n int) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.second(time.Now())
	t.Seconds[intended.Sub(t.Began)/time.Second].Offered += n
	s := t.stage(intended)
	s.Offered += n
	s.Errors[Unserved] += n
	t.Errors[Unserved] += n
}

// printable gives the first n characters of a text, with a question mark in place of each that cannot be printed.
func printable(text string, n int) string {
	var b strings.Builder
	for _, r := range text {
		if n--; n < 0 {
			return b.String() + "…"
		}
		if !unicode.IsPrint(r) {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// shook counts the handshake that an answer needed, if it did.
func (t *Tally) shook(intended time.Time, a Answer) {
	if a.Handshake == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stage(intended)
	s.Handshakes++
	if a.Resumed {
		s.Resumed++
	}
	Record(s.Handshake, a.Handshake)
}

// Rates gives the answers per second of each sample, without those that an interruption cut short or kept away.
func (s *StageTally) Rates() []float64 {
	part := s.For.Seconds() / Samples
	rates := make([]float64, Samples*s.Lasted/s.For)
	for i := range rates {
		rates[i] = float64(s.Done[i]) / part
	}
	return rates
}

// Came counts the right answers that came while the stage lasted, whenever their requests were to start.
func (s *StageTally) Came() (n int) {
	for _, done := range s.Done {
		n += done
	}
	return n
}

// Kinds lists errors, the most frequent first.
func Kinds(errors map[string]int) []string {
	return slices.SortedFunc(maps.Keys(errors), func(a, b string) int {
		return cmp.Or(errors[b]-errors[a], strings.Compare(a, b))
	})
}

// kind names what broke a connection, in few words.
func kind(err error) string {
	var network net.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, errTooLong), errors.Is(err, errInterim):
		return err.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection closed"
	case untrusted(err):
		return "server not trusted"
	}
	return "broken"
}

// untrusted reports whether the client refused the server's certificate: the TLS package's own check, or one in its place
// that gives the errors of x509.
func untrusted(err error) bool {
	var (
		refused *tls.CertificateVerificationError
		root    x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	return errors.As(err, &refused) || errors.As(err, &root) || errors.As(err, &name) || errors.As(err, &invalid)
}
