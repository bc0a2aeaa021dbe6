package front

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/who"
	"chancery/internal/edge/rest"
)

// requestBytes is what a request holds in memory beside its body: parsed head, growth of the stack, what the rooms make.
const requestBytes = 8 << 10

// An answer watches what a route answers, for the log and the metrics.
type answer struct {
	http.ResponseWriter
	record rest.Record
	peer   *peer
	caller who.Caller
	start  time.Time
	first  time.Time // when the head of the answer went out
	status int
	bytes  int64
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status, a.first = status, time.Now()
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status, a.first = http.StatusOK, time.Now()
	}
	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// serveRequest is the way of every request, up to the route that it asks for.
func (f *Front) serveRequest(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w, peer: peerOf(r.Context()), start: time.Now()}
	a.record.ID = id.New(id.Request, f.config.Now())
	header := w.Header()
	header["X-Request-Id"] = []string{a.record.ID}
	header["Cache-Control"] = []string{"no-store"} // a route whose answer may be kept says so
	header["X-Content-Type-Options"] = []string{"nosniff"}
	r = r.WithContext(rest.WithRecord(r.Context(), &a.record))
	f.metrics.inFlight.Inc()
	defer f.finish(a, r)
	if err := f.strange(r, a.peer); err != nil {
		rest.Refuse(a, r, err)
		return
	}
	f.routes.ServeHTTP(a, r)
}

// finish answers for a panic, then logs and counts the request.
func (f *Front) finish(a *answer, r *http.Request) {
	p := recover()
	if aborted, _ := p.(error); p != nil && !errors.Is(aborted, http.ErrAbortHandler) {
		err := fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		if a.status == 0 {
			rest.Refuse(a, r, err)
			p = nil
		}
		a.record.Err = err
	}
	f.metrics.inFlight.Dec()
	f.metrics.observe(a, r.Pattern)
	f.log(a, r)
	if p != nil {
		panic(http.ErrAbortHandler) // half an answer went out; the caller must see that it is not whole
	}
}

// strange refuses what a browser was tricked into sending: a name that is not this machine's on the loopback listener
// (DNS rebinding), and a changing request from another site, for client certificates go along unasked.
func (f *Front) strange(r *http.Request, p *peer) error {
	if p.listener == Loopback && !loopbackName(r.Host) {
		return fault.New(fault.Invalid, "host_unknown", "this listener answers for localhost only, not for %.100q", r.Host)
	}
	if err := f.origin.Check(r); err != nil {
		return fault.New(fault.Denied, "cross_origin", "a page of another site may not send this").Because(err)
	}
	return nil
}

func loopbackName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.IsLoopback()
}

// around is what a request goes through once its route is known.
func (f *Front) around(op rest.Operation, next http.Handler) http.Handler {
	work := op.Deadline
	if work == 0 {
		work = f.config.Work
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := op.Fits(r); err != nil {
			rest.Refuse(w, r, err)
			return
		}
		if op.Gated {
			bytes := requestBytes + held(op, r)
			if err := f.gate.Enter(bytes); err != nil {
				rest.Refuse(w, r, err)
				return
			}
			defer f.gate.Leave(bytes)
		}
		f.admit(op, work, next, w, r)
	})
}

// admit authenticates, sets the deadline and calls the route.
func (f *Front) admit(op rest.Operation, work time.Duration, next http.Handler, w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), work)
	defer cancel()
	begin := time.Now()
	caller, err := f.authenticate(r.WithContext(ctx), peerOf(ctx))
	f.metrics.Observe("authenticate", time.Since(begin))
	if err != nil {
		rest.Refuse(w, r, err)
		return
	}
	if a, ok := w.(*answer); ok {
		a.caller = caller
	}
	if op.Deadline > 0 {
		f.extend(w, begin.Add(op.Deadline))
	}
	next.ServeHTTP(w, r.WithContext(who.With(ctx, caller)))
}

// extend gives a route with a deadline of its own the time to read and write that long.
func (f *Front) extend(w http.ResponseWriter, until time.Time) {
	connection := http.NewResponseController(w)
	if err := connection.SetReadDeadline(until); err != nil {
		f.config.Log.Debug("read deadline not set", "error", err)
	}
	if err := connection.SetWriteDeadline(until.Add(f.config.Write)); err != nil {
		f.config.Log.Debug("write deadline not set", "error", err)
	}
}

// held gives the memory that a request's body may take.
func held(op rest.Operation, r *http.Request) int64 {
	if r.ContentLength >= 0 {
		return r.ContentLength
	}
	return op.Bound()
}
