package rest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"chancery/internal/base/who"
)

// BenchmarkRoute compares a small JSON POST through huma with the same as a raw route and as a bare handler.
func BenchmarkRoute(b *testing.B) {
	a := New("Shop", "1")
	Route(a, Operation{Method: "POST", Path: "/typed", Permission: who.Public}, func(_ context.Context, in *struct{ Body order }) (*orderOutput, error) {
		return &orderOutput{in.Body}, nil
	})
	Raw(a, Operation{Method: "POST", Path: "/raw", Permission: who.Public}, Media{In: map[string]any{TypeJSON: order{}}}, func(r *Request) (*Answer, error) {
		var o order
		if err := r.Decode(&o); err != nil {
			return nil, err
		}
		return &Answer{JSON: o}, nil
	})
	h, err := a.Handler(nil)
	if err != nil {
		b.Fatal(err)
	}
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o order
		if err := json.UnmarshalRead(r.Body, &o); err != nil {
			b.Error(err)
		}
		json.MarshalWrite(w, o)
	})
	for name, c := range map[string]struct {
		h    http.Handler
		path string
	}{"typed": {h, "/typed"}, "raw": {h, "/raw"}, "bare": {bare, "/raw"}} {
		b.Run(name, func(b *testing.B) { post(b, c.h, c.path) })
	}
}

func post(b *testing.B, h http.Handler, path string) {
	b.Helper()
	body := `{"name":"pen","count":3,"tags":["blue","` + strings.Repeat("long", 100) + `"]}`
	b.ReportAllocs()
	for b.Loop() {
		r, _ := http.NewRequest("POST", path, io.NopCloser(strings.NewReader(body)))
		r.ContentLength = int64(len(body))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 {
			b.Fatal(w.Code, w.Body)
		}
	}
}
