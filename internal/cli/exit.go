package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"

	"chancery/agentcert"
	"chancery/client"
	"chancery/internal/base/fault"
)

// The exit codes. They are part of the interface and never renumbered.
const (
	exitOK          = 0
	exitFailed      = 1 // something broke
	exitUsage       = 2 // the command line is wrong
	exitInvalid     = 3 // the request or the configuration is wrong
	exitDenied      = 4 // not allowed, or not known who asks
	exitNotFound    = 5
	exitConflict    = 6 // it exists, or state moved on
	exitUnavailable = 7 // ask again later
	exitRefused     = 8 // a verification said no
	exitInterrupted = 130
)

// A usageError is a command line that does not say what to do.
type usageError struct{ error }

// report shows an error once, with its hint, and gives the exit code.
func (t *terminal) report(err error) int {
	if err == nil {
		return exitOK
	}
	text, hint, code := explain(err)
	fmt.Fprintf(t.err, "chancery: %s\n", text)
	if hint != "" {
		fmt.Fprintf(t.err, "hint: %s\n", hint)
	}
	return code
}

func explain(err error) (text, hint string, code int) {
	var usage usageError
	var answered *client.Error
	var refusal *agentcert.Refusal
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted", "", exitInterrupted
	case errors.As(err, &usage):
		return err.Error(), "`chancery help` lists the commands, `chancery COMMAND --help` explains one", exitUsage
	case errors.As(err, &answered):
		return answered.Error(), answered.Hint, exitOfStatus(answered.Status)
	case errors.As(err, &refusal):
		return refusal.Text, "", exitRefused
	}
	if f, ok := fault.As(err); ok {
		return f.Text, f.Hint, exitOfKind(f.Kind)
	}
	return explainOutside(err)
}

// explainOutside explains what failed outside of this program: no answer came, or a file is not there.
func explainOutside(err error) (text, hint string, code int) {
	var foreign x509.UnknownAuthorityError
	var host x509.HostnameError
	var call *url.Error
	switch {
	case errors.As(err, &foreign):
		return "the server's certificate does not lead to a root that is trusted here: " + err.Error(), "--root FILE names the root to trust; `chancery trust install` makes this machine trust it", exitDenied
	case errors.As(err, &host):
		return err.Error(), "call the server by a name in its certificate, or add the name to name.hosts there", exitDenied
	case errors.As(err, &call):
		return err.Error(), "is the server running, and is its address right? `chancery doctor` looks on its machine", exitUnavailable
	case errors.Is(err, fs.ErrNotExist):
		return err.Error(), "", exitNotFound
	}
	return err.Error(), "", exitFailed
}

func exitOfStatus(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return exitInvalid
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return exitNotFound
	case http.StatusConflict:
		return exitConflict
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return exitUnavailable
	}
	return exitFailed
}

func exitOfKind(k fault.Kind) int {
	switch k {
	case fault.Invalid, fault.TooLarge:
		return exitInvalid
	case fault.Denied, fault.Unauthenticated:
		return exitDenied
	case fault.NotFound:
		return exitNotFound
	case fault.Exists, fault.Conflict:
		return exitConflict
	case fault.Limited, fault.Unavailable, fault.Unknown:
		return exitUnavailable
	}
	return exitFailed
}
