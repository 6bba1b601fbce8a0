package console_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/testkit/completetest"
	"docket/internal/testkit/readertest"
)

func exported(t *testing.T, b *browser, query string) [][]string {
	t.Helper()
	a := b.get(t, "/export/decisions?format=csv&"+query)
	if a.code != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "text/csv") || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment; filename=\"decisions-20260301T120000Z.csv\"") {
		t.Fatalf("%d %v", a.code, a.header)
	}
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestExport_HasAllPagesAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.Add(readertest.Decisions(2500, noon.Add(-24*time.Hour))...)
	rows := exported(t, w.as(t, "viewer"), "since=30d")
	if len(rows) != 1+2530+1 || !strings.HasPrefix(rows[len(rows)-1][0], "# 2530 decisions; ended: all that was found; ") || !strings.Contains(rows[len(rows)-1][0], "complete until not known") {
		t.Fatalf("%d rows, the last is %v", len(rows), rows[len(rows)-1])
	}
	seen := map[string]bool{}
	for _, r := range rows[1 : len(rows)-1] {
		if seen[r[1]+r[0]] {
			t.Fatalf("%s comes twice", r[1])
		}
		seen[r[1]+r[0]] = true
	}
	a := w.as(t, "viewer").get(t, "/export/decisions?format=jsonl&since=30d&verdict=denied")
	lines := strings.Split(strings.TrimSuffix(a.body, "\n"), "\n")
	var end struct {
		Export struct {
			Rows int
			All  bool
		} `json:"docket_export"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil || !end.Export.All || end.Export.Rows != len(lines)-1 || end.Export.Rows != 506 {
		t.Errorf("%v, %d lines, the last is %s", err, len(lines), lines[len(lines)-1])
	}
	var d api.Decision
	if err := json.Unmarshal([]byte(lines[0]), &d); err != nil || d.Verdict != reader.Denied || d.Decision != nil {
		t.Errorf("%v: %+v", err, d)
	}
}

func TestExport_RoleLimitsRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.Add(readertest.Decisions(11_000, noon.Add(-24*time.Hour))...)
	rows := exported(t, w.as(t, "viewer"), "since=300d")
	if len(rows) != 1+10_000+1 || !strings.Contains(rows[10_001][0], "ended: the limit of rows was reached") {
		t.Errorf("a viewer gets %d rows, the last is %v", len(rows), rows[len(rows)-1])
	}
	if rows := exported(t, w.as(t, "auditor"), "since=300d"); len(rows) != 1+11_030+1 {
		t.Errorf("an auditor gets %d rows", len(rows))
	}
}

func TestExport_PayloadsNeedARoleAndAreNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.as(t, "viewer")
	for _, path := range []string{"/export/decisions?format=jsonl&payload=1", "/export/decisions?format=csv&match=input:/n=1"} {
		if a := v.get(t, path); a.code != http.StatusForbidden || strings.Contains(a.body, readertest.Secret) {
			t.Errorf("a viewer, %s: %d", path, a.code)
		}
	}
	for _, format := range []string{"csv", "jsonl"} {
		if a := w.as(t, "auditor").get(t, "/export/decisions?format="+format); strings.Contains(a.body, readertest.Secret) || strings.Contains(w.log.String(), "decisions read") {
			t.Errorf("%s has payloads that nobody asked for", format)
		}
	}
	a := w.as(t, "auditor").get(t, "/export/decisions?format=jsonl&payload=1")
	if !strings.Contains(a.body, readertest.Secret) || !strings.Contains(w.log.String(), `"operator":"aude","operation":"search-decisions"`) || !strings.Contains(w.log.String(), `"payload":true`) {
		t.Error("payloads are missing, or the look is not noted")
	}
	if !strings.Contains(w.log.String(), "decisions exported") || strings.Contains(w.log.String(), readertest.Secret) {
		t.Error("the export is not noted, or the log has a payload")
	}
	if a := w.as(t, "auditor").get(t, "/export/decisions?format=csv&payload=1"); a.code != http.StatusUnprocessableEntity {
		t.Errorf("payloads as CSV: %d", a.code)
	}
	if a := v.get(t, "/export/decisions?format=xlsx"); a.code != http.StatusUnprocessableEntity {
		t.Errorf("another format: %d", a.code)
	}
}

// TestExport_FormulasAreText: a spreadsheet computes no cell that a stranger wrote.
func TestExport_FormulasAreText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	texts := append([]string{`=cmd|' /C calc'!A0`, `+1+1`, `-2+3`, `@SUM(A1)`, "\t=1", "\r=1", "\n=1", ` =1`, "\u00a0=1", "＝1", `=HYPERLINK("https://evil.example")`}, hostile...)
	for i, text := range texts {
		w.store.Add(hostileDecision(t, i, text))
	}
	rows := exported(t, w.as(t, "viewer"), "since=300d&until=2027-01-01")
	if len(rows) < len(texts) {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		for _, cell := range r {
			if trimmed := strings.TrimLeft(cell, " \t\r\n\u00a0\u3000"); trimmed != "" && strings.ContainsAny(trimmed[:1], "=+-@") || strings.HasPrefix(trimmed, "＝") || cell != "" && strings.ContainsAny(cell[:1], "\t\r\n") {
				t.Errorf("the cell %q is a formula", cell)
			}
			if strings.ContainsAny(cell, "\x00\x1b\u202e\u200b") {
				t.Errorf("the cell %+q hides text", cell)
			}
		}
	}
	if got := console.Defused("2026-03-01"); got != "2026-03-01" {
		t.Errorf("a plain cell is %q", got)
	}
}

// TestExport_EndsWithAFault: a file that ended early does not look whole.
func TestExport_EndsWithAFault(t *testing.T) {
	t.Parallel()
	store := &failing{left: 3} // the first page also looks for later ones
	store.Add(readertest.Decisions(2500, noon)...)
	w := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) { p.Decisions = store })
	rows := exported(t, w.as(t, "auditor"), "since=30d")
	if len(rows) != 1+2000+1 || !strings.HasPrefix(rows[2001][0], "# 2000 decisions; ended: the desk could not read on") {
		t.Errorf("%d rows, the last is %v", len(rows), rows[len(rows)-1])
	}
	w.store.Fail(nil)
	if a := w.as(t, "auditor").get(t, "/export/decisions?format=csv"); a.code < 500 || a.header.Get("Content-Disposition") != "" {
		t.Errorf("a store that is gone: %d", a.code)
	}
	for range 3 {
		if a := w.as(t, "auditor").get(t, "/export/decisions?format=csv"); strings.Contains(a.body, "Others export") {
			t.Error("an export that failed keeps its place")
		}
	}
}

// failing is a store that fails after some searches.
type failing struct {
	readertest.Store
	left int
}

func (f *failing) Search(ctx context.Context, q reader.Filter, p reader.Page) (reader.Found, error) {
	if f.left--; f.left < 0 {
		return reader.Found{}, errors.New("gone")
	}
	return f.Store.Search(ctx, q, p)
}

// looked calls do at each search, with its range.
type looked struct {
	readertest.Store
	do func(f reader.Filter)
}

func (l *looked) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	l.do(f)
	return l.Store.Search(ctx, f, p)
}

// TestExport_RangeIsFixed: each page is a question of its own, and "1h" would begin later each time.
func TestExport_RangeIsFixed(t *testing.T) {
	t.Parallel()
	since := map[time.Time]bool{}
	store := &looked{}
	store.Add(readertest.Decisions(2500, noon)...)
	w := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) { p.Decisions = store })
	store.do = func(f reader.Filter) {
		if f.Since.Before(noon) { // the others look for what is ahead of the clock
			since[f.Since] = true
		}
		w.clock.pass(2 * time.Minute)
	}
	rows := exported(t, w.as(t, "auditor"), "since=5d")
	if len(since) != 1 || !strings.Contains(rows[len(rows)-1][0], "all that was found") {
		t.Errorf("%v, the last is %v", since, rows[len(rows)-1])
	}
}

func TestExport_EndsWithTheLogin(t *testing.T) {
	t.Parallel()
	store := &looked{}
	store.Add(readertest.Decisions(2500, noon)...)
	w := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) { p.Decisions = store })
	b, asked := w.as(t, "auditor"), 0
	store.do = func(reader.Filter) {
		if asked++; asked == 3 { // the first page looks twice
			if _, err := w.sessions.EndAll(t.Context(), "aude"); err != nil {
				t.Error(err)
			}
		}
	}
	rows := exported(t, b, "since=30d")
	if last := rows[len(rows)-1][0]; !strings.Contains(last, "ended: the login ended") || len(rows) > 2500 {
		t.Errorf("%d rows, the last is %v", len(rows), last)
	}
}

// gappy is a store that changes what a search finds behind the first page.
type gappy struct {
	readertest.Store
	later func(found *reader.Found) error
}

func (g *gappy) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	found, err := g.Store.Search(ctx, f, p)
	if p.After != "" && err == nil {
		err = reader.Told(ctx, g.later(&found))
	}
	return found, err
}

// seen has Kafka seen: all that had reached it five seconds before noon is stored.
func seen(t *testing.T, p *api.Ports) {
	t.Helper()
	all := map[string]int64{completetest.Source: 9}
	watch := completetest.Watch(&completetest.Log{Ends: all, Done: all}, func() time.Time { return noon })
	if err := watch.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Complete = &complete.Answers{Status: func(context.Context) complete.Status { return watch.Status() }, Books: completetest.Books{}, Within: time.Hour}
}

// TestExport_IsAsCompleteAsItsPages: the last line speaks of all pages, the headers of the first.
func TestExport_IsAsCompleteAsItsPages(t *testing.T) {
	t.Parallel()
	day := reader.Gap{Name: "day 2026-02-20", Why: "this role may not read the table", Rows: true}
	const fresh, partial = `"freshness":"FRESH","complete_until":"2026-03-01T11:59:55Z"}}`, `"freshness":"PARTIAL"`
	const csvFresh, csvPartial = "; FRESH, complete until 2026-03-01T11:59:55Z", "; PARTIAL, complete until not known"
	for name, c := range map[string]struct {
		later       func(found *reader.Found) error
		jsonl, last string
	}{
		"whole": {func(*reader.Found) error { return nil }, fresh, csvFresh},
		"a place missed": {func(f *reader.Found) error {
			f.NotLooked = append(f.NotLooked, day)
			return nil
		}, partial + `,"missing":["Not looked at: day 2026-02-20: this role may not read the table"]}}`, csvPartial + "; Not looked at: day 2026-02-20: this role may not read the table"},
		"an archive unread": {func(f *reader.Found) error {
			f.NotLooked = append(f.NotLooked, reader.Gap{Name: "archive", Why: "away"})
			return nil
		}, partial + `,"missing":["Not looked at: archive: away"]}}`, csvPartial + "; Not looked at: archive: away"},
		"a shard away": {func(*reader.Found) error {
			return &reader.PartialError{Missed: []reader.Missed{{Shard: "b", Err: errors.New("refused")}}}
		}, partial + `,"missing":["Shard not asked: b"]}}`, csvPartial + "; Shard not asked: b"},
		"short of time": {func(f *reader.Found) error {
			f.Reached = noon.Add(-time.Hour)
			return nil
		}, fresh, csvFresh},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &gappy{later: c.later}
			store.Add(readertest.Decisions(2500, noon)...)
			b := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) {
				p.Decisions = store
				seen(t, p)
			}).as(t, "auditor")
			a := b.get(t, "/export/decisions?format=jsonl&since=30d")
			lines := strings.Split(strings.TrimSuffix(a.body, "\n"), "\n")
			if last := lines[len(lines)-1]; len(lines) != 2501 || !strings.HasSuffix(last, c.jsonl) {
				t.Errorf("%d lines, the last is %s", len(lines), last)
			}
			if a.header.Get("Docket-Freshness") != "FRESH" || a.header.Get("Docket-Complete-Until") == "" {
				t.Errorf("the first page is not complete: %v", a.header)
			}
			rows := exported(t, b, "since=30d")
			if last := rows[len(rows)-1][0]; len(rows) != 2502 || !strings.HasSuffix(last, c.last) {
				t.Errorf("%d rows, the last is %s", len(rows), last)
			}
		})
	}
}

// TestExport_CutShortIsPartial: pages that were not read are missed, too.
func TestExport_CutShortIsPartial(t *testing.T) {
	t.Parallel()
	store := &failing{left: 3} // the first page also looks for later ones
	store.Add(readertest.Decisions(2500, noon)...)
	w := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) {
		p.Decisions = store
		seen(t, p)
	})
	rows := exported(t, w.as(t, "auditor"), "since=30d")
	if last := rows[len(rows)-1][0]; last != "# 2000 decisions; ended: the desk could not read on; PARTIAL, complete until not known" {
		t.Errorf("the last is %s", last)
	}
}

func TestExport_TwoAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "viewer")
	leave := console.FillExports(w.console)
	if a := b.get(t, "/export/decisions?format=csv"); a.code != http.StatusServiceUnavailable || !strings.Contains(a.body, "Others export") {
		t.Errorf("a third export: %d", a.code)
	}
	leave()
	if rows := exported(t, b, ""); len(rows) != 32 {
		t.Errorf("%d rows", len(rows))
	}
	if a := b.get(t, "/decisions?"+url.Values{"path": {`a"b`}}.Encode()); !strings.Contains(a.body, `href="/export/decisions?format=csv&amp;path=a%22b" download`) {
		t.Error("the page has no export of its search")
	}
}
