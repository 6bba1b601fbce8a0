package api_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
)

func TestList_Pages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := map[string]bool{}
	after := ""
	for range 3 {
		var page api.LetterList
		w.ask(t, "viewer", "GET", "/dead-letters?limit=2"+after, "").into(t, &page)
		for _, l := range page.Letters {
			seen[l.ID] = true
		}
		after = "&after=" + page.Next
	}
	if len(seen) != 5 || after != "&after=" {
		t.Errorf("three pages of two have %d of five; next is %q", len(seen), after)
	}
	var none api.LetterList
	a := w.ask(t, "viewer", "GET", "/dead-letters?states=RESOLVED", "")
	if a.into(t, &none); none.Letters == nil || len(none.Letters) != 0 {
		t.Error("an empty list is not []:", a.body)
	}
}

func TestList_Surplus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var page api.LetterList
	if a := w.ask(t, "viewer", "GET", "/dead-letters?limit=2", ""); strings.Contains(a.body, "surplus") {
		t.Error("nothing is left:", a.body)
	}
	w.book.left = []ledger.Surplus{{ID: 1, Topic: "decision-logs-dlq", Partition: 2, Client: "edge", First: 3, Next: 5, Last: 9, Letters: 4, Entered: 1, LeftAt: noon, State: ledger.SurplusOpen}}
	w.ask(t, "viewer", "GET", "/dead-letters?limit=2", "").into(t, &page)
	if want := (api.Surplus{Client: "edge", Topic: "decision-logs-dlq", Partition: 2, First: 5, Last: 9, Letters: 3, LeftAt: noon}); len(page.Surplus) != 1 || page.Surplus[0] != want {
		t.Errorf("%+v", page.Surplus)
	}
	if a := w.ask(t, "viewer", "GET", "/dead-letters?limit=2&after="+page.Next, ""); strings.Contains(a.body, "surplus") {
		t.Error("on the second page:", a.body)
	}
}

// manyRanges are open ranges of one letter each.
func manyRanges(n int) (all []ledger.Surplus) {
	for i := range int64(n) {
		all = append(all, ledger.Surplus{ID: i + 1, Topic: "decision-logs-dlq", First: i, Next: i, Last: i, Letters: 1, LeftAt: noon, State: ledger.SurplusOpen})
	}
	return all
}

// TestList_ManySurplusRanges: a list that has not all ranges says so.
func TestList_ManySurplusRanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n, more := range map[int]bool{1000: false, 1001: true} {
		w.book.left = manyRanges(n)
		a := w.ask(t, "viewer", "GET", "/dead-letters?limit=2", "")
		var page api.LetterList
		if a.into(t, &page); len(page.Surplus) != 1000 || page.MoreSurplus != more || strings.Contains(a.body, `"surplus_more":true`) != more {
			t.Errorf("%d: %d ranges, more: %v", n, len(page.Surplus), page.MoreSurplus)
		}
	}
}

// TestSurplus_Pages: each page but the last names the next one.
func TestSurplus_Pages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book.left = manyRanges(1001)
	for _, c := range []struct {
		query string
		n     int
		next  string
	}{{"", 1000, "1000"}, {"?after=1000", 1, ""}, {"?limit=500&after=500", 500, "1000"}, {"?limit=501&after=500", 501, ""}} {
		var page api.SurplusList
		if w.ask(t, "viewer", "GET", "/surplus"+c.query, "").into(t, &page); len(page.Ranges) != c.n || page.Next != c.next {
			t.Errorf("%q: %d ranges, next is %q", c.query, len(page.Ranges), page.Next)
		}
	}
	if a := w.ask(t, "viewer", "GET", "/surplus?after=x", ""); a.code != 422 {
		t.Errorf("status %d for a page that is not a number", a.code)
	}
}

func TestShow_NoPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var l api.Letter
	w.ask(t, "viewer", "GET", "/dead-letters/"+id(1)[:8], "").into(t, &l)
	if l.ID != id(1) || l.Origin.Index == nil || *l.Origin.Index != 1 || l.Code != "23514" || !l.FailedAt.Equal(noon.Add(time.Second)) {
		t.Errorf("%+v", l)
	}
	whole := w.ask(t, "viewer", "GET", "/dead-letters/"+id(0), "")
	if strings.Contains(whole.body, `"index"`) {
		t.Error("a record that was never decoded has no index:", whole.body)
	}
}

func TestPayload_EachReadIsLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var p api.Payload
	w.ask(t, "operator", "GET", "/dead-letters/"+id(1)+"/payload", "").into(t, &p)
	if p.Value.Text == nil || !strings.Contains(*p.Value.Text, marker) || string(p.Headers[1].Value.Base64) != "\xff\xfe" || !p.Headers[2].Value.Null {
		t.Errorf("%+v", p)
	}
	if log := w.log.String(); !strings.Contains(log, `{"level":"info","operator":"olga","dead_letter":"`+id(1)+`","message":"payload read"`) {
		t.Error(log)
	}
	if n := w.count(t, "docket_desk_api_payload_looks_total", nil); n != 1 {
		t.Error(n, "looks are counted")
	}
}

func TestAudit_NameIsTheLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, body := range []string{`{"reason":"r","operator":"adam"}`, `{"reason":"r","by":"adam"}`, `{"reason":"r","name":"adam"}`} {
		if a := w.ask(t, "operator", "POST", "/dead-letters/"+id(0)+"/retry", body, func(r *http.Request) { r.Header.Set("X-Operator", "adam") }); a.code != http.StatusUnprocessableEntity {
			t.Error(body, "gave", a.code)
		}
	}
	var m api.Moved
	w.ask(t, "operator", "POST", "/dead-letters/"+id(0)[:6]+"/retry", `{"reason":" the path\nis\u001b[2J allowed\u202e now "}`).into(t, &m)
	last := w.book.audit[id(0)][1]
	if m.By != "olga" || m.State != ledger.Processing || last.By != "olga" || last.Why != "the path is[2J allowed now" {
		t.Errorf("%+v %+v", m, last)
	}
	w.ask(t, "operator", "POST", "/dead-letters/"+id(1)+"/resolve", `{"note":"a test record"}`)
	if last := w.book.audit[id(1)][1]; last.By != "olga" || last.Act != ledger.Closed || last.Why != "a test record" {
		t.Errorf("%+v", last)
	}
	var h api.History
	line := &w.book.audit[id(0)][1]
	line.Login, line.Application, line.Client, line.Columns = "docket_desk", "docket", "10.0.0.7", []string{"key"}
	w.ask(t, "viewer", "GET", "/dead-letters/"+id(0)+"/history", "").into(t, &h)
	if e := h.Events[1]; e.Login != line.Login || e.Application != line.Application || e.Client != line.Client || !slices.Equal(e.Columns, line.Columns) {
		t.Errorf("%+v", e)
	}
	if len(h.Events) != 2 || h.Events[1].By != "olga" || len(h.Retries) != 1 || h.Retries[0].Published == nil {
		t.Errorf("%+v", h)
	}
}

func TestRetry_NeedsAReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withJobs(t)
	for _, reason := range []string{``, `"reason":"",`, `"reason":"  \n ",`, `"reason":"\u200b\u200b",`, `"reason":null,`, `"reason":7,`, `"reason":"` + strings.Repeat("x", 1001) + `",`} {
		for path, rest := range map[string]string{
			"/dead-letters/" + id(0) + "/retry": `}`, "/jobs": `"act":"retry","filter":{"code":"1"},"limit":1}`, "/jobs/1/stop": `}`, "/jobs/2/resume": `}`,
		} {
			body := strings.Replace("{"+reason+rest, ",}", "}", 1)
			if a := w.ask(t, "operator", "POST", path, body); a.problem(t).Status != http.StatusUnprocessableEntity {
				t.Errorf("%s with %s gave %s", path, body, a.body)
			}
		}
	}
	if a := w.ask(t, "operator", "POST", "/dead-letters/"+id(0)+"/resolve", `{}`); a.code != http.StatusUnprocessableEntity {
		t.Error(a)
	}
}

func TestRetry_RefusalNamesTheLastMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(t, "operator", "POST", "/dead-letters/"+id(0)+"/retry", `{"reason":"r"}`)
	for _, act := range [][2]string{{"POST /retry", `{"reason":"again"}`}, {"POST /resolve", `{"note":"n"}`}, {"PUT /payload", `{"payload":"{}","reason":"r"}`}} {
		method, path, _ := strings.Cut(act[0], " ")
		p := w.ask(t, "admin", method, "/dead-letters/"+id(0)+path, act[1]).problem(t)
		if p.Status != http.StatusConflict || p.State != "PROCESSING" || p.By != "olga" || p.Since == nil || !p.Since.Equal(noon) || p.ID != id(0) {
			t.Errorf("%s: %+v", act[0], p)
		}
	}
	if len(w.book.audit[id(0)]) != 2 {
		t.Error("something was moved all the same")
	}
}

func TestRetry_OneOfTwoOperatorsWins(t *testing.T) {
	t.Parallel()
	for range 20 {
		w := newWorld(t)
		codes := make([]int, 2)
		var both, ready sync.WaitGroup
		ready.Add(2)
		for i, role := range []string{"operator", "otto"} {
			path, body := "/retry", `{"reason":"r"}`
			if i == 1 {
				path, body = "/resolve", `{"note":"n"}`
			}
			both.Go(func() {
				ready.Done()
				ready.Wait()
				codes[i] = w.ask(t, role, "POST", "/dead-letters/"+id(0)+path, body).code
			})
		}
		both.Wait()
		if codes[0]+codes[1] != http.StatusOK+http.StatusConflict || len(w.book.audit[id(0)]) != 2 {
			t.Fatalf("%v, %d lines in the audit", codes, len(w.book.audit[id(0)]))
		}
	}
}

func TestShow_NotFoundAndAmbiguous(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book = newBook(93)
	w = newWorld(t, func(_ *api.Config, p *api.Ports) { p.Book = w.book })
	few := id(90)[:6]
	for _, path := range []string{"", "/history", "/payload"} {
		if p := w.ask(t, "admin", "GET", "/dead-letters/"+strings.Repeat("f", 64)+path, "").problem(t); p.Status != http.StatusNotFound {
			t.Error(path, p)
		}
		if p := w.ask(t, "admin", "GET", "/dead-letters/"+few+path, "").problem(t); p.Status != http.StatusConflict || !strings.Contains(p.Hint, "more characters") {
			t.Error(path, p)
		}
		for _, wrong := range []string{"abc", "ABCDEF", strings.Repeat("a", 65), "zzzzzz", "%2e%2e%2fabcdef"} {
			if p := w.ask(t, "admin", "GET", "/dead-letters/"+wrong+path, "").problem(t); p.Status != http.StatusUnprocessableEntity {
				t.Error(wrong, path, p)
			}
		}
	}
	for path, body := range map[string]string{"/retry": `{"reason":"r"}`, "/resolve": `{"note":"n"}`} {
		if p := w.ask(t, "admin", "POST", "/dead-letters/"+strings.Repeat("f", 64)+path, body).problem(t); p.Status != http.StatusNotFound {
			t.Error(path, p)
		}
		if p := w.ask(t, "admin", "POST", "/dead-letters/"+few+path, body).problem(t); p.Status != http.StatusConflict {
			t.Error(path, p)
		}
	}
	for _, path := range []string{"GET /jobs/7", "POST /jobs/7/stop", "POST /jobs/7/resume"} {
		method, path, _ := strings.Cut(path, " ")
		body := ""
		if method == "POST" {
			body = `{"reason":"r"}`
		}
		if p := w.ask(t, "admin", method, path, body).problem(t); p.Status != http.StatusNotFound {
			t.Error(path, p)
		}
	}
	if p := w.ask(t, "viewer", "GET", "/classify/no_such_code", "").problem(t); p.Status != http.StatusNotFound {
		t.Error(p)
	}
}

// TestEdit_OfWhatWasSeen: the payload that a caller saw may be another by now.
func TestEdit_OfWhatWasSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := "/dead-letters/" + id(0)
	seen, proposed := ledger.VersionOf(w.book.letters[id(0)].Value), len(w.book.proposed)
	body := func(text string, seen ledger.Version) string {
		return fmt.Sprintf(`{"payload":%q,"reason":"r","seen":%q}`, text, seen)
	}
	if a := w.ask(t, "operator", "PUT", path+"/payload", body(`{"who":"nobody"}`, seen)); a.code != http.StatusOK {
		t.Error(a)
	}
	for _, seen := range []ledger.Version{seen, ledger.VersionOf(nil)} {
		if p := w.ask(t, "operator", "PUT", path+"/payload", body(`{"who":"somebody"}`, seen)).problem(t); p.Status != http.StatusConflict || !strings.Contains(p.Detail, "somebody edited the payload") {
			t.Errorf("%+v", p)
		}
		if p := w.ask(t, "admin", "POST", path+"/proposals", body(`{"path":"other"}`, seen)).problem(t); p.Status != http.StatusConflict || !strings.Contains(p.Detail, "somebody edited the payload") {
			t.Errorf("%+v", p)
		}
	}
	if p := w.ask(t, "operator", "PUT", path+"/payload", body(`{"who":"somebody"}`, "x")).problem(t); p.Status != http.StatusUnprocessableEntity {
		t.Errorf("%+v", p)
	}
	if value := string(w.book.letters[id(0)].Value); value != `{"who":"nobody"}` || len(w.book.proposed) != proposed {
		t.Error(value)
	}
}

func TestEdit_TextOrBase64(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := "/dead-letters/" + id(0) + "/payload"
	for _, body := range []string{`{"reason":"r"}`, `{"payload":"x","base64":"eA==","reason":"r"}`, `{"base64":"%%%","reason":"r"}`,
		`{"payload":` + fmt.Sprintf("%q", `{"who":"`+marker+`"}`) + `,"reason":"r"}`} {
		if p := w.ask(t, "operator", "PUT", path, body).problem(t); p.Status != http.StatusUnprocessableEntity || strings.Contains(fmt.Sprint(p), marker) {
			t.Error(body, p)
		}
	}
	var m api.Moved
	w.ask(t, "operator", "PUT", path, `{"payload":"{\"who\":\"nobody\"}","reason":"mended"}`).into(t, &m)
	last := w.book.audit[id(0)][1]
	if m.State != ledger.Pending || !strings.Contains(last.Diff, `-  "who": "`+marker+`"`) || !strings.Contains(last.Diff, `+  "who": "nobody"`) || last.By != "olga" {
		t.Errorf("%+v %+v", m, last)
	}
	binary := base64.StdEncoding.EncodeToString([]byte{0xff, 0})
	w.ask(t, "operator", "PUT", path, `{"base64":"`+binary+`","reason":"r","retry":true}`).into(t, &m)
	if m.State != ledger.Processing || string(w.book.letters[id(0)].Value) != "\xff\x00" || w.book.letters[id(0)].State != ledger.Processing {
		t.Errorf("%+v", m)
	}
	h := w.ask(t, "viewer", "GET", "/dead-letters/"+id(0)+"/history", "")
	if strings.Contains(h.body, "nobody") || !strings.Contains(h.body, `"changed":true`) {
		t.Error("the history shows viewers a payload, or not that it was changed:", h.body)
	}
}

func TestCreateJob_EverythingMustBeExplicit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, body := range []string{`{"act":"retry","filter":{},"reason":"r","limit":5}`, `{"act":"retry","filter":{"code":"1"},"all":true,"reason":"r","limit":5}`,
		`{"act":"retry","reason":"r","limit":5}`, `{"act":"retry","filter":{"fingerprint":""},"all":true,"reason":"r","limit":5}`,
		`{"act":"retry","filter":{"states":[]},"all":true,"reason":"r","limit":5}`, `{"act":"retry","filter":{"cod":"1"},"reason":"r","limit":5}`,
		`{"act":"delete","filter":{"code":"1"},"reason":"r","limit":5}`, `{"act":"retry","filter":{"code":"1"},"reason":"r","limit":-1}`,
		`{"act":"retry","filter":{"code":"1"},"reason":"r","limit":5,"rate":-1}`, `{"act":"retry","filter":{"from":"yesterday"},"reason":"r","limit":5}`,
		`{"act":"retry","filter":{"partition":2147483648},"reason":"r","limit":5}`, `{"act":"retry","filter":{"partition":1.5},"reason":"r","limit":5}`,
		`{"act":"retry","filter":{"code":"1"},"reason":"r","limit":9223372036854775808}`, `{"act":"retry","filter":{"code":null},"all":true,"reason":"r","limit":5}`} {
		if p := w.ask(t, "admin", "POST", "/jobs", body).problem(t); p.Status != http.StatusUnprocessableEntity {
			t.Error(body, p)
		}
	}
	if len(w.book.jobs) != 0 {
		t.Error("jobs were made all the same")
	}
	var j api.Job
	w.ask(t, "operator", "POST", "/jobs", `{"act":"resolve","filter":{"partition":0,"states":["FAILED"],"from":"2026-01-01T00:00:00+02:00"},"reason":"r","limit":5,"rate":2.5}`).into(t, &j)
	made := w.book.jobs[0]
	if made.Operator != "olga" || made.Act != ledger.Closed || made.Filter.Partition == nil || made.Rate != 2.5 || made.Filter.From.IsZero() || j.Filter.From.Location() != time.UTC {
		t.Errorf("%+v %+v", made, j)
	}
}

func TestJob_WrongStateIsAConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withJobs(t)
	if a := w.ask(t, "admin", "POST", "/jobs/1/resume", `{"reason":"r"}`); a.code != http.StatusOK {
		t.Error("one that waits goes on already:", a)
	}
	w.book.jobs[1].State = ledger.JobDone
	for _, act := range []string{"stop", "resume"} {
		if p := w.ask(t, "admin", "POST", "/jobs/2/"+act, `{"reason":"r"}`).problem(t); p.Status != http.StatusConflict || p.State != "DONE" || p.ID != "2" {
			t.Errorf("%s: %+v", act, p)
		}
	}
	if a := w.ask(t, "otto", "POST", "/jobs/3/stop", `{"reason":"again"}`); a.code != http.StatusOK {
		t.Error("one that is stopped already is stopped:", a)
	}
}

func TestProblem_InvalidIs422(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book.err = fmt.Errorf("list: %w", errors.Join(&ledger.InvalidError{Field: "to", Problem: "it has to be after from"}, &ledger.InvalidError{Field: marker, Problem: "p"}))
	p := w.ask(t, "viewer", "GET", "/dead-letters", "").problem(t)
	if p.Status != http.StatusUnprocessableEntity || len(p.Faults) != 2 || p.Faults[0] != (api.Fault{Location: "to", Message: "it has to be after from"}) || p.Faults[1].Location == marker {
		t.Errorf("%+v", p)
	}
	w.book.err = ledger.ErrBadPage
	if p := w.ask(t, "viewer", "GET", "/dead-letters?after=x", "").problem(t); p.Status != http.StatusUnprocessableEntity {
		t.Errorf("%+v", p)
	}
}

func TestDryRun_Result(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var r api.TrialResult
	w.ask(t, "operator", "POST", "/trials", `{"filter":{}}`).into(t, &r)
	if r.WouldBeStored != 4812 || r.WouldFail != 7 || len(r.Failures) != 1 || !strings.Contains(r.Text, "4,812 would be stored") {
		t.Errorf("%+v", r)
	}
	w.ask(t, "operator", "POST", "/trials", `{"ids":["`+id(0)+`"]}`).into(t, &r)
	if r.Unwell != "53100" || r.Hint != "make room" || r.Total != 1 {
		t.Errorf("%+v", r)
	}
	for body, would := range map[string]int64{`{"payload":"abc"}`: 3, `{"base64":"//8="}`: 2, `{"payload":""}`: 0} {
		w.ask(t, "operator", "POST", "/trials", body).into(t, &r)
		if r.Total != 1 || r.WouldBeStored != would {
			t.Errorf("%s: %+v", body, r)
		}
	}
	for _, body := range []string{`{}`, `{"ids":[]}`, `{"payload":"a","base64":"//8="}`, `{"filter":{},"payload":"a"}`, `{"ids":["` + id(0) + `"],"base64":"//8="}`, `{"ids":["abcdef"]}`, `{"filter":{},"ids":["` + id(0) + `"]}`, `{"filter":{},"limit":100001}`,
		`{"ids":["` + strings.Repeat(id(0)+`","`, 1000) + id(0) + `"]}`} {
		if p := w.ask(t, "operator", "POST", "/trials", body).problem(t); p.Status != http.StatusUnprocessableEntity {
			t.Errorf("%.80s: %+v", body, p)
		}
	}
}

func TestReport_OrderAndHorizon(t *testing.T) {
	t.Parallel()
	a := newWorld(t).ask(t, "viewer", "GET", "/report", "")
	var r api.Report
	a.into(t, &r)
	if r.Unresolved != 8 || r.Lines[0].Code != "network" || len(r.Horizon) != 2 || !r.Horizon[0].Known || r.Horizon[0].Used != 0.6 || r.Horizon[1].Known {
		t.Errorf("%+v", r)
	}
	if strings.Contains(a.body, marker) {
		t.Error(a.body)
	}
}

func TestRoutes_NoneWithoutAPort(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *api.Config, p *api.Ports) {
		p.Trial, p.WhereIs, p.Check, p.Horizon, p.Inventory, p.Prove, p.Forget, p.ForgetLetters, p.Verify = nil, nil, nil, nil, nil, nil, nil, nil, nil
	})
	if a := w.ask(t, "admin", "POST", "/trials", `{"filter":{}}`); a.code != http.StatusNotFound {
		// The document of another world has the route, with 404 among its problems.
		t.Error(a)
	}
	if doc := w.ask(t, "admin", "GET", "/openapi.json", "").body; strings.Contains(doc, "where-is") || strings.Contains(doc, "/trials\"") || strings.Contains(doc, "/check\"") || strings.Contains(doc, "/verify\"") || strings.Contains(doc, "/archives\"") || strings.Contains(doc, "/forget\"") {
		t.Error("the document has them")
	}
	if a := w.ask(t, "admin", "GET", "/report", ""); a.code != http.StatusOK {
		t.Error(a)
	}
}

// sqlError is like a driver's error: it has a code, and a text that quotes the row.
type sqlError struct{ code string }

func (e sqlError) Error() string    { return "ERROR: new row violates: (" + marker + ")" }
func (e sqlError) SQLState() string { return e.code }

func TestProblem_DatabaseAwayIs503(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code int
	}{
		{fmt.Errorf("list: %w", sqlError{"57P03"}), 503}, {&net.OpError{Op: "dial", Err: errors.New(marker)}, 503}, {sqlError{"42P01"}, 503},
		{context.DeadlineExceeded, 503}, {context.Canceled, 503}, {sqlError{"23514"}, 500}, {errors.New(marker), 500}, {ledger.ErrLost, 409},
	} {
		w := newWorld(t) // an act that fails changes nothing of it
		w.book.err = c.err
		w.store.Fail(c.err)
		w.states.Fail(c.err)
		for _, row := range permissions {
			if row.operation == "classify" || row.operation == "show-completeness" || row.operation == "find-homes" || row.operation == "whoami" || row.operation == "where-is" || row.operation == "check" || row.operation == "try-dead-letters" || c.code == 409 && row.method == "GET" {
				continue
			}
			if row.operation == "create-job" && c.code == 409 {
				continue
			}
			w.log.Reset()
			p := w.ask(t, "admin", row.method, row.path, row.body)
			if p.problem(t).Status != c.code || strings.Contains(p.body, marker) || strings.Contains(w.log.String(), marker) {
				t.Errorf("%s with %v: %s\n%s", row.operation, c.err, p.body, w.log)
			}
			if (c.code == 503) != (p.header.Get("Retry-After") != "") {
				t.Errorf("%s: %v", row.operation, p.header)
			}
			if c.code >= 500 && !strings.Contains(w.log.String(), "request failed") {
				t.Error("the log does not have it:", w.log)
			}
		}
		if c.code == 409 {
			continue
		}
		w = newWorld(t, func(_ *api.Config, p *api.Ports) { p.Trial = tries{err: c.err} })
		if p := w.ask(t, "admin", "POST", "/trials", `{"filter":{}}`); p.problem(t).Status != c.code || strings.Contains(p.body, marker) {
			t.Error(p)
		}
	}
}

func TestProblem_NoDescriptorLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book.err = syscall.EMFILE
	a := w.ask(t, "viewer", "GET", "/dead-letters", "")
	if p := a.problem(t); p.Status != http.StatusServiceUnavailable || p.Detail != "the database does not answer (no_descriptors)" || a.header.Get("Retry-After") == "" {
		t.Error(a)
	}
}

func TestPanic_IsAnsweredAndNotQuoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book.hook = func() { panic(marker) }
	a := w.ask(t, "viewer", "GET", "/dead-letters", "")
	if a.problem(t).Status != http.StatusInternalServerError || strings.Contains(w.log.String()+a.body, marker) ||
		!strings.Contains(w.log.String(), "request handler panicked") || !strings.Contains(w.log.String(), "(*book).enter") {
		t.Error(a, w.log)
	}
	if w.count(t, "docket_desk_api_panics_total", nil) != 1 {
		t.Error("it is not counted")
	}
	w.book.hook = nil
	for range 70 { // more than there are places
		if a := w.ask(t, "viewer", "GET", "/dead-letters", ""); a.code != http.StatusOK {
			t.Fatal("a place was not given back:", a)
		}
	}
}

func TestLimits_TimeAndPlaces(t *testing.T) {
	t.Parallel()
	if _, err := router(); err != nil { // before the bubble, which it would outlive
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *api.Config, p *api.Ports) {
			c.MaxInFlight, c.LongTimeout = 3, time.Hour
			p.Trial = waits{}
		})
		codes := make(chan int, 4)
		for range 4 {
			go func() {
				codes <- w.ask(t, "operator", "POST", "/trials", `{"filter":{}}`).code
			}()
		}
		synctest.Wait()
		// Two clients try. Both find the places for long requests taken, or all places.
		for range 2 {
			if c := <-codes; c != http.StatusServiceUnavailable {
				t.Error(c)
			}
		}
		if a := w.ask(t, "viewer", "GET", "/whoami", ""); a.code != http.StatusOK {
			t.Error("long work takes every place:", a)
		}
		begun := time.Now()
		for range 2 {
			if c := <-codes; c != http.StatusServiceUnavailable || time.Since(begun) != time.Hour {
				t.Error(c, time.Since(begun))
			}
		}
	})
}

// waits is a dry run that does not end by itself.
type waits struct{}

func (waits) Run(ctx context.Context, _ ledger.Filter, _ int64, _ func(done, total int64)) (worker.TrialResult, error) {
	<-ctx.Done()
	return worker.TrialResult{}, ctx.Err()
}

func (waits) RunIDs(ctx context.Context, _ []string, _ func(done, total int64)) (worker.TrialResult, error) {
	<-ctx.Done()
	return worker.TrialResult{}, ctx.Err()
}

func (waits) RunValue(ctx context.Context, _ []byte) (worker.TrialResult, error) {
	<-ctx.Done()
	return worker.TrialResult{}, ctx.Err()
}

// takes is a dry run that takes this long.
type takes time.Duration

func (d takes) Run(ctx context.Context, _ ledger.Filter, _ int64, _ func(done, total int64)) (worker.TrialResult, error) {
	select {
	case <-ctx.Done():
		return worker.TrialResult{}, ctx.Err()
	case <-time.After(time.Duration(d)):
		return worker.TrialResult{}, nil
	}
}

func (d takes) RunValue(ctx context.Context, _ []byte) (worker.TrialResult, error) {
	return d.Run(ctx, ledger.Filter{}, 0, nil)
}

func (d takes) RunIDs(ctx context.Context, _ []string, progress func(done, total int64)) (worker.TrialResult, error) {
	return d.Run(ctx, ledger.Filter{}, 0, progress)
}
