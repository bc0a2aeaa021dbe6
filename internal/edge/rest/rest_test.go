package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"chancery/api"
	"chancery/internal/base/fault"
	"chancery/internal/base/who"
)

type order struct {
	Name  string   `json:"name" maxLength:"20"`
	Count int      `json:"count,omitzero" minimum:"0"`
	Tags  []string `json:"tags,omitzero"`
}

type orderInput struct {
	ID   string `path:"id"`
	Key  string `header:"Idempotency-Key"`
	Body order
}

type orderOutput struct{ Body order }

type listInput struct{ Paging }

type listOutput struct{ Body api.Page[string] }

// shop declares one route of each sort.
func shop(t *testing.T) *API {
	t.Helper()
	a := New("Shop", "1")
	Route(a, Operation{Method: "POST", Path: "/api/v1/orders/{id}", Permission: who.CertificateIssue, Summary: "Order", Status: 201, MaxBody: 500},
		func(_ context.Context, in *orderInput) (*orderOutput, error) {
			if in.Body.Name == "forbidden" {
				return nil, fault.New(fault.Unavailable, "sold_out", "there is none left").WithHint("come back").After(1500 * time.Millisecond)
			}
			if in.Body.Name == "secret" {
				return nil, fault.New(fault.Internal, "", "the safe is open").Because(errors.New("disk on fire"))
			}
			in.Body.Tags = append(in.Body.Tags, in.ID, in.Key)
			return &orderOutput{in.Body}, nil
		})
	Route(a, Operation{Method: "GET", Path: "/api/v1/orders", Permission: who.CertificateRead, Summary: "List"},
		func(_ context.Context, in *listInput) (*listOutput, error) {
			after, err := in.After()
			if err != nil {
				return nil, err
			}
			return &listOutput{NewPage([]string{after}, strings.Repeat("x", in.Limit%7))}, nil
		})
	Raw(a, Operation{Method: "POST", Path: "/raw/{rest...}", Permission: who.Public, Summary: "Raw", MaxBody: 500},
		Media{In: map[string]any{TypeJSON: order{}, TypeCSR: nil}, Out: map[string]any{TypeJSON: order{}, TypeCertificate: nil}},
		func(r *Request) (*Answer, error) {
			if r.Type == TypeCSR {
				return &Answer{Type: TypeCertificate, Body: append([]byte(r.PathValue("rest")+":"), r.Content...)}, nil
			}
			var o order
			if err := r.Decode(&o); err != nil {
				return nil, err
			}
			return &Answer{JSON: o, Status: 202}, nil
		})
	return a
}

func ask(t *testing.T, h http.Handler, c who.Caller, method, path, media, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	ctx := WithRecord(who.With(r.Context(), c), &Record{ID: "req_1"})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(ctx))
	return w
}

func handler(t *testing.T, a *API) http.Handler {
	t.Helper()
	h, err := a.Handler(nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

var clerk = who.Caller{Kind: who.Person, Name: "clerk", Permissions: who.Set{who.CertificateIssue, who.CertificateRead}}

func TestAnswers(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(t))
	deep := `{"name":"a","tags":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`
	for _, c := range []struct {
		name, method, path, media, body string
		caller                          who.Caller
		status                          int
		want                            string // in the body
	}{
		{"typed", "POST", "/api/v1/orders/7", TypeJSON, `{"name":"pen"}`, clerk, 201, `{"name":"pen","tags":["7",""]}`},
		{"charset", "POST", "/api/v1/orders/7", TypeJSON + "; charset=utf-8", `{"name":"pen"}`, clerk, 201, `"pen"`},
		{"no media type", "POST", "/api/v1/orders/7", "", `{"name":"pen"}`, clerk, 201, `"pen"`},
		{"list", "GET", "/api/v1/orders?limit=3&cursor=YWI", "", "", clerk, 200, `{"items":["ab"],"next":"eHh4"}`},
		{"end of list", "GET", "/api/v1/orders?limit=7", "", "", clerk, 200, `{"items":[""]}`},
		{"default limit", "GET", "/api/v1/orders", "", "", clerk, 200, `"next":"eHg"`},
		{"raw bytes", "POST", "/raw/a/b", TypeCSR, "\x30\x00", who.Caller{}, 200, "a/b:\x30\x00"},
		{"tail as it stands", "POST", "/raw/a//b+c/", TypeCSR, "", who.Caller{}, 200, "a//b+c/:"},
		{"escaped tail", "POST", "/raw/a%2F%2Fb", TypeCSR, "", who.Caller{}, 200, "a//b:"},
		{"raw json", "POST", "/raw/a", TypeJSON, `{"name":"pen"}`, who.Caller{}, 202, `{"name":"pen"}`},

		{"nobody", "POST", "/api/v1/orders/7", TypeJSON, `{`, who.Caller{}, 401, `"credentials_required"`},
		{"without right", "POST", "/api/v1/orders/7", TypeJSON, `{`, who.Caller{Kind: who.Person, Name: "guest"}, 403, `"permission_missing"`},
		{"fault", "POST", "/api/v1/orders/7", TypeJSON, `{"name":"forbidden"}`, clerk, 503, `"code":"sold_out","hint":"come back","request_id":"req_1"`},
		{"unmarked", "POST", "/api/v1/orders/7", TypeJSON, `{"name":"secret"}`, clerk, 500, `{"type":"about:blank","title":"Internal Server Error","status":500,"request_id":"req_1"}`},
		{"not json", "POST", "/api/v1/orders/7", TypeJSON, `{"name":`, clerk, 400, CodeInvalid},
		{"empty", "POST", "/api/v1/orders/7", TypeJSON, ``, clerk, 400, CodeInvalid},
		{"second value", "POST", "/api/v1/orders/7", TypeJSON, `{"name":"a"}{}`, clerk, 400, CodeInvalid},
		{"unknown name", "POST", "/api/v1/orders/7", TypeJSON, `{"name":"a","size":1}`, clerk, 422, `body.size`},
		{"doubled name", "POST", "/api/v1/orders/7", TypeJSON, `{"name":"a","name":"b"}`, clerk, 400, `/name stands twice`},
		{"wrong case", "POST", "/api/v1/orders/7", TypeJSON, `{"Name":"a"}`, clerk, 422, `/Name is not known`},
		{"wrong case raw", "POST", "/raw/a", TypeJSON, `{"Name":"a"}`, who.Caller{}, 400, `/Name is not known`},
		{"not UTF-8", "POST", "/api/v1/orders/7", TypeJSON, "{\"name\":\"\xff\"}", clerk, 400, CodeInvalid},
		{"deep", "POST", "/api/v1/orders/7", TypeJSON, deep, clerk, 400, `deeper than 32`},
		{"wrong kind", "POST", "/raw/a", TypeJSON, `{"name":7}`, who.Caller{}, 400, `a number does not fit at \"/name\"`},
		{"too long a name", "POST", "/api/v1/orders/7", TypeJSON, `{"name":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`, clerk, 422, `"where":"body.name"`},
		{"too large", "POST", "/api/v1/orders/7", TypeJSON, strings.Repeat(" ", 501), clerk, 413, `"body_too_large"`},
		{"wrong media type", "POST", "/api/v1/orders/7", "text/plain", `{}`, clerk, 415, `send application/json`},
		{"wrong media type raw", "POST", "/raw/a", "text/plain", `{}`, who.Caller{}, 415, `send application/json or application/pkcs10`},
		{"limit", "GET", "/api/v1/orders?limit=1001", "", "", clerk, 422, `query.limit`},
		{"unknown parameter", "GET", "/api/v1/orders?page=1", "", "", clerk, 422, `query.page`},
		{"cursor", "GET", "/api/v1/orders?cursor=%21", "", "", clerk, 400, `"cursor_invalid"`},
		{"method", "DELETE", "/api/v1/orders/7", "", "", clerk, 405, `"method_not_allowed"`},
		{"path", "GET", "/api/v1/nothing", "", "", clerk, 404, `"route_unknown"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := ask(t, h, c.caller, c.method, c.path, c.media, c.body)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, w.Code, w.Body, c.status, c.want)
			}
			if got := w.Header().Get("Content-Type"); (w.Code >= 400) != (got == problemType) {
				t.Errorf("status %d came as %s", w.Code, got)
			}
		})
	}
}

func TestProblemNamesHeaders(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(t))
	w := ask(t, h, clerk, "POST", "/api/v1/orders/7", TypeJSON, `{"name":"forbidden"}`)
	if got := w.Header().Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After of 1.5 s = %q, want 2", got)
	}
	w = ask(t, h, who.Caller{}, "GET", "/api/v1/orders", "", "")
	if got := w.Header().Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") {
		t.Errorf("a 401 challenges with %q", got)
	}
	w = ask(t, h, clerk, "DELETE", "/api/v1/orders", "", "")
	if got := w.Header().Get("Allow"); got != "GET, HEAD" {
		t.Errorf("Allow = %q, want GET, HEAD", got)
	}
}

func TestValidationEchoesNoValue(t *testing.T) {
	t.Parallel()
	w := ask(t, handler(t, shop(t)), clerk, "POST", "/api/v1/orders/7", TypeJSON, `{"name":"hunter2-hunter2-hunter2","count":"hunter2"`)
	if strings.Contains(w.Body.String(), "hunter2") {
		t.Errorf("the problem repeats what was sent: %s", w.Body)
	}
}

func TestRecordKeepsTheChain(t *testing.T) {
	t.Parallel()
	record := &Record{}
	r := httptest.NewRequest("GET", "/", nil)
	Refuse(httptest.NewRecorder(), r.WithContext(WithRecord(r.Context(), record)), io.ErrUnexpectedEOF)
	if !errors.Is(record.Err, io.ErrUnexpectedEOF) {
		t.Errorf("the record holds %v", record.Err)
	}
}

func TestHandlerRefusesABadTable(t *testing.T) {
	t.Parallel()
	a := New("Shop", "1")
	handle := func(*Request) (*Answer, error) { return &Answer{}, nil }
	Raw(a, Operation{Method: "GET", Path: "/open"}, Media{}, handle)
	Raw(a, Operation{Method: "GET", Path: "/odd", Permission: "cake:eat"}, Media{}, handle)
	Raw(a, Operation{Method: "GET", Path: "/a/{x}", Permission: who.Public}, Media{}, handle)
	Raw(a, Operation{Method: "PUT", Path: "/a/{", Permission: who.Public}, Media{}, handle)
	_, err := a.Handler(nil)
	for _, want := range []string{"GET /open names no permission", "unknown permission cake:eat", "PUT /a/{"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Handler: %v, want it to name %q", err, want)
		}
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	h := handler(t, shop(t))
	w := ask(t, h, who.Caller{}, "GET", "/api/v1/openapi.json", "", "")
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			Permission string `json:"x-permission"`
			Security   []map[string][]string
			Request    struct{ Content map[string]any } `json:"requestBody"`
			Responses  map[string]any
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	post := doc.Paths["/api/v1/orders/{id}"]["post"]
	if doc.OpenAPI != "3.1.0" || post.Permission != string(who.CertificateIssue) || len(post.Security) != 2 || post.Responses["201"] == nil || post.Responses["default"] == nil {
		t.Errorf("the typed route is described as %+v", post)
	}
	raw := doc.Paths["/raw/{rest}"]["post"]
	if raw.Permission != string(who.Public) || raw.Request.Content[TypeCSR] == nil || raw.Request.Content[TypeJSON] == nil {
		t.Errorf("the raw route is described as %+v", raw)
	}
	if doc.Components.Schemas["ErrorModel"] != nil || doc.Components.Schemas["Problem"] == nil || doc.Components.Schemas["Order"] == nil {
		t.Errorf("the schemas are %v", doc.Components.Schemas)
	}
	y := ask(t, h, who.Caller{}, "GET", "/api/v1/openapi.yaml", "", "")
	if y.Code != 200 || !strings.Contains(y.Body.String(), "openapi: 3.1.0") {
		t.Errorf("the YAML form: %d %.80s", y.Code, y.Body)
	}
}

func TestAroundSeesTheRouteBeforeThePermission(t *testing.T) {
	t.Parallel()
	var seen []string
	h, err := shop(t).Handler(func(op Operation, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, op.Method+" "+op.Path)
			next.ServeHTTP(w, r)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, h, who.Caller{}, "POST", "/api/v1/orders/1", TypeJSON, "")
	ask(t, h, who.Caller{}, "POST", "/nowhere", TypeJSON, "")
	if diff := cmp.Diff([]string{"POST /api/v1/orders/{id}"}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestStreamThatBreaksCutsTheConnection(t *testing.T) {
	t.Parallel()
	a := New("Shop", "1")
	Raw(a, Operation{Method: "GET", Path: "/backup", Permission: who.Public}, Media{}, func(*Request) (*Answer, error) {
		return &Answer{Type: "application/octet-stream", Stream: func(w io.Writer) error {
			io.WriteString(w, "half")
			return io.ErrUnexpectedEOF
		}}, nil
	})
	routes, records := handler(t, a), make(chan *Record, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		record := &Record{}
		defer func() { records <- record }()
		routes.ServeHTTP(w, r.WithContext(WithRecord(r.Context(), record)))
	}))
	defer server.Close()
	if response, err := http.Get(server.URL + "/backup"); err == nil { // else it broke before the head: as good
		defer response.Body.Close()
		if body, err := io.ReadAll(response.Body); err == nil {
			t.Errorf("half an answer passed for a whole one: %q", body)
		}
	}
	if record := <-records; !errors.Is(record.Err, io.ErrUnexpectedEOF) {
		t.Errorf("the log would say %v, not what broke the stream", record.Err)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	for key, ok := range map[string]bool{"": true, "a": true, strings.Repeat("k", 64): true, strings.Repeat("k", 65): false, "a b": false, "é": false} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Idempotency-Key", key)
		if _, err := (&Request{Request: r}).IdempotencyKey(); (err == nil) != ok {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	f.Add([]byte(`{"name":"a","count":1,"tags":["x"]}`))
	f.Add([]byte(`{"name":"a","name":"b"}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var o order
		if err := parseJSON(data, &o); err != nil {
			return
		}
		again, err := formatJSON(o)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if err := parseJSON(again, &order{}); err != nil {
			t.Errorf("what was written cannot be read: %s: %v", again, err)
		}
	})
}
