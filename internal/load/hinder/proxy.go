package hinder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"time"
)

const (
	maxLinks = 1024             // connections that a proxy carries at once; more wait in the system's queue
	dialTime = 10 * time.Second // for a connection to the server
)

// A Proxy stands before a database server and forwards TCP connections to it until it is told to stop for a while, as a
// network or a server does that is overloaded or being switched over. It adds 20 to 40 µs to a round trip. Every
// method may be called at any time by any goroutine.
type Proxy struct {
	network, target string
	listener        net.Listener
	gate            *gate
	cancel          context.CancelFunc
	running         sync.WaitGroup // accept and all links

	mu    sync.Mutex
	links map[*link]bool
	ended bool
}

// A link is one connection of a client, with the one to the server that belongs to it.
type link struct {
	near, far conn // far is nil until the server has been reached
	cut       bool
}

// A conn can tell the other end that nothing more will come; TCP and Unix sockets can.
type conn interface {
	net.Conn
	CloseWrite() error
}

// NewProxy listens on a free port of the loopback interface for the server at target, which is host:port or the path of
// a Unix socket. It does not look whether the server is there. The proxy ends with Close or with ctx.
func NewProxy(ctx context.Context, target string) (*Proxy, error) {
	network := "unix"
	if !filepath.IsAbs(target) {
		network = "tcp"
		if _, _, err := net.SplitHostPort(target); err != nil {
			return nil, fmt.Errorf("database server: %w", err)
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &Proxy{network: network, target: target, listener: listener, gate: newGate(0), cancel: cancel, links: map[*link]bool{}}
	p.running.Go(func() { p.accept(ctx) })
	p.running.Go(func() { p.end(ctx) })
	return p, nil
}

// Address is where the proxy listens, as host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Stall forwards nothing for so long, or until ctx ends, in either direction, and returns then. Connections stay open
// and keep what they are sent; new ones are accepted and wait.
func (p *Proxy) Stall(ctx context.Context, length time.Duration) { p.gate.stall(ctx, length) }

// Cut breaks all connections, as a server's host does that goes down, and says how many there were. New ones are served.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut = true
		reset(l.near)
		if l.far != nil {
			reset(l.far)
		}
	}
	n := len(p.links)
	clear(p.links)
	return n
}

// Close breaks all connections, ends a stall, and returns when nothing runs any more. It gives no error.
func (p *Proxy) Close() error {
	p.cancel()
	p.running.Wait()
	return nil
}

// end waits for the end of ctx and ends everything else.
func (p *Proxy) end(ctx context.Context) {
	<-ctx.Done()
	_ = p.listener.Close()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.Cut()
	p.gate.open()
}

func (p *Proxy) accept(ctx context.Context) {
	slots := make(chan struct{}, maxLinks)
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		near, err := p.listener.Accept()
		if err != nil {
			<-slots
			wait(ctx, 10*time.Millisecond) // files may have run out for a moment
			continue
		}
		p.running.Go(func() {
			defer func() { <-slots }()
			defer func() { _ = near.Close() }()
			p.carry(ctx, near.(conn))
		})
	}
}

func wait(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
}

// carry serves one connection until both sides have finished or one has failed.
func (p *Proxy) carry(ctx context.Context, near conn) {
	l := &link{near: near}
	if !p.keep(l) {
		return
	}
	defer p.forget(l)
	p.gate.pass(time.Now())
	dialer := net.Dialer{Timeout: dialTime}
	far, err := dialer.DialContext(ctx, p.network, p.target)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	if !p.reached(l, far.(conn)) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { p.forward(l.near, l.far) })
	p.forward(l.far, l.near)
	back.Wait()
}

func (p *Proxy) keep(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.links[l] = true
	}
	return !p.ended
}

func (p *Proxy) reached(l *link, far conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.far = far
	return !l.cut
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// forward hands on what comes, and the end of it. It copies through memory: splice, which is harder to
// stop, was no faster with messages of a database's size and cost as much CPU.
func (p *Proxy) forward(to, from conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.gate.pass(time.Now())
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = failed
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			_ = to.CloseWrite() // the other direction may go on
			return
		default:
			reset(to)
			reset(from)
			return
		}
	}
}

// reset closes a connection so that its peer gets an error, not an orderly end.
func reset(c conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
