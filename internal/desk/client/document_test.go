package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"docket/internal/desk/api"
	"docket/internal/desk/client"
	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/history/state"
)

// The document from which others generate clients. That of the desk's own types is held against a desk in package api.
var document = sync.OnceValues(func() (routers.Router, error) {
	text, err := os.ReadFile("../../../docs/openapi.yaml")
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

// judge answers as a desk that has nothing. It notes the operation of each request, and what the document says against it.
type judge struct {
	mu         sync.Mutex
	operations []string
	faults     []error
}

func (j *judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation, err := j.operation(r)
	j.mu.Lock()
	j.operations = append(j.operations, operation)
	if err != nil {
		j.faults = append(j.faults, err)
	}
	j.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(api.LevelHeader, "1")
	_ = json.NewEncoder(w).Encode(map[string]string{"name": "mara"}) // the client is gone
}

// operation is that of a request which the document allows, with no parameter that it does not name.
func (j *judge) operation(r *http.Request) (string, error) {
	router, err := document()
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.URL.Host, r.URL.Scheme = r.Host, "http"
	route, path, err := router.FindRoute(r)
	if err != nil {
		return r.Method + " " + r.URL.Path, errors.Join(errors.New(r.Method+" "+r.URL.Path), err)
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: path, Route: route, Options: &openapi3filter.Options{
		MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
	}}
	fault := openapi3filter.ValidateRequest(r.Context(), in)
	for name := range r.URL.Query() {
		if !slices.ContainsFunc(route.Operation.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.In == "query" && p.Value.Name == name }) {
			fault = errors.Join(fault, errors.New("the document has no parameter "+name))
		}
	}
	if len(body) > 0 && route.Operation.RequestBody == nil {
		fault = errors.Join(fault, errors.New("the document has no body"))
	}
	if fault != nil {
		fault = errors.Join(errors.New(route.Operation.OperationID+": "+r.URL.RawQuery+" "+string(body)), fault)
	}
	return route.Operation.OperationID, fault
}

// arguments are values for the parameters of methods, by their type: a full one, then others. Other types get their zero value.
func arguments() map[reflect.Type][]any {
	since, until := time.Date(2026, 11, 20, 9, 8, 7, 6_000, time.UTC), time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	partition := int32(2)
	id, value := "abcdef1234567890", json.RawMessage(`"a=b"`)
	return map[reflect.Type][]any{
		reflect.TypeFor[string](): {id}, reflect.TypeFor[[]string](): {[]string{strings.Repeat("a1", 32), strings.Repeat("b2", 32)}}, reflect.TypeFor[int](): {7, 1}, reflect.TypeFor[int64](): {int64(12)}, reflect.TypeFor[bool](): {true, false},
		reflect.TypeFor[[]byte](): {[]byte(`{"a":1}`), []byte{0xff, 0}}, reflect.TypeFor[time.Duration](): {15 * time.Minute}, reflect.TypeFor[time.Time](): {until},
		reflect.TypeFor[func() time.Time](): {time.Now},
		reflect.TypeFor[ledger.Filter](): {
			ledger.Filter{Fingerprint: "8d0e3f21", Kind: "data", Code: "23514", Path: "a/b", States: []ledger.State{ledger.Pending, ledger.Failed}, From: since, To: until, Topic: "decision-logs", Partition: &partition},
			ledger.Filter{States: ledger.States()}, ledger.Filter{},
		},
		reflect.TypeFor[ledger.Page]():    {ledger.Page{Limit: 5, After: "abc"}, ledger.Page{}},
		reflect.TypeFor[ledger.Actor]():   {ledger.Actor{Name: "mara", Why: "the check is widened"}, ledger.Actor{Why: "r"}},
		reflect.TypeFor[archive.Day]():    {archive.DayOf(since)},
		reflect.TypeFor[ledger.Entry]():   {ledger.Entry{Letter: ledger.Letter{ID: strings.Repeat("a", 64)}}},
		reflect.TypeFor[ledger.Version](): {ledger.VersionOf([]byte(`{"a":2}`)), ledger.VersionOf(nil), ledger.Version("")},
		reflect.TypeFor[ledger.Draft]():   {ledger.Draft{LetterID: id, Value: []byte(`{"a":1}`), Retry: true}, ledger.Draft{LetterID: id, Value: []byte{0xff}}},
		reflect.TypeFor[ledger.Job](): {
			ledger.Job{Act: ledger.Retried, Filter: ledger.Filter{Code: "23514", States: []ledger.State{ledger.Failed}}, Rate: 50, Limit: 100, Operator: "mara", Reason: "r"},
			ledger.Job{Act: ledger.Closed, Filter: ledger.Filter{From: since}, Limit: 10, Reason: "r"},
		},
		reflect.TypeFor[ledger.AuditQuery](): {
			ledger.AuditQuery{By: "rule 7 of mara", Acts: []ledger.Act{ledger.Closed, ledger.Retried}, Since: since, Until: until, Before: 9, Limit: 5},
			ledger.AuditQuery{Groups: true, Fingerprint: id, Acts: []ledger.Act{"rule_added"}, After: 3, Limit: 500}, ledger.AuditQuery{},
		},
		reflect.TypeFor[ledger.Rule](): {
			ledger.Rule{Fingerprint: id, Topic: "decision-logs", Act: ledger.Retried, After: time.Minute, Rate: 5, Most: 100, Failures: 3, EndsAt: until, Why: "r"},
			ledger.Rule{Fingerprint: id, Act: ledger.Closed, Most: 10, EndsAt: until, Why: "r"}, ledger.Rule{Fingerprint: id, Act: ledger.Snoozed, EndsAt: until, Why: "r"},
		},
		reflect.TypeFor[reader.Filter](): {
			reader.Filter{
				Since: since, Until: until, Paths: []string{"authz/*"}, Services: []string{"checkout"}, Verdicts: []reader.Verdict{reader.Denied, reader.Error}, RequestedBy: []string{"10.0.0.7"},
				Labels: map[string]string{"app": "a=b"}, Matches: []reader.Match{{In: "input", Pointer: "/user", Value: value}, {In: "result", Pointer: "/reasons"}},
			},
			reader.Filter{},
		},
		reflect.TypeFor[reader.Page]():       {reader.Page{Limit: 5, After: "abc", Oldest: true, Payload: true}, reader.Page{Limit: 1}},
		reflect.TypeFor[reader.Tail]():       {reader.Tail{Mark: "place"}, reader.Tail{}},
		reflect.TypeFor[reader.StatsQuery](): {reader.StatsQuery{Since: since, Until: until, Step: 5 * time.Minute, Paths: []string{"a"}, Services: []string{"b"}, ByPath: true}, reader.StatsQuery{Since: since, Step: 24 * time.Hour}},
		reflect.TypeFor[reader.Decision]():   {reader.Decision{Row: reader.Row{ID: "a/b c?d", Time: since}}},
		reflect.TypeFor[reader.Question]():   {reader.Question{Neighbours: 3, SameInput: true}, reader.Question{}},
		reflect.TypeFor[state.FlipQuery](): {
			state.FlipQuery{Subject: "alice", Paths: []string{"a", "b/*"}, Since: since, Limit: 5, Backward: true, Before: 9}, state.FlipQuery{Limit: 5, After: 3},
			state.FlipQuery{Limit: 1, Places: state.Places{"a": 7, "b": state.FromNow}},
		},
	}
}

// mostVariants is how many values the type with the most of them has.
const mostVariants = 3

// callAll calls each exported method of v with each variant of the arguments, and returns those that asked nothing and said
// nothing of it.
func callAll(t *testing.T, j *judge, v any) (silent []string) {
	t.Helper()
	values := arguments()
	of := reflect.ValueOf(v)
	for m, method := range of.Methods() {
		before, refused := len(j.operations), false
		for variant := range mostVariants {
			in := []reflect.Value{}
			for p := range method.Type().Ins() {
				switch all := values[p]; {
				case p == reflect.TypeFor[context.Context]():
					in = append(in, reflect.ValueOf(t.Context()))
				case len(all) > 0:
					in = append(in, reflect.ValueOf(all[min(variant, len(all)-1)]).Convert(p))
				default:
					in = append(in, reflect.Zero(p))
				}
			}
			for _, out := range method.Call(in) {
				if err, is := out.Interface().(error); is && errors.Is(err, client.ErrOnDatabase) {
					refused = true
				}
			}
		}
		if len(j.operations) == before && !refused {
			silent = append(silent, of.Type().Name()+"."+m.Name)
		}
	}
	return silent
}

// Each request of the client is one that the document allows. So a client that others generate from it can ask the same.
func TestRequests_AsDocumented(t *testing.T) {
	t.Parallel()
	j := &judge{}
	c := served(t, j.ServeHTTP)
	c.Complete(time.Now).Begin(t.Context(), complete.Range{Since: time.Now().Add(-time.Hour), Until: time.Now(), Paths: []string{"a"}, Services: []string{"b"}})
	var silent []string
	for _, v := range []any{c.Book(), c.Decisions(), c.States(), c.Trial(), c} {
		silent = append(silent, callAll(t, j, v)...)
	}
	for _, err := range j.faults {
		t.Error(err)
	}
	// The makers of parts, and what is known without a question.
	slices.Sort(silent)
	known := []string{".Book", ".Close", ".Complete", ".Decisions", ".Server", ".States", ".Trial", "Decisions.Columns", "Decisions.Edits"}
	for _, name := range silent {
		if !slices.Contains(known, name) {
			t.Errorf("%s asked nothing: give it arguments here", name)
		}
	}
	slices.Sort(j.operations)
	used := slices.Compact(j.operations)
	for _, want := range []string{"search-decisions", "find-rows", "find-homes", "follow-decisions", "count-decisions", "explain-decision", "show-states", "list-flips", "list-dead-letters", "show-dead-letter", "show-payload",
		"show-history", "list-groups", "report", "retry-dead-letter", "edit-payload", "touch-payload", "propose-edit", "approve-edit", "reject-edit", "list-proposals", "show-proposal", "create-job", "list-jobs", "show-job",
		"stop-job", "resume-job", "try-dead-letters", "list-desks", "list-surplus", "order-surplus", "where-is", "whoami", "show-completeness", "list-archives", "forget-day", "verify"} {
		if !slices.Contains(used, want) {
			t.Errorf("%s is not asked; the client asks %v", want, used)
		}
	}
}
