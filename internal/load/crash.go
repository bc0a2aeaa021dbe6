package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"

	"chancery/api"
)

// A CrashConfig says how often to kill, and under what load.
type CrashConfig struct {
	Program    Program
	Rounds     int           // default 10
	Longest    time.Duration // longest time under load before the kill; default 2 s
	Clients    int           // default 64
	Population Population
	StoreURL   string   // database server on which a database is made and dropped; empty: SQLite
	Settings   []string // more settings of the server, name=value
	Dir        string   // where its data lie; empty: the system's directory for temporary files
	Log        Log      // nil: silent
}

func (c CrashConfig) withDefaults() CrashConfig {
	c.Rounds, c.Longest = orDefault(c.Rounds, 10), orDefault(c.Longest, 2*time.Second)
	c.Clients, c.Population = orDefault(c.Clients, 64), c.Population.withDefaults()
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	return c
}

// A CrashReport is what a server lost by being killed. What is lost, unknown or reused has to be zero.
type CrashReport struct {
	Rounds          int     `json:"rounds"`
	Answered        int     `json:"answered"`         // certificates
	Lost            int     `json:"lost"`             // of these, not in the store, changed, or not good in OCSP
	Revoked         int     `json:"revoked"`          // revocations that were answered
	RevocationsLost int     `json:"revocations_lost"` // of these, not revoked in OCSP
	NoncesTried     int     `json:"nonces_tried"`     // used evidence handed in again, for another key
	NoncesReused    int     `json:"nonces_reused"`    // of these, not refused as used
	Unanswered      int     `json:"unanswered"`       // stored, but the server died before it answered
	Broken          int     `json:"broken"`           // requests without an answer
	Unknown         int     `json:"unknown"`          // certificates about which no answer could be had
	RestartMedian   float64 `json:"restart_median_ms"`
	RestartMax      float64 `json:"restart_max_ms"` // from the start of the process to the first connection
	FirstWrong      string  `json:"first_wrong,omitempty"`
	Machine         Machine `json:"machine"`
	Interrupted     bool    `json:"interrupted,omitempty"`
}

// Crash kills a server of its own again and again and verifies after each start that everything it had answered is
// still so: certificates, revocations, used evidence. At the end it looks up the certificates of all rounds once more.
func Crash(ctx context.Context, c CrashConfig) (CrashReport, error) {
	c = c.withDefaults()
	r := &CrashReport{Machine: look()}
	err := r.run(ctx, c)
	r.Machine.done()
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
		took, err := w.round(ctx, r)
		if err != nil {
			return err
		}
		restarts = append(restarts, took)
		r.RestartMedian, r.RestartMax = millis(median(restarts)), max(r.RestartMax, millis(took))
		c.Log("round %d: answered %d, lost %d, revocations lost %d, nonces reused %d, restart %.0f ms", r.Rounds, r.Answered, r.Lost, r.RevocationsLost, r.NoncesReused, millis(took))
	}
	c.Log("looking all %d certificates up once more", len(w.all))
	w.again(ctx, r)
	return nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A wreck is a server that is killed, with all that is known of it.
type wreck struct {
	config  CrashConfig
	server  *server
	target  *target
	load    scenario
	thief   subject // whose key used evidence is tried with
	all     []issued
	revoked map[string]bool
}

func newWreck(ctx context.Context, c CrashConfig, s *server) (*wreck, error) {
	remote, err := s.remote()
	if err != nil {
		return nil, err
	}
	w := &wreck{config: c, server: s, revoked: map[string]bool{}}
	if w.target, err = newTarget(ctx, remote); err != nil {
		return nil, err
	}
	if err := w.target.admitReader(ctx); err != nil {
		return nil, err
	}
	if w.load, err = w.target.agents(ctx, c.Population, c.Clients); err != nil {
		return nil, err
	}
	w.thief, err = newSubject(0)
	return w, err
}

// A diary is what clients saw in one round.
type diary struct {
	mu       sync.Mutex
	answered []issued
	jobs     []job // of the answered, in the same order
	broken   []job // sent, or about to be, and no answer came
	revoked  []string
	doubtful string // its revocation was asked for and not answered: both are right
}

func (d *diary) observe(j job, got *issued, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err != nil:
		d.broken = append(d.broken, j)
	case got != nil:
		d.answered, d.jobs = append(d.answered, *got), append(d.jobs, j)
	}
}

// some gives an answered certificate that nobody has revoked yet.
func (d *diary) some() (serial string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := len(d.revoked)*revokeEvery + revokeEvery/2
	if i >= len(d.answered) {
		return "", false
	}
	return d.answered[i].serial, true
}

// revokeEvery is how many certificates go by for one that is revoked.
const revokeEvery = 20

// round loads the server, kills it, starts it again and compares. It gives the time of the start.
func (w *wreck) round(ctx context.Context, r *CrashReport) (time.Duration, error) {
	d := w.killUnderLoad(ctx)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	took, err := w.server.start(ctx)
	if err != nil {
		return 0, err
	}
	r.Rounds++
	r.Broken += len(d.broken)
	for _, serial := range d.revoked {
		w.revoked[serial] = true
	}
	w.compare(ctx, r, d)
	return took, nil
}

func (w *wreck) killUnderLoad(ctx context.Context) *diary {
	d := &diary{}
	under, calm := context.WithCancel(ctx)
	defer calm()
	busy := w.load
	busy.observe = d.observe
	l := &loop{address: w.target.address, tls: w.target.tls, clients: w.config.Clients, duration: w.config.Longest + time.Minute, scenario: busy}
	var group sync.WaitGroup
	group.Go(func() { l.run(under) })
	group.Go(func() { w.revoke(under, d) })
	shortest := min(100*time.Millisecond, w.config.Longest)
	pause(ctx, shortest+rand.N(w.config.Longest-shortest+1))
	w.server.kill()
	calm()
	group.Wait()
	return d
}

// revoke revokes some of what was answered, through the admin socket, until the server is gone.
func (w *wreck) revoke(ctx context.Context, d *diary) {
	for ctx.Err() == nil {
		serial, ok := d.some()
		if !ok {
			pause(ctx, 5*time.Millisecond)
			continue
		}
		err := w.target.admin.Call(ctx, http.MethodPost, "/api/v1/certificates/"+serial+"/revoke", api.RevokeRequest{Reason: "superseded"}, nil)
		if err != nil {
			d.doubtful = serial
			return
		}
		d.mu.Lock()
		d.revoked = append(d.revoked, serial)
		d.mu.Unlock()
	}
}

func (w *wreck) compare(ctx context.Context, r *CrashReport, d *diary) {
	c := &connection{address: w.target.address, tls: w.target.tls}
	defer c.close()
	w.retry(ctx, c, r, d) // these two first: evidence is fresh for half a minute only
	w.steal(ctx, c, r, d)
	var alive, dead, doubtful []issued
	for _, i := range d.answered {
		switch {
		case w.revoked[i.serial]:
			dead = append(dead, i)
		case i.serial == d.doubtful:
			doubtful = append(doubtful, i)
		default:
			alive = append(alive, i)
		}
	}
	r.Answered += len(d.answered)
	r.Revoked += len(dead)
	r.note(w.target.lookUp(ctx, alive, "agents", 1))
	r.note(w.target.lookUp(ctx, slices.Concat(dead, doubtful), "agents", 0))
	for _, i := range dead {
		w.stands(ctx, c, r, i.serial)
	}
	w.all = append(w.all, d.answered...)
}

// stands checks that a revocation stands.
func (w *wreck) stands(ctx context.Context, c *connection, r *CrashReport, serial string) {
	status, err := w.target.status(ctx, c, serial, "agents")
	if (err != nil || status != ocsp.Revoked) && ctx.Err() == nil {
		r.RevocationsLost++
		r.first(fmt.Sprintf("%s was revoked and is %s (%v)", serial, statusText(status), err))
	}
}

// again looks once more at what all rounds left.
func (w *wreck) again(ctx context.Context, r *CrashReport) {
	r.note(w.target.lookUp(ctx, w.all, "agents", 0))
	c := &connection{address: w.target.address, tls: w.target.tls}
	defer c.close()
	for serial := range w.revoked {
		w.stands(ctx, c, r, serial)
	}
}

// retry sends what got no answer again, as a client would: the same evidence and key give the same certificate.
func (w *wreck) retry(ctx context.Context, c *connection, r *CrashReport, d *diary) {
	for _, j := range d.broken {
		a, err := persist(ctx, c, question{method: http.MethodPost, path: w.load.path, token: j.token, contentType: "application/json", body: j.body})
		if err != nil || a.status >= http.StatusBadRequest {
			continue
		}
		got, cert, err := j.expect.examine(a.body)
		if err != nil {
			r.Lost++
			r.first("sent again: " + err.Error())
			continue
		}
		if got.Again {
			r.Unanswered++
		}
		d.answered, d.jobs = append(d.answered, remember(got, cert)), append(d.jobs, j)
	}
}

// thefts is how much used evidence is tried for another key in each round.
const thefts = 50

func (w *wreck) steal(ctx context.Context, c *connection, r *CrashReport, d *diary) {
	for i := range min(thefts, len(d.jobs)) {
		j := d.jobs[len(d.jobs)-1-i] // the youngest are fresh enough to be judged by their nonce
		body, err := j.reuse(w.thief)
		if err != nil {
			continue
		}
		a, err := persist(ctx, c, question{method: http.MethodPost, path: w.load.path, token: j.token, contentType: "application/json", body: body})
		if err != nil || strings.HasSuffix(refusal(a), " da_stale") {
			continue
		}
		r.NoncesTried++
		if a.status != http.StatusConflict {
			r.NoncesReused++
			r.first(fmt.Sprintf("used evidence with another key: %s, not 409", refusal(a)))
		}
	}
}

func (r *CrashReport) note(l Lookup) {
	r.Lost += l.Lost + l.Differ + l.OCSPWrong
	r.Unknown += l.Unknown
	r.first(l.FirstWrong)
}

func (r *CrashReport) first(what string) {
	if r.FirstWrong == "" {
		r.FirstWrong = what
	}
}

// Failed gives what was lost, or nil.
func (r CrashReport) Failed() error {
	if r.Lost+r.RevocationsLost+r.NoncesReused+r.Unknown > 0 {
		return fmt.Errorf("%d of %d certificates lost, %d of %d revocations lost, %d of %d nonces used twice, %d that nobody could look up, such as: %s",
			r.Lost, r.Answered, r.RevocationsLost, r.Revoked, r.NoncesReused, r.NoncesTried, r.Unknown, r.FirstWrong)
	}
	if r.Answered == 0 && !r.Interrupted {
		return errors.New("nothing was answered, so nothing could be lost")
	}
	return nil
}

// Write writes the report for people.
func (r CrashReport) Write(w io.Writer) {
	fmt.Fprintf(w, "killed    %d times\n", r.Rounds)
	fmt.Fprintf(w, "answered  %d certificates: lost %d, not known %d\n", r.Answered, r.Lost, r.Unknown)
	fmt.Fprintf(w, "revoked   %d: lost %d\n", r.Revoked, r.RevocationsLost)
	fmt.Fprintf(w, "evidence  %d tried again for another key: accepted %d\n", r.NoncesTried, r.NoncesReused)
	fmt.Fprintf(w, "broken    %d requests without an answer; %d of them were stored\n", r.Broken, r.Unanswered)
	fmt.Fprintf(w, "restart   median %.0f ms, longest %.0f ms until connections are accepted\n", r.RestartMedian, r.RestartMax)
	r.Machine.write(w)
	writeMarks(w, nil, r.Interrupted)
}
