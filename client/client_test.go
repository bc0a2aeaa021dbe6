package client

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"chancery/api"
)

func TestRefusalsComeBackWithTheirCode(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		w.Write([]byte(`{"title":"Forbidden","status":403,"detail":"signed 40s ago","code":"da_stale"}`))
	}))
	defer server.Close()
	c, err := New(Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Call(context.Background(), "POST", "/x", api.NewAgent{Name: "a"}, nil)
	if CodeOf(err) != "da_stale" || err.Error() != "signed 40s ago" {
		t.Errorf("Call = %v (code %q), want the server's refusal", err, CodeOf(err))
	}
}

func TestPatienceKeepsTheIdempotencyKey(t *testing.T) {
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if len(keys) < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Write([]byte(`{"id":"agt_1"}`))
	}))
	defer server.Close()
	c, err := New(Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var got api.Agent
	if err := c.Call(context.Background(), "POST", "/x", api.NewAgent{Name: "a"}, &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != "agt_1" || len(keys) != 3 || keys[0] == "" || keys[0] != keys[2] {
		t.Errorf("answer %+v after keys %q, want one key throughout", got, keys)
	}
}

func TestAddressIsChecked(t *testing.T) {
	if _, err := New(Config{URL: "localhost:8443"}); err == nil {
		t.Error("an address without a scheme was accepted")
	}
}

func TestADownloadThatBreaksIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("half"))
		w.(http.Flusher).Flush()
		if r.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	c, err := New(Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := c.Download(context.Background(), "/whole", &got); err != nil || got.String() != "half" {
		t.Errorf("Download = %v with %q", err, got.String())
	}
	if err := c.Download(context.Background(), "/broken", &got); err == nil {
		t.Error("a download that broke off was taken for whole")
	}
}
