package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
	"docket/internal/testkit/readertest"
)

// tokenOf returns the token of a role in all tests. Each contains a marker that must appear nowhere.
func tokenOf(role string) string { return "planted-token-of-" + role }

const everybody = "vera:viewer:planted-token-of-viewer aude:auditor:planted-token-of-auditor olga:operator:planted-token-of-operator adam:admin:planted-token-of-admin otto:operator:planted-token-of-otto anna:admin:planted-token-of-anna"

// lines is a log with several writers.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// world is an API with all of its ports, its log and its metrics.
type world struct {
	book     *book
	store    *readerStore
	states   *readertest.States
	handler  *api.Handler
	log      *lines
	registry *prometheus.Registry
	now      time.Time
}

func newWorld(t *testing.T, change ...func(*api.Config, *api.Ports)) *world {
	t.Helper()
	w := &world{book: newBook(5), store: newStore(30), states: newStates(), log: &lines{}, registry: prometheus.NewRegistry(), now: noon}
	tokens, err := api.ParseTokens(everybody)
	if err != nil {
		t.Fatal(err)
	}
	c := api.Config{Version: "1.2.3", Lease: 15 * time.Minute, Registry: w.registry, Now: func() time.Time { return w.now }}
	p := api.Ports{Book: w.book, Trial: tries{}, Horizon: horizon{}, Decisions: w.store, States: w.states, Calendar: func(ctx context.Context) (archive.Calendar, error) {
		if w.book.err != nil {
			return archive.Calendar{}, w.book.err
		}
		return calendar(ctx)
	}, Inventory: func(context.Context) (*inventory.Inventory, error) { return stock(), w.book.err }, Prove: func(context.Context, string) error { return w.book.err }, Forget: func(context.Context, archive.Day, ledger.Actor, bool) (*archive.Forgotten, string, error) {
		return nil, "s3://archive", w.book.err
	}, ForgetLetters: func(context.Context, archive.Day, ledger.Actor, bool) (archive.LettersForgotten, string, error) {
		return archive.LettersForgotten{}, "s3://archive", w.book.err
	}, Verify: func(context.Context, api.VerifyScope) (api.Verification, error) {
		return api.Verification{Text: "all", Report: []byte(`{}`)}, w.book.err
	}, Check: func(context.Context) []api.Finding {
		return []api.Finding{{Level: "ok", What: "brokers", Detail: "3 answer"}, {Level: "fail", What: "topic decision-logs-dlq", Detail: "it is missing", Hint: "create it"}}
	}, WhereIs: func(context.Context, string) (api.Whereabouts, error) {
		return api.Whereabouts{Decisions: []api.DecisionHomes{{Record: "decision-logs/0/1", ID: "d"}}}, nil
	}}
	for _, f := range change {
		f(&c, &p)
	}
	auth := api.Auth{Tokens: tokens, Clients: []api.Client{{Name: "Carla Cert", Role: api.Operator}, {Name: "vic", Role: api.Viewer}}}
	w.handler, err = api.New(c, p, auth, zerolog.New(w.log))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// calendar has three days, of which one is archived.
func calendar(context.Context) (archive.Calendar, error) {
	day := func(text string) archive.Day {
		d, err := archive.ParseDay(text)
		if err != nil {
			panic(err)
		}
		return d
	}
	return archive.Calendar{Where: "s3://archive", Lacks: []string{"The archives could not be read."}, Shared: []archive.Held{{Day: day("2026-01-31"), Location: archive.Shared, Rows: -1}}, Days: []archive.CalendarDay{
		{Day: day("2026-02-26"), State: archive.DayArchived, Rows: 0, Counted: 7, Archived: 7, Size: 70, Formats: []string{"parquet"}, Made: noon, By: "mara"},
		{Day: day("2026-02-27"), State: archive.DayBoth, Rows: -1, Counted: -1, Archived: 9, Gaps: []string{"a file is missing"}, Unfinished: []string{"decision_logs-2026-02-27-002-3f9a2c-00000000"}},
		{Day: day("2026-02-28"), State: archive.DayHot, Rows: 12, Bytes: 120, Counted: 12, Archived: -1},
	}}, nil
}

// document is the served document.
var document = sync.OnceValues(func() ([]byte, error) {
	tokens, err := api.ParseTokens(everybody)
	if err != nil {
		return nil, err
	}
	h, err := api.New(api.Config{Lease: time.Minute, Version: "1.2.3"}, api.Ports{Book: newBook(0), Trial: tries{}, Decisions: newStore(0), States: &readertest.States{},
		Calendar: calendar, Inventory: noInventory, Prove: proveNothing, Forget: forgetNothing, ForgetLetters: forgetNoLetters, Verify: verifyNothing, Check: func(context.Context) []api.Finding { return nil }, WhereIs: func(context.Context, string) (api.Whereabouts, error) { return api.Whereabouts{}, nil }},
		api.Auth{Tokens: tokens}, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	r := httptest.NewRequest(http.MethodGet, api.DocumentPath+".json", nil)
	r.Header.Set("Authorization", "Bearer "+tokenOf("viewer"))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.Bytes(), nil
})

// served is the served document, read by another library.
var served = sync.OnceValues(func() (*openapi3.T, error) {
	text, err := document()
	if err != nil {
		return nil, err
	}
	return openapi3.NewLoader().LoadFromData(text)
})

// shapes has the schemas of the document that answers were held against, by their place in it. The library that reads the
// document compiles one for each answer, which takes longer than all else.
var shapes = struct {
	sync.Mutex
	compiler *jsonschema.Compiler
	of       map[string]*jsonschema.Schema
}{of: map[string]*jsonschema.Schema{}}

// shapeOf returns the schema at a place of the document.
func shapeOf(keys ...string) (*jsonschema.Schema, error) {
	place := "document#"
	for _, k := range keys {
		place += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(k))
	}
	shapes.Lock()
	defer shapes.Unlock()
	if s := shapes.of[place]; s != nil {
		return s, nil
	}
	if shapes.compiler == nil {
		text, err := document()
		if err != nil {
			return nil, err
		}
		all, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		shapes.compiler = jsonschema.NewCompiler()
		shapes.compiler.DefaultDraft(jsonschema.Draft2020)
		shapes.compiler.AssertFormat()
		if err := shapes.compiler.AddResource("document", all); err != nil {
			return nil, err
		}
	}
	s, err := shapes.compiler.Compile(place)
	if err != nil {
		return nil, err
	}
	shapes.of[place] = s
	return s, nil
}

// fits checks a body against the schema that the document has for it.
func fits(route *routers.Route, a answer) error {
	status := strconv.Itoa(a.code)
	response := route.Operation.Responses.Value(status)
	if response == nil {
		status, response = "default", route.Operation.Responses.Default()
	}
	if response == nil || len(response.Value.Content) == 0 {
		return nil
	}
	kind := a.header.Get("Content-Type")
	if content := response.Value.Content[kind]; content == nil {
		return fmt.Errorf("the document has no %q", kind)
	} else if content.Schema == nil || !strings.HasSuffix(kind, "json") {
		return nil
	}
	if ref := response.Ref; ref != "" {
		return fmt.Errorf("the document has the answer elsewhere, at %s", ref)
	}
	shape, err := shapeOf("paths", route.Path, strings.ToLower(route.Method), "responses", status, "content", kind, "schema")
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(a.body))
	if err != nil {
		return err
	}
	return shape.Validate(value)
}

var router = sync.OnceValues(func() (routers.Router, error) {
	doc, err := served()
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

// answer is a response.
type answer struct {
	code   int
	header http.Header
	body   string
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

// problem returns the problem in a. It must be one with a hint.
func (a answer) problem(t *testing.T) api.Problem {
	t.Helper()
	var p api.Problem
	a.into(t, &p)
	if a.header.Get("Content-Type") != "application/problem+json" || p.Status != a.code || p.Hint == "" || p.Detail == "" || p.Title == "" {
		t.Errorf("this is no problem of RFC 9457 with a hint: %v %s", a.header, a.body)
	}
	return p
}

// ask sends a request with a role's token, and checks request and response against the document.
func (w *world) ask(t *testing.T, role, method, path, body string, change ...func(*http.Request)) answer {
	t.Helper()
	r := httptest.NewRequest(method, "http://desk"+api.Prefix+path, strings.NewReader(body))
	if role != "" {
		r.Header.Set("Authorization", "Bearer "+tokenOf(role))
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(r)
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	a := answer{recorder.Code, recorder.Header(), recorder.Body.String()}
	w.hold(t, r, body, a)
	return a
}

// hold checks an exchange against the document.
func (w *world) hold(t *testing.T, r *http.Request, body string, a answer) {
	t.Helper()
	for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if a.header.Get(name) != want {
			t.Errorf("%s %s: %s is %q", r.Method, r.URL, name, a.header.Get(name))
		}
	}
	if !strings.HasPrefix(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%s %s: there is no strict policy for content: %v", r.Method, r.URL, a.header)
	}
	if i := strings.IndexFunc(a.body, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 && strings.HasSuffix(a.header.Get("Content-Type"), "json") {
		t.Errorf("%s %s: the answer holds %+q as it is", r.Method, r.URL, a.body[i:min(len(a.body), i+8)])
	}
	found, err := router()
	if err != nil {
		t.Fatal(err)
	}
	r = r.Clone(t.Context())
	r.Body = io.NopCloser(strings.NewReader(body))
	route, params, err := found.FindRoute(r)
	if err != nil {
		if a.code < 300 && !strings.HasPrefix(r.URL.Path, api.DocumentPath) {
			t.Errorf("%s %s is not in the document and gave %d", r.Method, r.URL, a.code)
		}
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, RejectWhenRequestBodyNotSpecified: true, ExcludeResponseBody: true}}
	if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil && a.code < 400 {
		t.Errorf("%s %s gave %d to a request that the document does not allow: %v", r.Method, r.URL, a.code, err)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: a.code, Header: a.header, Options: in.Options}
	if err := cmp.Or(openapi3filter.ValidateResponse(t.Context(), out.SetBodyBytes([]byte(a.body))), fits(route, a)); err != nil {
		t.Errorf("%s %s: the document does not have this answer, %d %s: %v", r.Method, r.URL, a.code, a.body, err)
	}
}

// count returns the sum of a counter over its matching labels.
func (w *world) count(t *testing.T, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			fits := f.GetName() == name
			for _, l := range m.GetLabel() {
				if want, asked := labels[l.GetName()]; asked && want != l.GetValue() {
					fits = false
				}
			}
			if fits {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
