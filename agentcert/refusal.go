package agentcert

import "fmt"

// A Refusal says at which step and why something was not accepted. Step and Code are stable; Text is for people.
type Refusal struct {
	Step string // one of the Step constants
	Code string // snake_case, such as "da_signature_invalid"
	Text string
	err  error
}

// Error gives code and text on one line.
func (r *Refusal) Error() string { return r.Code + ": " + r.Text }

// Unwrap gives what a hook or a library reported, if that was the reason.
func (r *Refusal) Unwrap() error { return r.err }

// Is reports whether target is a Refusal of the same code.
func (r *Refusal) Is(target error) bool {
	t, ok := target.(*Refusal)
	return ok && t.Code == r.Code
}

func refuse(step, code, format string, args ...any) *Refusal {
	return &Refusal{Step: step, Code: code, Text: fmt.Sprintf(format, args...)}
}

func (r *Refusal) because(err error) *Refusal {
	r.err = err
	return r
}

// malformed is the refusal of DER that does not have the required form.
func malformed(what, field string) *Refusal {
	return refuse(StepExtension, what+"_malformed", "the encoding is wrong at %s", field)
}

// invalid is the refusal of a well-formed value beyond a limit.
func invalid(what, format string, args ...any) *Refusal {
	return refuse(StepExtension, what+"_invalid", format, args...)
}
