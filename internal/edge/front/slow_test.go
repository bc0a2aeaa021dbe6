package front

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// only gives a house with one short deadline, so that no other one can stand in for it. It is long enough for a
// handshake, which net/http bounds by it too.
func only(t *testing.T, deadline func(*Config) *time.Duration) *house {
	t.Helper()
	return open(t, func(c *Config) {
		c.ReadHead, c.ReadBody, c.Idle, c.Write = time.Hour, time.Hour, time.Hour, time.Hour
		*deadline(c) = 500 * time.Millisecond
	})
}

// ended waits until the server has closed the connection, and gives what it said before.
func ended(t *testing.T, c net.Conn) string {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(4 * time.Second))
	said, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the server keeps the connection; it said %q", said)
	}
	return string(said)
}

func dial(t *testing.T, h *house, l Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", h.Address(l).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func dialTLS(t *testing.T, h *house, protocols ...string) *tls.Conn {
	t.Helper()
	c := tls.Client(dial(t, h, HTTPS), &tls.Config{RootCAs: h.authority.pool, ServerName: "localhost", NextProtos: protocols})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSlowPeersAreCut(t *testing.T) {
	t.Parallel()
	head := only(t, func(c *Config) *time.Duration { return &c.ReadHead })
	body := only(t, func(c *Config) *time.Duration { return &c.ReadBody })
	idle := only(t, func(c *Config) *time.Duration { return &c.Idle })
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		ended(t, dial(t, head, HTTPS))
	})
	t.Run("half a ClientHello", func(t *testing.T) {
		t.Parallel()
		c := dial(t, head, HTTPS)
		c.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 0xfc})
		ended(t, c)
	})
	t.Run("handshake, then silence", func(t *testing.T) {
		t.Parallel()
		ended(t, dialTLS(t, head))
	})
	t.Run("half a head", func(t *testing.T) {
		t.Parallel()
		c := dialTLS(t, head)
		io.WriteString(c, "GET /open HTTP/1.1\r\nHost: local")
		ended(t, c)
	})
	t.Run("half a body", func(t *testing.T) {
		t.Parallel()
		c := dialTLS(t, body)
		io.WriteString(c, "POST /work HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer hunter2\r\nContent-Length: 100\r\n\r\n{")
		if said := ended(t, c); !strings.HasPrefix(said, "HTTP/1.1 408") || !strings.Contains(said, "body_slow") {
			t.Errorf("half a body was answered with %q", said)
		}
	})
	t.Run("idle after an answer", func(t *testing.T) {
		t.Parallel()
		c := dialTLS(t, idle)
		io.WriteString(c, "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if said := ended(t, c); !strings.HasPrefix(said, "HTTP/1.1 200") {
			t.Errorf("answered %q", said)
		}
	})
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	t.Run("idle on HTTP/2", func(t *testing.T) {
		t.Parallel()
		c := dialTLS(t, idle, "h2")
		io.WriteString(c, preface)
		ended(t, c)
	})
	t.Run("half a head on HTTP/2", func(t *testing.T) {
		t.Parallel()
		c := dialTLS(t, idle, "h2")
		io.WriteString(c, preface+"\x00\x00\x64\x01\x04\x00\x00\x00\x01\x82")
		ended(t, c)
	})
	t.Run("half a body on HTTP/2", func(t *testing.T) {
		t.Parallel()
		half, rest := io.Pipe()
		defer rest.Close()
		r, _ := http.NewRequestWithContext(t.Context(), "POST", body.url(HTTPS, "/work"), half)
		r.Header.Set("Authorization", "Bearer hunter2")
		response, err := body.client(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != 408 || response.ProtoMajor != 2 {
			t.Errorf("half a body was answered with %d over HTTP/%d", response.StatusCode, response.ProtoMajor)
		}
	})
}

// A caller that takes its answer slowly is cut by the deadline for writing; a route with a deadline of its own outlives
// that one.
func TestSlowReaderIsCut(t *testing.T) {
	t.Parallel()
	h := only(t, func(c *Config) *time.Duration { return &c.Write })
	long := make(chan reply, 1)
	go func() {
		defer close(long)
		long <- send(t, h.client(t), "GET", h.url(Public, "/long-hold"), "")
	}()
	<-h.enter
	c := dial(t, h, Public)
	io.WriteString(c, "GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n")
	for range 2 { // the second says that a write failed
		select {
		case <-h.enter:
		case <-time.After(4 * time.Second):
			t.Fatal("the answer is still being written")
		}
	}
	close(h.release)
	(<-long).want(t, 200, "")
}

func TestLargeHeadIsRefused(t *testing.T) {
	t.Parallel()
	small := open(t, func(c *Config) { c.Head = 8 << 10 })
	usual := open(t, nil)
	for _, c := range []struct {
		h      *house
		bytes  int
		status string
	}{{small, 10_000, "431"}, {usual, 10_000, "200"}, {usual, 17_000, "431"}} {
		conn := dial(t, c.h, Public)
		fmt.Fprintf(conn, "GET /open HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Filler: %s\r\n\r\n", strings.Repeat("a", c.bytes))
		if said := ended(t, conn); !strings.HasPrefix(said, "HTTP/1.1 "+c.status) {
			t.Errorf("a head of %d bytes: %.60q, want %s", c.bytes, said, c.status)
		}
	}
	response, err := usual.client(t).Do(&http.Request{Method: "GET", URL: mustURL(t, usual.url(HTTPS, "/open")), Header: http.Header{"X-Filler": {strings.Repeat("a", 17_000)}}})
	if err == nil {
		response.Body.Close()
		if response.StatusCode != 431 {
			t.Errorf("HTTP/2 answered a large head with %d", response.StatusCode)
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	h := open(t, func(c *Config) { c.Connections = 2 })
	first := dialTLS(t, h)
	dialTLS(t, h)
	ended(t, dial(t, h, HTTPS))
	first.Close()
	for deadline := time.Now().Add(5 * time.Second); ; { // until the server has noticed
		c := tls.Client(dial(t, h, HTTPS), &tls.Config{RootCAs: h.authority.pool, ServerName: "localhost"})
		if err := c.Handshake(); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("a closed connection still counts: %v", err)
		}
	}
}

func TestHandshakesAreShedBeforeCryptography(t *testing.T) {
	t.Parallel()
	var signed atomic.Int64
	h := open(t, func(c *Config) {
		c.Handshakes = Capacity{Rate: 0.001}
		given := c.Certificates
		c.Certificates = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			signed.Add(1)
			return given(hello)
		}
	})
	dialTLS(t, h)
	c := tls.Client(dial(t, h, HTTPS), &tls.Config{RootCAs: h.authority.pool, ServerName: "localhost"})
	if err := c.Handshake(); err == nil || signed.Load() != 1 {
		t.Errorf("the second handshake: %v; certificates were asked for %d times", err, signed.Load())
	}
	if inside, bytes, _ := h.hello.gate.Load(); inside != 0 || bytes != 0 {
		t.Errorf("%d handshakes with %d bytes are still counted", inside, bytes)
	}
}

func TestStopLosesNoAnswer(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	c := h.client(t)
	c.Transport.(*http.Transport).TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{} // one connection each
	var answered atomic.Int64
	var wait sync.WaitGroup
	started := make(chan struct{}, 16)
	for range 16 {
		wait.Go(func() {
			for first := true; ; first = false {
				r, _ := http.NewRequest("POST", h.url(HTTPS, "/work"), strings.NewReader(`{"text":"hi"}`))
				r.Header.Set("Authorization", "Bearer hunter2")
				r.GetBody = nil // no silent second try
				response, err := c.Do(r)
				if err != nil {
					return
				}
				if _, err := io.ReadAll(response.Body); err == nil && response.StatusCode == 200 {
					answered.Add(1)
				}
				response.Body.Close()
				if first {
					started <- struct{}{}
				}
			}
		})
	}
	for range 16 {
		<-started
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := h.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
	wait.Wait()
	if ran := h.ran.Load(); ran != answered.Load() {
		t.Errorf("%d requests were worked on, %d answers arrived", ran, answered.Load())
	}
}

func TestStopFinishesWhatRuns(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	done := make(chan reply, 1)
	go func() {
		defer close(done)
		done <- send(t, h.client(t), "GET", h.url(HTTPS, "/hold"), "")
	}()
	<-h.enter
	stopped := make(chan error, 1)
	go func() { stopped <- h.Stop(t.Context()) }()
	for { // until nothing is accepted any more
		c, err := net.Dial("tcp", h.Address(HTTPS).String())
		if err != nil {
			break
		}
		c.Close()
	}
	close(h.release)
	(<-done).want(t, 200, "")
	if err := <-stopped; err != nil {
		t.Errorf("Stop: %v", err)
	}
}

// stopWith stops while a request to path runs, and gives what became of both.
func (h *house) stopWith(t *testing.T, path string, patience time.Duration) (answered, stopped error) {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		response, err := h.client(t).Get(h.url(HTTPS, path))
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		failed <- err
	}()
	<-h.enter
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stopped = h.Stop(ctx)
	return <-failed, stopped
}

func TestStopCallsOffWhatTakesLong(t *testing.T) {
	t.Parallel()
	h := open(t, func(c *Config) { c.Work = time.Hour })
	answered, stopped := h.stopWith(t, "/hold", 2*time.Second)
	if answered != nil || stopped != nil {
		t.Errorf("a request whose work was called off: %v; Stop: %v", answered, stopped)
	}
}

func TestStopCutsWhatHangs(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	defer close(h.release)
	answered, stopped := h.stopWith(t, "/deaf", 20*time.Millisecond)
	if stopped == nil {
		t.Error("Stop hid that a request was cut")
	}
	if answered == nil {
		t.Error("the request that hung was answered")
	}
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestStopDoesNotWaitForTheSilent(t *testing.T) {
	t.Parallel()
	h := only(t, func(c *Config) *time.Duration { return &c.Idle })
	dialTLS(t, h)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // net/http would wait for five
	defer cancel()
	if err := h.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
}
