package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"chancery/internal/base/key"
	"chancery/internal/base/name"
	"chancery/internal/domain/ca"
)

// ownCertificate is the certificate of the server's own listeners, from its own authority for machines. Its key is
// made at each start and never leaves memory.
type ownCertificate struct {
	authority *ca.Hierarchy
	hosts     []name.Name
	log       *slog.Logger
	current   atomic.Pointer[tls.Certificate]
}

// ownLifetime is how long the server's own certificate lives; it is renewed after two thirds.
const ownLifetime = 7 * 24 * time.Hour

func (o *ownCertificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := o.current.Load(); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("the server has no certificate yet")
}

func (o *ownCertificate) renew(ctx context.Context) error {
	private, err := key.Generate(key.P256)
	if err != nil {
		return err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, private)
	if err != nil {
		return err
	}
	issued, err := o.authority.Issue(ctx, ca.Order{Authority: Machines, Profile: "tls-server", CSR: csr, Names: o.hosts, Lifetime: ownLifetime})
	if err != nil {
		return err
	}
	chain := [][]byte{issued.DER}
	authority, err := o.authority.Authority(ctx, Machines)
	if err != nil {
		return err
	}
	o.current.Store(&tls.Certificate{Certificate: append(chain, authority.Certificate), PrivateKey: private})
	return nil
}

// keepFresh renews the certificate until ctx ends. A failure is tried again every minute; two days are left then.
func (o *ownCertificate) keepFresh(ctx context.Context) error {
	wait := ownLifetime * 2 / 3
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		wait = ownLifetime * 2 / 3
		if err := o.renew(ctx); err != nil {
			o.log.Error("renew the server's own certificate; trying again in a minute", "error", err)
			wait = time.Minute
		}
	}
}
