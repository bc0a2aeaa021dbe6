package ca

import (
	"bytes"
	"chancery/internal/domain/ca/pkix"
	"context"
	"fmt"
	"time"
)

// An OCSPAnswer is a response in DER and how long it may be kept.
type OCSPAnswer struct {
	DER                    []byte
	ThisUpdate, NextUpdate time.Time // zero with an answer that is not signed, such as malformedRequest
	// Shared reports that the answer may be kept by caches: it is signed, holds no nonce, and speaks of no agent, whose
	// status has to be fresh within a second.
	Shared bool
	// Signed reports that a signature was made for this very question; admission counts those.
	Signed bool
}

// ocspAnswer is a signed answer that waits for the same question.
type ocspAnswer struct {
	cert   []byte // CertID, since clients choose its hash
	status Status
	OCSPAnswer
}

// agentOCSPLifetime bounds nextUpdate of answers about agents.
const agentOCSPLifetime = time.Minute

// OCSP answers a question in DER (RFC 6960), from memory where the same was asked before and nothing changed. A
// question with a nonce is answered afresh (RFC 9654). A question that cannot be read or that is not for us gets the
// unsigned answer of the RFC, not an error; errors are those of the store and of the signer.
func (h *Hierarchy) OCSP(ctx context.Context, question []byte) (OCSPAnswer, error) {
	request, ok := pkix.ParseOCSP(question)
	if !ok {
		return OCSPAnswer{DER: pkix.OCSPMalformed}, nil
	}
	s, err := h.snapshot(ctx)
	if err != nil {
		return OCSPAnswer{}, err
	}
	a := s.namedBy(&request.Certs[0])
	switch {
	case a == nil:
		return OCSPAnswer{DER: pkix.OCSPUnauthorized}, nil
	case !a.Online:
		return OCSPAnswer{DER: pkix.OCSPTryLater}, nil
	}
	if err := h.revoked.catchUp(ctx, h.db); err != nil {
		return OCSPAnswer{}, err
	}
	records, err := h.asked(ctx, a, request.Certs)
	if err != nil {
		return OCSPAnswer{}, err
	}
	if len(records) == 1 && request.Nonce == nil && records[0] != nil {
		return h.shared(a, &request.Certs[0], records[0])
	}
	return h.respond(a, &request, records)
}

func (s *snapshot) namedBy(c *pkix.CertID) *authority {
	for _, name := range s.order {
		if a := s.authorities[name]; a.issuer.IsNamedBy(c) {
			return a
		}
	}
	return nil
}

// asked gives the record of each certificate asked about; nil for those that the authority never issued.
func (h *Hierarchy) asked(ctx context.Context, a *authority, certs []pkix.CertID) ([]*record, error) {
	records := make([]*record, len(certs))
	for n := range certs {
		if n > 0 && !a.issuer.IsNamedBy(&certs[n]) {
			continue
		}
		r, found, err := h.records.Get(ctx, string(certs[n].Serial))
		if err != nil {
			return nil, fmt.Errorf("looking up a certificate: %w", err)
		}
		if found && r.authority == a.Name {
			records[n] = r
		}
	}
	return records, nil
}

// shared gives the signed answer about one certificate again while its status is the same and half of its time is left.
func (h *Hierarchy) shared(a *authority, c *pkix.CertID, r *record) (OCSPAnswer, error) {
	status, now := h.statusOf(r.above), h.now()
	if kept := r.answer.Load(); kept != nil && kept.status == status && bytes.Equal(kept.cert, c.Raw) &&
		young(now, kept.ThisUpdate, kept.NextUpdate) {
		return kept.OCSPAnswer, nil
	}
	answer, err := h.respond(a, &pkix.Question{Certs: []pkix.CertID{*c}}, []*record{r})
	if err != nil {
		return OCSPAnswer{}, err
	}
	kept := ocspAnswer{cert: bytes.Clone(c.Raw), status: status, OCSPAnswer: answer}
	kept.Signed = false
	r.answer.Store(&kept)
	return answer, nil
}

// respond signs an answer.
func (h *Hierarchy) respond(a *authority, request *pkix.Question, records []*record) (OCSPAnswer, error) {
	now := h.now().Truncate(time.Second)
	answer := OCSPAnswer{ThisUpdate: now, NextUpdate: now.Add(h.config.OCSPLifetime), Shared: request.Nonce == nil, Signed: true}
	verdicts := make([]pkix.Verdict, len(records))
	for n, r := range records {
		verdicts[n] = pkix.Verdict{Cert: request.Certs[n].Raw, From: now}
		if r != nil {
			verdicts[n].Status = h.statusOf(r.above).Status
		}
		if r == nil || r.isAgent {
			answer.Shared = false
			answer.NextUpdate = now.Add(min(h.config.OCSPLifetime, agentOCSPLifetime))
		}
	}
	for n := range verdicts {
		verdicts[n].Until = answer.NextUpdate
	}
	var err error
	if answer.DER, err = a.issuer.AnswerOCSP(verdicts, request.Nonce, now); err != nil {
		return OCSPAnswer{}, fmt.Errorf("signing an OCSP answer: %w", err)
	}
	return answer, nil
}
