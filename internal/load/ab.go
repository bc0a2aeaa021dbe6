package load

import (
	"cmp"
	"context"
	"crypto/x509"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"

	"chancery/internal/load/observe"
)

// An ABConfig says which two programs are compared, at what.
type ABConfig struct {
	Old, New string // paths of the programs
	Scenario string
	Loop            // each of the four phases
	StoreURL string // database server, on which databases are made and dropped; empty: SQLite
	Settings []string
	Dir      string
	Log      Log
}

// A Side is one of two programs that are compared.
type Side struct {
	Path     string    `json:"path"`
	Revision string    `json:"revision"`
	Samples  []float64 `json:"samples"` // answers a second, of both phases
	Medians  []float64 `json:"medians"` // of each phase
	P99      []float64 `json:"p99_ms"`  // of each phase
	Micros   []float64 `json:"cpu_us"`  // server's CPU time for an answer, of each phase
	Reports  []Report  `json:"reports"`
	form     string
}

// An ABReport is a comparison in the order A, B, B, A.
type ABReport struct {
	Scenario    string          `json:"scenario"`
	Old         Side            `json:"old"`
	New         Side            `json:"new"`
	Effect      float64         `json:"effect"`     // of the new one's rate against the old one's, 0.1: a tenth more
	CPUEffect   float64         `json:"cpu_effect"` // the same of the CPU time for an answer
	Drift       float64         `json:"drift"`      // of the old one between its phases
	Verdict     string          `json:"verdict"`    // faster, slower, unchanged or excluded
	Machine     observe.Machine `json:"machine"`
	Marks       []string        `json:"marks,omitempty"`
	Interrupted bool            `json:"interrupted,omitempty"`
}

// Check refuses what makes no sense, before anything is started. AB does so, too.
func (c ABConfig) Check() error {
	if c.Scenario == Verify {
		return errors.New("scenario verify runs in this program alone, so it tells nothing of two others")
	}
	return IssueConfig{Scenario: c.Scenario, StoreURL: c.StoreURL, Phases: []Phase{c.phase()}}.Check()
}

// effectMin is the least effect that is one.
const effectMin = 0.05

// AB measures two programs in the order A, B, B, A, each time on fresh data. Programs that answer in different forms are
// not compared.
func AB(ctx context.Context, c ABConfig) (ABReport, error) {
	r := ABReport{Scenario: c.Scenario, Old: Side{Path: c.Old}, New: Side{Path: c.New}, Machine: observe.Look()}
	err := errors.Join(c.Check(), r.Old.identify(), r.New.identify())
	for _, s := range []*Side{&r.Old, &r.New, &r.New, &r.Old} {
		if err == nil && ctx.Err() == nil {
			err = s.measure(ctx, c)
		}
	}
	r.Machine.Done()
	r.Marks = r.Machine.Marks()
	if r.Interrupted = ctx.Err() != nil; r.Interrupted {
		return r, nil
	}
	if err == nil && r.Old.form != r.New.form {
		err = fmt.Errorf("the two programs answer differently, so that their rates cannot be compared:\nold: %s\nnew: %s", r.Old.form, r.New.form)
	}
	if err == nil {
		r.judge()
	}
	return r, err
}

// identify reads from the program itself what it was built from.
func (s *Side) identify() error {
	info, err := buildinfo.ReadFile(s.Path)
	if err != nil {
		return fmt.Errorf("%s is no program built with Go: %w", s.Path, err)
	}
	if info.Main.Path != "chancery" {
		return fmt.Errorf("%s is %s, not chancery", s.Path, cmp.Or(info.Main.Path, "something else"))
	}
	s.Revision = observe.Revision(info)
	return nil
}

func (s *Side) measure(ctx context.Context, c ABConfig) error {
	c.Log.say("%s (%s)", s.Path, s.Revision)
	form := ""
	r, err := Issue(ctx, IssueConfig{
		Program: Program{s.Path}, Scenario: c.Scenario, Phases: []Phase{c.phase()}, StoreURL: c.StoreURL, Settings: c.Settings, Dir: c.Dir, Log: c.Log,
		shown: func(cert *x509.Certificate) { form = formOf(cert) },
	})
	if err = errors.Join(err, r.Failed()); err != nil || ctx.Err() != nil {
		return err
	}
	p := r.first()
	s.form = form
	s.Reports = append(s.Reports, r)
	s.Samples = append(s.Samples, p.Rate.Samples...)
	s.Medians = append(s.Medians, p.Rate.PerSecond)
	s.P99 = append(s.P99, p.Latency.P99)
	if p.Server != nil {
		s.Micros = append(s.Micros, p.Server.PerRequest)
	}
	return nil
}

// formOf says what a certificate is made of, apart from what differs in each.
func formOf(cert *x509.Certificate) string {
	text := fmt.Sprintf("%s, %s key, key usage %d, extended %v, extensions", cert.SignatureAlgorithm, cert.PublicKeyAlgorithm, cert.KeyUsage, cert.ExtKeyUsage)
	for _, e := range cert.Extensions {
		text += fmt.Sprintf(" %s(%v)", e.Id, e.Critical)
	}
	return text
}

func (r *ABReport) judge() {
	before, after := median(r.Old.Samples), median(r.New.Samples)
	r.Drift = spread(r.Old.Medians)
	if before > 0 {
		r.Effect = after/before - 1
	}
	if was := median(r.Old.Micros); was > 0 {
		r.CPUEffect = median(r.New.Micros)/was - 1
	}
	switch {
	case r.Drift >= driftMax:
		r.Verdict = "excluded"
	case r.Effect >= effectMin:
		r.Verdict = "faster"
	case r.Effect <= -effectMin:
		r.Verdict = "slower"
	default:
		r.Verdict = "unchanged"
	}
}

// Failed gives what keeps the comparison from being one, or nil.
func (r ABReport) Failed() error {
	if r.Verdict == "excluded" {
		return fmt.Errorf("the old program's own phases lie %.0f %% apart: the machine did something else meanwhile", 100*r.Drift)
	}
	return nil
}

// Write writes the comparison for people.
func (r ABReport) Write(w io.Writer) {
	r.Old.write(w, "old")
	r.New.write(w, "new")
	fmt.Fprintf(w, "verdict   %s: rate %+.1f %%, CPU a request %+.1f %%; the old one's phases lie %.1f %% apart\n", cmp.Or(r.Verdict, "none"), 100*r.Effect, 100*r.CPUEffect, 100*r.Drift)
	r.Machine.Write(w)
	writeMarks(w, r.Marks, r.Interrupted)
}

func (s Side) write(w io.Writer, name string) {
	fmt.Fprintf(w, "%-9s %s (%s): %s/s (%s), p99 %.2f ms, %.0f µs of the server's CPU a request\n", name, s.Path, s.Revision, thousands(median(s.Samples)), joined(s.Samples), median(s.P99), median(s.Micros))
}
