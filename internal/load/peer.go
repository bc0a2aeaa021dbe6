package load

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"

	"chancery/api"
	"chancery/internal/base/id"
	"chancery/internal/load/drive"
	"chancery/internal/load/observe"
)

// A PeerConfig says where a step-ca runs and how its clients prove themselves.
type PeerConfig struct {
	Program     Program
	Address     string // host:port
	Root        string // file with its root certificate
	Provisioner string // name of its JWK provisioner
	Key         string // file with that provisioner's private key as a JWK, decrypted
	Renew       bool   // measures renewals over mTLS with the same key, instead of first certificates
	Pairs       int    // how often both are measured; default 5
	Loop               // each phase
	Dir         string // where our own data lie; empty: the system's directory for temporary files
	Log         Log
}

// Check refuses what makes no sense, before anything is started. Peer does so, too.
func (c PeerConfig) Check() error {
	if c.Root == "" || c.Provisioner == "" || c.Key == "" || c.Pairs < 0 {
		return errors.New("a step-ca is known by its root, a provisioner and that one's key, and is measured a number of times")
	}
	return c.Loop.Check()
}

// scenario is what this server is asked for.
func (c PeerConfig) scenario() string {
	if c.Renew {
		return RenewRegular
	}
	return Regular
}

// A PeerReport holds ordinary certificates of this server against those of step-ca, measured in turn.
type PeerReport struct {
	Ours        []float64       `json:"ours"`   // rate of each phase
	Theirs      []float64       `json:"theirs"` // likewise
	OursP99     []float64       `json:"ours_p99_ms"`
	TheirsP99   []float64       `json:"theirs_p99_ms"`
	Machine     observe.Machine `json:"machine"`
	Marks       []string        `json:"marks,omitempty"`
	Interrupted bool            `json:"interrupted,omitempty"`

	runs   []Report
	errors map[string]int // of theirs, by kind
}

// Ratio gives how many times faster this server is, by the medians.
func (r PeerReport) Ratio() float64 {
	if theirs := median(r.Theirs); theirs > 0 {
		return median(r.Ours) / theirs
	}
	return 0
}

// Peer measures this server on fresh data and a running step-ca in turn: A B, B A, A B and so on. Both get a new key, a
// request and a proof of authorization for each certificate, each after its own fashion: step-ca a token signed for one
// request, this server a bearer token; both check possession of the key. Renewals bring nothing but the certificate that
// the connection shows.
func Peer(ctx context.Context, c PeerConfig) (PeerReport, error) {
	if err := c.Check(); err != nil {
		return PeerReport{}, err
	}
	c.Pairs, c.Loop = cmp.Or(c.Pairs, 5), c.withDefaults()
	r := PeerReport{Machine: observe.Look(), errors: map[string]int{}}
	p, err := newPeer(ctx, c)
	for pair := 0; err == nil && ctx.Err() == nil && pair < c.Pairs; pair++ {
		turns := []func(context.Context) error{func(ctx context.Context) error { return r.theirs(ctx, c, p) }, func(ctx context.Context) error { return r.ours(ctx, c) }}
		first := pair % 2
		if err = turns[first](ctx); err == nil && ctx.Err() == nil {
			err = turns[1-first](ctx)
		}
	}
	r.Machine.Done()
	r.Marks = r.Machine.Marks()
	if r.Interrupted = ctx.Err() != nil; r.Interrupted {
		err = nil
	}
	return r, err
}

func (r *PeerReport) ours(ctx context.Context, c PeerConfig) error {
	run, err := Issue(ctx, IssueConfig{Program: c.Program, Scenario: c.scenario(), Population: Population{Agents: c.withDefaults().Clients}, Phases: []Phase{c.phase()}, Dir: c.Dir, Log: c.Log})
	if err == nil && ctx.Err() == nil {
		r.runs, r.Ours, r.OursP99 = append(r.runs, run), append(r.Ours, run.first().Rate.PerSecond), append(r.OursP99, run.first().Latency.P99)
	}
	return err
}

func (r *PeerReport) theirs(ctx context.Context, c PeerConfig, p *peer) error {
	c.Log.say("step-ca at %s", c.Address)
	s, err := p.scenario(ctx, c)
	if err != nil {
		return err
	}
	o := heat{Loop: c.Loop, address: c.Address, tls: trusting(loopback, p.root), scenario: s}.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	for kind, n := range o.Errors {
		r.errors[kind] += n
	}
	r.Theirs, r.TheirsP99 = append(r.Theirs, median(o.counted.Rates())), append(r.TheirsP99, latencyOf(o.counted.Latency).P99)
	return o.sound()
}

// Failed gives what went wrong on either side, or nil.
func (r PeerReport) Failed() error {
	var errs []error
	for _, run := range r.runs {
		errs = append(errs, run.Failed())
	}
	if len(r.errors) > 0 {
		errs = append(errs, fmt.Errorf("step-ca answered with errors: %v", r.errors))
	}
	return errors.Join(errs...)
}

// Write writes the comparison for people.
func (r PeerReport) Write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tRATE\tEACH PHASE\tP99\t")
	fmt.Fprintf(table, "this server\t%s/s\t%s\t%.1f ms\t\n", thousands(median(r.Ours)), joined(r.Ours), median(r.OursP99))
	fmt.Fprintf(table, "step-ca\t%s/s\t%s\t%.1f ms\t\n", thousands(median(r.Theirs)), joined(r.Theirs), median(r.TheirsP99))
	_ = table.Flush()
	fmt.Fprintf(w, "ratio     %.2f\n", r.Ratio())
	r.Machine.Write(w)
	writeMarks(w, r.Marks, r.Interrupted)
}

// A peer is what clients of step-ca need.
type peer struct {
	root        *x509.Certificate
	roots       *x509.CertPool
	fingerprint string
	provisioner string
	keyID       string
	key         *ecdsa.PrivateKey
	orders      []peerOrder
}

type peerOrder struct {
	name, csr string
	key       *ecdsa.PrivateKey
	expect    expectation
}

// peerLifetime is what step-ca gives where nobody asks for another lifetime.
const peerLifetime = 24 * time.Hour

func newPeer(ctx context.Context, c PeerConfig) (*peer, error) {
	text, err := os.ReadFile(c.Root)
	if err != nil {
		return nil, err
	}
	roots, err := parseChain(string(text))
	if err != nil || len(roots) == 0 {
		return nil, fmt.Errorf("%s holds no root certificate: %w", c.Root, err)
	}
	sum := sha256.Sum256(roots[0].Raw)
	p := &peer{root: roots[0], roots: x509.NewCertPool(), fingerprint: hex.EncodeToString(sum[:]), provisioner: c.Provisioner}
	p.roots.AddCert(roots[0])
	if err := p.readKey(c.Key); err != nil {
		return nil, err
	}
	p.orders = make([]peerOrder, orders)
	return p, side(ctx, runtime.NumCPU(), orders, p.prepare)
}

// readKey reads a P-256 key in the form of RFC 7518, section 6.2.
func (p *peer) readKey(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var jwk struct{ Kid, D string }
	if err := json.Unmarshal(text, &jwk, json.MatchCaseInsensitiveNames(true)); err != nil {
		return fmt.Errorf("%s is no JWK: %w", file, err)
	}
	scalar, err := base64.RawURLEncoding.DecodeString(jwk.D)
	if err != nil {
		return fmt.Errorf("%s: the private part is not base64url", file)
	}
	if p.key, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar); err != nil {
		return fmt.Errorf("%s holds no P-256 key", file)
	}
	p.keyID = jwk.Kid
	return nil
}

func (p *peer) prepare(i int) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("host-%d.example.org", i)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{name}}, private)
	if err != nil {
		return err
	}
	spki, err := x509.MarshalPKIXPublicKey(private.Public())
	p.orders[i] = peerOrder{
		name: name, key: private, csr: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})),
		expect: expectation{spki: spki, lifetime: peerLifetime},
	}
	return err
}

// scenario prepares what step-ca's clients ask for.
func (p *peer) scenario(ctx context.Context, c PeerConfig) (scenario, error) {
	first := scenario{
		path: "/1.0/sign", read: readPeer, verify: p.verify,
		next: func(turn int) (job, error) { return p.order(c.Address, turn) },
	}
	if !c.Renew {
		return first, nil
	}
	bearers, err := p.bearers(ctx, c, first)
	return scenario{
		path: "/1.0/renew", read: readPeer, verify: p.verify,
		next: func(turn int) (job, error) {
			b := bearers[turn%len(bearers)]
			return job{tls: b.tls.Load(), expect: expectation{spki: b.spki, lifetime: peerLifetime}}, nil
		},
	}, err
}

func (p *peer) verify(leaf *x509.Certificate, got api.Issued) error {
	above := x509.NewCertPool()
	above.AppendCertsFromPEM([]byte(got.Chain))
	_, err := leaf.Verify(x509.VerifyOptions{Roots: p.roots, Intermediates: above, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

// order asks for the certificate of a turn with a token for it alone.
func (p *peer) order(address string, turn int) (job, error) {
	o := p.orders[turn%len(p.orders)]
	token, err := p.token(address, o.name)
	if err != nil {
		return job{}, err
	}
	body, err := json.Marshal(map[string]string{"csr": o.csr, "ott": token})
	return job{body: body, expect: o.expect}, err
}

// bearers have a first certificate each, one for every client.
func (p *peer) bearers(ctx context.Context, c PeerConfig, first scenario) ([]*bearer, error) {
	all, base := make([]*bearer, c.withDefaults().Clients), trusting(loopback, p.root)
	return all, side(ctx, setUp, len(all), func(i int) error {
		connection := &drive.Connection{Address: c.Address, TLS: base}
		defer connection.Close()
		j, err := first.next(i)
		if err != nil {
			return err
		}
		a, err := connection.Persist(ctx, drive.Question{Method: http.MethodPost, Path: first.path, ContentType: "application/json", Body: j.body})
		if err != nil {
			return err
		}
		got, leaf, err := j.expect.examine(a.Body, readPeer)
		if err != nil {
			return err
		}
		all[i] = &bearer{subject: subject{key: p.orders[i].key, spki: j.expect.spki}}
		return all[i].holds(leaf, got.Chain, base)
	})
}

// readPeer reads step-ca's answer.
func readPeer(body []byte) (api.Issued, error) {
	var answer struct {
		Leaf   string `json:"crt"`
		Issuer string `json:"ca"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return api.Issued{}, err
	}
	chain, err := parseChain(answer.Leaf)
	if err != nil || len(chain) == 0 {
		return api.Issued{}, fmt.Errorf("no certificate: %w", err)
	}
	return api.Issued{Serial: id.SerialOf(chain[0].SerialNumber).String(), PEM: answer.Leaf, Chain: answer.Issuer}, nil
}

// token signs the one-time token that a JWK provisioner asks for (JWS, RFC 7515, with ES256).
func (p *peer) token(address, name string) (string, error) {
	now := time.Now().Unix()
	head, err := json.Marshal(map[string]string{"alg": "ES256", "kid": p.keyID, "typ": "JWT"})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"aud": "https://" + address + "/1.0/sign", "iss": p.provisioner, "sub": name, "sans": []string{name}, "sha": p.fingerprint,
		"iat": now, "nbf": now, "exp": now + 300, "jti": rand.Text(),
	})
	if err != nil {
		return "", err
	}
	signed := encodeJOSE(head) + "." + encodeJOSE(claims)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, digest[:])
	if err != nil {
		return "", err
	}
	return signed + "." + encodeJOSE(append(fixed(r), fixed(s)...)), nil
}

func encodeJOSE(b []byte) string { return strings.TrimRight(base64.URLEncoding.EncodeToString(b), "=") }

func fixed(n *big.Int) []byte { return n.FillBytes(make([]byte, 32)) }
