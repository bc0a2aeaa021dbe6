package load

import (
	"context"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"

	"chancery/api"
	"chancery/internal/load/drive"
)

// A wreck is a server that is killed, with all that is known of it.
type wreck struct {
	config  CrashConfig
	server  *server
	target  *target
	load    scenario
	thief   subject // whose key used evidence is tried with
	all     []issued
	revoked map[string]revocation
	deleted []api.Token // deleted, and the deletion was answered
}

// A revocation is what became of the request for one.
type revocation uint8

const (
	unasked  revocation = iota
	answered            // so it must stand
	doubtful            // asked for and not answered: both are right
)

func newWreck(ctx context.Context, c CrashConfig, s *server) (*wreck, error) {
	remote, err := s.remote()
	if err != nil {
		return nil, err
	}
	w := &wreck{config: c, server: s, revoked: map[string]revocation{}}
	if w.target, err = newTarget(ctx, remote); err != nil {
		return nil, err
	}
	if err := w.target.admitReader(ctx); err != nil {
		return nil, err
	}
	if w.load, err = w.target.agents(ctx, c.Population); err != nil {
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
	deleted  []api.Token
}

// watched makes the request of a job whose fate stands in the diary.
func (d *diary) watched(b *book, j job) drive.Job {
	j.accepted = func(cert *x509.Certificate, got api.Issued) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.answered, d.jobs = append(d.answered, remember(got, cert)), append(d.jobs, j)
	}
	asked := b.job(j)
	asked.Unanswered = func(error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.broken = append(d.broken, j)
	}
	return asked
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
		w.revoked[serial] = answered
	}
	if d.doubtful != "" {
		w.revoked[d.doubtful] = doubtful
	}
	w.deleted = append(w.deleted, d.deleted...)
	w.compare(ctx, r, d)
	return took, nil
}

func (w *wreck) endUnderLoad(ctx context.Context, r *CrashReport) *diary {
	d := &diary{}
	under, calm := context.WithCancel(ctx)
	defer calm()
	b := &book{scenario: w.load}
	load := drive.Load{
		Address: w.target.address, TLS: w.target.tls, Connections: w.config.Clients, Stages: []drive.Stage{{For: w.config.Longest + time.Minute}},
		Next: func(turn int) (drive.Job, error) {
			j, err := w.load.next(turn)
			return d.watched(b, j), err
		},
	}
	var group sync.WaitGroup
	var counted *drive.Tally
	group.Go(func() { counted = load.Run(under) })
	group.Go(func() { w.revoke(under, d) })
	group.Go(func() { w.delete(under, d) })
	shortest := min(100*time.Millisecond, w.config.Longest)
	drive.Pause(ctx, shortest+rand.N(w.config.Longest-shortest+1))
	w.end(ctx, r)
	calm()
	group.Wait()
	if r.Wrong += counted.Wrongs; counted.Wrongs > 0 {
		r.first(counted.Wrong[0])
	}
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
			drive.Pause(ctx, 5*time.Millisecond)
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

// delete makes tokens and deletes them, through the admin socket, until the server is gone.
func (w *wreck) delete(ctx context.Context, d *diary) {
	for ctx.Err() == nil {
		var made api.Token
		if w.target.call(ctx, "/api/v1/tokens", api.NewToken{Account: w.target.readerID, Note: "to be deleted"}, &made) != nil {
			return
		}
		if w.target.admin.Call(ctx, http.MethodDelete, "/api/v1/tokens/"+made.ID, nil, nil) != nil {
			return
		}
		d.mu.Lock()
		d.deleted = append(d.deleted, made)
		d.mu.Unlock()
	}
}

// silenced checks that deleted tokens open nothing.
func (w *wreck) silenced(ctx context.Context, c *drive.Connection, r *CrashReport, deleted []api.Token) {
	for _, token := range deleted {
		a, err := c.Persist(ctx, drive.Question{Method: http.MethodGet, Path: "/api/v1/whoami", Token: token.Secret})
		if (err != nil || a.Status != http.StatusUnauthorized) && ctx.Err() == nil {
			r.TokensRevived++
			r.first(fmt.Sprintf("token %s was deleted, and its bearer is answered %s (%v)", token.ID, a.Refusal(), err))
		}
	}
}

func (w *wreck) compare(ctx context.Context, r *CrashReport, d *diary) {
	c := &drive.Connection{Address: w.target.address, TLS: w.target.tls}
	defer c.Close()
	w.retry(ctx, c, r, d) // these two first: evidence is fresh for half a minute only
	w.steal(ctx, c, r, d)
	r.Answered += len(d.answered)
	r.TokensDeleted += len(d.deleted)
	w.silenced(ctx, c, r, d.deleted)
	alive, touched := w.apart(d.answered)
	r.note(w.target.lookUp(ctx, alive, "agents", 1))
	r.note(w.target.lookUpStored(ctx, touched))
	for _, i := range touched {
		if w.revoked[i.serial] == answered {
			r.Revoked++
			w.stands(ctx, c, r, i.serial)
		}
	}
	w.all = append(w.all, d.answered...)
}

// apart parts certificates into those that must be valid and those whose revocation was asked for.
func (w *wreck) apart(all []issued) (alive, touched []issued) {
	for _, i := range all {
		if w.revoked[i.serial] == unasked {
			alive = append(alive, i)
		} else {
			touched = append(touched, i)
		}
	}
	return alive, touched
}

// stands checks that a revocation stands.
func (w *wreck) stands(ctx context.Context, c *drive.Connection, r *CrashReport, serial string) {
	status, err := w.target.status(ctx, c, serial, "agents")
	if (err != nil || status != ocsp.Revoked) && ctx.Err() == nil {
		r.RevocationsLost++
		r.first(fmt.Sprintf("%s was revoked and is %s (%v)", serial, statusText(status), err))
	}
}

// again looks once more at what all rounds left. What a round has missed already counts once.
func (w *wreck) again(ctx context.Context, r *CrashReport) {
	last := &CrashReport{}
	alive, touched := w.apart(w.all)
	last.note(w.target.lookUp(ctx, alive, "agents", sampleEvery))
	last.note(w.target.lookUpStored(ctx, touched))
	c := &drive.Connection{Address: w.target.address, TLS: w.target.tls}
	defer c.Close()
	for serial, r := range w.revoked {
		if r == answered {
			w.stands(ctx, c, last, serial)
		}
	}
	w.silenced(ctx, c, last, w.deleted)
	r.Lost, r.Unknown = max(r.Lost, last.Lost), max(r.Unknown, last.Unknown)
	r.RevocationsLost, r.TokensRevived = max(r.RevocationsLost, last.RevocationsLost), max(r.TokensRevived, last.TokensRevived)
	r.first(last.FirstWrong)
}

// retry sends what got no answer again, as a client would: the same evidence and key give the same certificate.
func (w *wreck) retry(ctx context.Context, c *drive.Connection, r *CrashReport, d *diary) {
	for _, j := range d.broken {
		a, err := c.Persist(ctx, drive.Question{Method: http.MethodPost, Path: w.load.path, Token: j.token, ContentType: "application/json", Body: j.body})
		if err != nil {
			continue
		}
		if a.Status >= http.StatusBadRequest {
			if !strings.HasSuffix(a.Refusal(), staleEvidence) {
				r.Wrong++
				r.first("sent again: " + a.Refusal())
			}
			continue
		}
		got, cert, err := j.expect.examine(a.Body, nil)
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

// staleEvidence is a refusal for the evidence's age alone, about which a busy machine can do nothing.
const staleEvidence = " da_stale"

// thefts is how much used evidence is tried for another key in each round.
const thefts = 50

func (w *wreck) steal(ctx context.Context, c *drive.Connection, r *CrashReport, d *diary) {
	for i := range min(thefts, len(d.jobs)) {
		j := d.jobs[len(d.jobs)-1-i] // the youngest are fresh enough to be judged by their nonce
		body, err := j.reuse(w.thief)
		if err != nil {
			continue
		}
		a, err := c.Persist(ctx, drive.Question{Method: http.MethodPost, Path: w.load.path, Token: j.token, ContentType: "application/json", Body: body})
		if err != nil || strings.HasSuffix(a.Refusal(), staleEvidence) {
			continue
		}
		r.NoncesTried++
		if a.Status != http.StatusConflict {
			r.NoncesReused++
			r.first(fmt.Sprintf("used evidence with another key: %s, not 409", a.Refusal()))
		}
	}
}
