package front

import (
	"net/http"
	"net/http/pprof"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"chancery/internal/base/fault"
)

// phases are the steps of a request that other rooms report; they exist from the start, so that a missing one shows.
var phases = [...]string{"authenticate", "parse", "verify", "queue", "sign", "commit_wait", "write", "sync", "answer"}

// Metrics counts and times what happens, for Prometheus. It has a registry of its own. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	phase    *prometheus.HistogramVec
	known    map[string]prometheus.Observer // of phase, looked up without hashing labels
	commit   prometheus.Histogram
	request  *prometheus.HistogramVec
	refusal  *prometheus.CounterVec
	inFlight prometheus.Gauge
}

// NewMetrics makes empty metrics.
func NewMetrics() *Metrics {
	buckets := prometheus.ExponentialBucketsRange(50e-6, 10, 28)
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		phase: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "chancery_phase_seconds", Help: "Time spent in a phase of the work.", Buckets: buckets}, []string{"phase"}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "chancery_commit_rows", Help: "Writes that shared a commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 12)}),
		request: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "chancery_request_seconds", Help: "Time from the head of a request to the end of its answer.", Buckets: buckets}, []string{"route", "status"}),
		refusal: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "chancery_refusals_total", Help: "Requests refused, by code."}, []string{"code"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "chancery_requests_in_flight", Help: "Requests being served."}),
		known: map[string]prometheus.Observer{},
	}
	m.registry.MustRegister(m.phase, m.commit, m.request, m.refusal, m.inFlight,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, p := range phases {
		m.known[p] = m.phase.WithLabelValues(p)
	}
	return m
}

// Observe adds the duration of one phase. Names are lower case, words joined by underscores, and few: each is a series.
func (m *Metrics) Observe(phase string, d time.Duration) {
	o, ok := m.known[phase]
	if !ok {
		o = m.phase.WithLabelValues(phase)
	}
	o.Observe(d.Seconds())
}

// Committed adds one commit that so many writes shared.
func (m *Metrics) Committed(writes int) { m.commit.Observe(float64(writes)) }

// Gauge adds a value that is read when the metrics are. It is called at start.
func (m *Metrics) Gauge(name, help string, read func() float64) error {
	return m.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

func (m *Metrics) observe(a *answer, pattern string) {
	now := time.Now()
	if a.record.Parse > 0 {
		m.Observe("parse", a.record.Parse)
	}
	if a.status != 0 {
		m.Observe("answer", now.Sub(a.first))
	}
	m.request.WithLabelValues(pattern, strconv.Itoa(a.status)).Observe(now.Sub(a.start).Seconds())
	if a.record.Err != nil {
		m.refused(fault.CodeOf(a.record.Err))
	}
}

func (m *Metrics) refused(code string) { m.refusal.WithLabelValues(code).Inc() }

// watch adds the gauges of a front. Metrics belong to one front; those of a second one would be the first one's.
func (m *Metrics) watch(f *Front) {
	gate := func(g *Gate, read func(inside int, bytes int64, wait time.Duration) float64) func() float64 {
		return func() float64 { return read(g.Load()) }
	}
	wait := func(_ int, _ int64, wait time.Duration) float64 { return wait.Seconds() }
	for _, g := range []struct {
		name, help string
		read       func() float64
	}{
		{"chancery_connections", "Open connections.", func() float64 { return float64(f.open.now.Load()) }},
		{"chancery_connections_refused", "Connections closed because there were too many.", func() float64 { return float64(f.open.refused.Load()) }},
		{"chancery_gate_wait_seconds", "Expected wait of the next gated request.", gate(f.gate, wait)},
		{"chancery_gate_inside", "Gated requests being served.", gate(f.gate, func(n int, _ int64, _ time.Duration) float64 { return float64(n) })},
		{"chancery_gate_bytes", "Estimated memory of gated requests.", gate(f.gate, func(_ int, b int64, _ time.Duration) float64 { return float64(b) })},
		{"chancery_handshake_wait_seconds", "Expected wait of the next TLS handshake.", gate(f.hello.gate, wait)},
	} {
		if err := m.Gauge(g.name, g.help, g.read); err != nil {
			f.config.Log.Warn("a metric is not served", "name", g.name, "error", err)
		}
	}
}

// privateRoutes serves the metrics, and profiles if they are switched on. The rates of block and mutex profiles are
// the runtime's own global state; here is the one place that sets them.
func (f *Front) privateRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(f.metrics.registry, promhttp.HandlerOpts{}))
	if !f.config.Profiles {
		return mux
	}
	runtime.SetBlockProfileRate(int(10 * time.Microsecond)) // one sample per 10 µs spent blocked
	runtime.SetMutexProfileFraction(100)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
