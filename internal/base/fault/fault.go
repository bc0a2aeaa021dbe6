// Package fault is the one kind of error that crosses rooms: a kind that says what the caller can do, a code that
// names the refusal, a public text for people, and a private cause for the log.
//
// Domain rooms make faults; edge rooms translate them once into their protocol (RFC 9457 problems, exit codes).
// An error that is not a fault counts as Internal: the caller sees a request id and the log sees the chain.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// A Kind says what the caller can do about an error. Kinds are few and never renumbered.
type Kind uint8

// The kinds. The zero kind is the safe one: nothing of an Internal error is shown.
const (
	Internal        Kind = iota // our fault; the text is not shown
	Invalid                     // the request is wrong; mend it
	Unauthenticated             // we do not know who asks
	Denied                      // we know who asks, and they may not
	NotFound                    // no such thing, or none that the caller may know of
	Exists                      // it is there already
	Conflict                    // state moved on, or the request was used for something else
	TooLarge                    // a bound on size was passed
	Limited                     // this caller asks too often; see RetryAfter
	Unavailable                 // the service cannot take it now; see RetryAfter
	Unknown                     // whether the work was done is not known; ask again with the same key
)

var kindNames = [...]string{
	"internal", "invalid", "unauthenticated", "denied", "not found", "exists", "conflict",
	"too large", "limited", "unavailable", "unknown",
}

// String gives the kind in lower-case words.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// An Error is a refusal or a failure with everything that the edge needs to answer. Values are immutable once made;
// they may be shared between goroutines.
type Error struct {
	Kind       Kind
	Code       string        // snake_case, stable, explained by `chancery explain CODE`; empty for Internal
	Text       string        // public, plain: what happened and why
	Hint       string        // public: what to do about it; may be empty
	RetryAfter time.Duration // with Limited and Unavailable: when to ask again
	Cause      error         // private; for the log only
}

// New makes an error with a code and a public text in fmt style.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Text: fmt.Sprintf(format, args...)}
}

// Because gives a copy of e that carries cause for the log. The public text does not change.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.Cause = cause
	return &c
}

// WithHint gives a copy of e that tells people what to do about it.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// After gives a copy of e that says when to ask again.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// Error gives code, text and cause on one line. It is for logs; the edge shows Text alone.
func (e *Error) Error() string {
	s := e.Text
	if e.Code != "" {
		s = e.Code + ": " + s
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap gives the private cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is a fault of the same kind and code, so that errors.Is works with a sentinel whatever
// text and cause an occurrence carries.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Code == e.Code
}

// As gives the first fault in err's chain.
func As(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// KindOf gives the kind of the first fault in err's chain, and Internal for any other error.
func KindOf(err error) Kind {
	if e, ok := As(err); ok {
		return e.Kind
	}
	return Internal
}

// CodeOf gives the code of the first fault in err's chain, or "".
func CodeOf(err error) string {
	if e, ok := As(err); ok {
		return e.Code
	}
	return ""
}
