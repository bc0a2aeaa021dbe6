// Package front stands between the network and the routes: it listens, bounds, admits, authenticates, measures and
// logs, and knows nothing of what the routes do.
//
// Every request takes the same way: request id, panic guard, bounds on head and body, the Gate if its route is gated,
// authentication, deadline, and then the route with its permission. Whatever can be refused is refused in the order of
// its cost: the Gate runs before authentication, the handshake's gate before the handshake's cryptography, so that an
// overloaded server spends its time on what it has admitted. A credential that is wrong is refused with a reason; it
// never makes its bearer a nobody. Nobody is bounded per address; who has proved who they are is not. Every phase of
// a connection has a deadline: handshake, head, body, work, answer, idling.
package front

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/edge/rest"
)

// A Listener is one of the places where the server listens.
type Listener string

// The listeners.
const (
	HTTPS    Listener = "https"    // TLS; never asks for a client certificate
	MTLS     Listener = "mtls"     // TLS; asks for a client certificate and leaves its verification to the Authenticator
	Loopback Listener = "loopback" // plain HTTP, on a loopback address and for the name localhost only
	Public   Listener = "public"   // plain HTTP for certificates' own addresses (OCSP, CRL); takes no credentials
	Private  Listener = "private"  // plain HTTP for metrics and profiles; none of the routes
	Socket   Listener = "socket"   // a unix socket for the person at the machine, proved by peer credentials
)

// Config says where to listen and what to bear. The zero value of each bound stands for its default.
type Config struct {
	Listen       map[Listener]string // host:port, of Socket a path; what is missing is not listened on
	Certificates func(*tls.ClientHelloInfo) (*tls.Certificate, error)

	Head        int           // bytes of a request head: 16 KiB
	Connections int           // open at once on the four listeners of routes: 16,384
	ReadHead    time.Duration // for the TLS handshake, and for each head: 5 s
	ReadBody    time.Duration // for head and body together: 15 s
	Work        time.Duration // for a route that names no deadline of its own: 10 s
	Write       time.Duration // from the head to the end of the answer: 30 s
	Idle        time.Duration // between two requests of a connection: 1 min
	Rate        float64       // requests a second of one address without credentials: 0 is no limit
	Burst       int           // how many of them at once: twice the rate
	Gate        Capacity      // of gated routes
	Handshakes  Capacity      // of TLS handshakes; the wait is 4/5 of ReadHead, since clients commonly give up after ten seconds

	Profiles bool             // serve pprof on Private, with block and mutex profiles
	Now      func() time.Time // nil is time.Now
	Log      *slog.Logger     // nil is none
}

func (c Config) withDefaults() Config {
	c.Head = cmp.Or(c.Head, 16<<10)
	c.Connections = cmp.Or(c.Connections, 16<<10)
	c.ReadHead = cmp.Or(c.ReadHead, 5*time.Second)
	c.ReadBody = cmp.Or(c.ReadBody, 15*time.Second)
	c.Work = cmp.Or(c.Work, 10*time.Second)
	c.Write = cmp.Or(c.Write, 30*time.Second)
	c.Idle = cmp.Or(c.Idle, time.Minute)
	c.Handshakes.Wait = cmp.Or(c.Handshakes.Wait, c.ReadHead*4/5)
	c.Burst = cmp.Or(c.Burst, int(2*c.Rate), 1)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// A Front serves routes on its listeners. All methods are safe for concurrent use.
type Front struct {
	config  Config
	auth    Authenticator
	metrics *Metrics
	gate    *Gate
	hello   *handshakes
	limiter *limiter
	recent  *recent
	routes  http.Handler
	origin  http.CrossOriginProtection

	work    context.Context // that of all requests
	callOff context.CancelFunc
	open    openCount
	fresh   fresh
	servers map[Listener]*server
	failed  chan error
}

// A server is a listener with what serves it.
type server struct {
	http     *http.Server
	listener net.Listener
}

// New makes a front for the routes of api. It listens on nothing yet. The error names routes without a permission.
func New(c Config, api *rest.API, auth Authenticator, m *Metrics) (*Front, error) {
	c = c.withDefaults()
	f := &Front{
		config: c, auth: auth, metrics: m,
		gate:    NewGate(c.Gate, c.Now),
		hello:   newHandshakes(c.Handshakes, c.Now),
		limiter: newLimiter(c.Rate, c.Burst),
		recent:  &recent{},
		open:    openCount{most: int64(c.Connections)},
		fresh:   fresh{connections: map[net.Conn]struct{}{}},
		servers: map[Listener]*server{},
		failed:  make(chan error, len(c.Listen)),
	}
	f.work, f.callOff = context.WithCancel(context.Background())
	routes, err := api.Handler(f.around)
	if err != nil {
		return nil, err
	}
	f.routes = routes
	m.watch(f)
	return f, nil
}

// Start listens and serves in the background; on return every listener accepts connections, Socket only where the
// system tells who connects to it. After an error nothing listens.
func (f *Front) Start(ctx context.Context) error {
	for _, l := range slices.Sorted(maps.Keys(f.config.Listen)) {
		s, err := f.bind(ctx, l, f.config.Listen[l])
		if errors.Is(err, errPeersUnknown) { // a token does the same, from everywhere
			f.config.Log.Warn("no admin socket", "error", err)
			continue
		}
		if err != nil {
			f.closeAll()
			return fault.New(fault.Conflict, "address_unusable", "listen.%s: %v", l, err).
				WithHint("end what uses the address, or set another: --set listen.%s=…", l).Because(err)
		}
		f.servers[l] = s
	}
	for l, s := range f.servers {
		go f.serve(l, s)
	}
	return nil
}

// Failed gives the errors of listeners that stopped by themselves.
func (f *Front) Failed() <-chan error { return f.failed }

// Address gives where a listener listens, after Start; nil if it does not.
func (f *Front) Address(l Listener) net.Addr {
	if s := f.servers[l]; s != nil {
		return s.listener.Addr()
	}
	return nil
}

// Recent gives the latest refusals, the newest first, without those for lack of capacity. They hold nothing that the
// caller was not told.
func (f *Front) Recent() []api.Refusal { return f.recent.list() }

// Stop accepts nothing more, lets running requests finish, and closes their connections after the answer. Shortly
// before the deadline of ctx the work of those that still run is called off, so that they are answered, too. What is
// not finished when ctx ends is cut. The error says whether something was.
func (f *Front) Stop(ctx context.Context) error {
	var wait sync.WaitGroup
	errs := make(chan error, len(f.servers))
	defer time.AfterFunc(lastCall, f.fresh.close).Stop()
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		defer time.AfterFunc(left-min(lastWord, left/2), f.callOff).Stop()
	}
	for l, s := range f.servers {
		wait.Go(func() {
			if err := s.http.Shutdown(ctx); err != nil {
				_ = s.http.Close()
				errs <- fmt.Errorf("stopping %s: %w", l, err)
			}
		})
	}
	wait.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

func (f *Front) serve(l Listener, s *server) {
	var err error
	if s.http.TLSConfig != nil {
		err = s.http.ServeTLS(s.listener, "", "")
	} else {
		err = s.http.Serve(s.listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		f.failed <- fmt.Errorf("serving %s: %w", l, err)
	}
}

func (f *Front) closeAll() {
	for _, s := range f.servers {
		_ = s.listener.Close()
	}
	clear(f.servers)
}
