package front

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"chancery/internal/base/who"
)

// A peer is what is known of a connection's other end before any request.
type peer struct {
	listener Listener
	address  netip.Addr  // invalid on Socket
	operator *who.Caller // on Socket
}

type peerKey struct{}

// bind listens on address and makes the server for it.
func (f *Front) bind(ctx context.Context, l Listener, address string) (*server, error) {
	listener, err := listen(ctx, l, address)
	if err != nil {
		return nil, err
	}
	s := &http.Server{
		Handler:           http.HandlerFunc(f.serveRequest),
		ReadHeaderTimeout: f.config.ReadHead, // net/http bounds the handshake by it too
		ReadTimeout:       f.config.ReadBody,
		WriteTimeout:      f.config.Write,
		IdleTimeout:       f.config.Idle,
		MaxHeaderBytes:    max(f.config.Head-netHTTPSlop, 1),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 100, MaxReadFrameSize: 16 << 10},
		ErrorLog:          slog.NewLogLogger(f.config.Log.Handler(), slog.LevelDebug),
		ConnState:         f.fresh.note,
		BaseContext:       func(net.Listener) context.Context { return f.work },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return withPeer(ctx, l, c) },
	}
	switch l {
	case HTTPS, MTLS:
		s.TLSConfig = f.tlsConfig(l)
	case Private:
		s.Handler = f.privateRoutes()
		s.WriteTimeout = 0 // a profile takes as long as it was asked to
		return &server{s, listener}, nil
	case Socket:
		return &server{s, ownedListener{listener, f.config.Log}}, nil
	}
	return &server{s, boundedListener{listener, &f.open}}, nil
}

// netHTTPSlop is what net/http reads of a head beyond MaxHeaderBytes.
const netHTTPSlop = 4096

func listen(ctx context.Context, l Listener, address string) (net.Listener, error) {
	switch l {
	case HTTPS, MTLS, Public, Private:
		return new(net.ListenConfig).Listen(ctx, "tcp", address)
	case Loopback:
		return listenLoopback(ctx, address)
	case Socket:
		return listenSocket(ctx, address)
	}
	return nil, fmt.Errorf("there is no such listener")
}

// listenLoopback refuses an address that other machines reach: what is said there is not encrypted.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		_ = listener.Close()
		return nil, fmt.Errorf("%s is not a loopback address", listener.Addr())
	}
	return listener, nil
}

// withPeer puts what is known of the connection into its context.
func withPeer(ctx context.Context, l Listener, c net.Conn) context.Context {
	p := &peer{listener: l}
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		p.address = tcp.AddrPort().Addr().Unmap()
	}
	if owned, ok := c.(*ownedConn); ok {
		p.operator = &owned.operator
	}
	return context.WithValue(ctx, peerKey{}, p)
}

func peerOf(ctx context.Context) *peer {
	if p, ok := ctx.Value(peerKey{}).(*peer); ok {
		return p
	}
	return &peer{}
}

// fresh keeps the connections that have not sent a request yet. When the front stops, net/http would wait five seconds
// for the first request of each; browsers open such connections in advance.
type fresh struct {
	mu          sync.Mutex
	connections map[net.Conn]struct{}
}

const (
	lastCall = 250 * time.Millisecond // for a first request that is on its way when the front stops
	lastWord = time.Second            // for the answers of requests whose work was called off when the front stops
)

func (f *fresh) note(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state == http.StateNew {
		f.connections[c] = struct{}{}
		return
	}
	delete(f.connections, c)
}

func (f *fresh) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.connections {
		_ = c.Close()
	}
}

// An openCount counts connections up to a bound.
type openCount struct {
	most    int64
	now     atomic.Int64
	refused atomic.Int64
}

func (o *openCount) enter() bool {
	if o.now.Add(1) <= o.most {
		return true
	}
	o.now.Add(-1)
	o.refused.Add(1)
	return false
}

// A boundedListener closes a connection beyond the bound before it has cost anything.
type boundedListener struct {
	net.Listener
	open *openCount
}

func (l boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.enter() {
			return &conn{Conn: c, open: l.open}, nil
		}
		_ = c.Close()
	}
}

// A conn gives back its place among the connections once when it closes, and its place at the handshake's gate when
// the server's first flight, which carries the signature, goes out.
type conn struct {
	net.Conn
	open      *openCount
	closed    atomic.Bool
	handshake atomic.Pointer[handshakes]
}

func (c *conn) Write(b []byte) (int, error) {
	c.leaveHandshake()
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.leaveHandshake()
	if !c.closed.Swap(true) {
		c.open.now.Add(-1)
	}
	return c.Conn.Close()
}

func (c *conn) leaveHandshake() {
	if h := c.handshake.Swap(nil); h != nil {
		h.leave()
	}
}
