package front

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/base/who"
)

// log writes the access log: one line a request, and with it the private chain of what refused it. Our own failures
// are errors. What went well is for level debug, since every change is in the audit and a certificate is its own line
// there. Overload is the metrics' to tell: thousands of lines would only add to it, and push out what `explain` is asked
// for.
func (f *Front) log(a *answer, r *http.Request) {
	err := a.record.Err
	level := slog.LevelInfo
	switch kind := fault.KindOf(err); {
	case err == nil && a.status < http.StatusBadRequest:
		level = slog.LevelDebug
	case err == nil:
	case kind == fault.Unavailable || kind == fault.Limited || errors.Is(err, context.Canceled):
		level = slog.LevelDebug
	case kind == fault.Internal:
		level = slog.LevelError
		fallthrough
	default:
		f.recent.add(refusal(a, r, f.config.Now()))
	}
	if !f.config.Log.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("id", a.record.ID), slog.String("listener", string(a.peer.listener)), slog.String("peer", r.RemoteAddr),
		slog.String("method", r.Method), slog.String("route", r.Pattern), slog.Int("status", a.status),
		slog.Int64("bytes", a.bytes), slog.Duration("took", time.Since(a.start)),
	}
	if a.caller.Kind != who.Nobody {
		attrs = append(attrs, slog.String("caller", a.caller.ID), slog.String("credential", a.caller.Credential))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	f.config.Log.LogAttrs(r.Context(), level, "request", attrs...)
}

// refusal gives what `chancery explain` tells of a request that was refused for good, not for lack of capacity.
func refusal(a *answer, r *http.Request, now time.Time) api.Refusal {
	said := api.Refusal{Time: now, RequestID: a.record.ID, Route: r.Pattern, Status: a.status}
	if e, ok := fault.As(a.record.Err); ok && e.Kind != fault.Internal {
		said.Code, said.Text, said.Hint = e.Code, e.Text, e.Hint
		return said
	}
	said.Text = "this was a failure of the server; its log says more under the request id"
	return said
}

// recent is a ring of the latest refusals.
type recent struct {
	mu   sync.Mutex
	ring [512]api.Refusal
	next int
}

func (r *recent) add(said api.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.next%len(r.ring)] = said
	r.next++
}

func (r *recent) list() []api.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(r.next, len(r.ring))
	out := make([]api.Refusal, n)
	for i := range out {
		out[i] = r.ring[(r.next-1-i)%len(r.ring)]
	}
	return out
}
