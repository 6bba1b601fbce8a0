//go:build integration

package historydb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
)

// TestCold_FindsWhatTheTableFound: a filter chooses the same decisions of a day, with the same columns, before and
// after it is archived, in both formats.
func TestCold_FindsWhatTheTableFound(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]bool{"Parquet": false, "lines": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := old(t)
			a.c.Lines = lines
			a.settle()
			a.rows(1, 600)
			a.Exec(t, `UPDATE decision_logs SET requested_by = CASE req_id % 5 WHEN 0 THEN '10.0.0.1:' || req_id % 99 WHEN 1 THEN '10.0.0.1' WHEN 2 THEN '[::1]:80' ELSE '10.0.0.11:7' END WHERE req_id % 3 > 0`)
			a.Exec(t, `UPDATE decision_logs SET allowed = NULL, raw = raw || CASE req_id % 4 WHEN 0 THEN '{"result":[1,{"a/b":2.50}]}' WHEN 1 THEN '{"error":{"code":1},"result":null}' WHEN 2 THEN '{"result":null,"error":null}' ELSE '{"result":{"0":1e2}}' END::jsonb WHERE req_id % 2 = 0`)
			a.Exec(t, `UPDATE decision_logs SET labels = '{"app":"x","n":7,"none":null}', service = split_part(path, '/', 1), unfaithful = ARRAY['/a,b', '', '/"q\'], edited_audit_id = 7, uploaded_by = 'c' WHERE req_id % 11 = 0`)
			table := historydb.NewReader(open(t, a.URL, 0).DB)
			days := cold.New(cold.Config{Where: a.dir, Table: "decision_logs", LineBytes: 1 << 20, Patience: time.Minute, Shelf: func() (archive.Shelf, error) { return archive.Dir(a.dir), nil }})
			both := cold.Store{Table: table, Days: days}
			before := map[string][]string{}
			for i, f := range coldFilters(a.day.Time) {
				before[fmt.Sprint(i)] = pages(t, table.Search, f)
			}
			a.archive(true)
			for i, f := range coldFilters(a.day.Time) {
				same(t, pages(t, both.Search, f), before[fmt.Sprint(i)])
			}
			a.archive(false)
			chosen := 0
			for i, f := range coldFilters(a.day.Time) {
				same(t, pages(t, both.Search, f), before[fmt.Sprint(i)])
				chosen += len(before[fmt.Sprint(i)])
			}
			if chosen < 800 {
				t.Errorf("the filters choose only %d", chosen)
			}
			if found := days.Find(t.Context(), []string{"d77"}); len(found.Decisions) != 1 || len(found.Gaps) > 0 || found.Decisions[0].Archived == nil {
				t.Errorf("%+v", found)
			}
			a.restore()
			for i, f := range coldFilters(a.day.Time) {
				same(t, pages(t, both.Search, f), before[fmt.Sprint(i)])
			}
		})
	}
}

func coldFilters(day time.Time) []reader.Filter {
	match := func(in, pointer, value string) reader.Filter {
		m := reader.Match{In: in, Pointer: pointer}
		if value != "" {
			m.Value = json.RawMessage(value)
		}
		return reader.Filter{Matches: []reader.Match{m}}
	}
	return []reader.Filter{
		{}, {Since: day.Add(time.Hour), Until: day.Add(2 * time.Hour)}, {Paths: []string{`authz/"allow"\`}}, {Paths: []string{"authz/*", "x"}}, {Paths: []string{"authz"}}, {Services: []string{"authz"}},
		{Verdicts: []reader.Verdict{reader.Denied}}, {Verdicts: []reader.Verdict{reader.Error, reader.Undefined}}, {Verdicts: []reader.Verdict{reader.Other}},
		{RequestedBy: []string{"10.0.0.1"}}, {RequestedBy: []string{"10.0.0.1:9", "::1"}}, {Labels: map[string]string{"app": "x"}}, {Labels: map[string]string{"n": "7"}}, {Labels: map[string]string{"none": "null"}},
		match("result", "/1/a~1b", "2.5"), match("result", "/0", "100"), match("result", "/0", ""), match("result", "/01", ""), match("result", "/-1", ""), match("result", "", "null"), match("raw", "/error/code", "1.0"), match("input", "", ""),
	}
}

// pages are all decisions of a search in both orders, as JSON, without their archives.
func pages(t *testing.T, search func(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error), f reader.Filter) (all []string) {
	t.Helper()
	for _, oldest := range []bool{false, true} {
		for p := (reader.Page{Limit: 250, Payload: true, Oldest: oldest}); ; {
			found, err := search(t.Context(), f, p)
			if err != nil || len(found.NotLooked) > 0 {
				t.Fatalf("%+v: %v, %v", f, err, found.NotLooked)
			}
			for _, d := range found.Decisions {
				d.Archived = nil
				text, _ := json.Marshal(d)
				all = append(all, string(text))
			}
			if p.After = found.Next; p.After == "" {
				break
			}
		}
	}
	return all
}
