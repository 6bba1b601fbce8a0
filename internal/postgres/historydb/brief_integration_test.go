//go:build integration

package historydb_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
)

// TestBrief_AsInWindows compares pages of one request with those of a search in windows. There are decisions of a day ago, of
// now and of the time to come, and many share a moment.
func TestBrief_AsInWindows(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	r := historydb.NewReader(open(t, d.URL, 2*time.Minute).DB).Patient()
	now := time.Now().UTC().Truncate(time.Hour)
	for _, at := range []time.Time{now.AddDate(0, 0, -1), now.Add(12 * time.Hour)} {
		d.Exec(t, fmt.Sprintf(`INSERT INTO decision_logs (decision_id, ts, path, service, allowed, requested_by, labels, raw, source_topic, source_partition, source_offset, source_index)
			SELECT chr(97 + n %% 26) || n, '%s'::timestamptz + n / 3 * interval '9 seconds', 'a/b', 'a', n %% 2 = 0, '10.0.0.1:' || n, jsonb_build_object('app', n %% 5), jsonb_build_object('n', n), 't', 0, n, 0
			  FROM generate_series(1, 60) AS n`, at.Format(time.RFC3339)))
	}
	dice := rand.New(rand.NewPCG(1, 2))
	times := []time.Time{now.AddDate(0, 0, -1).Add(-30 * time.Second), now.AddDate(0, 0, -1).Add(45 * time.Second), now.AddDate(0, 0, -1).Add(2 * time.Minute), now.Add(12 * time.Hour), now.Add(12*time.Hour + 90*time.Second), now.Add(15 * time.Hour)}
	pick := func() time.Time {
		if i := dice.IntN(2 * len(times)); i < len(times) {
			return times[i]
		}
		return time.Time{}
	}
	filters := []reader.Filter{{}, {}, {}, {Labels: map[string]string{"app": "3"}}, {Paths: []string{"a/b"}}, {Verdicts: []reader.Verdict{reader.Denied}}, {RequestedBy: []string{"10.0.0.1"}}}
	brief, parts := 0, 0
	for range 400 {
		f := filters[dice.IntN(len(filters))]
		f.Since, f.Until = pick(), pick()
		p := reader.Page{Limit: 1 + dice.IntN(9), Oldest: dice.IntN(2) == 0, Payload: dice.IntN(2) == 0}
		if dice.IntN(3) == 0 {
			first, err := r.Windows(t.Context(), f, p)
			check(t, err)
			p.After = first.Next
		}
		got, once := r.Brief(t.Context(), f, p)
		if !once {
			continue
		}
		brief++
		if len(got.Decisions) > 0 {
			parts++
		}
		want, err := r.Windows(t.Context(), f, p)
		if err != nil || asJSON(t, got) != asJSON(t, want) {
			t.Errorf("%+v, %+v: %v\n%s\n%s", f, p, err, asJSON(t, got), asJSON(t, want))
		}
	}
	if brief < 150 || parts < 80 {
		t.Errorf("%d of 400 pages were read with one request, %d of them had decisions", brief, parts)
	}
}

func asJSON(t *testing.T, f reader.Found) string {
	t.Helper()
	if len(f.Decisions) == 0 {
		f.Decisions = nil
	}
	text, err := json.Marshal(f)
	check(t, err)
	return string(text)
}

// TestBrief_WhatIsAskedMost: the pages that a console asks for, and whether anything later fits.
func TestBrief_WhatIsAskedMost(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	r := historydb.NewReader(open(t, d.URL, 2*time.Minute).DB).Patient()
	// All of it is hours ahead, as the tests below may wait for others.
	insert(t, d, "decision_logs", 0, 9, time.Now().Add(12*time.Hour))
	later, far := time.Now().Add(6*time.Hour), time.Now().Add(48*time.Hour)
	for name, c := range map[string]struct {
		f    reader.Filter
		p    reader.Page
		once bool
	}{
		"the newest":               {reader.Filter{Until: far}, reader.Page{Limit: 8}, true},
		"more than there are":      {reader.Filter{Until: far}, reader.Page{Limit: 9}, false},
		"later ones":               {reader.Filter{Since: later}, reader.Page{Limit: 1, Oldest: true}, true},
		"later ones on a path":     {reader.Filter{Since: later, Paths: []string{"a/b"}}, reader.Page{Limit: 1, Oldest: true}, true},
		"nothing later":            {reader.Filter{Since: far}, reader.Page{Limit: 1, Oldest: true}, true},
		"the oldest":               {reader.Filter{}, reader.Page{Limit: 1, Oldest: true}, false},
		"a path has an index":      {reader.Filter{Paths: []string{"a/b"}}, reader.Page{Limit: 1}, false},
		"a verdict has an index":   {reader.Filter{Verdicts: []reader.Verdict{reader.Denied}}, reader.Page{Limit: 1}, false},
		"a host has an index":      {reader.Filter{RequestedBy: []string{"10.0.0.1"}}, reader.Page{Limit: 1}, false},
		"a minute has no index":    {reader.Filter{Since: later, Until: later.Add(time.Minute), Paths: []string{"a/b"}}, reader.Page{Limit: 1}, true},
		"an hour ago, which ended": {reader.Filter{Until: time.Now().Add(-time.Hour)}, reader.Page{Limit: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, once := r.Brief(t.Context(), c.f, c.p); once != c.once {
				t.Errorf("read with one request: %v", once)
			}
		})
	}
}

func insert(t *testing.T, d *pgtest.DB, into string, from, n int, at time.Time) {
	t.Helper()
	d.Exec(t, fmt.Sprintf(`INSERT INTO %s (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) SELECT 'd' || n, '%s', '{}', 't', 0, n, 0 FROM generate_series(%d, %d) AS n`,
		into, at.Format(time.RFC3339), from, from+n-1))
}

// TestBrief_WhileADayLeaves: that day can have some of the newest, as a clock may be wrong.
func TestBrief_WhileADayLeaves(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	r := historydb.NewReader(open(t, d.URL, 2*time.Minute).DB).Patient()
	insert(t, d, "decision_logs", 0, 5, time.Now().Add(time.Hour))
	if _, once := r.Brief(t.Context(), reader.Filter{}, reader.Page{Limit: 3}); !once {
		t.Fatal("a full page of the newest was not read with one request")
	}
	day := time.Now().AddDate(0, 0, 300).UTC().Truncate(24 * time.Hour)
	leaving := "decision_logs_leaving_" + day.Format("20060102")
	d.Exec(t, `CREATE TABLE `+leaving+` (LIKE decision_logs INCLUDING ALL)`)
	insert(t, d, leaving, 77, 1, day.Add(time.Hour))
	if _, once := r.Brief(t.Context(), reader.Filter{}, reader.Page{Limit: 3}); once {
		t.Error("a page was read without the day that leaves")
	}
	if found, err := r.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 3}); err != nil || len(found.Decisions) != 3 || found.Decisions[0].ID != "d77" {
		t.Errorf("%+v, %v", found.Decisions, err)
	}
}
