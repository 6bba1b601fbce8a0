//go:build integration

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/store"
	"docket/internal/record/envelope"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

func init() {
	pgtest.StartServer = func(t testing.TB) string { return testenv.Postgres(t).Database(t) }
}

// newRealWorld is an API on a ledger in Postgres with n dead letters. It returns their ids.
func newRealWorld(t *testing.T, n int) (*world, *pgtest.DB, []string) {
	t.Helper()
	d := pgtest.New(t)
	db, err := store.Open(db.Config{URL: d.URL, StoreTimeout: 5 * time.Second}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	book := ledgerdb.New(db.DB)
	letters, ids := make([]ledger.Letter, n), make([]string, n)
	for i := range letters {
		o := envelope.Origin{Topic: "decision-logs", Partition: int32(i % 2), Offset: int64(i), Index: envelope.NoIndex, Timestamp: noon}
		value := []byte(fmt.Sprintf(`{"n":%d,"who":%q}`, i, marker))
		letters[i] = ledger.Letter{ID: envelope.ID(o, value), Origin: o, Found: ledger.Found{Topic: "decision-logs-dlq", Offset: int64(i), Stamp: noon},
			Cause: envelope.Cause{Kind: envelope.Data, Code: "23514", Message: "check_violation", Constraint: "small"}, FirstFailedAt: noon,
			FailedAt: noon.Add(time.Duration(i) * time.Second), Key: []byte(marker), Value: value, Path: "a/b",
			Headers: []ledger.Header{{Key: "trace", Value: []byte{0xff}}, {Key: "\xff", Value: nil}}}
		ids[i] = letters[i].ID
	}
	if _, err := book.Enter(t.Context(), letters, 3, ledger.Actor{Name: "desk-1"}); err != nil {
		t.Fatal(err)
	}
	return newWorld(t, func(_ *api.Config, p *api.Ports) { p.Book = book }), d, ids
}

func TestLetters_OnPostgres(t *testing.T) {
	t.Parallel()
	w, _, ids := newRealWorld(t, 5)
	var page api.LetterList
	w.ask(t, "viewer", "GET", "/dead-letters?limit=3&states=PENDING&code=23514&path=a/b", "").into(t, &page)
	if len(page.Letters) != 3 || page.Letters[0].ID != ids[4] || page.Next == "" {
		t.Fatalf("%+v", page)
	}
	after := page.Next
	w.ask(t, "viewer", "GET", "/dead-letters?limit=3&states=PENDING&code=23514&path=a/b&after="+after, "").into(t, &page)
	if len(page.Letters) != 2 || page.Letters[1].ID != ids[0] {
		t.Fatalf("%+v", page)
	}
	if p := w.ask(t, "viewer", "GET", "/dead-letters?after=%00nonsense", "").problem(t); p.Status != http.StatusUnprocessableEntity {
		t.Errorf("%+v", p)
	}
	if p := w.ask(t, "viewer", "GET", "/groups?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "").problem(t); p.Status != http.StatusUnprocessableEntity || len(p.Faults) != 1 {
		t.Errorf("%+v", p)
	}
	if p := w.ask(t, "viewer", "GET", "/groups?code=%00%ff", "").problem(t); p.Status != http.StatusUnprocessableEntity {
		t.Errorf("%+v", p)
	}
	var p api.Payload
	w.ask(t, "operator", "GET", "/dead-letters/"+ids[0][:10]+"/payload", "").into(t, &p)
	if p.Value.Text == nil || !strings.Contains(*p.Value.Text, marker) || string(p.Headers[0].Value.Base64) != "\xff" || string(p.Headers[1].Key.Base64) != "\xff" {
		t.Errorf("%+v", p)
	}
	w.changed(t, ids[0])
	if a := w.ask(t, "operator", "POST", "/dead-letters/"+ids[1]+"/resolve", `{"note":"a test record"}`); a.code != http.StatusOK {
		t.Error(a)
	}
	var h api.History
	w.ask(t, "viewer", "GET", "/dead-letters/"+ids[0]+"/history", "").into(t, &h)
	if len(h.Events) != 5 || h.Events[1].Act != ledger.Proposed || h.Events[1].By != "adam" || h.Events[2].Act != ledger.Approved || h.Events[2].By != "anna" || !h.Events[3].Changed || h.Events[3].By != "adam" ||
		h.Events[3].Login != "postgres" || h.Events[4].To != ledger.Processing || h.Events[4].By != "anna" || len(h.Retries) != 1 {
		t.Errorf("%+v", h)
	}
	if a := w.ask(t, "viewer", "GET", "/dead-letters/"+strings.Repeat("0", 64)+"/history", ""); a.code != http.StatusNotFound {
		t.Error(a)
	}
	var r api.Report
	w.ask(t, "viewer", "GET", "/report", "").into(t, &r)
	if r.Unresolved != 4 || len(r.Lines) != 1 || r.Lines[0].Counts.Processing != 1 {
		t.Errorf("%+v", r)
	}
	var g api.Groups
	w.ask(t, "viewer", "GET", "/groups", "").into(t, &g)
	if len(g.Groups) != 1 || g.Groups[0].Counts != (api.Counts{Pending: 3, Processing: 1, Resolved: 1}) || g.Groups[0].Open != 4 {
		t.Errorf("%+v", g)
	}
	if log := w.log.String(); strings.Contains(log, marker) || strings.Contains(log, "planted") {
		t.Error(log)
	}
}

// changed lets two admins give a letter another payload. The desk has one login, and tokens tell the admins apart.
func (w *world) changed(t *testing.T, letter string) {
	t.Helper()
	path, body := "/dead-letters/"+letter, `{"payload":"{\"decision_id\":\"d\",\"timestamp\":\"2026-03-01T12:00:00Z\",\"path\":\"a/b\"}","reason":"mended","retry":true}`
	for role, want := range map[string]int{"operator": http.StatusForbidden, "admin": http.StatusConflict} {
		if p := w.ask(t, role, "PUT", path+"/payload", body).problem(t); p.Status != want {
			t.Errorf("%s: %+v", role, p)
		}
	}
	var p api.Proposal
	w.ask(t, "admin", "POST", path+"/proposals", body).into(t, &p)
	approve := fmt.Sprintf("/proposals/%d/approve", p.ID)
	if refused := w.ask(t, "admin", "POST", approve, `{"reason":"r"}`).problem(t); refused.Status != http.StatusConflict || !strings.Contains(refused.Detail, "you proposed it") {
		t.Errorf("%+v", refused)
	}
	w.ask(t, "anna", "POST", approve, `{"reason":"looked at it"}`).into(t, &p)
	if p.State != ledger.ProposalApproved || p.By != "adam" || p.DecidedBy != "anna" {
		t.Errorf("%+v", p)
	}
}

func TestJobs_OnPostgres(t *testing.T) {
	t.Parallel()
	w, d, _ := newRealWorld(t, 5)
	var j api.Job
	w.ask(t, "operator", "POST", "/jobs", `{"act":"retry","filter":{"code":"23514","partition":0},"limit":2,"rate":1.5,"reason":"mended"}`).into(t, &j)
	if j.Matched != 2 && j.Matched != 3 || j.Operator != "olga" || j.Act != api.JobRetries || j.Filter.Partition == nil {
		t.Errorf("%+v", j)
	}
	path := fmt.Sprintf("/jobs/%d", j.ID)
	w.ask(t, "otto", "POST", path+"/stop", `{"reason":"wait for the night"}`).into(t, &j)
	if j.State != ledger.JobStopped || j.StoppedBy != "otto" || j.Note != "wait for the night" {
		t.Errorf("%+v", j)
	}
	w.ask(t, "operator", "POST", path+"/resume", `{"reason":"r"}`).into(t, &j)
	if j.State != ledger.JobWaiting {
		t.Errorf("%+v", j)
	}
	d.Exec(t, "UPDATE dead_letter_jobs SET state = 'DONE', ended_at = now()")
	for _, act := range []string{"/stop", "/resume"} {
		if p := w.ask(t, "operator", "POST", path+act, `{"reason":"r"}`).problem(t); p.Status != http.StatusConflict || p.State != "DONE" {
			t.Errorf("%s: %+v", act, p)
		}
	}
	if p := w.ask(t, "admin", "POST", "/jobs", `{"act":"resolve","filter":{"states":["RESOLVED"]},"reason":"r"}`).problem(t); p.Status != http.StatusUnprocessableEntity {
		t.Errorf("%+v", p)
	}
	var all api.JobList
	if w.ask(t, "viewer", "GET", "/jobs", "").into(t, &all); len(all.Jobs) != 1 {
		t.Errorf("%+v", all)
	}
	if a := w.ask(t, "viewer", "GET", "/jobs/99", ""); a.code != http.StatusNotFound {
		t.Error(a)
	}
}

func TestRetry_OneOfTwoOperatorsWinsOnPostgres(t *testing.T) {
	t.Parallel()
	const n = 20
	w, _, ids := newRealWorld(t, n)
	var all sync.WaitGroup
	codes := make([][2]int, n)
	for i, letter := range ids {
		for k, role := range []string{"operator", "otto"} {
			path, body := "/retry", `{"reason":"r"}`
			if k == 1 && i%2 == 0 {
				path, body = "/resolve", `{"note":"n"}`
			}
			all.Go(func() { codes[i][k] = w.ask(t, role, "POST", "/dead-letters/"+letter+path, body).code })
		}
	}
	all.Wait()
	for i, c := range codes {
		var h api.History
		w.ask(t, "viewer", "GET", "/dead-letters/"+ids[i]+"/history", "").into(t, &h)
		if c[0]+c[1] != http.StatusOK+http.StatusConflict || len(h.Events) != 2 {
			t.Errorf("%v, %d events", c, len(h.Events))
		}
		winner := "olga"
		if c[1] == http.StatusOK {
			winner = "otto"
		}
		if h.Events[len(h.Events)-1].By != winner {
			t.Errorf("the audit has %s, the answers %v", h.Events[len(h.Events)-1].By, c)
		}
	}
}

func TestDatabase_AwayIs503OnPostgres(t *testing.T) {
	t.Parallel()
	db, err := store.Open(db.Config{URL: "postgres://nobody:planted-password@127.0.0.1:1/none?sslmode=disable", StoreTimeout: time.Second}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := newWorld(t, func(_ *api.Config, p *api.Ports) { p.Book = ledgerdb.New(db.DB) })
	a := w.ask(t, "viewer", "GET", "/dead-letters", "")
	if a.problem(t).Status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || strings.Contains(a.body+w.log.String(), "planted") {
		t.Error(a, w.log)
	}
}
