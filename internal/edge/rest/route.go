package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/base/who"
)

// DefaultMaxBody bounds the body of a route that names no bound of its own, in bytes.
const DefaultMaxBody = 64 << 10

// An Operation declares a route.
type Operation struct {
	Method      string         // GET, POST, PUT, PATCH or DELETE
	Path        string         // a ServeMux path: /api/v1/agents/{id}
	Permission  who.Permission // what the caller must hold; who.Public for a route that is open to all
	Or          who.Permission // opens the route too; the room behind it tells what each of the two allows
	Summary     string         // one line of the description
	Description string
	Tags        []string      // the groups of the description
	Status      int           // of success; 0 means 200, or 204 for an answer without a body
	MaxBody     int64         // bytes; 0 means DefaultMaxBody
	Gated       bool          // asks for capacity before anything is done
	Deadline    time.Duration // for the whole request; 0 means the listener's
}

// Bound gives the largest body that the route takes, in bytes.
func (op Operation) Bound() int64 {
	if op.MaxBody > 0 {
		return op.MaxBody
	}
	return DefaultMaxBody
}

// admit refuses a caller who holds none of the route's permissions.
func (op Operation) admit(c who.Caller) error {
	if op.Or != "" && c.May(op.Or) {
		return nil
	}
	return c.Need(op.Permission)
}

// permissions names what opens the route, for the description.
func (op Operation) permissions() string {
	if op.Or == "" {
		return string(op.Permission)
	}
	return string(op.Permission) + " or " + string(op.Or)
}

// Fits refuses a request that announces a body larger than the route takes. The fault is TooLarge, code body_too_large.
func (op Operation) Fits(r *http.Request) error {
	if r.ContentLength > op.Bound() {
		return tooLarge(op.Bound())
	}
	return nil
}

// Route declares a route that takes and answers JSON. I and O are structs in huma's form: fields tagged path, query or
// header, and a field Body. The body is strict JSON: names that are unknown, doubled or in the wrong case, invalid
// UTF-8 and deep nesting are refused before handle runs. What handle returns as an error is translated once, here.
func Route[I, O any](a *API, op Operation, handle func(context.Context, *I) (*O, error)) {
	described := a.describe(op)
	huma.Register(a.huma, described, func(ctx context.Context, in *I) (*O, error) {
		RecordOf(ctx).parsed()
		out, err := handle(ctx, in)
		if err != nil {
			return nil, problemFor(ctx, err)
		}
		return out, nil
	})
	registered := a.adapter.last
	var accept []string
	if registered.op.RequestBody != nil {
		accept = []string{"application/json"}
	}
	a.add(op, guarded(op, accept, func(w http.ResponseWriter, r *http.Request, body content) {
		registered.serve(&exchange{view: humago.NewContext(registered.op, r, w), body: body.bytes})
	}))
}

// describe translates an operation for huma.
func (a *API) describe(op Operation) huma.Operation {
	security := []map[string][]string{{"token": {}}, {"certificate": {}}}
	if op.Permission == who.Public {
		security = []map[string][]string{{}}
	}
	return huma.Operation{
		OperationID: operationID(op.Method, op.Path),
		Method:      op.Method,
		Path:        strings.ReplaceAll(strings.TrimSuffix(op.Path, "{$}"), "...}", "}"),
		Summary:     op.Summary,
		Description: op.Description,
		Tags:        op.Tags,
		Security:    security,
		Extensions:  map[string]any{"x-permission": op.permissions()},

		DefaultStatus: op.Status,
		MaxBodyBytes:  -1, // guarded has read and bounded the body already
		Responses: map[string]*huma.Response{"default": {
			Description: "A refusal or a failure (RFC 9457)",
			Content:     map[string]*huma.MediaType{problemType: {Schema: a.schema(api.Problem{})}},
		}},
		RejectUnknownQueryParameters: true,
	}
}

// The adapter hands huma's handler to Route instead of a router: routes are served by guarded.
type adapter struct{ last registration }

type registration struct {
	op    *huma.Operation
	serve func(huma.Context)
}

func (a *adapter) Handle(op *huma.Operation, serve func(huma.Context)) {
	a.last = registration{op, serve}
}

func (a *adapter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusNotFound) // huma asks for it in its own tests only
}

// An exchange is huma's view of a request whose body has been read. Deadlines are the listener's, not huma's.
type exchange struct {
	view
	body []byte
}

type view = huma.Context // its own name would hide its method Context

func (e *exchange) BodyReader() io.Reader           { return bytes.NewReader(e.body) }
func (e *exchange) SetReadDeadline(time.Time) error { return nil }

// content is a body with its media type, without parameters.
type content struct {
	media string
	bytes []byte
}

// guarded checks permission, media type and size, in this order, before serve sees a request. With no media type to
// accept, the route takes no body and none is read.
func guarded(op Operation, accept []string, serve func(http.ResponseWriter, *http.Request, content)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := op.admit(who.From(r.Context())); err != nil {
			Refuse(w, r, err)
			return
		}
		RecordOf(r.Context()).begin = time.Now()
		var body content
		if len(accept) > 0 {
			var err error
			if body, err = op.readContent(w, r, accept); err != nil {
				Refuse(w, r, err)
				return
			}
		}
		serve(w, r, body)
	})
}

func (op Operation) readContent(w http.ResponseWriter, r *http.Request, accept []string) (content, error) {
	media, err := mediaOf(r, accept)
	if err != nil {
		return content{}, err
	}
	bound := op.Bound()
	if err := op.Fits(r); err != nil {
		return content{}, err
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(r.ContentLength) + bytes.MinRead) // or ReadFrom grows it once more to see the end
	}
	if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, bound)); err != nil {
		w.Header().Set("Connection", "close") // what is left of the body is not waited for
		return content{}, bodyFault(err, bound)
	}
	return content{media, buf.Bytes()}, nil
}

// mediaOf finds the body's media type among those that the route accepts. A body without a type counts as the first.
func mediaOf(r *http.Request, accept []string) (string, error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return "", fault.New(fault.Invalid, "content_encoding_unknown", "a body in the coding %.40q is not read", coding).
			WithHint("send it without a coding")
	}
	given := r.Header.Get("Content-Type")
	if given == "" {
		return accept[0], nil
	}
	for _, known := range accept { // most clients send the bare name
		if given == known {
			return known, nil
		}
	}
	media, _, _ := mime.ParseMediaType(given)
	for _, known := range accept {
		if media == known {
			return known, nil
		}
	}
	return "", fault.New(fault.Invalid, "content_type_unknown", "a body of the type %.80q is not read here", given).
		WithHint("send %s", strings.Join(accept, " or "))
}

func bodyFault(err error, bound int64) error {
	var timeout net.Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(bound)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fault.New(fault.Invalid, "body_slow", "the body did not arrive in time").Because(err)
	}
	return fault.New(fault.Invalid, "body_broken", "the body ended early").Because(err)
}

func tooLarge(bound int64) error {
	return fault.New(fault.TooLarge, "body_too_large", "the body is larger than the %d bytes that this route takes", bound)
}
