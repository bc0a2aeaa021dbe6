// Package rest is how a room declares its HTTP routes: what a route takes and answers, which permission it needs, and
// how a fault becomes an answer.
//
// A route is declared once, and the description (OpenAPI 3.1), the permission check, the bounds on the body, strict
// JSON and the translation of errors follow from the declaration. Route serves typed JSON through huma; Raw serves
// bytes (DER, PEM, streams) and whatever is too hot for reflection. A route that names no permission stops the start.
// Errors leave as RFC 9457 problems: of a fault its public text, of anything else the request id alone. The room knows
// no domain and no listener; it asks the context for the caller and never finds out who that is.
package rest

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"chancery/internal/base/who"
)

// An API is a table of routes. It is filled by Route and Raw at start, from one goroutine, and does not change once
// Handler was called.
type API struct {
	huma    huma.API
	adapter *adapter
	routes  []route
	wrong   []error // what Handler will refuse the table for
}

const descriptionPath = "/api/v1/openapi"

// A route is a declared operation with the handler that answers it.
type route struct {
	Operation
	handler http.Handler
}

// New makes an API that describes itself under the given title and version, at /api/v1/openapi.json and .yaml.
func New(title, version string) *API {
	a := &API{adapter: &adapter{}}
	format := huma.Format{Marshal: writeJSON, Unmarshal: parseJSON}
	a.huma = huma.NewAPI(huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info:    &huma.Info{Title: title, Version: version},
			Components: &huma.Components{SecuritySchemes: map[string]*huma.SecurityScheme{
				"token":       {Type: "http", Scheme: "bearer", Description: "An API token, as `Authorization: Bearer …`."},
				"certificate": {Type: "mutualTLS", Description: "A client certificate, on the mTLS listener."},
			}},
		},
		Formats:       map[string]huma.Format{"application/json": format, "json": format},
		DefaultFormat: "application/json",
		// huma makes its own error model; here it becomes our problem, so that huma's global constructors stay untouched.
		Transformers: []huma.Transformer{translateModel},
	}, a.adapter)
	a.describeItself()
	return a
}

// Routes lists what was declared, in order of declaration.
func (a *API) Routes() []Operation {
	table := make([]Operation, len(a.routes))
	for i, r := range a.routes {
		table[i] = r.Operation
	}
	return table
}

// Handler gives the handler of all routes. Around, if not nil, wraps each route's handler and learns the route that it
// wraps; it runs after the route was found and before the permission is checked. The error names every route without
// a permission, with an unknown one, declared twice, or in collision with another.
func (a *API) Handler(around func(Operation, http.Handler) http.Handler) (http.Handler, error) {
	mux := http.NewServeMux()
	var tails []tail
	wrong := slices.Clone(a.wrong)
	for _, r := range a.routes {
		h := r.handler
		if around != nil {
			h = around(r.Operation, h)
		}
		if err := register(mux, r.Method+" "+r.Path, h); err != nil {
			wrong = append(wrong, err)
		}
		if t, ok := tailOf(r.Operation, h); ok {
			tails = append(tails, t)
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("routes: %w", errors.Join(wrong...))
	}
	return verbatim(tails, explainUnmatched(mux)), nil
}

// add puts a route into the table and notes what is wrong with it.
func (a *API) add(op Operation, h http.Handler) {
	name := op.Method + " " + op.Path
	switch {
	case op.Permission == "":
		a.wrong = append(a.wrong, fmt.Errorf("%s names no permission", name))
	case op.Permission != who.Public && !slices.Contains(who.Permissions(), op.Permission):
		a.wrong = append(a.wrong, fmt.Errorf("%s names the unknown permission %s", name, op.Permission))
	}
	if op.Or != "" && !slices.Contains(who.Permissions(), op.Or) {
		a.wrong = append(a.wrong, fmt.Errorf("%s names the unknown permission %s", name, op.Or))
	}
	a.routes = append(a.routes, route{op, h})
}

// describeItself declares the two routes that serve the description. It is built at the first question.
func (a *API) describeItself() {
	asJSON := sync.OnceValues(func() ([]byte, error) { return a.description().MarshalJSON() })
	asYAML := sync.OnceValues(func() ([]byte, error) { return a.description().YAML() })
	for _, d := range []struct {
		suffix, media string
		build         func() ([]byte, error)
	}{
		{".json", "application/openapi+json", asJSON},
		{".yaml", "application/openapi+yaml", asYAML},
	} {
		Raw(a, Operation{
			Method: http.MethodGet, Path: descriptionPath + d.suffix, Permission: who.Public,
			Summary: "This description", Tags: []string{"description"},
		}, Media{Out: map[string]any{d.media: nil}}, func(*Request) (*Answer, error) {
			body, err := d.build()
			if err != nil {
				return nil, fmt.Errorf("building the description: %w", err)
			}
			return &Answer{Type: d.media, Body: body}, nil
		})
	}
}

// description gives the OpenAPI document without the schemas of huma's own error model, which we never send.
func (a *API) description() *huma.OpenAPI {
	doc := a.huma.OpenAPI()
	delete(doc.Components.Schemas.Map(), "ErrorModel")
	delete(doc.Components.Schemas.Map(), "ErrorDetail")
	return doc
}

// schema gives the schema of v's type, registered under its name; nil stands for bytes.
func (a *API) schema(v any) *huma.Schema {
	if v == nil {
		return &huma.Schema{Type: huma.TypeString, Format: "binary"}
	}
	t := reflect.TypeOf(v)
	return a.huma.OpenAPI().Components.Schemas.Schema(t, true, t.Name())
}

// operationID makes a stable name of an operation from method and path: POST /api/v1/agents/{id}/stop gives
// post-agents-id-stop.
func operationID(method, path string) string {
	path = strings.TrimPrefix(path, "/api/v1")
	words := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/{}.$", r) })
	return strings.Join(append([]string{strings.ToLower(method)}, words...), "-")
}
