package console_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
)

func day(text string) archive.Day {
	d, err := archive.ParseDay(text)
	if err != nil {
		panic(err)
	}
	return d
}

// calendar has a day of each state.
func calendar(context.Context) (archive.Calendar, error) {
	m := &archive.Manifest{Format: archive.FormatParquet, Table: "decision_logs", Day: "2026-02-10", Rows: 1200, Files: []archive.File{{Bytes: 1_500_000}}, CreatedAt: noon, CreatedBy: "docket desk"}
	h := archive.Holdings{
		Held: []archive.Held{{Day: day("2026-02-12"), Location: archive.Attached, Rows: 5000, Bytes: 9_000_000}, {Day: day("2026-02-10"), Location: archive.Attached, Rows: -1, Bytes: 10}, {Day: day("2026-02-09"), Location: archive.Leaving, Rows: 3, Bytes: 30},
			{Day: day("2026-02-08"), Location: archive.Attached, Rows: 3, Bytes: 30}, {Day: day("2026-01-31"), Location: archive.Shared, Rows: 77, Bytes: 7000}},
		Counted: map[archive.Day]int64{day("2026-02-06"): 40, day("2026-02-12"): 4990}, Working: []archive.Day{day("2026-02-08")},
		Left: []archive.Left{{Day: day("2026-02-04"), Forgotten: &archive.Forgotten{At: noon, By: "mara", Reason: "we keep a year"}}}, Lacks: []string{"One place was not looked at."},
	}
	c := archive.CalendarOf(h, []archive.Shelved{{Day: day("2026-02-10"), Archives: []*archive.Manifest{m}}, {Day: day("2026-02-07"), Archives: []*archive.Manifest{m}}, {Day: day("2026-02-05"), Gaps: []string{"archive x is broken"}, Unfinished: []string{"decision_logs-2026-02-05-002-3f9a2c-00000000"}}}, archive.DayOf(noon))
	c.Where = "s3://archive/docket"
	return c, nil
}

func TestArchive_NamesEachState(t *testing.T) {
	t.Parallel()
	b := newWorld(t).as(t, "viewer")
	a := b.get(t, "/archive")
	for of, want := range map[string]string{
		"2026-02-12": "hot", "2026-02-11": "missing", "2026-02-10": "hot, and archived", "2026-02-09": "left off", "2026-02-08": "at work", "2026-02-07": "archived", "2026-02-06": "dropped", "2026-02-05": "archived", "2026-02-04": "forgotten",
	} {
		if !regexp.MustCompile(`<tr><td data-th="Day">(<a href="[^"]+">)?` + of + `(</a>)?</td><td data-th="State"><span class="badge [a-z]*">` + want + `</span>`).MatchString(a.body) {
			t.Errorf("%s is not %s", of, want)
		}
		// The same in the calendar above the list.
		if n := strings.TrimLeft(of[8:], "0"); !regexp.MustCompile(`<td>(<a href="[^"]+" aria-label="` + n + `: decisions of ` + of + `">|<span class="dim">)` + n + `</(a|span)><br><span class="badge [a-z]*">` + want + `</span></td>`).MatchString(a.body) {
			t.Errorf("in the calendar %s is not %s", of, want)
		}
	}
	for _, want := range []string{"One place was not looked at.", "s3://archive/docket", "archive x is broken", `<span class="dim small x">archive decision_logs-2026-02-05-002-3f9a2c-00000000 is not finished: a run is writing it, or was killed</span>`, "up to 2026-01-31", `<a href="/decisions?since=2026-02-09&amp;until=2026-02-10">`, "1.5 MB", "parquet", "forgotten on purpose by mara at ", ": we keep a year"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, none := range []string{`since=2026-02-04&amp;`, `since=2026-02-06&amp;`, `since=2026-02-11&amp;`} {
		if strings.Contains(a.body, none) {
			t.Errorf("the page leads to decisions of a day without any: %s", none)
		}
	}
	if a := b.get(t, "/archive?month=2026-13"); a.code != http.StatusUnprocessableEntity {
		t.Errorf("a wrong month: %d", a.code)
	}
	if a := b.get(t, "/archive?month=2020-01"); a.code != http.StatusOK || !strings.Contains(a.body, "No day of this month is known") {
		t.Errorf("a month without days: %d", a.code)
	}
}

func TestArchive_OfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) {
		p.Calendar = func(context.Context) (archive.Calendar, error) { return archive.Calendar{}, nil }
	})
	if a := w.as(t, "viewer").get(t, "/archive"); a.code != 200 || !strings.Contains(a.body, "No day is known") || !strings.Contains(a.body, "knows no place of archives") {
		t.Errorf("%d %s", a.code, a.body)
	}
	w = newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) { p.Calendar = nil })
	if a := w.as(t, "viewer").get(t, "/archive"); a.code != http.StatusNotFound || strings.Contains(a.body, `href="/archive"`) {
		t.Errorf("a desk without days: %d", a.code)
	}
	w = newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) {
		p.Calendar = func(context.Context) (archive.Calendar, error) { return archive.Calendar{}, errors.New("gone") }
	})
	if a := w.as(t, "viewer").get(t, "/archive"); a.code < 500 {
		t.Errorf("a database that is gone: %d", a.code)
	}
}

// audited gives a book lines of several persons.
func audited(b *book, n int, choose func(i int) (who string, act ledger.Act)) {
	for i := range n {
		who, act := choose(i)
		b.audits = append(b.audits, ledger.Audit{ID: int64(i + 1), At: noon.Add(-time.Duration(n-i) * time.Minute), LetterID: letterID(i % 5), Act: act, From: ledger.Pending, To: ledger.Pending, By: who, Why: fmt.Sprint("why ", i), Original: []byte(marker), Diff: marker, Was: []byte(marker)})
	}
}

func TestAudit_PeopleFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	audited(w.book, 40, func(i int) (string, ledger.Act) {
		if i%4 == 0 {
			return "mara", ledger.PeopleActs()[i/4%6]
		}
		return "docket desk", ledger.Entered
	})
	b := w.as(t, "viewer")
	a := b.get(t, "/audit")
	if strings.Count(a.body, "<span class=\"x\">mara</span>") != 10 || strings.Contains(a.body, ">docket desk<") || strings.Contains(a.body, marker) {
		t.Error("the page has not what people decided, or a payload")
	}
	for query, want := range map[string]int{"act=all": 40, "act=entered": 30, "act=approved": 1, "act=all&actor=mara": 10, "actor=nobody": 0, "act=all&since=10m": 10, "act=all&until=10m": 30} {
		if got := strings.Count(b.get(t, "/audit?"+query).body, `data-th="Who"`); got != want {
			t.Errorf("%s: %d lines, want %d", query, got, want)
		}
	}
	for _, query := range []string{"act=danced", "since=soon", "before=x", "after=-1", "before=1&after=1", "since=1h&until=2h", "actor=" + strings.Repeat("n", 300), "actor=%00"} {
		if a := b.get(t, "/audit?"+query); a.code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", query, a.code)
		}
	}
	if !strings.Contains(a.body, "It is in the desk&#39;s log") && !strings.Contains(a.body, "It is in the desk's log") {
		t.Error("the page does not say where looks are")
	}
}

// TestAudit_OfRulesAndGroups: the author of what a rule did is found by its exact name, and the history of a group is in the audit.
func TestAudit_OfRulesAndGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fingerprint := "8d0e3f21aabbccdd"
	w.book.audits = []ledger.Audit{
		{ID: 1, At: noon, LetterID: letterID(0), Act: ledger.Closed, From: ledger.Pending, To: ledger.Resolved, By: "rule 7 of mara", Why: "tests"},
		{ID: 2, At: noon, LetterID: letterID(1), Act: ledger.Closed, From: ledger.Pending, To: ledger.Resolved, By: "rule 71 of mara", Why: "tests"},
	}
	w.book.groupAudits = []ledger.Audit{
		{ID: 1, At: noon, Fingerprint: fingerprint, Rule: 7, Act: "rule_added", By: "mara", Why: "flaky"},
		{ID: 2, At: noon, Fingerprint: strings.Repeat("0", 16), Act: ledger.Assigned, By: "mara", Why: "to oleg: yours"},
	}
	b := w.as(t, "viewer")
	for query, want := range map[string]int{
		"actor=rule+7+of+mara": 1, "actor=rule+7": 0, "": 2, "of=groups": 2, "of=groups&group=" + fingerprint: 1, "of=groups&act=assigned": 1, "of=groups&actor=rule+7+of+mara": 0, "of=groups&before=2": 1,
	} {
		if got := strings.Count(b.get(t, "/audit?"+query).body, `data-th="Who"`); got != want {
			t.Errorf("%s: %d lines, want %d", query, got, want)
		}
	}
	for _, query := range []string{"of=all", "group=" + fingerprint, "of=groups&group=xy", "of=groups&act=closed"} {
		if a := b.get(t, "/audit?"+query); a.code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", query, a.code)
		}
	}
	if a := b.get(t, "/audit?of=groups&group="+fingerprint+"&act=rule_added"); !strings.Contains(a.body, `href="/dead-letters/groups/`+fingerprint+`"`) || !strings.Contains(a.body, `name="group" value="`+fingerprint+`"`) {
		t.Errorf("the page of one group: %s", a.body)
	}
}

func TestAudit_BothWaysVisitEachOnce(t *testing.T) {
	t.Parallel()
	why := regexp.MustCompile(`<span class="x">(why \d+)</span>`)
	w := newWorld(t)
	b := w.as(t, "viewer")
	rapid.Check(t, func(r *rapid.T) {
		w.book.audits = nil
		audited(w.book, rapid.IntRange(0, 170).Draw(r, "lines"), func(int) (string, ledger.Act) {
			return rapid.SampledFrom([]string{"mara", "olga"}).Draw(r, "who"), rapid.SampledFrom([]ledger.Act{ledger.Retried, ledger.Entered, ledger.Closed}).Draw(r, "act")
		})
		path := "/audit?" + rapid.SampledFrom([]string{"", "act=all", "actor=mara", "act=all&since=100m"}).Draw(r, "filter")
		read := func(path string) (lines []string, body string) {
			body = b.get(t, path).body
			for _, m := range why.FindAllStringSubmatch(body, -1) {
				lines = append(lines, html.UnescapeString(m[1]))
			}
			return lines, body
		}
		var forth, back [][]string
		var last string
		for path != "" && len(forth) < 10 {
			lines, body := read(path)
			forth, last = append(forth, lines), body
			path = linked(body, nextLink)
		}
		for path = linked(last, prevLink); path != "" && len(back) < 10; {
			lines, body := read(path)
			back = append(back, lines)
			path = linked(body, prevLink)
		}
		slices.Reverse(back)
		if down, up := slices.Concat(forth[:len(forth)-1]...), slices.Concat(back...); !slices.Equal(down, up) || len(down) != len(slices.Compact(slices.Sorted(slices.Values(down)))) {
			r.Fatalf("down %v, up %v", down, up)
		}
	})
}

func TestAudit_NewerIsTheFirstPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	audited(w.book, 120, func(int) (string, ledger.Act) { return "mara", ledger.Closed })
	b := w.as(t, "viewer")
	first := b.get(t, "/audit")
	second := b.get(t, linked(first.body, nextLink))
	back := b.get(t, linked(second.body, prevLink))
	lines := regexp.MustCompile(`>why \d+<`)
	if got, want := lines.FindAllString(back.body, -1), lines.FindAllString(first.body, -1); len(want) != 50 || !slices.Equal(got, want) {
		t.Errorf("%d lines on the way back, want %d", len(got), len(want))
	}
	if lines.FindString(second.body) == lines.FindString(first.body) {
		t.Error("the second page is the first")
	}
}

func TestAudit_HostileText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, text := range hostile {
		w.book.audits = append(w.book.audits, ledger.Audit{ID: int64(i + 1), At: noon, LetterID: letterID(0), Act: ledger.Closed, By: text, Why: text, Login: text, Application: text, Client: text})
	}
	harmless(t, "audit", w.as(t, "viewer").get(t, "/audit").body)
}

func TestRates_ByRevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.as(t, "viewer").get(t, "/rates?by=revision")
	for _, want := range []string{"main@r7", `data-th="Denied" class="num">10<`, "25.0 %", `href="/decisions?path=http%2Fauthz%2Fallow&amp;since=2026-03-01T10%3A00%3A00Z&amp;until=2026-03-01T12%3A00%3A01Z"`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	w = newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) { p.States = nil })
	if a := w.as(t, "viewer").get(t, "/rates?by=revision"); a.code != 200 || strings.Contains(a.body, "path and revision") {
		t.Errorf("a desk without states: %d", a.code)
	}
}
