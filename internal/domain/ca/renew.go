package ca

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"chancery/internal/base/fault"
	"chancery/internal/base/id"
	"chancery/internal/base/name"
	"chancery/internal/core/store"
	"chancery/internal/domain/ca/pkix"
)

// An Ordinary is an ordinary certificate as it is stored, with what a caller needs who decides whether it may be renewed.
type Ordinary struct {
	Authority string // its name
	KeyHash   []byte // SHA-256 of the SubjectPublicKeyInfo

	row row
}

// A Renewal asks for the same certificate for a new time: same authority, profile, owner, subject and names.
type Renewal struct {
	Of       Ordinary
	CSR      []byte        // brings a new key and proves it; nil keeps the key, which the caller has seen proved
	Lifetime time.Duration // zero: the profile's default
}

// Renew issues an ordinary certificate again. It is durable on return; the old one stays valid until it ends. Agent
// certificates are renewed by new evidence, through IssueAgent; principals get theirs by a new order.
//
// Faults: Denied certificate_revoked (or what stands above it), certificate_expired, profile_unfit; those of Issue.
func (h *Hierarchy) Renew(ctx context.Context, r Renewal) (Issued, error) {
	before := r.Of.row
	a, t, err := h.template(ctx, r.Of.Authority, before.profile)
	if err != nil {
		return Issued{}, err
	}
	switch {
	case t.Profile.Authority:
		return Issued{}, fault.New(fault.Denied, "profile_unfit", "the certificate of an authority is not renewed; create a new authority")
	case t.Profile.ForPrincipals():
		return Issued{}, fault.New(fault.Denied, "profile_unfit", "what a person may delegate is decided anew for each certificate, so a principal's is not renewed").
			WithHint("`chancery user certify` issues another")
	}
	if err := h.alive(ctx, []string{certificateTarget(before.serial)}); err != nil {
		return Issued{}, err
	}
	now := h.now()
	if !now.Before(before.notAfter) {
		return Issued{}, fault.New(fault.Denied, "certificate_expired", "the certificate expired at %s", before.notAfter.Format(time.RFC3339)).
			WithHint("ask for a new certificate")
	}
	c, names, err := before.again(t, r.CSR)
	if err != nil {
		return Issued{}, err
	}
	c.Serial = h.serials.Next(now)
	if err := t.Date(c, now, r.Lifetime); err != nil {
		return Issued{}, err
	}
	return h.keep(ctx, a, t, c, newRow(c, a.target, t.Profile.Name, before.owner, names))
}

// again gives what a certificate holds for its next one. The profile may have changed since: the key and the names are
// held to it as if they were new.
func (r *row) again(t *pkix.Template, csr []byte) (*pkix.Content, []name.Name, error) {
	cert, err := x509.ParseCertificate(r.der)
	if err != nil {
		return nil, nil, fmt.Errorf("reading certificate %s: %w", r.serial, err)
	}
	request, err := pkix.BareRequest(cert.RawSubjectPublicKeyInfo)
	if len(csr) > 0 {
		request, err = ReadRequest(csr)
	}
	if err != nil {
		return nil, nil, err
	}
	request.Subject = pkix.SubjectOf(cert.Subject)
	request.Names = nil
	for text := range strings.FieldsSeq(r.names) {
		n, err := name.Parse(text)
		if err != nil {
			return nil, nil, err
		}
		request.Names = append(request.Names, n)
	}
	c, err := t.Content(request, slices.DeleteFunc(cert.Extensions, func(e pkix.Extension) bool {
		return !slices.Contains(t.Profile.Extensions, e.Id.String())
	}))
	return c, request.Names, err
}

// Ordinary finds an ordinary certificate by its serial. Fault: NotFound certificate_unknown.
func (h *Hierarchy) Ordinary(ctx context.Context, serial id.Serial) (o Ordinary, err error) {
	r := &o.row
	var from, to int64
	found := false
	err = h.db.Read(ctx, func(tx *store.Tx) error {
		found, err = tx.One([]any{&r.authority, &r.profile, &r.owner, &r.names, &o.KeyHash, &from, &to, &r.der},
			"SELECT authority, profile, owner, names, key_hash, not_before, not_after, der FROM certificate WHERE serial = ?", []byte(serial))
		return err
	})
	if err == nil && !found {
		err = fault.New(fault.NotFound, "certificate_unknown", "there is no ordinary certificate with the serial %s", serial)
	}
	r.serial, r.notBefore, r.notAfter = serial, milli(from), milli(to)
	o.Authority = strings.TrimPrefix(r.authority, "aut:")
	return o, err
}
