package load

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/go-json-experiment/json"

	"chancery/api"
	"chancery/internal/load/bare"
	"chancery/internal/load/drive"
)

// measureHandlers measures servers: each in a process of its own, driven by kept-alive HTTPS connections.
func (r *LimitReport) measureHandlers(ctx context.Context, c LimitConfig, dir string) error {
	b, err := newBench(ctx, c, dir)
	if err != nil {
		return err
	}
	defer b.child.stop(ctx)
	c.Log.say("HTTPS round trip")
	trip, done := b.echo(ctx)
	echo, err := repeat(ctx, c.Clients, 5*c.Sample, trip)
	done()
	if err != nil {
		return err
	}
	r.Limits = append(r.Limits, Limit{Key: "http", Work: fmt.Sprintf("HTTPS round trip of the same JSON, without the work; %d clients", c.Clients), Both: &echo})
	for _, v := range []struct{ key, path, work string }{
		{"bare_renewal", bare.Renewal, "bare handler: bearer token, no proof of possession"},
		{"bare_bearer", bare.Bearer, "bare handler: bearer token"},
		{"bare_one_time", bare.OneTime, "bare handler: one-time token"},
	} {
		c.Log.say("%s", v.work)
		o, _ := b.drive(ctx, v.path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := o.sound(); err != nil {
			return fmt.Errorf("%s: %w", v.work, err)
		}
		rate := o.rate()
		r.Limits = append(r.Limits, Limit{Key: v.key, Work: fmt.Sprintf("%s; %d clients", v.work, c.Clients), Both: &rate})
	}
	return nil
}

// A bench is the bare handler, running, with what its clients need.
type bench struct {
	child  *child
	config LimitConfig
	hello  bare.Greeting
	tls    *tls.Config
	roots  *x509.CertPool
	key    *ecdsa.PrivateKey // signs one-time tokens
	all    []order
}

// An order is a request that was made before the clock started.
type order struct {
	body   []byte
	expect expectation
}

// orders is how many different keys the clients ask for in turn.
const orders = 2048

func newBench(ctx context.Context, c LimitConfig, dir string) (*bench, error) {
	b := &bench{config: c, roots: x509.NewCertPool()}
	var err error
	if b.all, err = newOrders(ctx, orders); err != nil {
		return nil, err
	}
	if b.child, b.hello, err = startBare(c.Program, dir); err != nil {
		return nil, err
	}
	if err := b.trust(); err != nil {
		b.child.kill()
		return nil, err
	}
	return b, nil
}

// trust takes over what the bare handler said of its keys.
func (b *bench) trust() error {
	key, err := x509.ParsePKCS8PrivateKey(b.hello.Key)
	if err != nil {
		return err
	}
	private, ok := key.(*ecdsa.PrivateKey)
	roots, err := parseChain(b.hello.Root)
	if err != nil || !ok || len(roots) == 0 {
		return errors.Join(err, errors.New("the bare handler gave no P-256 key, or no root certificate"))
	}
	b.key, b.tls = private, trusting(loopback, roots...)
	b.roots.AddCert(roots[0])
	return nil
}

// echo gives a round trip for as many callers as there are clients; each takes a connection while it lasts. done closes
// them.
func (b *bench) echo(ctx context.Context) (trip func() error, done func()) {
	free := make(chan *drive.Connection, b.config.Clients)
	for range cap(free) {
		free <- &drive.Connection{Address: b.hello.Address, TLS: b.tls}
	}
	trip = func() error {
		c := <-free
		defer func() { free <- c }()
		a, err := c.Ask(ctx, drive.Question{Method: http.MethodPost, Path: bare.Echo, ContentType: "application/json", Body: b.all[0].body})
		if err != nil {
			return err
		}
		if a.Status >= http.StatusBadRequest {
			return errors.New(a.Refusal())
		}
		var got api.Issued
		return json.Unmarshal(a.Body, &got)
	}
	return trip, func() {
		for range cap(free) {
			(<-free).Close()
		}
	}
}

const regularLifetime = time.Hour

// newOrders makes keys and requests for ordinary certificates, on all cores.
func newOrders(ctx context.Context, n int) ([]order, error) {
	all := make([]order, n)
	return all, side(ctx, runtime.NumCPU(), n, func(i int) error {
		s, err := newSubject(i)
		if err != nil {
			return err
		}
		all[i].expect = expectation{spki: s.spki, commonName: s.commonName, lifetime: regularLifetime}
		all[i].body, err = json.Marshal(api.IssueRequest{Authority: "machines", Profile: "tls-client", Request: s.csr, LifetimeSec: int(regularLifetime / time.Second)})
		return err
	})
}

// drive runs the clients against one of the handler's routes. micros is the CPU time of both sides for a certificate.
func (b *bench) drive(ctx context.Context, path string) (o outcome, micros float64) {
	h := heat{Loop: b.config.Loop, address: b.hello.Address, tls: b.tls, pid: b.child.cmd.Process.Pid}
	h.scenario = scenario{
		path: path,
		next: func(turn int) (job, error) {
			o := b.all[turn%len(b.all)]
			j := job{token: b.hello.Tokens[turn%len(b.hello.Tokens)], body: o.body, expect: o.expect}
			var err error
			if path == bare.OneTime {
				j.token, err = bare.SignOneTime(b.key, o.body)
			}
			return j, err
		},
		verify: func(leaf *x509.Certificate, _ api.Issued) error {
			_, err := leaf.Verify(x509.VerifyOptions{Roots: b.roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			return err
		},
	}
	o = h.run(ctx)
	server, client := o.meter.Usage(o.requests())
	return o, server.PerRequest + client.PerRequest
}
