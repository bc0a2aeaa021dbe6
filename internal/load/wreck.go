package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"

	"chancery/api"
)

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
	d := w.endUnderLoad(ctx, r)
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

func (w *wreck) endUnderLoad(ctx context.Context, r *CrashReport) *diary {
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
	w.end(ctx, r)
	calm()
	group.Wait()
	return d
}

// end ends the server while all clients go on asking.
func (w *wreck) end(ctx context.Context, r *CrashReport) {
	if !w.config.Gently {
		w.server.kill()
		return
	}
	began := time.Now()
	w.server.stop(ctx)
	if w.server.err != nil {
		r.Late++
	}
	r.EndMax = max(r.EndMax, millis(time.Since(began)))
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
		got, cert, err := j.expect.examine(a.body, nil)
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
