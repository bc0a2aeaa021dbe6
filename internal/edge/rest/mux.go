package rest

import (
	"fmt"
	"net/http"
	"strings"

	"chancery/internal/base/fault"
)

// register adds a pattern. ServeMux panics on a pattern that is malformed or collides; at start that is an error.
func register(mux *http.ServeMux, pattern string, h http.Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %v", pattern, p)
		}
	}()
	mux.Handle(pattern, h)
	return nil
}

// A tail is a route whose path ends in a name for all that follows.
type tail struct {
	method, prefix, name string
	pattern              string
	handler              http.Handler
}

func tailOf(op Operation, h http.Handler) (tail, bool) {
	prefix, name, ok := strings.Cut(op.Path, "{")
	name, all := strings.CutSuffix(name, "...}")
	return tail{op.Method, prefix, name, op.Method + " " + op.Path, h}, ok && all
}

// verbatim serves tails that ServeMux would clean and redirect: the base64 of an OCSP request (RFC 6960, appendix A.1)
// holds two slashes in a row now and then, and not all clients escape them.
func verbatim(tails []tail, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "//") {
			next.ServeHTTP(w, r)
			return
		}
		for _, t := range tails {
			if rest, ok := strings.CutPrefix(r.URL.Path, t.prefix); ok && r.Method == t.method {
				r.Pattern = t.pattern
				r.SetPathValue(t.name, rest)
				t.handler.ServeHTTP(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// explainUnmatched answers for paths and methods that no route has, as a problem like every other refusal.
func explainUnmatched(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r) // again, because only this sets the path's values
			return
		}
		probe := probe{header: http.Header{}}
		h.ServeHTTP(&probe, r)
		if allow := probe.header.Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			Refuse(w, r, fault.New(fault.Invalid, "method_not_allowed", "%.20s is not a method of this resource", r.Method).
				WithHint("allowed: %s", allow))
			return
		}
		Refuse(w, r, fault.New(fault.NotFound, "route_unknown", "there is nothing at %.200s", r.URL.Path).
			WithHint("the API is described at %s.json", descriptionPath))
	})
}

// A probe takes an answer of ServeMux and keeps its header.
type probe struct{ header http.Header }

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(int)             {}
