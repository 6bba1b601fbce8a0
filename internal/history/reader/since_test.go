package reader_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/history/reader"
	"docket/internal/record/subject"
	"docket/internal/testkit/readertest"
)

// day is a store with decisions a minute apart, with the ids d-0 and so on.
func day(t *testing.T, rests ...string) *readertest.Store {
	t.Helper()
	s := &readertest.Store{}
	for i, rest := range rests {
		at := time.Date(2026, 11, 21, 10, i, 0, 0, time.UTC).Format(time.RFC3339)
		if err := s.AddRaw(fmt.Appendf(nil, `{"decision_id":"d-%d","timestamp":%q,"req_id":%d,%s}`, i, at, i, rest)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func ask(t *testing.T, s *readertest.Store, id string, q reader.Question) reader.Explanation {
	t.Helper()
	found, err := s.ByID(t.Context(), id)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v", id, err)
	}
	x, err := reader.Why(t.Context(), s, found[0], q)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

const (
	alice = `"path":"p/allow","requested_by":"10.0.0.7:%d","input":{"user":"alice","n":%d},"bundles":{"authz":{"revision":"r%d"}},"labels":{"version":"1.%d"},"result":%s`
	byIn  = "input:/user"
)

func spec(t *testing.T, text string) subject.Spec {
	t.Helper()
	s, err := subject.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhy_SinceWhen(t *testing.T) {
	t.Parallel()
	other := strings.ReplaceAll(alice, "alice", "bob")
	s := day(t,
		fmt.Sprintf(alice, 1, 7, 1, 1, "true"),                                           // d-0
		fmt.Sprintf(alice, 2, 8, 1, 1, "true"),                                           // d-1: the last that was allowed
		fmt.Sprintf(other, 2, 8, 2, 1, "true"),                                           // d-2: of another subject
		fmt.Sprintf(alice, 3, 7, 2, 1, "false"),                                          // d-3: the turn
		strings.Replace(fmt.Sprintf(alice, 4, 7, 2, 1, "true"), "p/allow", "q/allow", 1), // d-4: of another path
		fmt.Sprintf(alice, 5, 7, 2, 2, "false"),                                          // d-5: the explained one
		fmt.Sprintf(alice, 6, 7, 3, 2, "true"),                                           // d-6
		fmt.Sprintf(alice, 6, 9, 3, 2, "true"),                                           // d-7
	)
	// Another rule of the same package is another path.
	if err := s.AddRaw([]byte(`{"decision_id":"beside","timestamp":"2026-11-21T10:04:30Z",` + strings.Replace(fmt.Sprintf(alice, 4, 7, 2, 1, "true"), "p/allow", "p/other", 1) + "}")); err != nil {
		t.Fatal(err)
	}
	// Denied before it was allowed, so this is not the turn.
	if err := s.AddRaw([]byte(`{"decision_id":"early","timestamp":"2026-11-21T09:00:00Z",` + fmt.Sprintf(alice, 1, 7, 0, 1, "false") + "}")); err != nil {
		t.Fatal(err)
	}
	x := ask(t, s, "d-5", reader.Question{Subject: spec(t, byIn), Neighbours: 1, SameInput: true})
	if x.Verdict != reader.Denied || x.Since == nil || x.Since.Otherwise == nil || x.Since.Otherwise.DecisionID != "d-1" || x.Since.FirstID != "d-3" {
		t.Fatalf("%+v", x.Since)
	}
	for name, c := range map[string][2]string{
		"bundles": {told(x.Since.Bundles), `changed /bundles/authz/revision "r1">"r2"`},
		"version": {told(x.Since.OPAVersion), `changed /labels/version "1.1">"1.2"`},
		"input":   {told(x.Since.Input), "changed /input/n 8>7"},
		"result":  {told(x.Since.Result), "changed /result true>false"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %s", name, c[0])
		}
	}
	if x.Since.SameInput == nil || x.Since.SameInput.DecisionID != "d-0" {
		t.Errorf("same input: %+v", x.Since.SameInput)
	}
	if len(x.Before) != 1 || x.Before[0].DecisionID != "d-3" || len(x.After) != 1 || x.After[0].DecisionID != "d-6" {
		t.Errorf("before %+v, after %+v", x.Before, x.After)
	}
	if n := x.After[0]; n.Verdict != reader.Allowed || told(reader.Differences{Changes: n.Changes}) != `changed /bundles/authz/revision "r2">"r3"; changed /result false>true` {
		t.Errorf("%+v", n)
	}
}

// TestWhy_RevisionsOfTheTurn: the bundles at the turn may differ from those of the decision.
func TestWhy_RevisionsOfTheTurn(t *testing.T) {
	t.Parallel()
	s := day(t, fmt.Sprintf(alice, 1, 7, 1, 1, "true"), fmt.Sprintf(alice, 2, 7, 2, 1, "false"), fmt.Sprintf(alice, 3, 7, 3, 1, "false"))
	x := ask(t, s, "d-2", reader.Question{Subject: spec(t, byIn)})
	if o, first, now := reader.Revision(x.Since.Otherwise.Bundles), reader.Revision(x.Since.FirstBundles), reader.Revision(x.Bundles); o != "authz@r1" || first != "authz@r2" || now != "authz@r3" {
		t.Errorf("otherwise in %s, first in %s, now in %s", o, first, now)
	}
	if x = ask(t, s, "d-1", reader.Question{Subject: spec(t, byIn)}); reader.Revision(x.Since.FirstBundles) != "authz@r2" {
		t.Errorf("of itself: %+v", x.Since.FirstBundles)
	}
}

// TestWhy_ErrorIsAChange: an error is beside the result, and explains its absence.
func TestWhy_ErrorIsAChange(t *testing.T) {
	t.Parallel()
	failed := `"path":"p","requested_by":"10.0.0.7:1","input":1,"error":{"code":"eval_conflict_error"}`
	s := day(t, `"path":"p","requested_by":"10.0.0.7:1","input":1,"result":true`, failed, `"path":"p","requested_by":"10.0.0.7:1","input":1,"result":true`)
	if x := ask(t, s, "d-1", reader.Question{}); told(x.Since.Result) != `removed /result true>; added /error >{"code":"eval_conflict_error"}` {
		t.Errorf("%s", told(x.Since.Result))
	}
	if x := ask(t, s, "d-2", reader.Question{}); told(x.Since.Result) != `added /result >true; removed /error {"code":"eval_conflict_error"}>` {
		t.Errorf("%s", told(x.Since.Result))
	}
}

// heavy is a store that notes the largest page in bytes.
type heavy struct {
	reader.Store
	most int
}

func (h *heavy) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	found, err := h.Store.Search(ctx, f, p)
	n := 0
	for _, d := range found.Decisions {
		n += len(d.Raw)
	}
	h.most = max(h.most, n)
	return found, err
}

// TestWhy_LargeDecisions: if columns do not tell, all earlier decisions are read, however large each is.
func TestWhy_LargeDecisions(t *testing.T) {
	t.Parallel()
	large := `"path":"k8s/deny","requested_by":"10.0.0.7:1","result":["` + strings.Repeat("x", 256<<10) + `"]`
	rests := make([]string, 59)
	for i := range rests {
		rests[i] = large
	}
	rests[0] = `"path":"k8s/deny","requested_by":"10.0.0.7:1","result":[]`
	h := &heavy{Store: day(t, rests...)}
	found, err := h.ByID(t.Context(), "d-58")
	if err != nil {
		t.Fatal(err)
	}
	x, err := reader.Why(t.Context(), h, found[0], reader.Question{})
	if err != nil || x.Since.Otherwise == nil || x.Since.Otherwise.DecisionID != "d-0" || x.Since.FirstID != "d-1" {
		t.Fatalf("%+v, %v", x.Since, err)
	}
	if h.most > 4<<20 {
		t.Errorf("a page of %d bytes", h.most)
	}
}

func TestWhy_NeverOtherwise(t *testing.T) {
	t.Parallel()
	s := day(t, fmt.Sprintf(alice, 1, 7, 1, 1, "false"), fmt.Sprintf(alice, 1, 7, 1, 1, "false"))
	x := ask(t, s, "d-1", reader.Question{Subject: spec(t, "requested_by:host"), SameInput: true})
	if x.Since == nil || x.Since.Otherwise != nil || x.Since.FirstID != "d-0" || !strings.Contains(x.Since.Searched, "not archived ones") {
		t.Errorf("%+v", x.Since)
	}
	if x = ask(t, s, "d-0", reader.Question{Subject: spec(t, "requested_by:host")}); x.Since.FirstID != "d-0" || !x.Since.FirstTime.Equal(x.Timestamp) {
		t.Errorf("%+v", x.Since)
	}
}

// TestWhy_ReadsWithoutAColumnVerdict has deny lists, extractors, and results without a verdict.
func TestWhy_ReadsWithoutAColumnVerdict(t *testing.T) {
	t.Parallel()
	deny := `"path":"k8s/deny","requested_by":"10.0.0.7:1","input":{"n":%d},"result":%s`
	s := day(t, fmt.Sprintf(deny, 1, `["x"]`), fmt.Sprintf(deny, 1, `[]`), fmt.Sprintf(deny, 2, `["y"]`), fmt.Sprintf(deny, 1, `["x"]`))
	x := ask(t, s, "d-3", reader.Question{SameInput: true})
	if x.Verdict != reader.Denied || x.Since.Otherwise.DecisionID != "d-1" || x.Since.FirstID != "d-2" || x.Since.SameInput.DecisionID != "d-1" {
		t.Errorf("%+v", x.Since)
	}
	price := `"path":"shop","requested_by":"10.0.0.7:1","result":{"allow":true,"ok":%t}`
	e, err := reader.ParseExtractors([]string{"shop=allow:/ok"})
	if err != nil {
		t.Fatal(err)
	}
	s = day(t, fmt.Sprintf(price, true), fmt.Sprintf(price, false), fmt.Sprintf(price, false))
	for _, id := range []string{"d-1", "d-2"} {
		if x = ask(t, s, id, reader.Question{Extractors: e}); x.Verdict != reader.Denied || x.Since.Otherwise == nil || x.Since.Otherwise.DecisionID != "d-0" || x.Since.FirstID != "d-1" {
			t.Errorf("%s: %+v", id, x.Since)
		}
	}
	flag := `"path":"flags/x","requested_by":"10.0.0.7:1","result":%s`
	s = day(t, fmt.Sprintf(flag, "1"), fmt.Sprintf(flag, "2"), fmt.Sprintf(flag, "2.0"), fmt.Sprintf(flag, "2"))
	if x = ask(t, s, "d-3", reader.Question{}); x.Verdict != reader.Other || x.Since.Otherwise.DecisionID != "d-0" || x.Since.FirstID != "d-1" {
		t.Errorf("%+v", x.Since)
	}
	var many []string
	for range 60 {
		many = append(many, fmt.Sprintf(flag, "3"))
	}
	x = ask(t, day(t, many...), "d-59", reader.Question{})
	if x.Since.Otherwise != nil || x.Since.Searched != "all 59 stored decisions of this subject and path before this one" {
		t.Errorf("%+v", x.Since)
	}
	for id, want := range map[string]string{
		"d-1": "the only stored decision of this subject and path before this one", "d-2": "all 2 stored decisions of this subject and path before this one",
	} {
		if x = ask(t, day(t, many...), id, reader.Question{}); x.Since.Searched != want {
			t.Errorf("%s: %q", id, x.Since.Searched)
		}
	}
	s = day(t, fmt.Sprintf(flag, "0"), fmt.Sprintf(flag, "1"), fmt.Sprintf(flag, "2"), fmt.Sprintf(flag, "2"))
	for id, want := range map[string]string{
		"d-2": "the last decision of this subject and path before this one", "d-3": "the last 2 decisions of this subject and path before this one",
	} {
		if x = ask(t, s, id, reader.Question{}); x.Since.Searched != want {
			t.Errorf("%s: %q", id, x.Since.Searched)
		}
	}
}

func TestWhy_LookBackLimit(t *testing.T) {
	t.Parallel()
	s := &readertest.Store{}
	for i := range 701 {
		at := time.Date(2026, 11, 21, 10, 0, i, 0, time.UTC).Format(time.RFC3339)
		if err := s.AddRaw(fmt.Appendf(nil, `{"decision_id":"d-%d","timestamp":%q,"path":"flags/x","requested_by":"h:1","result":%d}`, i, at, min(i, 1))); err != nil {
			t.Fatal(err)
		}
	}
	x := ask(t, s, "d-700", reader.Question{})
	if x.Since.Otherwise != nil || !strings.HasPrefix(x.Since.Searched, "the last 500 decisions") || x.Since.FirstID != "d-200" {
		t.Errorf("%+v", x.Since)
	}
}

// TestWhy_ShortPages: a store that has searched for long ends its page, and can continue.
func TestWhy_ShortPages(t *testing.T) {
	t.Parallel()
	s := day(t, fmt.Sprintf(alice, 1, 7, 1, 1, "true"), fmt.Sprintf(alice, 1, 7, 1, 1, "false"), fmt.Sprintf(alice, 1, 7, 1, 1, "false"), fmt.Sprintf(alice, 1, 7, 1, 1, "false"))
	s.Part = 1
	x := ask(t, s, "d-3", reader.Question{Subject: spec(t, byIn), Neighbours: 2})
	if x.Since.Otherwise == nil || x.Since.Otherwise.DecisionID != "d-0" || x.Since.FirstID != "d-1" || len(x.Before) != 2 || x.Since.SameInput == nil {
		t.Errorf("%+v, before %+v", x.Since, x.Before)
	}
	for range 40 {
		if err := s.AddRaw(fmt.Appendf(nil, `{"decision_id":"b-%d","timestamp":"2026-11-21T10:00:30Z","path":"x"}`, len(s.Asked()))); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if x = ask(t, s, "d-3", reader.Question{Subject: spec(t, byIn)}); x.Since.Otherwise != nil || !strings.Contains(strings.Join(x.Notes, "\n"), "ran out of time") {
		t.Errorf("%+v, %q", x.Since, x.Notes)
	}
}

func TestWhy_WithoutSubjectOrPath(t *testing.T) {
	t.Parallel()
	s := day(t, `"path":"p"`, `"result":true,"requested_by":"h:1"`, `"path":"p","requested_by":"h:1","result":true,"input":{"user":{"name":"x"}}`)
	for id, q := range map[string]reader.Question{
		"d-0": {Neighbours: 3}, "d-1": {Neighbours: 3}, "d-2": {Neighbours: 3, Subject: spec(t, byIn)},
	} {
		if x := ask(t, s, id, q); x.Since != nil || len(x.Before)+len(x.After) > 0 || !strings.Contains(strings.Join(x.Notes, "\n"), "not ") {
			t.Errorf("%s: %+v", id, x)
		}
	}
	x := ask(t, s, "d-2", reader.Question{Neighbours: 3, Subject: spec(t, "decision_id")})
	if x.Since != nil || !strings.Contains(strings.Join(x.Notes, "\n"), "each decision is its own subject") {
		t.Errorf("%+v", x)
	}
	if n := len(s.Asked()); n != 0 {
		t.Errorf("%d searches", n)
	}
	e, err := reader.ParseExtractors([]string{"p=subject:/user/name"})
	if err != nil {
		t.Fatal(err)
	}
	if x := ask(t, s, "d-2", reader.Question{Extractors: e}); x.Since == nil || x.Asked.Subject != "x" || x.Asked.SubjectBy != "input:/user/name" {
		t.Errorf("%+v", x.Asked)
	}
}

func TestWhy_FailingStore(t *testing.T) {
	t.Parallel()
	s := day(t, fmt.Sprintf(alice, 1, 7, 1, 1, "false"))
	found, err := s.ByID(t.Context(), "d-0")
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	s.Fail(gone)
	for _, n := range []int{0, 3} {
		if _, err := reader.Why(t.Context(), s, found[0], reader.Question{Neighbours: n}); !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
	}
}

func TestExplain_OtherFields(t *testing.T) {
	t.Parallel()
	x := reader.Explain(stored(t, `{"decision_id":"d","timestamp":"2026-11-21T10:00:00Z","path":"envoy/authz-v2/allow","query":"data.x","result":null,"error":{"code":"internal_error","message":"no \u001b[31m"},
		"mapped_result":false,"nd_builtin_cache":{"time.now_ns":{"[]":1}},"trace_id":"t1","span_id":"s1","masked":["/input/a"],"erased":["/input/b"],"revision":"old",
		"labels":{"id":"o","version":"1.2","app":"x","n":7},"metrics":{"timer_rego_query_eval_ns":12,"timer_server_handler_ns":34},
		"input":{"attributes":{"request":{"http":{"method":"GET","path":"/x","headers":{"authorization":"secret"}}},"source":{"principal":"spiffe://a"}},"password":"secret","token":"secret"}}`), reader.Around{}, reader.Question{})
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"rego":"data.envoy[\"authz-v2\"].allow"`, `"query":"data.x"`, `"verdict":"error"`, `"error":{"code":"internal_error","message":"no \u001b[31m"`, `"mapped_result":{"json":false}`,
		`"nd_builtin_cache":{"json":{"time.now_ns":{"[]":1}}}`, `"trace_id":"t1"`, `"span_id":"s1"`, `"masked":["/input/a"]`, `"erased":["/input/b"]`, `"bundles":[{"name":"","revision":"old"}]`,
		`"opa":{"id":"o","version":"1.2","labels":{"app":"x","n":"7"}}`, `"evaluation":{"eval_ns":12,"server_ns":34}`, `{"pointer":"/attributes/request/http/method","value":{"json":"GET"}}`,
		`{"pointer":"/attributes/source/principal","value":{"json":"spiffe://a"}}`, `"reasons":[]`, `"before":[]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(string(text), "secret") {
		t.Error("a secret of the input is told")
	}
}

// FuzzExplain: no input makes an explanation fail, or longer than its limit.
func FuzzExplain(f *testing.F) {
	f.Add("main/deny", `["x",{"msg":"m","policy":7}]`, `{"user":"a"}`, `{"b":{"revision":1}}`)
	f.Add("", `{"allow":"no","score":{"score":1,"breakdown":{"p":{"passed":true}}},"response":{"status":{"code":1}},"reasons":{"a":{"b":{"c":{"d":{"e":["f"]}}}}}}`, `[]`, `{}`)
	f.Add("a=b/*", `"\u001b]0;x\u0007"`, `null`, `[]`)
	e, err := reader.ParseExtractors([]string{"*=reasons:/r", "a/*=allow:/x", "b=deny:", "*=policies:", "c=subject:/user"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path, result, input, bundles string) {
		raw := `{"decision_id":"d","timestamp":"2026-11-21T10:00:00Z","requested_by":"a:1","result":` + result + `,"input":` + input + `,"bundles":` + bundles + `}`
		d := reader.Decision{Row: reader.Row{ID: "d", Path: &path, Verdict: reader.Other}, Raw: json.RawMessage(raw)}
		around := reader.Around{Searched: true, Before: []reader.Decision{{Raw: json.RawMessage(result)}}, Otherwise: &reader.Decision{Raw: json.RawMessage(input)}}
		x := reader.Explain(d, around, reader.Question{Extractors: e, SameInput: true})
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatalf("%v of %s", err, raw)
		}
		if most := 1<<20 + 100*len(raw); len(text) > most {
			t.Fatalf("%d bytes of %d", len(text), len(raw))
		}
		if json.Valid([]byte(raw)) && x.Verdict == "" {
			t.Fatalf("no verdict of %s", raw)
		}
		if _, err := reader.Why(t.Context(), &readertest.Store{}, d, reader.Question{Extractors: e, Neighbours: 3}); err != nil {
			t.Fatal(err)
		}
	})
}

// gapped is a store that does not search one place.
type gapped struct {
	*readertest.Store
	gap reader.Gap
}

func (g gapped) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	found, err := g.Store.Search(ctx, f, p)
	found.NotLooked = []reader.Gap{g.gap}
	return found, err
}

// A day that was forgotten on purpose is noted, and an explanation is complete without it.
func TestWhy_ForgottenDay(t *testing.T) {
	t.Parallel()
	s := day(t, fmt.Sprintf(alice, 1, 7, 1, 1, "true"), fmt.Sprintf(alice, 1, 7, 1, 1, "false"))
	found, err := s.ByID(t.Context(), "d-1")
	if err != nil || len(found) != 1 {
		t.Fatal(err)
	}
	for _, forgotten := range []bool{false, true} {
		of := gapped{s, reader.Gap{Name: "archived days", Why: "over", Forgotten: forgotten}}
		x, err := reader.Why(t.Context(), of, found[0], reader.Question{Subject: spec(t, byIn)})
		if err != nil || x.Incomplete == forgotten || !strings.Contains(strings.Join(x.Notes, "; "), "archived days: over") {
			t.Errorf("forgotten %v: incomplete %v, %v, %v", forgotten, x.Incomplete, x.Notes, err)
		}
	}
}
