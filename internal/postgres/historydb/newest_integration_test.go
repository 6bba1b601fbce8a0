//go:build integration

package historydb_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
)

// TestNewest_AsSearched compares the pages of one request with those of a search in windows. Among them are decisions of one
// moment and of the time to come.
func TestNewest_AsSearched(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	r := historydb.NewReader(open(t, d.URL, 20*time.Second).DB)
	// The clock of the test moves on, so the decisions are of the time to come.
	d.Exec(t, `INSERT INTO decision_logs (decision_id, ts, path, allowed, labels, raw, source_topic, source_partition, source_offset, source_index)
		SELECT chr(97 + n % 26) || n, date_trunc('hour', now()) + interval '2 hours' + n / 3 * interval '1 second', 'a/b', n % 2 = 0, jsonb_build_object('app', n % 5), jsonb_build_object('n', n), 't', 0, n, 0
		  FROM generate_series(1, 60) AS n`)
	hour := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		f    reader.Filter
		p    reader.Page
		once bool
	}{
		"all":                     {reader.Filter{}, reader.Page{Limit: 20}, true},
		"with payloads":           {reader.Filter{}, reader.Page{Limit: 7, Payload: true}, true},
		"a label":                 {reader.Filter{Labels: map[string]string{"app": "3"}}, reader.Page{Limit: 11}, true},
		"since":                   {reader.Filter{Since: hour}, reader.Page{Limit: 59}, true},
		"a page that is not full": {reader.Filter{}, reader.Page{Limit: 60}, false},
		"since later":             {reader.Filter{Since: hour.Add(4 * time.Hour)}, reader.Page{Limit: 1}, false},
		"the oldest":              {reader.Filter{}, reader.Page{Limit: 20, Oldest: true}, false},
		"a path":                  {reader.Filter{Paths: []string{"a/b"}}, reader.Page{Limit: 20}, false},
		"a verdict":               {reader.Filter{Verdicts: []reader.Verdict{reader.Denied}}, reader.Page{Limit: 20}, false},
		"somebody":                {reader.Filter{RequestedBy: []string{"10.0.0.1"}}, reader.Page{Limit: 20}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, once := r.Newest(t.Context(), c.f, c.p)
			if once != c.once {
				t.Fatalf("read with one request: %v", once)
			}
			found, err := r.Search(t.Context(), c.f, c.p)
			if err != nil {
				t.Fatal(err)
			}
			c.f.Until = time.Now().Add(48 * time.Hour) // a page with an end is searched for
			want, err := r.Search(t.Context(), c.f, c.p)
			if err != nil || asJSON(t, found) != asJSON(t, want) || once && asJSON(t, got) != asJSON(t, want) {
				t.Errorf("%v\n%s\n%s\n%s", err, asJSON(t, got), asJSON(t, found), asJSON(t, want))
			}
		})
	}
}

func asJSON(t *testing.T, f reader.Found) string {
	t.Helper()
	text, err := json.Marshal(f)
	check(t, err)
	return string(text)
}

// TestNewest_WhileADayLeaves: that day can have some of the newest, as a clock may be wrong.
func TestNewest_WhileADayLeaves(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	r := historydb.NewReader(open(t, d.URL, 20*time.Second).DB)
	insert := func(into, id string, at time.Time) {
		d.Exec(t, fmt.Sprintf(`INSERT INTO %s (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) VALUES ('%s', '%s', '{}', 't', 0, 1, 0)`, into, id, at.Format(time.RFC3339)))
	}
	for i := range 5 {
		insert("decision_logs", fmt.Sprint("d", i), time.Now().Add(time.Hour))
	}
	if _, once := r.Newest(t.Context(), reader.Filter{}, reader.Page{Limit: 3}); !once {
		t.Fatal("a full page of the newest was not read with one request")
	}
	day := time.Now().AddDate(0, 0, 300).UTC().Truncate(24 * time.Hour)
	d.Exec(t, fmt.Sprintf(`CREATE TABLE decision_logs_leaving_%s (LIKE decision_logs INCLUDING ALL)`, day.Format("20060102")))
	insert("decision_logs_leaving_"+day.Format("20060102"), "leaves", day.Add(time.Hour))
	if _, once := r.Newest(t.Context(), reader.Filter{}, reader.Page{Limit: 3}); once {
		t.Error("a page was read without the day that leaves")
	}
	if found, err := r.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 3}); err != nil || len(found.Decisions) != 3 || found.Decisions[0].ID != "leaves" {
		t.Errorf("%+v, %v", found.Decisions, err)
	}
}
