package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"chancery/agentcert"
	"chancery/api"
	"chancery/internal/load/drive"
)

// A bearer shows a certificate of its own on the mTLS listener, and renews it there.
type bearer struct {
	subject
	serial atomic.Pointer[string]
	tls    atomic.Pointer[tls.Config]
}

// holds takes a certificate: new connections show it.
func (b *bearer) holds(leaf *x509.Certificate, chain string, base *tls.Config) error {
	above, err := parseChain(chain)
	if err != nil {
		return err
	}
	shown := tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: b.key, Leaf: leaf}
	for _, c := range above {
		shown.Certificate = append(shown.Certificate, c.Raw)
	}
	config := base.Clone() // with the session, which survives the certificate
	config.Certificates = []tls.Certificate{shown}
	serial := serialOf(leaf)
	b.serial.Store(&serial)
	b.tls.Store(config)
	return nil
}

// A renewal says how bearers renew in the phases that run.
type renewal struct {
	fresh  bool // each renewal on a new connection, with the latest certificate
	resume bool // that resumes the session before
}

// begin is called before phases, while nobody renews.
func (n *renewal) begin(p Phase) { n.fresh, n.resume = p.Fresh, p.Resume }

func (n *renewal) base(t *target) *tls.Config {
	base := t.tls.Clone()
	base.ClientSessionCache = &session{ClientSessionCache: tls.NewLRUClientSessionCache(1), of: n}
	return base
}

// A session is the last TLS session of a bearer, which is there in phases that resume.
type session struct {
	tls.ClientSessionCache
	of *renewal
}

// Get is for crypto/tls.
func (s *session) Get(key string) (*tls.ClientSessionState, bool) {
	if !s.of.resume {
		return nil, false
	}
	return s.ClientSessionCache.Get(key)
}

// next makes the job by which a bearer renews.
func (n *renewal) next(b *bearer, path string, body []byte, e expectation) job {
	j := job{path: path, body: body, tls: b.tls.Load(), expect: e}
	if n.fresh {
		j.accepted = func(leaf *x509.Certificate, got api.Issued) {
			_ = b.holds(leaf, got.Chain, b.tls.Load()) // its chain is that of the certificate before
		}
	}
	return j
}

// renewals prepares agents that renew under a standing approval.
func (t *target) renewals(ctx context.Context, p Population) (scenario, error) {
	n := &renewal{}
	all, err := t.actors(ctx, p, true)
	if err != nil {
		return scenario{}, err
	}
	for _, a := range all {
		if a.first == nil {
			return scenario{}, fmt.Errorf("agent %s was enrolled under a standing delegation and got no certificate", a.id)
		}
		leaf, err := parseChain(a.first.PEM)
		if err != nil {
			return scenario{}, err
		}
		if err := a.holds(leaf[0], a.first.Chain, n.base(t)); err != nil {
			return scenario{}, err
		}
	}
	verifier := t.verifier()
	return scenario{
		path: "/api/v1/agent-certificates/renew", issuer: "agents", address: t.mtls, begin: n.begin,
		next: func(turn int) (job, error) {
			a := all[turn%len(all)]
			return n.next(&a.bearer, "", []byte("{}"), expectation{spki: a.spki, lifetime: benchLifetime, agent: a.id}), nil
		},
		verify: func(leaf *x509.Certificate, got api.Issued) error { return verifyAgent(ctx, verifier, leaf, got) },
	}, nil
}

// regularRenewals prepares machines that renew with the key they have.
func (t *target) regularRenewals(ctx context.Context, p Population) (scenario, error) {
	n := &renewal{}
	first, err := t.regular(ctx, p)
	if err != nil {
		return scenario{}, err
	}
	body, err := json.Marshal(api.RenewRequest{LifetimeSec: int(regularLifetime / time.Second)})
	if err != nil {
		return scenario{}, err
	}
	all := make([]*bearer, p.Agents)
	err = side(ctx, setUp, p.Agents, func(i int) (err error) {
		all[i], err = t.newBearer(ctx, first, i, n)
		return err
	})
	return scenario{
		issuer: "machines", address: t.mtls, verify: t.verifyRegular, begin: n.begin,
		next: func(turn int) (job, error) {
			b := all[turn%len(all)]
			return n.next(b, "/api/v1/certificates/"+*b.serial.Load()+"/renew", body, expectation{spki: b.spki, commonName: b.commonName, lifetime: regularLifetime}), nil
		},
	}, err
}

// newBearer has a first certificate issued for a key of its own.
func (t *target) newBearer(ctx context.Context, first scenario, number int, n *renewal) (*bearer, error) {
	s, err := newSubject(number)
	if err != nil {
		return nil, err
	}
	j, err := first.next(number)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(api.IssueRequest{Authority: "machines", Profile: "tls-client", Request: s.csr, LifetimeSec: int(regularLifetime / time.Second)})
	if err != nil {
		return nil, err
	}
	c := &drive.Connection{Address: t.address, TLS: t.tls}
	defer c.Close()
	a, err := c.Persist(ctx, drive.Question{Method: http.MethodPost, Path: first.path, Token: j.token, ContentType: "application/json", Body: body})
	if err != nil {
		return nil, err
	}
	got, leaf, err := expectation{spki: s.spki, lifetime: regularLifetime}.examine(a.Body, nil)
	if err != nil {
		return nil, err
	}
	b := &bearer{subject: s}
	return b, b.holds(leaf, got.Chain, n.base(t))
}

func (t *target) verifier() *agentcert.Verifier {
	return agentcert.NewVerifier([]*x509.Certificate{t.root}, agentcert.Policy{})
}

// verifying prepares certificates that the client verifies by itself, without the server.
func (t *target) verifying(ctx context.Context, p Population) (scenario, error) {
	s, err := t.agents(ctx, p)
	if err != nil {
		return scenario{}, err
	}
	given, err := t.issue(ctx, s, p.Agents)
	if err != nil {
		return scenario{}, err
	}
	all := make([]shown, len(given))
	for i, g := range given {
		if all[i], err = show(g.leaf, g.got); err != nil {
			return scenario{}, err
		}
	}
	one, err := verification(ctx)
	if err != nil {
		return scenario{}, err
	}
	verifier := t.verifier()
	return scenario{
		next: func(turn int) (job, error) {
			s := all[turn%len(all)]
			return job{do: func(ctx context.Context) error { return s.verify(ctx, verifier) }}, nil
		},
		tells: func(p PhaseReport) Figure {
			worth := p.Client.PerRequest / one
			return Figure{Name: verificationsName, Value: fmt.Sprintf("%.2f, each of %.1f µs (ECDSA P-256)", worth, one), Number: worth}
		},
	}, nil
}

// verificationsName names what an offline verification costs.
const verificationsName = "signature verifications' worth of time"

// verification measures what one verification of an ECDSA P-256 signature takes on one core, in microseconds.
func verification(ctx context.Context) (float64, error) {
	all, err := works()
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(all, func(w work) bool { return w.key == "p256_verify" })
	rate, err := repeat(ctx, 1, 200*time.Millisecond, all[i].do)
	return 1e6 / rate.PerSecond, err
}

// A given is a certificate that was issued before the clock starts.
type given struct {
	leaf *x509.Certificate
	got  api.Issued
}

// issue has n certificates issued, the first n of a scenario.
func (t *target) issue(ctx context.Context, s scenario, n int) ([]given, error) {
	all := make([]given, n)
	free := make(chan *drive.Connection, 2*runtime.NumCPU())
	for range cap(free) {
		free <- &drive.Connection{Address: t.address, TLS: t.tls}
	}
	err := side(ctx, cap(free), n, func(i int) error {
		j, err := s.next(i)
		if err != nil {
			return err
		}
		c := <-free
		defer func() { free <- c }()
		a, err := c.Persist(ctx, drive.Question{Method: http.MethodPost, Path: s.path, Token: j.token, ContentType: "application/json", Body: j.body})
		if err != nil {
			return err
		}
		if a.Status >= http.StatusBadRequest {
			return fmt.Errorf("prepare the run: %s", a.Refusal())
		}
		all[i].got, all[i].leaf, err = j.expect.examine(a.Body, nil)
		return err
	})
	for range cap(free) {
		(<-free).Close()
	}
	return all, err
}
