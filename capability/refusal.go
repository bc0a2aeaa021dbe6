package capability

import "fmt"

// Codes of refusals. They are stable; programs may compare them.
const (
	CodeMalformed           = "capability_malformed"
	CodeNotGranted          = "capability_not_granted"
	CodeParameterMalformed  = "parameter_malformed"
	CodeParameterUndeclared = "parameter_undeclared"
	CodeParameterMissing    = "parameter_missing"
	CodeParameterExceeds    = "parameter_exceeds_grant"
	CodeConstraintUnknown   = "constraint_unknown"
	CodeConstraintMalformed = "constraint_malformed"
	CodeConstraintFact      = "constraint_fact_missing"
	CodeNetwork             = "constraint_network"
	CodeTime                = "constraint_time"
	CodeReadOnly            = "constraint_readonly"
	CodeRegion              = "constraint_region"
)

// A Refusal is the only error of this package: a stable code, and a text that tells a person what stands in the way.
type Refusal struct {
	Code string
	Text string
}

// Error gives code and text on one line.
func (r *Refusal) Error() string { return r.Code + ": " + r.Text }

// Is reports whether target is a Refusal of the same code.
func (r *Refusal) Is(target error) bool {
	t, ok := target.(*Refusal)
	return ok && t.Code == r.Code
}

func refuse(code, format string, args ...any) error {
	return &Refusal{Code: code, Text: fmt.Sprintf(format, args...)}
}
