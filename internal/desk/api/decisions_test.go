package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"docket/internal/desk/api"
	"docket/internal/history/reader"
	"docket/internal/record/envelope"
	"docket/internal/testkit/readertest"
)

func TestSearch_ViewerSeesNoPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ask(t, "viewer", "GET", "/decisions?limit=1000&verdict=denied&verdict=error", "")
	var list api.DecisionList
	if a.into(t, &list); len(list.Decisions) != 12 || list.Next != "" || strings.Contains(a.body, readertest.Secret) || strings.Contains(a.body, `"decision":`) {
		t.Errorf("%d decisions\n%s", len(list.Decisions), a.body)
	}
	if strings.Contains(w.log.String(), "decisions read") {
		t.Error("what holds no payload is logged as if it did:", w.log)
	}
	for _, path := range []string{"/decisions?payload=true", "/decisions?match=input:/user=x", "/decisions/follow?payload=true", "/decisions/follow?match=raw:/input", "/decisions/" + decisionID,
		"/decisions/" + decisionID + "/why", "/decisions/diff?a=x&b=y"} {
		if p := w.ask(t, "viewer", "GET", path, "").problem(t); p.Status != http.StatusForbidden || !strings.Contains(p.Detail, "auditor") {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if n := len(w.store.Asked()); n != 2 { // for the page, and for what is dated later
		t.Errorf("the store was asked %d times: what is refused is not looked for", n)
	}
}

func TestSearch_LogsTheReaderAndNoPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		path, operation string
		decisions       int
	}{
		{"/decisions/" + decisionID, "show-decision", 1}, {"/decisions?payload=true&limit=25", "search-decisions", 25}, {"/decisions?match=input:/n%3D3", "search-decisions", 1},
		{"/decisions/follow?payload=true&tail=" + tailAt(27), "follow-decisions", 3},
	} {
		a := w.ask(t, "auditor", "GET", c.path, "")
		line := fmt.Sprintf(`{"level":"info","operator":"aude","operation":%q,"decisions":%d,"payload":%v,"decision_ids":["`, c.operation, c.decisions, strings.Contains(a.body, readertest.Secret))
		if a.code != http.StatusOK || !strings.Contains(w.log.String(), line) {
			t.Errorf("%s: %d, no %s in\n%s", c.path, a.code, line, w.log)
		}
	}
	if n := w.count(t, "docket_desk_api_payload_looks_total", nil); n != 29 {
		t.Error(n, "looks are counted")
	}
	if log := w.log.String(); strings.Contains(log, readertest.Secret) || !strings.Contains(log, decisionID) {
		t.Error(log)
	}
}

func TestSearch_PageOfLargePayloadsEndsEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 12 {
		d := readertest.Decision(100+i, noon.Add(time.Minute))
		d.Raw = []byte(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
		w.store.Add(d)
	}
	seen := map[string]bool{}
	after := ""
	for pages := 0; ; pages++ {
		var list api.DecisionList
		w.ask(t, "auditor", "GET", "/decisions?payload=true&limit=1000"+after, "").into(t, &list)
		for _, d := range list.Decisions {
			if seen[d.ID] || d.Decision == nil {
				t.Fatal(d.ID, "is there twice, or without its payload")
			}
			seen[d.ID] = true
		}
		if len(list.Decisions) > 10 && pages == 0 {
			t.Errorf("a page of %d", len(list.Decisions))
		}
		if list.Next == "" {
			break
		}
		after = "&after=" + url.QueryEscape(list.Next)
	}
	if len(seen) != 42 {
		t.Errorf("%d of 42", len(seen))
	}
}

func TestSearch_InvalidParameters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for query, at := range map[string]string{
		"?since=" + marker: "query.since", "?until=x": "query.until", "?since=1h&until=2h": "query.until", "?label=" + marker: "query.label", "?label=a%3D1&label=a%3D2": "query.label",
		"?match=" + marker: "query.match", "?after=" + marker: "query.after", "?verdict=odd": "query.verdict[0]", "?limit=1001": "query.limit", "?order=best": "query.order", "?path=": "query.path",
		"?path=a&path=": "query.path", "?since=1h&since=2h": "query.since", "?path=%00": "query", "/%00": "path.id", "/stats?step=7m": "query.step", "/stats?by=opa": "query.by",
		"/stats?since=2000-01-01&step=5m": "query.step", "/follow?wait=26": "query.wait", "/follow?tail=" + marker: "query.tail",
	} {
		a := w.ask(t, "auditor", "GET", "/decisions"+query, "")
		if p := a.problem(t); p.Status != http.StatusUnprocessableEntity || len(p.Faults) == 0 || p.Faults[0].Location != at || strings.Contains(a.body, marker) {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	if p := w.ask(t, "auditor", "GET", "/decisions/no-such", "").problem(t); p.Status != http.StatusNotFound || !strings.Contains(p.Hint, "where-is") {
		t.Errorf("%+v", p)
	}
}

func TestClaims_OfDecisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	letter := func(n int, claims string, of envelope.Origin) string {
		e := w.book.letters[id(n)]
		e.DecisionID, e.Origin = claims, of
		return e.ID
	}
	rows, err := w.store.ByID(t.Context(), decisionID)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	own := envelope.Origin{Topic: rows[0].Topic, Partition: rows[0].Partition, Offset: rows[0].Offset, Index: rows[0].Index}
	other := own
	other.Offset++
	letter(1, decisionID, own)
	another, alone := letter(2, decisionID, other), letter(3, "alone", other)
	var found api.DecisionsOfID
	if w.ask(t, "auditor", "GET", "/decisions/"+decisionID, "").into(t, &found); len(found.Others) != 1 || found.Others[0].ID != another {
		t.Errorf("others: %+v", found.Others)
	}
	if p := w.ask(t, "auditor", "GET", "/decisions/alone", "").problem(t); p.Status != http.StatusNotFound || !strings.Contains(p.Hint, alone) {
		t.Errorf("%+v", p)
	}
}

// TestSearch_PagesHaveEachDecisionOnce tries each order, several page sizes and slow stores.
func TestSearch_PagesHaveEachDecisionOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(rt, "decisions")
		s := newStore(n)
		s.Part = rapid.IntRange(0, 7).Draw(rt, "part")
		w := newWorld(t, func(_ *api.Config, p *api.Ports) { p.Decisions = s })
		order := rapid.SampledFrom([]string{"newest", "oldest"}).Draw(rt, "order")
		limit := rapid.IntRange(1, 9).Draw(rt, "limit")
		seen, last, after := map[string]int{}, time.Time{}, ""
		for page := 0; ; page++ {
			var list api.DecisionList
			r := httptest.NewRequest("GET", fmt.Sprintf("%s/decisions?order=%s&limit=%d%s", api.Prefix, order, limit, after), http.NoBody)
			r.Header.Set("Authorization", "Bearer "+tokenOf("viewer"))
			recorder := httptest.NewRecorder()
			w.handler.ServeHTTP(recorder, r)
			answer{recorder.Code, recorder.Header(), recorder.Body.String()}.into(t, &list)
			for _, d := range list.Decisions {
				seen[d.ID]++
				if !last.IsZero() && (d.Timestamp.Before(last) && order == "oldest" || d.Timestamp.After(last) && order == "newest") {
					rt.Fatalf("%v comes behind %v", d.Timestamp, last)
				}
				last = d.Timestamp
			}
			if list.Next == "" {
				break
			}
			after = "&after=" + url.QueryEscape(list.Next)
			if page < 20 { // others are decided before, between and behind
				s.Add(readertest.Decision(1000+page, noon.Add(time.Duration(rapid.IntRange(-90, 90).Draw(rt, "arrives"))*time.Minute+time.Second)))
			}
		}
		for _, d := range readertest.Decisions(n, noon) {
			if seen[d.ID] != 1 {
				rt.Fatalf("%s is there %d times", d.ID, seen[d.ID])
			}
		}
		for id, times := range seen {
			if times != 1 {
				rt.Fatalf("%s is there %d times", id, times)
			}
		}
	})
}

func TestStats_WholeSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var r api.Rates
	w.ask(t, "viewer", "GET", "/decisions/stats?since=2026-03-01T11:31:00Z&until=2026-03-01T12:00:00Z&step=1h&path=http/example/authz/allow", "").into(t, &r)
	if len(r.Lines) != 1 || r.StepSeconds != 3600 || r.Since.Minute() != 0 || r.Lines[0].Counts != (api.VerdictCounts{Allowed: 2, Denied: 2, Undefined: 2, Other: 2}) || *r.Lines[0].DenyRate != 0.5 {
		t.Errorf("%+v", r)
	}
	if w.ask(t, "viewer", "GET", "/decisions/stats", "").into(t, &r); r.StepSeconds != 3600 || r.By != "path" || len(r.Lines) != 4 {
		t.Errorf("%+v", r)
	}
}

func TestRates_OtherComesLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := readertest.Decision(100, time.Date(2026, 3, 1, 11, 45, 0, 0, time.UTC))
	d.Path, d.Service = new(reader.OtherPaths), new("authz")
	w.store.Add(d)
	for _, query := range []string{"", "&path=http/example/authz/allow", "&by=service&service=nobody"} {
		var r api.Rates
		w.ask(t, "viewer", "GET", "/decisions/stats?since=2026-03-01T11:00:00Z&until=2026-03-01T12:00:00Z&step=1h"+query, "").into(t, &r)
		if n := len(r.Lines); n == 0 || r.Lines[n-1].Name != reader.OtherPaths || query == "" && n != 5 {
			t.Errorf("%q: %+v", query, r.Lines)
		}
	}
}

func TestFollow_AllThatIsStored(t *testing.T) {
	t.Parallel()
	if _, err := router(); err != nil { // before the bubble, which it would outlive
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ask := func(query string) api.Stored {
			var s api.Stored
			w.ask(t, "viewer", "GET", "/decisions/follow?"+query, "").into(t, &s)
			return s
		}
		now := ask("")
		if len(now.Decisions) != 0 || now.Tail == "" {
			t.Fatalf("%+v", now)
		}
		began := time.Now()
		if s := ask("tail=" + now.Tail); len(s.Decisions) != 0 || time.Since(began) != 20*time.Second {
			t.Errorf("%+v after %v", s, time.Since(began))
		}
		go func() {
			time.Sleep(3500 * time.Millisecond)
			for i := range 7 {
				w.store.Add(readertest.Decision(500+i, noon.Add(-time.Hour)))
			}
		}()
		began = time.Now()
		s := ask("limit=4&tail=" + now.Tail)
		if len(s.Decisions) != 4 || time.Since(began) != 4*time.Second {
			t.Errorf("%d after %v", len(s.Decisions), time.Since(began))
		}
		if s = ask("limit=4&wait=0&tail=" + s.Tail); len(s.Decisions) != 3 {
			t.Errorf("%d more", len(s.Decisions))
		}
		if s = ask("wait=0&tail=" + s.Tail); len(s.Decisions) != 0 {
			t.Errorf("%d too many", len(s.Decisions))
		}
	})
}

func TestFollow_ClientIsGone(t *testing.T) {
	t.Parallel()
	if _, err := router(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *api.Config, _ *api.Ports) { c.MaxInFlight = 8 }) // two of them may follow
		var looks atomic.Int64                                                    // two may look at once
		w.store.AfterFollow = func() { looks.Add(1) }
		for range 10 {
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan answer)
			go func() {
				done <- w.ask(t, "viewer", "GET", "/decisions/follow?wait=25&tail="+tailAt(30), "", func(r *http.Request) { *r = *r.WithContext(ctx) })
			}()
			time.Sleep(2500 * time.Millisecond)
			leave()
			began := time.Now()
			if a := <-done; a.code == http.StatusOK || time.Since(began) != 0 {
				t.Error("it went on for", time.Since(began), a)
			}
		}
		if n := looks.Load(); n != 30 {
			t.Errorf("it was looked %d times", n)
		}
		codes := make(chan answer, 3)
		for range 3 {
			go func() { codes <- w.ask(t, "viewer", "GET", "/decisions/follow?wait=10&tail="+tailAt(30), "") }()
		}
		first := <-codes
		if first.code != http.StatusServiceUnavailable || first.header.Get("Retry-After") == "" {
			t.Error("three follow at once:", first)
		}
		if a := w.ask(t, "viewer", "GET", "/whoami", ""); a.code != http.StatusOK {
			t.Error("those that follow take every place:", a)
		}
		<-codes
		<-codes
	})
}

func TestFollow_StoreWithoutPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *api.Config, p *api.Ports) { p.Decisions = struct{ reader.Store }{newStore(1)} })
	if a := w.ask(t, "admin", "GET", "/openapi.json", ""); strings.Contains(a.body, "follow-decisions") || !strings.Contains(a.body, "search-decisions") {
		t.Error("the document has it, or has nothing")
	}
	w = newWorld(t, func(_ *api.Config, p *api.Ports) { p.Decisions = nil })
	if a := w.ask(t, "admin", "GET", "/openapi.json", ""); strings.Contains(a.body, "search-decisions") {
		t.Error("the document has it")
	}
}

// forgetful is a store whose places, as text, are up to three decisions behind, like those of the real one.
type forgetful struct{ *readerStore }

func (s forgetful) TailText(t reader.Tail) (string, error) {
	return strconv.Itoa(max(t.Mark.(int)-3, 0)), nil
}

// SettledBefore implements [api.Settling].
func (s forgetful) SettledBefore(t reader.Tail) time.Time {
	return noon.Add(time.Second * time.Duration(t.Mark.(int)-3)) //nolint:durationcheck // a count of seconds
}

// TestFollow_SaysWhatIsDoneWith: a client can tell what a restart repeats, and whether to ask again at once.
func TestFollow_SaysWhatIsDoneWith(t *testing.T) {
	t.Parallel()
	s := newStore(9)
	w := newWorld(t, func(_ *api.Config, p *api.Ports) { p.Decisions = forgetful{s} })
	var begin, some, rest api.Stored
	w.ask(t, "viewer", "GET", "/decisions/follow", "").into(t, &begin)
	if begin.Settled == nil || !begin.Settled.Equal(noon.Add(6*time.Second)) || begin.More {
		t.Errorf("at the start: %+v", begin)
	}
	s.Add(readertest.Decision(50, noon), readertest.Decision(51, noon), readertest.Decision(52, noon))
	w.ask(t, "viewer", "GET", "/decisions/follow?wait=0&limit=2&tail="+begin.Tail, "").into(t, &some)
	w.ask(t, "viewer", "GET", "/decisions/follow?wait=0&limit=2&tail="+some.Tail, "").into(t, &rest)
	if !some.More || rest.More || len(rest.Decisions) != 1 || !rest.Settled.Equal(noon.Add(9*time.Second)) {
		t.Errorf("then %+v and %+v", some, rest)
	}
}

// TestFollow_LostAnswerOrAnotherDesk: decisions are sent twice rather than never, and only once by the same desk.
func TestFollow_LostAnswerOrAnotherDesk(t *testing.T) {
	t.Parallel()
	s := newStore(5)
	desk := func() *world {
		return newWorld(t, func(_ *api.Config, p *api.Ports) { p.Decisions = forgetful{s} })
	}
	ask := func(w *world, tail string) (ids []string, next string) {
		var out api.Stored
		w.ask(t, "viewer", "GET", "/decisions/follow?wait=0&limit=4&tail="+tail, "").into(t, &out)
		for _, d := range out.Decisions {
			ids = append(ids, d.ID)
		}
		return ids, out.Tail
	}
	one, two := desk(), desk()
	var begin api.Stored
	one.ask(t, "viewer", "GET", "/decisions/follow", "").into(t, &begin)
	first := readertest.Decision(50, noon)
	s.Add(first)
	got, next := ask(one, begin.Tail)
	if !slices.Equal(got, []string{first.ID}) {
		t.Errorf("%v", got)
	}
	if got, _ := ask(one, next); len(got) != 0 {
		t.Errorf("told twice by the same desk: %v", got)
	}
	if got, _ := ask(one, begin.Tail); !slices.Contains(got, first.ID) {
		t.Errorf("an answer that was lost is not repeated: %v", got)
	}
	second := readertest.Decision(51, noon)
	s.Add(second)
	if got, _ := ask(two, next); !slices.Contains(got, second.ID) {
		t.Errorf("another desk leaves something out: %v", got)
	}
}

func TestWhy_IsLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var x reader.Explanation
	w.ask(t, "auditor", "GET", "/decisions/"+decisionID+"/why", "").into(t, &x)
	if x.DecisionID != decisionID || x.Verdict != reader.Denied {
		t.Errorf("%+v", x)
	}
	other := readertest.Decisions(30, noon)[7].ID
	var d api.Difference
	w.ask(t, "auditor", "GET", "/decisions/diff?a="+decisionID+"&b="+other, "").into(t, &d)
	if d.A.ID != decisionID || d.B.ID != other || len(d.Changes) == 0 {
		t.Errorf("%+v", d)
	}
	for _, operation := range []string{"explain-decision", "diff-decisions"} {
		if log := w.log.String(); !strings.Contains(log, `"operator":"aude","operation":"`+operation+`"`) || strings.Contains(log, readertest.Secret) {
			t.Error(log)
		}
	}
	for _, path := range []string{"/no-such/why", "/diff?a=" + other + "&b=no-such", "/" + other + "/why?timestamp=2020-01-01T00:00:00Z"} {
		if a := w.ask(t, "auditor", "GET", "/decisions"+path, ""); a.problem(t).Status != http.StatusNotFound {
			t.Error(a)
		}
	}
}

// TestWhy_SubjectAndTime asks with a time as OPA writes it, finer than a stored one.
func TestWhy_SubjectAndTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	finer := readertest.Decisions(30, noon)[0].Time
	for _, d := range readertest.Decisions(30, noon) {
		if d.ID == decisionID {
			finer = d.Time
		}
	}
	var x reader.Explanation
	w.ask(t, "auditor", "GET", "/decisions/"+decisionID+"/why?subject=label:app&timestamp="+finer.Add(789*time.Nanosecond).Format(time.RFC3339Nano), "").into(t, &x)
	if x.DecisionID != decisionID || x.Asked.SubjectBy != "label:app" {
		t.Errorf("%+v", x.Asked)
	}
	a := w.ask(t, "auditor", "GET", "/decisions/"+decisionID+"/why?subject="+readertest.Secret, "")
	if a.problem(t).Status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "query.subject") || strings.Contains(a.body, readertest.Secret) {
		t.Error(a)
	}
}

// TestSearch_YearThatIsToCome: a decision dated far ahead heads no page. It is reported, and its answer says that it
// is ahead.
func TestSearch_YearThatIsToCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	far := readertest.Decision(99, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	far.StoredAt = noon
	w.store.Add(far)
	var list api.DecisionList
	a := w.ask(t, "viewer", "GET", "/decisions?limit=2", "")
	if a.into(t, &list); strings.Contains(a.body, far.ID) || list.Later == nil || list.Next == "" {
		t.Fatal(a.body)
	}
	since := list.Later.Format(time.RFC3339)
	if a := w.ask(t, "viewer", "GET", "/decisions?since="+since, ""); !strings.Contains(a.body, far.ID) || !strings.Contains(a.body, `"ahead_seconds":`) || strings.Contains(a.body, `"later"`) {
		t.Error(a.body)
	}
	if a := w.ask(t, "viewer", "GET", "/decisions?limit=2&after="+url.QueryEscape(list.Next), ""); strings.Contains(a.body, `"later"`) || strings.Contains(a.body, "ahead_seconds") {
		t.Error("on the second page:", a.body)
	}
	if a := w.ask(t, "viewer", "GET", "/decisions?order=oldest&limit=1000", ""); !strings.Contains(a.body, far.ID) {
		t.Error("the oldest first:", a.body)
	}
}

func TestEdits_OfDecisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	w.store.Edited(decisionID, reader.Edit{AuditID: 7, DeadLetter: id(1), By: "mara", At: &at, Why: "typo", Diff: "-planted-original", Bytes: []byte("planted-original")})
	var one api.DecisionsOfID
	if w.ask(t, "auditor", "GET", "/decisions/"+decisionID, "").into(t, &one); one.Decisions[0].Edited == nil || one.Decisions[0].Edited.By != "mara" || *one.Decisions[0].Edited.Original != "planted-original" || one.EditsUnknown != "" {
		t.Errorf("%+v", one)
	}
	for _, path := range []string{"/decisions", "/decisions?payload=true", "/decisions/" + decisionID + "/why"} {
		role := "auditor"
		if path == "/decisions" {
			role = "viewer"
		}
		a := w.ask(t, role, "GET", path, "")
		if text := a.body; a.code != http.StatusOK || !strings.Contains(text, `"audit_id":7`) || strings.Contains(text, "planted-original") != (role == "auditor") {
			t.Errorf("%s: %d %.3000s", path, a.code, text)
		}
	}
	w.store.FailEdits(fmt.Errorf("%w (42501)", reader.ErrEdits))
	if w.ask(t, "auditor", "GET", "/decisions/"+decisionID, "").into(t, &one); one.EditsUnknown != reader.ErrEdits.Error() {
		t.Errorf("%+v", one)
	}
	w.store.FailEdits(errors.New("secret of the server"))
	a := w.ask(t, "auditor", "GET", "/decisions/"+decisionID+"/why", "")
	if text := a.body; !strings.Contains(text, "could not be read just now") || strings.Contains(text, "secret") {
		t.Errorf("%s", text)
	}
}
