package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"chancery/internal/load/observe"
)

// A CrashConfig says how often to kill, and under what load.
type CrashConfig struct {
	Program    Program
	Rounds     int           // default 10
	Longest    time.Duration // longest time under load before the kill; default 2 s
	Gently     bool          // end it in order instead, under full load; it has ten seconds
	Clients    int           // default 64
	Population Population
	StoreURL   string   // database server on which a database is made and dropped; empty: SQLite
	Settings   []string // more settings of the server, name=value
	Dir        string   // where its data lie; empty: the system's directory for temporary files
	Log        Log
}

func (c CrashConfig) withDefaults() CrashConfig {
	c.Rounds, c.Longest = cmp.Or(c.Rounds, 10), cmp.Or(c.Longest, 2*time.Second)
	c.Clients, c.Population = cmp.Or(c.Clients, 64), c.Population.withDefaults()
	return c
}

// Check refuses what makes no sense, before anything is started. Crash does so, too.
func (c CrashConfig) Check() error {
	c = c.withDefaults()
	if c.Rounds < 0 || c.Longest < 0 || c.Longest > time.Hour {
		return errors.New("rounds are not negative, and the longest takes an hour at most")
	}
	return IssueConfig{Population: c.Population, StoreURL: c.StoreURL, Phases: []Phase{{Connections: c.Clients}}}.Check()
}

// A CrashReport is what a server lost by being killed. What is lost, unknown or reused has to be zero.
type CrashReport struct {
	Rounds          int             `json:"rounds"`
	Answered        int             `json:"answered"`         // certificates
	Lost            int             `json:"lost"`             // of these, not in the store, changed, or not good in OCSP
	Revoked         int             `json:"revoked"`          // revocations that were answered
	RevocationsLost int             `json:"revocations_lost"` // of these, not revoked in OCSP
	NoncesTried     int             `json:"nonces_tried"`     // used evidence handed in again, for another key
	NoncesReused    int             `json:"nonces_reused"`    // of these, not refused as used
	TokensDeleted   int             `json:"tokens_deleted"`   // deletions that were answered
	TokensRevived   int             `json:"tokens_revived"`   // of these tokens, accepted all the same
	Unanswered      int             `json:"unanswered"`       // stored, but the server died before it answered
	Broken          int             `json:"broken"`           // requests without an answer
	Wrong           int             `json:"wrong"`            // answers that were not what was asked for
	Unknown         int             `json:"unknown"`          // certificates about which no answer could be had
	RestartMedian   float64         `json:"restart_median_ms"`
	RestartMax      float64         `json:"restart_max_ms"`       // from the start of the process to the first connection
	EndMax          float64         `json:"end_max_ms,omitempty"` // from being told to end to the end of the process
	Late            int             `json:"late,omitempty"`       // times that it had not ended after ten seconds, or not with exit code 0
	FirstWrong      string          `json:"first_wrong,omitempty"`
	Machine         observe.Machine `json:"machine"`
	Marks           []string        `json:"marks,omitempty"` // what was not tried, and what makes the run doubtful
	Interrupted     bool            `json:"interrupted,omitempty"`
}

// Crash kills a server of its own again and again and verifies after each start that everything it had answered is
// still so: certificates, revocations, used evidence, deleted tokens. At the end it looks up the certificates of all rounds once more.
func Crash(ctx context.Context, c CrashConfig) (CrashReport, error) {
	if err := c.Check(); err != nil {
		return CrashReport{}, err
	}
	c = c.withDefaults()
	r := &CrashReport{Machine: observe.Look()}
	err := r.run(ctx, c)
	r.Machine.OnDatabase = c.StoreURL != ""
	r.Machine.Done()
	r.Marks = append(r.untried(), r.Machine.Marks()...)
	if r.Interrupted = ctx.Err() != nil; r.Interrupted {
		err = nil
	}
	return *r, err
}

func (r *CrashReport) run(ctx context.Context, c CrashConfig) error {
	dir, remove, err := scratch(c.Dir, "chancery-crash")
	if err != nil {
		return err
	}
	defer remove()
	s, err := newServer(ctx, c.Program, dir, c.StoreURL, c.Settings)
	if err != nil {
		return err
	}
	defer s.remove(ctx)
	if _, err := s.start(ctx); err != nil {
		return err
	}
	w, err := newWreck(ctx, c, s)
	if err != nil {
		return err
	}
	var restarts []time.Duration
	for ctx.Err() == nil && r.Rounds < c.Rounds {
		before := r.Answered
		took, err := w.round(ctx, r)
		if err != nil {
			return err
		}
		restarts = append(restarts, took)
		r.RestartMedian, r.RestartMax = millis(median(restarts)), max(r.RestartMax, millis(took))
		c.Log.say("round %d: answered %d, restart %.0f ms; in all rounds so far: answered %d, lost %d, revocations lost %d, nonces reused %d, tokens revived %d", r.Rounds, r.Answered-before, millis(took), r.Answered, r.Lost, r.RevocationsLost, r.NoncesReused, r.TokensRevived)
	}
	c.Log.say("looking all %d certificates up once more", len(w.all))
	w.again(ctx, r)
	return nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (r *CrashReport) note(l Lookup) {
	r.Lost += l.Lost + l.Differ + l.Invalid + l.OCSPWrong
	r.Unknown += l.Unknown
	r.first(l.FirstWrong)
}

func (r *CrashReport) first(what string) {
	if r.FirstWrong == "" {
		r.FirstWrong = what
	}
}

// untried says of what the run tells nothing: a zero beside it is no merit.
func (r CrashReport) untried() (marks []string) {
	for _, one := range []struct {
		count int
		text  string
	}{
		{r.Answered, "no certificate was answered, so none could be lost"},
		{r.Revoked, "no revocation was answered, so none could be lost"},
		{r.NoncesTried, "no used evidence was tried again, so none could be accepted"},
		{r.TokensDeleted, "no deletion of a token was answered, so none could be accepted afterwards"},
	} {
		if one.count == 0 {
			marks = append(marks, "untried: "+one.text)
		}
	}
	return marks
}

// Failed gives what was lost, or nil.
func (r CrashReport) Failed() error {
	var late error
	if r.Late > 0 {
		late = fmt.Errorf("%d of %d times the server did not end in order within ten seconds", r.Late, r.Rounds)
	}
	if r.Lost+r.RevocationsLost+r.NoncesReused+r.TokensRevived+r.Wrong+r.Unknown > 0 {
		return errors.Join(late, fmt.Errorf("%d of %d certificates lost, %d of %d revocations lost, %d of %d nonces used twice, %d of %d deleted tokens accepted, %d answers wrong, %d that nobody could look up, such as: %s",
			r.Lost, r.Answered, r.RevocationsLost, r.Revoked, r.NoncesReused, r.NoncesTried, r.TokensRevived, r.TokensDeleted, r.Wrong, r.Unknown, r.FirstWrong))
	}
	if r.Answered == 0 && !r.Interrupted {
		return errors.Join(late, errors.New("nothing was answered, so nothing could be lost"))
	}
	return late
}

// Write writes the report for people.
func (r CrashReport) Write(w io.Writer) {
	if r.EndMax > 0 {
		fmt.Fprintf(w, "ended     %d times in order, under load: the longest took %.0f ms, %d not in order\n", r.Rounds, r.EndMax, r.Late)
	} else {
		fmt.Fprintf(w, "killed    %d times\n", r.Rounds)
	}
	fmt.Fprintf(w, "answered  %d certificates: lost %d, not known %d\n", r.Answered, r.Lost, r.Unknown)
	fmt.Fprintf(w, "revoked   %d: lost %d\n", r.Revoked, r.RevocationsLost)
	fmt.Fprintf(w, "evidence  %d tried again for another key: accepted %d\n", r.NoncesTried, r.NoncesReused)
	fmt.Fprintf(w, "tokens    %d deleted: accepted all the same %d\n", r.TokensDeleted, r.TokensRevived)
	fmt.Fprintf(w, "broken    %d requests without an answer; %d of them were stored\n", r.Broken, r.Unanswered)
	fmt.Fprintf(w, "restart   median %.0f ms, longest %.0f ms until connections are accepted\n", r.RestartMedian, r.RestartMax)
	r.Machine.Write(w)
	writeMarks(w, r.Marks, r.Interrupted)
}
