package rest

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"chancery/internal/base/fault"
)

// The media types of certificates and what surrounds them.
const (
	TypeJSON         = "application/json"
	TypePEM          = "application/x-pem-file"
	TypeCSR          = "application/pkcs10"                // DER (RFC 5967)
	TypeCertificate  = "application/pkix-cert"             // DER (RFC 2585)
	TypeCRL          = "application/pkix-crl"              // DER (RFC 2585)
	TypeOCSPRequest  = "application/ocsp-request"          // DER (RFC 6960, appendix A)
	TypeOCSPResponse = "application/ocsp-response"         // DER (RFC 6960, appendix A)
	TypeChain        = "application/pem-certificate-chain" // RFC 8555, section 9.1
)

// Media describes the bodies of a raw route, by media type. A value gives the type of a JSON body; nil stands for bytes.
// A route with no In takes no body.
type Media struct {
	In, Out map[string]any
	// First is the media type of a body that names none, and of the answer to a caller who accepts anything. It is
	// needed with more than one type; JSON stands in where it is listed.
	First string
	// Query lists the query parameters that the route reads, each with what it means.
	Query map[string]string
	// Idempotent says that the route honours an Idempotency-Key.
	Idempotent bool
}

// A Request is what a raw route sees: the body, read and bounded, and the parts of the head that it asks for.
// Body belongs to the handler.
type Request struct {
	*http.Request        // its Body has been read
	Type          string // media type of the body, one of Media.In
	Content       []byte
}

// Decode reads the body as strict JSON into v, as Route does. The fault is Invalid, code request_invalid.
func (r *Request) Decode(v any) error {
	if err := parseJSON(r.Content, v); err != nil {
		return fault.New(fault.Invalid, CodeInvalid, "the body is not what this route takes: %v", err)
	}
	return nil
}

// IdempotencyKey gives the Idempotency-Key of the request, or "" without one. The fault is Invalid,
// code request_invalid.
func (r *Request) IdempotencyKey() (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" || len(key) <= maxIdempotencyKey && visible(key) {
		return key, nil
	}
	return "", fault.New(fault.Invalid, CodeInvalid, "an Idempotency-Key is 1 to %d visible ASCII characters", maxIdempotencyKey)
}

// Wants chooses the answer's media type: the first of offered that the Accept header names, or the first of all when
// the header is missing, accepts anything, or names none of them (RFC 9110, section 12.5.1, lets us answer anyway).
// Weights are not read: our clients name one type.
func (r *Request) Wants(offered ...string) string {
	accept := r.Header.Get("Accept")
	for _, media := range offered {
		if strings.Contains(accept, media) {
			return media
		}
	}
	return offered[0]
}

// An Answer is what a raw route answers: JSON of a value, or Body, or a Stream, in this order of precedence.
type Answer struct {
	Status int    // 0 means the operation's
	Type   string // media type; not needed with JSON
	JSON   any
	Body   []byte
	Stream func(io.Writer) error // written as it comes; an error cuts the connection, so that nobody takes half for all
	Header http.Header
}

// Raw declares a route that reads and answers bytes. It is described in OpenAPI like every other and has the same
// permission check, bounds and errors, without huma's reflection and validation.
func Raw(a *API, op Operation, media Media, handle func(*Request) (*Answer, error)) {
	a.describeRaw(op, media)
	status := cmp.Or(op.Status, http.StatusOK)
	a.add(op, guarded(op, media.accept(), func(w http.ResponseWriter, r *http.Request, body content) {
		RecordOf(r.Context()).parsed()
		answer, err := handle(&Request{Request: r, Type: body.media, Content: body.bytes})
		if err == nil {
			err = answer.write(w, status, RecordOf(r.Context()))
		}
		if err != nil {
			Refuse(w, r, err)
		}
	}))
}

// accept lists the media types of bodies, the default first.
func (m Media) accept() []string {
	first := cmp.Or(m.First, TypeJSON)
	return slices.SortedFunc(maps.Keys(m.In), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a, first), rank(b, first)), cmp.Compare(a, b))
	})
}

func rank(media, first string) int {
	if media == first {
		return 0
	}
	return 1
}

// write sends the answer. An error means that nothing has been sent yet; what goes wrong later is noted in the record
// and panics with http.ErrAbortHandler, which cuts the connection.
func (a *Answer) write(w http.ResponseWriter, status int, record *Record) error {
	if a.JSON != nil {
		body, err := formatJSON(a.JSON)
		if err != nil {
			return err
		}
		a.Type, a.Body = cmp.Or(a.Type, TypeJSON), body
	}
	header := w.Header()
	for name, values := range a.Header {
		header[name] = values
	}
	if a.Type != "" {
		header.Set("Content-Type", a.Type)
	}
	if a.Stream != nil && a.JSON == nil && a.Body == nil {
		w.WriteHeader(cmp.Or(a.Status, status))
		if err := a.Stream(w); err != nil {
			record.Err = fmt.Errorf("streaming the answer: %w", err)
			panic(http.ErrAbortHandler)
		}
		return nil
	}
	header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(cmp.Or(a.Status, status))
	_, _ = w.Write(a.Body) // a caller who hung up is no fault of ours, and the answer's work is done
	return nil
}

func (a *API) describeRaw(op Operation, media Media) {
	described := a.describe(op)
	described.Parameters = media.parameters(op.Path)
	if len(media.In) > 0 {
		described.RequestBody = &huma.RequestBody{Required: true, Content: a.contents(media.In)}
	}
	status := cmp.Or(op.Status, http.StatusOK)
	described.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: a.contents(media.Out)}
	a.huma.OpenAPI().AddOperation(&described)
}

// parameters describes what a raw route reads from the path, the query and the head.
func (m Media) parameters(path string) []*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	var described []*huma.Param
	for _, name := range pathNames(path) {
		described = append(described, &huma.Param{Name: name, In: "path", Required: true, Schema: text})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Query)) {
		described = append(described, &huma.Param{Name: name, In: "query", Description: m.Query[name], Schema: text})
	}
	if m.Idempotent {
		described = append(described, &huma.Param{Name: "Idempotency-Key", In: "header", Schema: text,
			Description: "Makes a repeated request give the first one's result"})
	}
	return described
}

func (a *API) contents(media map[string]any) map[string]*huma.MediaType {
	described := map[string]*huma.MediaType{}
	for name, v := range media {
		described[name] = &huma.MediaType{Schema: a.schema(v)}
	}
	return described
}

// pathNames lists the names in braces of a ServeMux path.
func pathNames(path string) []string {
	var names []string
	for segment := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok && name != "$}" {
			names = append(names, strings.TrimSuffix(strings.TrimSuffix(name, "}"), "..."))
		}
	}
	return names
}
