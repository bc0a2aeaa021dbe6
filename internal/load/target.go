package load

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/crypto/ocsp"

	"chancery/api"
	"chancery/client"
	"chancery/internal/base/id"
	"chancery/internal/load/drive"
)

// A Remote is a server that runs already.
type Remote struct {
	URL     string         // of its HTTPS listener
	MTLS    string         // host:port of its mTLS listener, for renewals
	Public  string         // host:port of its listener for CRLs and OCSP
	Metrics string         // where it serves its metrics; empty: nowhere
	Admin   *client.Client // may make accounts, principals, agents and tokens
	PID     int            // of the server's process, if it runs here; 0 leaves its CPU and memory out
}

// A target is a server with what its clients need to ask it and to judge its answers.
type target struct {
	address  string
	tls      *tls.Config
	mtls     string // host:port, for renewals
	public   string // host:port, plain HTTP for CRLs and OCSP
	admin    *client.Client
	pid      int
	root     *x509.Certificate
	reader   string // token that may look certificates up
	readerID string // the account that it belongs to
	issuers  map[string]*x509.Certificate
}

// ocspPath is where relying parties ask, as it stands in certificates.
const ocspPath = "/pki/ocsp"

func newTarget(ctx context.Context, r Remote) (*target, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("server address %q: want a form such as https://localhost:8443", r.URL)
	}
	t := &target{address: u.Host, mtls: r.MTLS, public: r.Public, admin: r.Admin, pid: r.PID, issuers: map[string]*x509.Certificate{}}
	if u.Port() == "" {
		t.address = net.JoinHostPort(u.Hostname(), "443")
	}
	for _, name := range []string{"root", "machines", "agents"} {
		der, err := r.Admin.Fetch(ctx, "/pki/"+name+".cer")
		if err != nil {
			return nil, fmt.Errorf("fetch the certificate of authority %s: %w", name, err)
		}
		if t.issuers[name], err = x509.ParseCertificate(der); err != nil {
			return nil, fmt.Errorf("certificate of authority %s: %w", name, err)
		}
	}
	t.root = t.issuers["root"]
	t.tls = trusting(u.Hostname(), t.root)
	return t, nil
}

// A Lookup is what became of the answered certificates.
type Lookup struct {
	LookedUp    int     `json:"looked_up"` // by serial, in the store
	Lost        int     `json:"lost"`      // answered and not there
	Differ      int     `json:"differ"`    // there, but another certificate
	Invalid     int     `json:"invalid"`   // there, but revoked, or in another state that nobody asked for
	OCSPAsked   int     `json:"ocsp_asked"`
	OCSPWrong   int     `json:"ocsp_wrong"` // OCSP does not say what it has to
	Unknown     int     `json:"unknown"`    // no answer about it could be had
	FirstWrong  string  `json:"first_wrong,omitempty"`
	DurationSec float64 `json:"duration_sec"`
}

func (l Lookup) failed() error {
	if l.bad() > 0 {
		return fmt.Errorf("%d certificates lost, %d changed, %d no longer valid, %d wrong in OCSP, %d that nobody could look up, such as: %s", l.Lost, l.Differ, l.Invalid, l.OCSPWrong, l.Unknown, l.FirstWrong)
	}
	return nil
}

// bad counts what is not as it was answered, or not known to be.
func (l Lookup) bad() int { return l.Lost + l.Differ + l.Invalid + l.OCSPWrong + l.Unknown }

// A verdict is what a look-up found.
type verdict uint8

const (
	there verdict = iota
	lost
	differs
	invalid
	unknown
)

// A look is what one certificate was found to be.
type look struct {
	verdict verdict
	why     string
	asked   bool // in OCSP, too
	serial  string
	status  int   // what it said
	problem error // why it did not
}

const lookers = 16

// lookUp looks every certificate up by its serial, where it must be valid, and one in ocspEvery in OCSP too, where it must
// be good.
func (t *target) lookUp(ctx context.Context, all []issued, issuer string, ocspEvery int) Lookup {
	return t.lookAll(ctx, len(all), func(c *drive.Connection, i int) look {
		l := t.find(ctx, c, all[i])
		if l.asked = i%ocspEvery == 0; l.asked {
			l.status, l.problem = t.status(ctx, c, all[i].serial, issuer)
			l.serial = all[i].serial
		}
		return l
	})
}

// lookUpStored looks certificates up that were revoked, perhaps, on purpose: they have only to be stored.
func (t *target) lookUpStored(ctx context.Context, all []issued) Lookup {
	return t.lookAll(ctx, len(all), func(c *drive.Connection, i int) look {
		if l := t.find(ctx, c, all[i]); l.verdict != invalid {
			return l
		}
		return look{}
	})
}

// lookAll looks n times, on several connections. What the end of ctx cuts off is not counted: nobody knows.
func (t *target) lookAll(ctx context.Context, n int, at func(c *drive.Connection, i int) look) Lookup {
	began := time.Now()
	var mu sync.Mutex
	var sum Lookup
	next := make(chan int)
	var group sync.WaitGroup
	for range lookers {
		group.Go(func() {
			c := &drive.Connection{Address: t.address, TLS: t.tls}
			defer c.Close()
			for i := range next {
				l := at(c, i)
				if ctx.Err() != nil {
					continue
				}
				mu.Lock()
				sum.count(l)
				mu.Unlock()
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	group.Wait()
	sum.DurationSec = time.Since(began).Seconds()
	return sum
}

func (l *Lookup) count(one look) {
	l.LookedUp++
	switch one.verdict {
	case lost:
		l.Lost++
	case differs:
		l.Differ++
	case invalid:
		l.Invalid++
	case unknown:
		l.Unknown++
	}
	l.FirstWrong = cmp.Or(l.FirstWrong, one.why)
	if !one.asked {
		return
	}
	l.OCSPAsked++
	if one.problem == nil && one.status == ocsp.Good {
		return
	}
	l.OCSPWrong++
	if one.problem != nil {
		l.FirstWrong = cmp.Or(l.FirstWrong, fmt.Sprintf("OCSP about %s: %v", one.serial, one.problem))
		return
	}
	l.FirstWrong = cmp.Or(l.FirstWrong, fmt.Sprintf("OCSP says that %s is %s, not good", one.serial, statusText(one.status)))
}

func statusText(status int) string {
	switch status {
	case ocsp.Good:
		return "good"
	case ocsp.Revoked:
		return "revoked"
	}
	return "unknown"
}

// find looks one certificate up by its serial.
func (t *target) find(ctx context.Context, c *drive.Connection, i issued) look {
	a, err := c.Persist(ctx, drive.Question{Method: http.MethodGet, Path: "/api/v1/certificates/" + i.serial, Token: t.reader})
	switch {
	case err != nil:
		return look{verdict: unknown, why: err.Error()}
	case a.Status == http.StatusNotFound:
		return look{verdict: lost, why: "no certificate " + i.serial}
	case a.Status != http.StatusOK:
		return look{verdict: unknown, why: a.Refusal()}
	}
	var found api.Certificate
	if err := json.Unmarshal(a.Body, &found); err != nil {
		return look{verdict: unknown, why: err.Error()}
	}
	block, _ := pem.Decode([]byte(found.PEM))
	if block == nil || sha256.Sum256(block.Bytes) != i.sum {
		return look{verdict: differs, why: "another certificate is stored as " + i.serial}
	}
	if !valid(found.Status, block.Bytes, time.Now()) {
		return look{verdict: invalid, why: fmt.Sprintf("certificate %s is stored as %s", i.serial, cmp.Or(found.Status, "without a status"))}
	}
	return look{}
}

// valid says whether a status is that of a certificate which nobody touched. Some expire in a long run: by their own date.
func valid(status string, der []byte, now time.Time) bool {
	if status != "expired" {
		return status == "good"
	}
	cert, err := x509.ParseCertificate(der)
	return err == nil && now.After(cert.NotAfter)
}

// status asks OCSP about a serial; the answer's signature is verified.
func (t *target) status(ctx context.Context, c *drive.Connection, serial, issuer string) (int, error) {
	raw, err := id.ParseSerial(serial)
	if err != nil {
		return ocsp.Unknown, err
	}
	about := t.issuers[issuer]
	body, err := ocsp.CreateRequest(&x509.Certificate{SerialNumber: new(big.Int).SetBytes(raw)}, about, nil)
	if err != nil {
		return ocsp.Unknown, err
	}
	a, err := c.Persist(ctx, drive.Question{Method: http.MethodPost, Path: ocspPath, ContentType: "application/ocsp-request", Body: body})
	if err != nil {
		return ocsp.Unknown, err
	}
	if a.Status != http.StatusOK {
		return ocsp.Unknown, errors.New(a.Refusal())
	}
	got, err := ocsp.ParseResponse(a.Body, about)
	if err != nil {
		return ocsp.Unknown, err
	}
	return got.Status, nil
}

// label makes names that no earlier run has used.
func label() string { return "bench-" + strings.ToLower(rand.Text()[:10]) }
