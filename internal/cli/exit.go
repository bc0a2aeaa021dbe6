package cli

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"chancery/agentcert"
	"chancery/client"
	"chancery/internal/base/conf"
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

// A complaint is an error as it is shown, and with --json the answer in its place.
type complaint struct {
	Text string `json:"error"`
	Code string `json:"code,omitempty"` // `chancery explain CODE` says more
	Hint string `json:"hint,omitempty"`
	Exit int    `json:"exit"`
}

// report shows an error once, with what to do about it, and gives the exit code.
func (t *terminal) report(err error) int {
	if err == nil {
		return exitOK
	}
	c := explain(err)
	if c.Exit == exitUsage && t.called != nil && t.called.HasParent() {
		c.Hint = usageOf(t.called)
	}
	if t.json {
		encoder := json.NewEncoder(t.err)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(c) // where this cannot be written, nothing can
		return c.Exit
	}
	fmt.Fprintf(t.err, "chancery: %s\n", c.Text)
	if c.Hint != "" {
		fmt.Fprintf(t.err, "hint: %s\n", c.Hint)
	}
	if c.Code != "" {
		fmt.Fprintf(t.err, "more: chancery explain %s\n", c.Code)
	}
	return c.Exit
}

func usageOf(c *cobra.Command) string {
	if c.HasSubCommands() {
		return fmt.Sprintf("`%s --help` lists its commands", c.CommandPath())
	}
	return fmt.Sprintf("the form is %s; `%s --help` explains it", c.UseLine(), c.CommandPath())
}

func explain(err error) complaint {
	var usage usageError
	var answered *client.Error
	var refusal *agentcert.Refusal
	var misconfigured *conf.Error
	switch {
	case errors.Is(err, context.Canceled):
		return complaint{Text: "interrupted", Exit: exitInterrupted}
	case errors.As(err, &usage):
		return complaint{Text: err.Error(), Hint: "`chancery help` lists the commands, `chancery COMMAND --help` explains one", Exit: exitUsage}
	case errors.As(err, &answered):
		return explainAnswer(answered)
	case errors.As(err, &refusal):
		return complaint{Text: refusal.Text, Code: refusal.Code, Exit: exitRefused}
	case errors.As(err, &misconfigured):
		return complaint{Text: err.Error(), Hint: "`chancery config print --explain` lists the settings", Exit: exitInvalid}
	}
	if f, ok := fault.As(err); ok && f.Kind != fault.Internal {
		return complaint{Text: f.Text, Code: f.Code, Hint: f.Hint, Exit: exitOfKind(f.Kind)}
	}
	return explainOutside(err)
}

func explainAnswer(e *client.Error) complaint {
	c := complaint{Text: e.Error(), Code: e.Code, Hint: e.Hint, Exit: exitOfStatus(e.Status)}
	if e.Code == "" && e.RequestID != "" {
		c.Hint = "the server's log has it under the request " + e.RequestID
	}
	return c
}

// explainOutside explains what failed outside of this program: no answer came, or a file is not there.
func explainOutside(err error) complaint {
	var foreign x509.UnknownAuthorityError
	var host x509.HostnameError
	var call *url.Error
	switch {
	case errors.As(err, &foreign):
		return complaint{
			Text: "the server's certificate does not lead to a root that is trusted here: " + err.Error(),
			Hint: "--root FILE names the root to trust; `chancery trust install` makes this machine trust it", Exit: exitDenied,
		}
	case errors.As(err, &host):
		return complaint{Text: err.Error(), Hint: "call the server by a name in its certificate, or add the name to name.hosts there", Exit: exitDenied}
	case errors.As(err, &call):
		return complaint{Text: err.Error(), Hint: "is the server running, and is its address right? `chancery doctor` looks on its machine", Exit: exitUnavailable}
	case errors.Is(err, fs.ErrNotExist):
		return complaint{Text: err.Error(), Exit: exitNotFound}
	}
	return complaint{Text: err.Error(), Exit: exitFailed}
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
