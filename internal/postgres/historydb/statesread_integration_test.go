//go:build integration

package historydb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/postgres/historydb"
	"docket/internal/record/verdict"
)

// decide stores decisions of a subject on a path, a second apart.
func (w *stated) decide(subject, path, revision string, results ...bool) {
	w.t.Helper()
	for _, allowed := range results {
		w.n++
		w.Exec(w.t, `INSERT INTO decision_logs (decision_id, ts, path, requested_by, allowed, bundles, raw, source_topic, source_partition, source_offset, source_index)
			VALUES ($1, $2, $3, $4, $5, jsonb_build_object('main', jsonb_build_object('revision', $6::text)),
			        jsonb_build_object('decision_id', $1::text, 'path', $3::text, 'requested_by', $4::text, 'result', $5::boolean), 't', 0, 1, 0)`,
			fmt.Sprintf("s%04d", w.n), w.from.Add(time.Duration(w.n)*time.Second), path, subject, allowed, revision)
	}
}

func TestStates_ReadAsKept(t *testing.T) {
	t.Parallel()
	w := newStated(t, 21)
	r := historydb.NewReader(w.pg.DB)
	if _, _, err := r.States(t.Context(), "10.0.0.1", nil, 9); !errors.Is(err, state.ErrNone) {
		t.Errorf("before the first round: %v", err)
	}
	w.decide("10.0.0.1", "a/b", "r1", true, true, false, false)
	w.decide("10.0.0.1", "a/c", "r2", false, true)
	w.decide("10.0.0.2", "b", "r2", false, true)
	w.settled(w.states(3))
	all, mark, err := r.States(t.Context(), "10.0.0.1", []string{"a/*"}, 9)
	check(t, err)
	if len(all) != 2 || all[0].Path != "a/b" || all[0].Verdict != verdict.Denied || all[0].Decisions != 4 || all[0].Since.ID != "s0003" || all[0].Before.ID != "s0002" || all[0].Revision != "main@r1" {
		t.Errorf("%+v", all)
	}
	if mark.States != 3 || mark.SubjectsBy != "*=requested_by:host" || mark.StoredSince.After(mark.StoredBefore) || mark.FullAt != nil {
		t.Errorf("%+v", mark)
	}
	if some, _, err := r.States(t.Context(), "10.0.0.1", []string{"a/c", "z"}, 1); err != nil || len(some) != 1 || some[0].Path != "a/c" {
		t.Errorf("%+v, %v", some, err)
	}
	for name, test := range map[string]struct {
		q    state.FlipQuery
		want []int64
	}{
		"all": {state.FlipQuery{Limit: 9}, []int64{1, 2, 3}}, "backward": {state.FlipQuery{Limit: 2, Backward: true}, []int64{3, 2}}, "between": {state.FlipQuery{After: 1, Before: 3, Limit: 9}, []int64{2}},
		"subject": {state.FlipQuery{Subject: "10.0.0.2", Limit: 9}, []int64{3}}, "path": {state.FlipQuery{Paths: []string{"a/*"}, Limit: 9}, []int64{1, 2}},
		"since": {state.FlipQuery{Since: w.from.Add(6 * time.Second), Limit: 9}, []int64{2, 3}},
	} {
		flips, _, err := r.Flips(t.Context(), test.q)
		check(t, err)
		var got []int64
		for _, f := range flips {
			got = append(got, f.ID)
		}
		if diff := gocmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Since when is the same by the state and by the search, and needs no right on the states.
func TestWhy_SinceFromTheState(t *testing.T) {
	t.Parallel()
	w := newStated(t, 22)
	w.decide("10.0.0.1", "a/b", "r1", true, true, false, false, false)
	r := historydb.NewReader(w.pg.DB)
	explain := func() reader.Explanation {
		t.Helper()
		found, err := r.ByID(t.Context(), "s0005")
		check(t, err)
		x, err := reader.Why(t.Context(), r, found[0], byHost)
		check(t, err)
		return x
	}
	searched := explain()
	w.settled(w.states(3))
	kept := explain()
	if kept.Since.Searched == searched.Since.Searched || kept.Since.FirstID != "s0003" || kept.Since.Otherwise.DecisionID != "s0002" {
		t.Errorf("%+v", kept.Since)
	}
	kept.Since.Searched = searched.Since.Searched
	if diff := gocmp.Diff(searched.Since, kept.Since); diff != "" {
		t.Errorf("-searched +kept:\n%s", diff)
	}
}

// News for alerts come until they were told.
func TestStates_NewsUntilTold(t *testing.T) {
	t.Parallel()
	w := newStated(t, 23)
	s := w.states(50)
	w.decide("10.0.0.1", "a/b", "r1", true, true, true, false)
	w.decide("10.0.0.2", "a/b", "r2", false, false, false, true)
	w.decide("10.0.0.2", "quiet", "r2", true)
	w.settled(s)
	denials, err := s.Denials(t.Context(), 9)
	check(t, err)
	if len(denials) != 1 || denials[0].Path != "a/b" || denials[0].ID != "s0004" {
		t.Errorf("%+v", denials)
	}
	check(t, s.ToldDenials(t.Context(), []string{"a/b"}))
	compared, err := s.Revisions(t.Context(), 4, 9)
	check(t, err)
	if len(compared) != 2 || compared[0].Before != nil || compared[1].Revision != "main@r2" || compared[1].Before.Revision != "main@r1" || compared[1].DenyRate()-compared[1].Before.DenyRate() != 0.5 {
		t.Errorf("%+v", compared)
	}
	judge := func(told bool) {
		t.Helper()
		var all []state.Judgement
		for _, c := range compared {
			all = append(all, state.Judgement{PathRevision: c.PathRevision, Allowed: c.Allowed, Denied: c.Denied, Told: told})
		}
		check(t, s.JudgedRevisions(t.Context(), all))
	}
	again := func(what string, want int) {
		t.Helper()
		w.settled(s)
		denials, err = s.Denials(t.Context(), 9)
		check(t, err)
		if compared, err = s.Revisions(t.Context(), 4, 9); err != nil || len(denials) != 0 || len(compared) != want {
			t.Errorf("%s: %+v, %+v, %v", what, denials, compared, err)
		}
	}
	judge(false)
	w.decide("10.0.0.3", "a/b", "r2", false, false, false)
	again("three more", 0)
	w.decide("10.0.0.3", "a/b", "r2", false)
	again("twice as many", 1)
	if len(compared) == 1 {
		if since := compared[0].Since(); since.Denied != 4 || since.Allowed != 0 || compared[0].Denied != 7 || compared[0].Before.Revision != "main@r1" {
			t.Errorf("%+v, since the last judgement %+v", compared[0], since)
		}
	}
	judge(false)
	w.decide("10.0.0.3", "a/b", "r2", true, true, true, true, true, true, true)
	again("seven more than eight", 0)
	w.decide("10.0.0.3", "a/b", "r2", true)
	again("twice as many again", 1)
	judge(true)
	for range 40 {
		w.decide("10.0.0.3", "a/b", "r2", true)
	}
	again("after people were told", 0)
}

// Decisions without a subject have no state. Alerts see them all the same.
func TestStates_NewsWithoutASubject(t *testing.T) {
	t.Parallel()
	w := newStated(t, 25)
	s := w.states(3)
	w.decide("", "a/b", "r1", true, true, true, true)
	w.decide("", "a/b", "r2", false, true, false, false)
	w.settled(s)
	denials, err := s.Denials(t.Context(), 9)
	check(t, err)
	compared, err := s.Revisions(t.Context(), 4, 9)
	check(t, err)
	if len(denials) != 1 || denials[0].ID != "s0005" || len(compared) != 2 || compared[1].Denied != 3 || compared[1].Before == nil {
		t.Errorf("%+v, %+v", denials, compared)
	}
	var states int
	if w.Query(t, `SELECT count(*) FROM decision_states`, &states); states != 0 {
		t.Errorf("%d states", states)
	}
}

// A path that is denied all the time is told once, however long states are kept. One that was not told keeps its age.
func TestStates_DeniedAllTheTime(t *testing.T) {
	t.Parallel()
	w := newStated(t, 24)
	s := w.states(50)
	for _, path := range []string{"always", "once", "untold"} {
		w.decide("10.0.0.1", path, "r1", false)
	}
	w.settled(s)
	check(t, s.ToldDenials(t.Context(), []string{"always", "once"}))
	w.Exec(t, `UPDATE decision_states_paths SET stored_at = now() - interval '100 days'`)
	w.decide("10.0.0.1", "always", "r1", false)
	w.decide("10.0.0.1", "untold", "r1", false)
	w.settled(s)
	_, err := s.Trim(t.Context(), 90*24*time.Hour, 365*24*time.Hour)
	check(t, err)
	var kept string
	w.Query(t, `SELECT string_agg(path || ' ' || told || ' ' || (now() - stored_at > interval '99 days'), ', ' ORDER BY path) FROM decision_states_paths`, &kept)
	if kept != "always true false, untold false true" {
		t.Errorf("kept: %s", kept)
	}
}

// TestArchive_StatesHoldADayBack: a day with decisions that the states lack stays in the table, and one that they have does not.
func TestArchive_StatesHoldADayBack(t *testing.T) {
	t.Parallel()
	w := newStated(t, 7)
	s := w.states(0)
	w.store(w.other, 20)
	if _, err := w.c.Archive(t.Context(), w.day, true); err != nil { // nothing is dropped
		t.Fatal(err)
	}
	w.settled(s)
	w.c.Told = func(step archive.Step) { // late, behind the look before the day is taken out
		if step == archive.StepVerified {
			w.Exec(t, `INSERT INTO decision_logs (decision_id, ts, path, raw, source_topic, source_partition, source_offset, source_index) VALUES ('late', '`+w.day.String()+` 12:00Z', 'a/b', '{}', 't', 0, 9, 0)`)
		}
	}
	_, err := w.c.Archive(t.Context(), w.day, false)
	var held *archive.UnfollowedError
	if !errors.As(err, &held) || !strings.Contains(held.Hint(), "--without-states") || !strings.Contains(held.Error(), w.day.String()+" stays in the table") {
		t.Fatalf("%v", err)
	}
	w.c.Told = nil
	w.settled(s)
	if done, err := w.c.Archive(t.Context(), w.day, false); err != nil || !done.Dropped {
		t.Fatalf("%+v, %v", done, err)
	}
	w.store(w.other, 20)
	w.c.WithoutStates = true
	if done, err := w.c.Archive(t.Context(), w.day, false); err != nil || !done.Dropped {
		t.Fatalf("overridden: %+v, %v", done, err)
	}
	w.c.WithoutStates = false
	w.store(w.other, 20)
	w.Exec(t, `SELECT decision_states_restart()`)
	if done, err := w.c.Archive(t.Context(), w.day, false); err != nil || !done.Dropped {
		t.Fatalf("nobody keeps states: %+v, %v", done, err)
	}
}

// Flips since a time are found without reading all of them.
func TestFlips_SinceByIndex(t *testing.T) {
	t.Parallel()
	w := newStated(t, 26)
	w.Exec(t, `INSERT INTO decision_flips (subject, path, was, verdict, was_revision, revision, ts, decision_id, was_ts, was_id, stored_at, late)
		SELECT 's' || i % 100, 'a/b', 'allowed', 'denied', 'r1', 'r1', now() - (100000 - i) * interval '1 minute', 'd' || i, now(), 'w', now(), false FROM generate_series(1, 100000) AS i`)
	w.Exec(t, `VACUUM ANALYZE decision_flips`)
	var plan string
	w.Query(t, `EXPLAIN (FORMAT json) SELECT * FROM decision_flips d WHERE d.flip_id > 0 AND d.ts >= now() - interval '1 hour' ORDER BY d.flip_id LIMIT 1000`, &plan)
	if !strings.Contains(plan, "decision_flips_ts") {
		t.Error(plan)
	}
}
