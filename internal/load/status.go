package load

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"

	"chancery/api"
	"chancery/internal/base/id"
	"chancery/internal/load/drive"
)

// asked is how many certificates are asked about in turn.
const asked = 1000

// statuses prepares clients that ask for the status of certificates, over plain HTTP as relying parties do.
func (t *target) statuses(ctx context.Context, p Population) (scenario, error) {
	s, err := t.regular(ctx, p)
	if err != nil {
		return scenario{}, err
	}
	given, err := t.issue(ctx, s, asked)
	if err != nil {
		return scenario{}, err
	}
	about := t.issuers[s.issuer]
	all := make([]*inquiry, len(given))
	for i, g := range given {
		all[i] = &inquiry{serial: g.leaf.SerialNumber, issuer: about}
		if all[i].question, err = ocsp.CreateRequest(g.leaf, about, nil); err != nil {
			return scenario{}, err
		}
	}
	return scenario{address: t.public, plain: true, next: func(turn int) (job, error) {
		i := all[turn%len(all)]
		return job{ask: func(drive.Question) (drive.Question, judgment) {
			return drive.Question{Method: http.MethodPost, Path: ocspPath, ContentType: "application/ocsp-request", Body: i.question}, i.judge
		}}, nil
	}}, nil
}

// An inquiry is a question about one certificate, with the answer that was verified last: what equals it is right.
type inquiry struct {
	question []byte
	serial   *big.Int
	issuer   *x509.Certificate

	mu       sync.Mutex
	verified []byte
}

func (i *inquiry) judge(a drive.Answer) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if bytes.Equal(a.Body, i.verified) {
		return nil
	}
	got, err := ocsp.ParseResponse(a.Body, i.issuer)
	if err != nil {
		return err
	}
	if got.Status != ocsp.Good || got.SerialNumber.Cmp(i.serial) != 0 || got.NextUpdate.Before(time.Now()) {
		return fmt.Errorf("OCSP says that %x is %s until %s, asked about %x", got.SerialNumber, statusText(got.Status), got.NextUpdate, i.serial)
	}
	i.verified = bytes.Clone(a.Body)
	return nil
}

// crlEntries is how long the CRL is that is fetched.
const crlEntries = 100_000

// lists prepares clients that fetch a long CRL while one certificate more is revoked each second.
func (t *target) lists(ctx context.Context, p Population) (scenario, error) {
	dead, err := t.agents(ctx, p)
	if err != nil {
		return scenario{}, err
	}
	if _, err := t.issue(ctx, dead, crlEntries); err != nil {
		return scenario{}, err
	}
	for _, person := range dead.people {
		if err := t.admin.Call(ctx, http.MethodPost, "/api/v1/stop/"+person, nil, nil); err != nil {
			return scenario{}, err
		}
	}
	living, err := t.agents(ctx, Population{People: 1, Agents: 1, Tokens: 1})
	if err != nil {
		return scenario{}, err
	}
	given, err := t.issue(ctx, living, 256)
	if err != nil {
		return scenario{}, err
	}
	l := &list{issuer: t.issuers["agents"], changed: make(chan struct{})}
	return scenario{
		address: t.public, plain: true, aside: func(ctx context.Context) Figure { return l.lengthen(ctx, t, given) },
		next: func(int) (job, error) {
			return job{ask: func(drive.Question) (drive.Question, judgment) {
				return drive.Question{Method: http.MethodGet, Path: "/pki/agents.crl"}, l.judge
			}}, nil
		},
	}, nil
}

// A list is the CRL that was fetched last and is right.
type list struct {
	issuer *x509.Certificate

	mu      sync.Mutex
	raw     []byte
	number  *big.Int
	serials map[string]bool
	changed chan struct{} // closed when another one was fetched
}

// judge reads a CRL that is not the one before: it is signed, younger, and not shorter.
func (l *list) judge(a drive.Answer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Equal(a.Body, l.raw) {
		return nil
	}
	got, err := x509.ParseRevocationList(a.Body)
	if err != nil {
		return err
	}
	if err := got.CheckSignatureFrom(l.issuer); err != nil {
		return err
	}
	switch {
	case l.number != nil && got.Number.Cmp(l.number) < 0:
		return nil // an older one that was under way
	case len(got.RevokedCertificateEntries) < max(crlEntries, len(l.serials)):
		return fmt.Errorf("a CRL with %d entries, %d were revoked", len(got.RevokedCertificateEntries), max(crlEntries, len(l.serials)))
	}
	l.raw, l.number, l.serials = bytes.Clone(a.Body), got.Number, map[string]bool{}
	for _, e := range got.RevokedCertificateEntries {
		l.serials[id.SerialOf(e.SerialNumber).String()] = true
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// lengthen revokes one certificate a second, waits until it stands in a CRL that was fetched, and gives how long that
// took.
func (l *list) lengthen(ctx context.Context, t *target, given []given) Figure {
	took := drive.NewHistogram()
	for _, g := range given {
		if !drive.Pause(ctx, time.Second) {
			break
		}
		serial := serialOf(g.leaf)
		err := t.admin.Call(ctx, http.MethodPost, "/api/v1/certificates/"+serial+"/revoke", api.RevokeRequest{Reason: "superseded"}, nil)
		since := time.Now()
		if err = errors.Join(err, l.waits(ctx, serial)); err != nil {
			break
		}
		drive.Record(took, time.Since(since))
	}
	return Figure{Name: "from a revocation's answer to a fetched CRL that lists it", Value: latencyOf(took).String()}
}

func (l *list) waits(ctx context.Context, serial string) error {
	for {
		l.mu.Lock()
		there, changed := l.serials[serial], l.changed
		l.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
