package load

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"chancery/internal/load/bare"
	"chancery/internal/load/drive"
	"chancery/internal/load/observe"
)

// A LimitConfig says how long to measure, and where.
type LimitConfig struct {
	Program Program
	Dir     string        // where the disk is measured; empty: the system's directory for temporary files
	Sample  time.Duration // of one sample of one piece of work; default 100 ms
	Loop                  // each phase with clients
	Log     Log
}

// Check refuses what makes no sense, before anything is started. Limits does so, too.
func (c LimitConfig) Check() error {
	if c.Sample < 0 || c.Sample > time.Minute {
		return errors.New("a sample is a minute at most")
	}
	return c.Loop.Check()
}

// A Rate is how often a piece of work was done in a second: the median of five samples, and the samples.
type Rate struct {
	PerSecond float64   `json:"per_second"`
	Samples   []float64 `json:"samples"`
	P99       float64   `json:"p99_ms,omitempty"` // where each piece was timed
}

func rateOf(samples []float64) Rate { return Rate{PerSecond: median(samples), Samples: samples} }

// A Limit is what the machine allows of one kind of work.
type Limit struct {
	Key     string `json:"key"`
	Work    string `json:"work"`
	OneCore *Rate  `json:"one_core,omitempty"`
	Both    *Rate  `json:"all_cores"`
}

// A LimitReport is what this machine allows at this moment.
type LimitReport struct {
	Machine     observe.Machine `json:"machine"`
	Limits      []Limit         `json:"limits"`
	Clients     int             `json:"clients"`
	Marks       []string        `json:"marks,omitempty"`
	Interrupted bool            `json:"interrupted,omitempty"`
}

// Limits measures what the machine allows: single pieces of work on one core and on all, then the disk, then a JSON
// round trip, and last the bare handler in its three variants. An end of ctx leaves the rows that are not measured out.
func Limits(ctx context.Context, c LimitConfig) (LimitReport, error) {
	if err := c.Check(); err != nil {
		return LimitReport{}, err
	}
	c.Sample, c.Loop = cmp.Or(c.Sample, 100*time.Millisecond), c.withDefaults()
	dir, remove, err := scratch(c.Dir, "chancery-limits")
	if err != nil {
		return LimitReport{}, err
	}
	defer remove()
	r := LimitReport{Machine: observe.Look(), Clients: c.Clients}
	err = errors.Join(r.Machine.MeasureSync(ctx, dir), r.measure(ctx, c, dir))
	r.Machine.Done()
	r.Marks = r.Machine.Marks()
	if r.Interrupted = ctx.Err() != nil; r.Interrupted {
		err = nil
	}
	return r, err
}

func (r *LimitReport) measure(ctx context.Context, c LimitConfig, dir string) error {
	all, err := works()
	if err != nil {
		return err
	}
	for _, w := range all {
		c.Log.say("%s", w.work)
		one, err := w.rate(ctx, 1, c.Sample)
		if err != nil {
			return err
		}
		both, err := w.rate(ctx, runtime.NumCPU(), c.Sample)
		if err != nil {
			return err
		}
		r.Limits = append(r.Limits, Limit{Key: w.key, Work: w.work, OneCore: &one, Both: &both})
	}
	if err := r.measureDisk(ctx, c, dir); err != nil {
		return err
	}
	return r.measureHandlers(ctx, c, dir)
}

// A work is a piece of work that needs nothing but a core.
type work struct {
	key, work string
	do        func() error
}

// rate does the work on a number of cores.
func (w work) rate(ctx context.Context, cores int, sample time.Duration) (Rate, error) {
	previous := runtime.GOMAXPROCS(cores)
	defer runtime.GOMAXPROCS(previous)
	return repeat(ctx, cores, sample, w.do)
}

// repeat does something side by side, once to warm up and then for each sample.
func repeat(ctx context.Context, workers int, sample time.Duration, do func() error) (Rate, error) {
	latency := drive.NewHistogram()
	var rates []float64
	for i := range samples + 1 {
		if err := ctx.Err(); err != nil {
			return Rate{}, err
		}
		done, err := during(workers, sample, do, latency)
		if err != nil {
			return Rate{}, err
		}
		if i == 0 {
			latency.Reset()
			continue
		}
		rates = append(rates, done)
	}
	r := rateOf(rates)
	if r.PerSecond < 5000 || workers > runtime.NumCPU() { // else the clock is a part of what it measures
		r.P99 = float64(latency.ValueAtQuantile(99)) / 1000
	}
	return r, nil
}

func during(workers int, d time.Duration, do func() error, latency *hdrhistogram.Histogram) (perSecond float64, err error) {
	counts, errs := make([]int, workers), make([]error, workers)
	histograms := make([]*hdrhistogram.Histogram, workers)
	began := time.Now()
	until := began.Add(d)
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			histograms[i] = drive.NewHistogram()
			for at := time.Now(); at.Before(until) && errs[i] == nil; counts[i]++ {
				errs[i] = do()
				next := time.Now()
				drive.Record(histograms[i], next.Sub(at))
				at = next
			}
		})
	}
	group.Wait()
	took := time.Since(began).Seconds()
	total := 0
	for i := range workers {
		total += counts[i]
		latency.Merge(histograms[i])
	}
	return float64(total) / took, errors.Join(errs...)
}

// works lists the pieces of work that a certificate is made of.
func works() ([]work, error) {
	key, root, err := bare.NewAuthority()
	if err != nil {
		return nil, err
	}
	made, err := bare.NewTemplate(key, root)
	if err != nil {
		return nil, err
	}
	who, err := newSubject(1)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(who.csr))
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	message := root.RawTBSCertificate
	digest := sha256.Sum256(message)
	signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	if err != nil {
		return nil, err
	}
	edSignature := ed25519.Sign(private, message)
	return []work{
		{"p256_sign", "ECDSA P-256 signature", func() error { _, err := ecdsa.SignASN1(rand.Reader, key, digest[:]); return err }},
		{"p256_verify", "ECDSA P-256 verification", func() error { return verified(ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature)) }},
		{"ed25519_sign", "Ed25519 signature", func() error { ed25519.Sign(private, message); return nil }},
		{"ed25519_verify", "Ed25519 verification", func() error { return verified(ed25519.Verify(public, message, edSignature)) }},
		{"sha256", fmt.Sprintf("SHA-256 of %d bytes", len(message)), func() error { sha256.Sum256(message); return nil }},
		{"csr", "certificate request: parse, proof of possession", func() error {
			csr, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil {
				return err
			}
			return csr.CheckSignature()
		}},
		{"issue", "patched to-be-signed bytes and signature", func() error { _, err := made.Issue(who.spki, who.commonName, time.Hour); return err }},
	}, nil
}

func verified(ok bool) error {
	if !ok {
		return errors.New("a signature made a moment ago does not verify")
	}
	return nil
}

// Failed gives what keeps the report from being believed, or nil.
func (r LimitReport) Failed() error { return nil }

// Write writes the report for people.
func (r LimitReport) Write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "one core\t\tall cores\tp99\t")
	for _, l := range r.Limits {
		one, each, p99 := "", "", ""
		if l.OneCore != nil {
			one, each = thousands(l.OneCore.PerSecond)+"/s", fmt.Sprintf("%.1f µs", 1e6/l.OneCore.PerSecond)
		}
		if l.Both.P99 > 0 {
			p99 = fmt.Sprintf("%.1f ms", l.Both.P99)
		}
		fmt.Fprintf(table, "%s\t%s\t%s/s\t%s\t  %s\n", one, each, thousands(l.Both.PerSecond), p99, l.Work)
	}
	_ = table.Flush()
	fmt.Fprintln(w)
	r.Machine.Write(w)
	writeMarks(w, r.Marks, r.Interrupted)
}

func writeMarks(w io.Writer, marks []string, interrupted bool) {
	if interrupted {
		marks = append(marks, "interrupted: what is missing was not measured")
	}
	for _, m := range marks {
		fmt.Fprintf(w, "note      %s\n", m)
	}
}

// thousands writes a whole number with commas between groups of three digits.
func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
