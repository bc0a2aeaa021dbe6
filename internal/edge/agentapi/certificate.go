package agentapi

import (
	"net/http"

	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/base/key"
	"chancery/internal/base/who"
	"chancery/internal/domain/agent"
	"chancery/internal/edge/rest"
)

// issuing describes the bodies of the routes that issue: JSON with PEM, or a certificate request in DER.
func issuing(in any, query map[string]string) rest.Media {
	return rest.Media{
		In:         map[string]any{rest.TypeJSON: in, rest.TypeCSR: nil},
		Out:        map[string]any{rest.TypeJSON: api.Issued{}, rest.TypeCertificate: nil, rest.TypeChain: nil},
		First:      rest.TypeJSON,
		Query:      query,
		Idempotent: true,
	}
}

func (f face) certificates(a *rest.API) {
	rest.Raw(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/agent-certificates", Permission: who.AgentOwn, Or: who.AgentIssue, Status: http.StatusCreated, Gated: true, Tags: tag,
		Summary:     "Issue an agent certificate for a signed delegation authorization",
		Description: "The agent identity stands beside the certificate request or inside it as a requested extension. The same authorization and key give the stored certificate again."},
		issuing(api.AgentIssueRequest{}, nil), f.issue)
	rest.Raw(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/agent-certificates/renew", Permission: who.Public, Status: http.StatusCreated, Gated: true, Tags: tag,
		Summary:     "Renew an agent's certificate under a standing delegation",
		Description: "The agent proves itself with its certificate on the mTLS listener, or with a certificate request signed by its last certified key."},
		issuing(api.AgentRenewRequest{}, map[string]string{"agent": "with a request in DER and no certificate: the agent"}), f.renew)
	rest.Raw(a, rest.Operation{Method: http.MethodPost, Path: "/api/v1/enrol", Permission: who.Public, Status: http.StatusCreated, Gated: true, Tags: tag,
		Summary:     "Enrol an agent with a one-time token",
		Description: "Binds the key of the certificate request to the agent. Under a standing delegation the answer holds the first certificate."},
		rest.Media{In: map[string]any{rest.TypeJSON: api.Enrolment{}}, Out: map[string]any{rest.TypeJSON: api.Enrolled{}}}, f.enrol)
}

func (f face) issue(r *rest.Request) (*rest.Answer, error) {
	var in api.AgentIssueRequest
	csr := r.Content
	if r.Type == rest.TypeJSON {
		if err := r.Decode(&in); err != nil {
			return nil, err
		}
		csr = []byte(in.Request)
	}
	c, err := f.agents.Issue(r.Context(), csr, in.Identity)
	return certificate(r, c, err)
}

func (f face) renew(r *rest.Request) (*rest.Answer, error) {
	idempotency, err := r.IdempotencyKey()
	if err != nil {
		return nil, err
	}
	n := agent.Renewal{Key: idempotency, ClientKey: clientKey(r)}
	switch r.Type {
	case rest.TypeCSR:
		n.Agent, n.Request = r.URL.Query().Get("agent"), r.Content
	case rest.TypeJSON:
		var in api.AgentRenewRequest
		if err := r.Decode(&in); err != nil {
			return nil, err
		}
		n.Agent = in.Agent
		if in.Request != "" {
			n.Request = []byte(in.Request)
		}
	}
	if caller := who.From(r.Context()); caller.Kind != who.Agent && n.Request == nil {
		return nil, fault.New(fault.Unauthenticated, "credentials_required", "renewing without a certificate request needs the agent's certificate on the mTLS listener").
			WithHint("call the mTLS listener (listen.mtls, port 8444 by default), or send a request signed by the agent's key")
	}
	c, err := f.agents.Renew(r.Context(), n)
	return certificate(r, c, err)
}

// clientKey gives the SubjectPublicKeyInfo of the TLS client key, whose possession the handshake proved.
func clientKey(r *rest.Request) []byte {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil
	}
	spki := r.TLS.PeerCertificates[0].RawSubjectPublicKeyInfo
	if key.Hash(spki) != who.From(r.Context()).KeyHash {
		return nil
	}
	return spki
}

func (f face) enrol(r *rest.Request) (*rest.Answer, error) {
	var in api.Enrolment
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	ctx := r.Context()
	enrolled, err := f.agents.Enrol(ctx, in.Secret, []byte(in.Request))
	if err != nil {
		return nil, err
	}
	out := api.Enrolled{Agent: f.agent(enrolled)}
	c, err := f.agents.Renew(ctx, agent.Renewal{Agent: enrolled.ID, Request: []byte(in.Request)})
	switch {
	case err == nil:
		first := issued(c)
		out.Certificate = &first
	case fault.CodeOf(err) != "standing_approval_missing": // then the person signs, and there is nothing to give yet
		return nil, err
	}
	return &rest.Answer{JSON: out}, nil
}

// certificate answers in the form that the caller accepts.
func certificate(r *rest.Request, c agent.Certificate, err error) (*rest.Answer, error) {
	if err != nil {
		return nil, err
	}
	return r.Certificate(issued(c), c.DER), nil
}

func issued(c agent.Certificate) api.Issued {
	return api.Issued{
		Serial: c.Serial, PEM: rest.CertificatePEM(c.DER), Chain: rest.CertificatePEM(c.Issuer), Principal: beside(c), NotBefore: c.NotBefore, NotAfter: c.NotAfter, Again: c.Again,
	}
}

// beside gives what a verifier of an agent certificate needs next to its chain: the principal's.
func beside(c agent.Certificate) string {
	if c.Principal == nil {
		return ""
	}
	return rest.CertificatePEM(c.Principal, c.PrincipalIssuer)
}
