package rest

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"chancery/api"
	"chancery/internal/base/fault"
)

const problemType = "application/problem+json"

// CodeInvalid is the code of every request that does not have the form its route describes.
const CodeInvalid = "request_invalid"

// A Problem is an api.Problem on its way out.
type Problem struct {
	api.Problem

	retryAfter time.Duration
}

// Refuse answers with the problem that err makes, and notes err in the request's Record for the log.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemFor(r.Context(), err)
	header := w.Header()
	header.Del("Content-Length")
	header.Del("Content-Encoding")
	header.Set("Content-Type", problemType)
	header.Set("Cache-Control", "no-store")
	for name, values := range p.GetHeaders() {
		header[name] = values
	}
	body, err := formatJSON(p)
	if err != nil { // a struct of strings always has a JSON form
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}

// problemFor translates an error, and notes it in the context's Record.
func problemFor(ctx context.Context, err error) *Problem {
	record := RecordOf(ctx)
	record.Err = err
	f, ok := fault.As(err)
	switch {
	case ok && f.Kind != fault.Internal:
		return problem(record, f)
	case errors.Is(err, context.Canceled):
		return problem(record, fault.New(fault.Unavailable, "caller_gone", "the caller hung up before the answer").Because(err))
	case errors.Is(err, context.DeadlineExceeded):
		return problem(record, fault.New(fault.Unknown, "deadline_passed", "the work was not finished in time").
			WithHint("ask again; with an Idempotency-Key the same request is done only once").After(time.Second))
	}
	return &Problem{Problem: api.Problem{Type: "about:blank", Title: http.StatusText(500), Status: 500, RequestID: record.ID}}
}

func problem(record *Record, f *fault.Error) *Problem {
	status := statusOf(f)
	return &Problem{retryAfter: f.RetryAfter, Problem: api.Problem{
		Type: "urn:chancery:problem:" + f.Code, Title: http.StatusText(status), Status: status,
		Detail: f.Text, Code: f.Code, Hint: f.Hint, RequestID: record.ID,
	}}
}

// statusOf prefers the status that HTTP itself has for a code of this protocol to that of the kind.
func statusOf(f *fault.Error) int {
	switch f.Code {
	case "method_not_allowed":
		return http.StatusMethodNotAllowed
	case "content_type_unknown", "content_encoding_unknown":
		return http.StatusUnsupportedMediaType
	case "body_slow":
		return http.StatusRequestTimeout
	case "head_too_large":
		return http.StatusRequestHeaderFieldsTooLarge
	case "host_unknown":
		return http.StatusMisdirectedRequest
	}
	return statusOfKind(f.Kind)
}

func statusOfKind(k fault.Kind) int {
	switch k {
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.Unauthenticated:
		return http.StatusUnauthorized
	case fault.Denied:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Exists, fault.Conflict:
		return http.StatusConflict
	case fault.TooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.Limited:
		return http.StatusTooManyRequests
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	case fault.Unknown: // not 503, on which clients repeat what they sent: it may have been done
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

// translateModel turns huma's error model into a Problem. The values that huma would echo are dropped: they may hold
// secrets.
func translateModel(ctx huma.Context, _ string, v any) (any, error) {
	model, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	wrong := make([]api.Wrong, 0, len(model.Errors))
	texts := make([]string, 0, len(model.Errors))
	for _, e := range model.Errors {
		if e == nil || len(wrong) == 20 {
			continue
		}
		wrong = append(wrong, api.Wrong{Where: e.Location, What: e.Message})
		texts = append(texts, strings.TrimPrefix(e.Location+": "+e.Message, ": "))
	}
	if len(texts) == 0 {
		texts = append(texts, model.Detail)
	}
	f := fault.New(fault.Invalid, CodeInvalid, "the request does not have the form that this route takes: %s", strings.Join(texts, "; "))
	record := RecordOf(ctx.Context())
	record.Err = f
	p := problem(record, f)
	p.Status, p.Title, p.Errors = model.Status, http.StatusText(model.Status), wrong
	return p, nil
}

// Error gives the detail. It makes a Problem an error that huma knows how to answer with.
func (p *Problem) Error() string { return p.Detail }

// GetStatus gives the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType gives the media type of problems, whatever was negotiated.
func (p *Problem) ContentType(string) string { return problemType }

// GetHeaders gives the headers that go with the problem: Retry-After in whole seconds, rounded up, and the challenge
// that a 401 must carry (RFC 9110, section 15.5.2).
func (p *Problem) GetHeaders() http.Header {
	header := http.Header{}
	if p.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	if p.Status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="chancery"`)
	}
	return header
}
