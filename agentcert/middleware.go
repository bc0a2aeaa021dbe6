package agentcert

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"

	"chancery/capability"
)

// Middleware lets a request through when the agent that sent it may do what operation says it is. Operation fills in
// the name, the parameters and whether the request only reads; the caller's address is added if it is not set. An
// error from operation refuses the request.
//
// The chain comes from the TLS connection, which must request client certificates and leave their verification to this
// middleware (tls.RequestClientCert or tls.RequireAnyClientCert). The principal's certificate is one more element of
// the client's chain, or is remembered from an earlier request. The obligations of the decision are kept in this
// process, per Verifier. A request without a certificate gets 401, a refusal 403, too many sessions 503; each is a
// problem of RFC 9457 with the members "step" and "code". The handler finds the decision with DecisionFrom; if it asks
// for an audit record, the handler must write it.
func (v *Verifier) Middleware(operation func(*http.Request) (capability.Operation, error)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			decision, end, refusal := v.admit(r, operation)
			if refusal != nil {
				writeProblem(w, refusal)
				return
			}
			defer end()
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), decisionKey{}, decision)))
		})
	}
}

type decisionKey struct{}

// DecisionFrom gives the decision that let a request through the middleware.
func DecisionFrom(ctx context.Context) (Decision, bool) {
	d, ok := ctx.Value(decisionKey{}).(Decision)
	return d, ok
}

func (v *Verifier) admit(r *http.Request, operation func(*http.Request) (capability.Operation, error)) (Decision, func(), *Refusal) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return Decision{}, nil, refuse(StepRequest, "client_certificate_missing", "an agent must present its certificate with TLS")
	}
	op, err := operation(r)
	if err != nil {
		return Decision{}, nil, refuse(StepRequest, "operation_unknown", "the request is none that an agent can be allowed").because(err)
	}
	if !op.Remote.IsValid() {
		if remote, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			op.Remote = remote.Addr().Unmap()
		}
	}
	chain := r.TLS.PeerCertificates
	decision, refusal := v.verify(r.Context(), chain, chain[1:], op)
	if refusal != nil {
		return decision, nil, refusal
	}
	end, refusal := v.sessions.begin(decision, v.policy.Now)
	return decision, end, refusal
}

// writeProblem answers with problem details (RFC 9457).
func writeProblem(w http.ResponseWriter, r *Refusal) {
	status := http.StatusForbidden
	switch r.Code {
	case "client_certificate_missing":
		status = http.StatusUnauthorized
	case "sessions_full":
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "10")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	problem := struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Step   string `json:"step"`
		Code   string `json:"code"`
	}{"about:blank", http.StatusText(status), status, r.Text, r.Step, r.Code}
	_ = json.NewEncoder(w).Encode(problem) // the caller has gone if this fails
}
