//go:build integration

package historydb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/postgres/historydb"
	"docket/internal/record/subject"
)

// Subjects come from where why finds them; decisions without one, or without a path, have no state and are counted.
func TestStates_SubjectsOfEachSetting(t *testing.T) {
	t.Parallel()
	extractors, err := reader.ParseExtractors([]string{"api/*=subject:/user/name", "api/deep=subject:/list/0", "odd=subject:/-1"})
	check(t, err)
	for name, test := range map[string]struct {
		by   subject.Spec
		want string
	}{
		"host":  {byHost.Subject, "10.0.0.1 x|7 odd|alice api/v1|bob api/deep|{odd api/v1"},
		"whole": {subject.Spec{}, "10.0.0.1:80 x|7 odd|alice api/v1|bob api/deep|{odd api/v1"},
		"label": {subject.Spec{Kind: subject.Label, Label: "team"}, "7 odd|alice api/v1|bob api/deep|red x|{odd api/v1"},
		"input": {subject.Spec{Kind: subject.Input, Pointer: "/n"}, "1.50 x|7 odd|alice api/v1|bob api/deep|{odd api/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newStated(t, 10)
			for i, row := range [][3]string{
				{"x", `{"team":"red"}`, `{"input":{"n":1.50}}`}, {"api/v1", `{}`, `{"input":{"user":{"name":"alice"}}}`}, {"api/v1", `{}`, `{"input":{"user":{"name":""}}}`},
				{"api/deep", `{}`, `{"input":{"list":["bob"]}}`}, {"odd", `{}`, `{"input":{"-1":7}}`}, {"odd", `{}`, `{"input":["a"]}`}, {"", `{"team":"red"}`, `{"input":{"n":1}}`},
				{"api/v1", `{}`, `{"input":{"user":{"name":{"first":"ann"}}}}`}, {"api/v1", `{}`, `{"input":{"user":{"name":"{odd"}}}`},
				{"x" + strings.Repeat("y", 1000), `{"team":"red"}`, `{"input":{"n":1}}`},
			} {
				w.Exec(t, `INSERT INTO decision_logs (decision_id, ts, path, requested_by, labels, raw, source_topic, source_partition, source_offset, source_index)
					VALUES ($1, $2, nullif($3, ''), '10.0.0.1:80', $4::jsonb, $5::jsonb, 't', 0, 1, 0)`, fmt.Sprint("d", i), w.from, row[0], row[1], row[2])
			}
			s := historydb.NewStates(w.pg.DB, historydb.StatesConfig{Question: reader.Question{Subject: test.by, Extractors: extractors}, Most: 99, Slack: time.Microsecond})
			var r state.Round
			for deadline := time.Now().Add(time.Minute); r.Rows == 0 && time.Now().Before(deadline); {
				r = w.follow(s)
			}
			var got string
			w.Query(t, `SELECT coalesce(string_agg(subject || ' ' || path, '|' ORDER BY subject, path), '') FROM decision_states`, &got)
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if diff := gocmp.Diff(map[string]int64{"no_path": 1, "no_subject": 3, "too_long": 1, "full": 0}, r.Skipped); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStates_OtherSettingsAreRefused(t *testing.T) {
	t.Parallel()
	w := newStated(t, 11)
	w.all = append(w.all, w.store(w.other, 10)...)
	w.settled(w.states(10))
	other := historydb.NewStates(w.pg.DB, historydb.StatesConfig{Most: 99, Slack: time.Microsecond})
	_, err := other.Follow(t.Context())
	var wrong *historydb.SubjectsError
	if !errors.As(err, &wrong) || wrong.Had != "*=requested_by:host" || wrong.Has != "*=requested_by" {
		t.Fatalf("%v", err)
	}
	w.exact("the refusal")
	w.Exec(t, `SELECT decision_states_restart()`)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if w.follow(other).Rows > 0 {
			break
		}
	}
	var n int
	w.Query(t, `SELECT sum(decisions) FROM decision_states WHERE subject LIKE '%:4711'`, &n)
	if n != 10 {
		t.Errorf("%d decisions after the restart", n)
	}
}

func TestStates_InventedSubjectsHaveAnEnd(t *testing.T) {
	t.Parallel()
	w := newStated(t, 12)
	w.Exec(t, `INSERT INTO decision_logs (decision_id, ts, path, requested_by, allowed, raw, source_topic, source_partition, source_offset, source_index)
		SELECT 'd' || n, $1::timestamptz + n * interval '1 second', 'p' || n % 2, 'invented' || n, true, '{"result":true}', 't', 0, 1, 0 FROM generate_series(1, 50) AS n`, w.from)
	s := historydb.NewStates(w.pg.DB, historydb.StatesConfig{Question: byHost, Most: 20, Slack: time.Microsecond, Rows: 7})
	w.settled(s)
	var n, counted int
	var full bool
	w.Query(t, `SELECT count(*) FROM decision_states`, &n)
	w.Query(t, `SELECT states, full_at IS NOT NULL FROM decision_states_mark`, &counted, &full)
	if n != 20 || counted != 20 || !full {
		t.Errorf("%d states, %d counted, full %v", n, counted, full)
	}
	w.Exec(t, `UPDATE decision_states SET last_seen = now() - interval '100 days' WHERE subject < 'invented15'`)
	gone, err := s.Trim(t.Context(), 90*24*time.Hour, 365*24*time.Hour)
	check(t, err)
	w.Query(t, `SELECT count(*) FROM decision_states`, &n)
	w.Query(t, `SELECT states FROM decision_states_mark`, &counted)
	if gone == 0 || n != 20-int(gone) || counted != n {
		t.Errorf("%d gone, %d states, %d counted", gone, n, counted)
	}
	_, mark, err := historydb.NewReader(w.pg.DB).States(t.Context(), "nobody", nil, 1)
	if check(t, err); mark.TrimmedBefore == nil || time.Since(*mark.TrimmedBefore).Round(time.Hour) != 90*24*time.Hour {
		t.Errorf("removed before %v", mark.TrimmedBefore)
	}
}

// A call removes a portion of the old flips, and says how many, so that the rest goes soon.
func TestStates_OldFlipsGoInPortions(t *testing.T) {
	t.Parallel()
	w := newStated(t, 15)
	w.Exec(t, `INSERT INTO decision_flips (subject, path, was, verdict, was_revision, revision, ts, decision_id, was_ts, was_id, stored_at, late, noted_at)
		SELECT 's', 'p', 'allowed', 'denied', '', '', now(), 'd' || n, now(), 'd', now(), false, now() - CASE WHEN n <= 50 THEN interval '366 days' ELSE interval '1 hour' END
		  FROM generate_series(1, 53) AS n`)
	for n, want := range []int64{20, 20, 10, 0} {
		var gone int64
		w.Query(t, `SELECT decision_states_trim('90 days', '365 days', 20)`, &gone)
		if gone != want {
			t.Errorf("call %d removed %d flips, want %d", n, gone, want)
		}
	}
	var left int
	if w.Query(t, `SELECT count(*) FROM decision_flips`, &left); left != 3 {
		t.Errorf("%d flips are left", left)
	}
}

// States that begin again are no news. Their alerts forget how far they were.
func TestStates_RestartForgetsHowFarAlertsWere(t *testing.T) {
	t.Parallel()
	w := newStated(t, 16)
	w.Exec(t, `INSERT INTO dead_letter_notes (name, text) VALUES ('states:fresh', '{"seen":"2026-01-01T00:00:00Z"}'), ('other', 'x')`)
	w.Exec(t, `SELECT decision_states_restart()`)
	var fresh, other string
	w.Query(t, `SELECT max(text) FILTER (WHERE name = 'states:fresh'), max(text) FILTER (WHERE name = 'other') FROM dead_letter_notes`, &fresh, &other)
	if fresh != "" || other != "x" {
		t.Errorf("%q, %q", fresh, other)
	}
}

// An update of a state changes no index.
func TestStates_UpdatesAreHot(t *testing.T) {
	t.Parallel()
	w := newStated(t, 13)
	s := w.states(50)
	for range 20 {
		w.all = append(w.all, w.store(w.other, 20)...)
		w.settled(s)
	}
	var updates, hot int
	for deadline := time.Now().Add(time.Minute); updates < 40 && time.Now().Before(deadline); {
		w.Exec(t, `SELECT pg_stat_force_next_flush()`)
		w.Query(t, `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_all_tables WHERE relid = 'decision_states'::regclass`, &updates, &hot)
	}
	if updates < 40 || hot < updates*9/10 {
		t.Errorf("%d of %d updates are hot", hot, updates)
	}
}
