package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"chancery/agentcert"
	"chancery/api"
	"chancery/client"
	"chancery/internal/base/fault"
)

// The codes are part of the interface: scripts compare them.
func TestExitCodesStay(t *testing.T) {
	t.Parallel()
	answered := func(status int) error { return &client.Error{Problem: api.Problem{Status: status, Detail: "no"}} }
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("broke"), 1},
		{usageError{errors.New("unknown flag")}, 2},
		{fault.New(fault.Internal, "", "broke"), 1},
		{fault.New(fault.Invalid, "x", "no"), 3},
		{fault.New(fault.TooLarge, "x", "no"), 3},
		{fault.New(fault.Unauthenticated, "x", "no"), 4},
		{fault.New(fault.Denied, "x", "no"), 4},
		{fault.New(fault.NotFound, "x", "no"), 5},
		{fault.New(fault.Exists, "x", "no"), 6},
		{fault.New(fault.Conflict, "x", "no"), 6},
		{fault.New(fault.Limited, "x", "no"), 7},
		{fault.New(fault.Unavailable, "x", "no"), 7},
		{fault.New(fault.Unknown, "x", "no"), 7},
		{&agentcert.Refusal{Code: "x", Text: "no"}, 8},
		{answered(http.StatusBadRequest), 3},
		{answered(http.StatusUnauthorized), 4},
		{answered(http.StatusForbidden), 4},
		{answered(http.StatusNotFound), 5},
		{answered(http.StatusConflict), 6},
		{answered(http.StatusServiceUnavailable), 7},
		{answered(http.StatusInternalServerError), 1},
		{&url.Error{Op: "Get", Err: errors.New("connection refused")}, 7},
		{&fs.PathError{Op: "open", Err: fs.ErrNotExist}, 5},
		{x509.UnknownAuthorityError{}, 4},
		{context.Canceled, 130},
	} {
		var said strings.Builder
		terminal := &terminal{err: &said}
		if got := terminal.report(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
		if c.err == nil {
			continue
		}
		if got := terminal.report(fmt.Errorf("doing x: %w", c.err)); got != c.want {
			t.Errorf("%v, wrapped: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

func TestAnErrorIsShownOnceWithItsHint(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	terminal := &terminal{err: &said}
	terminal.report(fmt.Errorf("doing x: %w", fault.New(fault.Denied, "x", "you may not").WithHint("ask").Because(errors.New("a private cause"))))
	if want := "chancery: you may not\nhint: ask\nmore: chancery explain x\n"; said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	said.Reset()
	terminal.json = true
	terminal.report(fault.New(fault.Denied, "x", "you may not").WithHint("ask"))
	if want := `{"error":"you may not","code":"x","hint":"ask","exit":4}` + "\n"; said.String() != want {
		t.Errorf("in JSON said %q, want %q", said.String(), want)
	}
}
