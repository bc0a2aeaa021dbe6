package hinder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// counted counts the connections that it was asked for.
type counted struct {
	net.Listener
	came atomic.Int64
}

// echo is a server that sends back what it gets, and ends when its client does.
func echo(t testing.TB, network, address string) *counted {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	l := &counted{Listener: listener}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			l.came.Add(1)
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l
}

func newProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := NewProxy(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func dial(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	return c.(*net.TCPConn)
}

// ask sends a text and wants it back.
func ask(c net.Conn, text string) error {
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	return hear(c, text)
}

func hear(c net.Conn, text string) error {
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if string(got) != text {
		return fmt.Errorf("said %q and heard %q", text, got)
	}
	return nil
}

// shut waits until the gate is shut.
func (g *gate) shut() bool {
	left, _ := g.look(time.Now())
	return left > 0
}

func TestProxyForwardsUntilBothSidesHaveFinished(t *testing.T) {
	for name, l := range map[string]*counted{
		"tcp": echo(t, "tcp", "127.0.0.1:0"), "unix": echo(t, "unix", filepath.Join(t.TempDir(), "s")),
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, newProxy(t, l.Addr().String()).Address())
			text := strings.Repeat("0123456789", 100_000)
			go func() {
				io.WriteString(c, text)
				c.CloseWrite()
			}()
			got, err := io.ReadAll(c)
			if err != nil || string(got) != text {
				t.Errorf("sent %d bytes and got %d back: %v", len(text), len(got), err)
			}
		})
	}
}

func TestProxyStallHoldsWhatIsSentAndWhoComes(t *testing.T) {
	server := echo(t, "tcp", "127.0.0.1:0")
	p := newProxy(t, server.Addr().String())
	old := dial(t, p.Address())
	if err := ask(old, "before"); err != nil {
		t.Fatal(err)
	}
	ctx, release := context.WithCancel(t.Context())
	stalled := make(chan struct{})
	go func() {
		p.Stall(ctx, time.Hour)
		close(stalled)
	}()
	until(t, "it is stalled", p.gate.shut)
	fresh := dial(t, p.Address())
	for _, c := range []net.Conn{old, fresh} {
		io.WriteString(c, "during")
		c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the stall let %d bytes through: %v", n, err)
		}
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
	}
	if n := server.came.Load(); n != 1 {
		t.Errorf("the server has seen %d connections", n)
	}
	release()
	<-stalled
	for _, c := range []net.Conn{old, fresh} {
		if err := errors.Join(hear(c, "during"), ask(c, "after")); err != nil {
			t.Error(err)
		}
	}
}

func TestProxyStallTakesItsTime(t *testing.T) {
	p := newProxy(t, echo(t, "tcp", "127.0.0.1:0").Addr().String())
	began := time.Now()
	p.Stall(t.Context(), 50*time.Millisecond)
	if took := time.Since(began); took < 50*time.Millisecond || p.gate.shut() {
		t.Errorf("it took %s, and is over: %v", took, !p.gate.shut())
	}
}

func TestProxyCutBreaksAllAndServesNewOnes(t *testing.T) {
	p := newProxy(t, echo(t, "tcp", "127.0.0.1:0").Addr().String())
	one, two := dial(t, p.Address()), dial(t, p.Address())
	if err := errors.Join(ask(one, "1"), ask(two, "2")); err != nil {
		t.Fatal(err)
	}
	if n := p.Cut(); n != 2 {
		t.Errorf("%d connections were cut", n)
	}
	for _, c := range []net.Conn{one, two} {
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a broken connection gave %v", err)
		}
	}
	if err := ask(dial(t, p.Address()), "3"); err != nil {
		t.Error(err)
	}
	if n := p.Cut(); n != 1 {
		t.Errorf("%d connections were cut the second time", n)
	}
}

func TestProxyCloseEndsAllEvenInAStall(t *testing.T) {
	p := newProxy(t, echo(t, "tcp", "127.0.0.1:0").Addr().String())
	c := dial(t, p.Address())
	if err := ask(c, "before"); err != nil {
		t.Fatal(err)
	}
	stalled := make(chan struct{})
	go func() {
		p.Stall(t.Context(), time.Hour)
		close(stalled)
	}()
	until(t, "it is stalled", p.gate.shut)
	io.WriteString(c, "lost")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	<-stalled
	if got, err := io.ReadAll(c); err == nil || len(got) > 0 {
		t.Errorf("after the end came %q: %v", got, err)
	}
}

func TestProxyOfAServerThatIsAway(t *testing.T) {
	l := echo(t, "tcp", "127.0.0.1:0")
	p := newProxy(t, l.Addr().String())
	l.Close()
	if got, err := io.ReadAll(dial(t, p.Address())); len(got) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %q: %v", got, err)
	}
}

func TestNewProxyWantsAPort(t *testing.T) {
	if _, err := NewProxy(t.Context(), "database"); err == nil {
		t.Error("a target without a port was taken")
	}
}

// BenchmarkRoundTrip shows what a proxy adds to a small question and its answer.
func BenchmarkRoundTrip(b *testing.B) {
	server := echo(b, "tcp", "127.0.0.1:0").Addr().String()
	for name, address := range map[string]string{"direct": server, "proxy": newProxy(b, server).Address()} {
		b.Run(name, func(b *testing.B) {
			c, text := dial(b, address), strings.Repeat("x", 200)
			for b.Loop() {
				if err := ask(c, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
