// Package api holds the bodies of Chancery's HTTP API: what a client sends and what the server answers, in the JSON
// form that /api/v1/openapi.json describes. The server and the Go client share these types, so they cannot disagree.
//
// Times are RFC 3339 in UTC. Certificates, requests and chains are PEM. Lists come in pages: ask again with Next as
// the cursor until it is empty.
package api

import "time"

// A Page is a part of a list. Every lasting row is given exactly once, whatever comes and goes meanwhile.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" doc:"cursor of the following page; absent at the end"`
}

// A Problem is the body of every refusal and failure (RFC 9457), with a code that `chancery explain` knows.
type Problem struct {
	Type      string  `json:"type" doc:"urn:chancery:problem: and the code, or about:blank" example:"urn:chancery:problem:da_stale"`
	Title     string  `json:"title" doc:"the status in words"`
	Status    int     `json:"status" doc:"HTTP status code"`
	Detail    string  `json:"detail,omitempty" doc:"what happened and why"`
	Code      string  `json:"code,omitempty" doc:"stable name of the refusal; chancery explain CODE says more"`
	Hint      string  `json:"hint,omitempty" doc:"what to do about it"`
	RequestID string  `json:"request_id,omitempty" doc:"names this request in the log"`
	Errors    []Wrong `json:"errors,omitempty" doc:"each place in the request that is wrong"`
}

// A Wrong is one place of a request that does not have the described form.
type Wrong struct {
	Where string `json:"where" doc:"body.name, query.limit and the like"`
	What  string `json:"what"`
}

// A Certificate is what the authority knows of one certificate.
type Certificate struct {
	Serial     string    `json:"serial" doc:"lower-case hexadecimal"`
	Authority  string    `json:"authority"`
	Profile    string    `json:"profile"`
	Subject    string    `json:"subject,omitempty"`
	Names      []string  `json:"names,omitempty" doc:"subject alternative names, as kind:text"`
	KeyHash    string    `json:"key_hash" doc:"SHA-256 of the SubjectPublicKeyInfo, hexadecimal"`
	NotBefore  time.Time `json:"not_before"`
	NotAfter   time.Time `json:"not_after"`
	Status     string    `json:"status" enum:"good,revoked,expired"`
	Reason     string    `json:"reason,omitempty" doc:"of a revocation (RFC 5280 §5.3.1)"`
	RevokedAt  time.Time `json:"revoked_at,omitzero"`
	RevokedBy  string    `json:"revoked_because_of,omitempty" doc:"what was revoked: the certificate itself or something above it"`
	Owner      string    `json:"owner,omitempty"`
	Agent      string    `json:"agent,omitempty"`
	Delegation string    `json:"delegation,omitempty"`
	Principal  string    `json:"principal,omitempty"`
	PEM        string    `json:"certificate,omitempty"`
}

// An IssueRequest asks for an ordinary certificate.
type IssueRequest struct {
	Authority   string   `json:"authority" maxLength:"64"`
	Profile     string   `json:"profile" maxLength:"64"`
	Request     string   `json:"csr" maxLength:"32768" doc:"PKCS#10 certificate request in PEM"`
	Names       []string `json:"names,omitempty" maxItems:"100" doc:"names in place of those in the request"`
	LifetimeSec int      `json:"lifetime_sec,omitempty" minimum:"0" doc:"at most what the profile allows; 0 for the profile's own"`
}

// An Issued is a certificate just issued, durable before it was sent.
type Issued struct {
	Serial    string    `json:"serial"`
	PEM       string    `json:"certificate"`
	Chain     string    `json:"chain" doc:"the certificates above it, without the root"`
	Principal string    `json:"principal,omitempty" doc:"of an agent certificate: the principal's certificate and the one above it"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	Again     bool      `json:"again,omitempty" doc:"it was issued before for the same evidence and key"`
}

// A RevokeRequest ends a certificate, an agent, a delegation, a person's delegations or an authority.
type RevokeRequest struct {
	Reason string `json:"reason,omitempty" enum:"unspecified,keyCompromise,cACompromise,affiliationChanged,superseded,cessationOfOperation,certificateHold,privilegeWithdrawn" doc:"RFC 5280 §5.3.1"`
	Note   string `json:"note,omitempty" maxLength:"500"`
}

// An Authority is a root or an issuing authority.
type Authority struct {
	Name      string    `json:"name"`
	Issuer    string    `json:"issuer,omitempty" doc:"the authority above; absent for a root"`
	Subject   string    `json:"subject"`
	KeyKind   string    `json:"key_kind"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	Status    string    `json:"status" enum:"good,revoked,expired"`
	PEM       string    `json:"certificate"`
}

// A NewAuthority asks for an issuing authority below an existing one.
type NewAuthority struct {
	Name    string `json:"name" pattern:"^[a-z0-9][a-z0-9-]{0,62}$"`
	Issuer  string `json:"issuer,omitempty" doc:"default: the root"`
	Subject string `json:"subject,omitempty" maxLength:"200" doc:"common name; default: made from the name"`
	KeyKind string `json:"key_kind,omitempty" enum:"p256,p384,ed25519,rsa2048,rsa3072,rsa4096"`
	Years   int    `json:"years,omitempty" minimum:"0" maximum:"20"`
}

// A RenewRequest asks for the same certificate for a new time.
type RenewRequest struct {
	Request     string `json:"csr,omitempty" maxLength:"32768" doc:"PKCS#10 certificate request in PEM, for a new key; absent for the same key"`
	LifetimeSec int    `json:"lifetime_sec,omitempty" minimum:"0"`
}
