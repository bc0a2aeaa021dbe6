package ca

import "chancery/internal/domain/ca/pkix"

// The words that the room shares with pkix, where their methods are.
type (
	// Profile says what the certificates of one kind look like.
	Profile = pkix.Profile
	// Subject is a distinguished name.
	Subject = pkix.Subject
	// Request is what a certification request says and proves.
	Request = pkix.Request
	// Extension is a certificate extension that an order brings.
	Extension = pkix.Extension
	// Reason says why something was revoked.
	Reason = pkix.Reason
	// State is where a certificate stands.
	State = pkix.State
)

// The reasons for a revocation (RFC 5280 §5.3.1).
const (
	Unspecified          = pkix.Unspecified
	KeyCompromise        = pkix.KeyCompromise
	CACompromise         = pkix.CACompromise
	AffiliationChanged   = pkix.AffiliationChanged
	Superseded           = pkix.Superseded
	CessationOfOperation = pkix.CessationOfOperation
	CertificateHold      = pkix.CertificateHold
	RemoveFromCRL        = pkix.RemoveFromCRL
	PrivilegeWithdrawn   = pkix.PrivilegeWithdrawn
)

// The states of a certificate.
const (
	Unknown = pkix.Unknown
	Good    = pkix.Good
	Revoked = pkix.Revoked
)

// BuiltIn gives the profiles that every installation has.
func BuiltIn() []Profile { return pkix.BuiltIn() }

// ReadRequest reads a certification request in DER and verifies its proof of possession, as pkix.ReadRequest says.
func ReadRequest(der []byte) (Request, error) { return pkix.ReadRequest(der) }

// ParseReason reads a reason by its name in RFC 5280, as pkix.ParseReason says.
func ParseReason(text string) (Reason, error) { return pkix.ParseReason(text) }

// DecodeOCSPPath gives the question in the path of a GET, as pkix.DecodeOCSPPath says.
func DecodeOCSPPath(path string) ([]byte, error) { return pkix.DecodeOCSPPath(path) }
