//go:build integration

package historydb_test

import (
	"testing"
	"time"

	"docket/internal/history/state"
	"docket/internal/postgres/historydb"
)

// An answer does not claim flips that were removed as old.
func TestFlips_OldOnesWereRemoved(t *testing.T) {
	t.Parallel()
	w := newStated(t, 32)
	r := historydb.NewReader(w.pg.DB)
	w.decide("10.0.0.1", "a/b", "r1", true, false, true, false)
	w.settled(w.states(3))
	all, whole, err := r.Flips(t.Context(), state.FlipQuery{Limit: 9})
	if check(t, err); len(all) != 3 {
		t.Fatalf("%d flips", len(all))
	}
	w.Exec(t, `UPDATE decision_flips SET stored_at = stored_at + flip_id * interval '1 hour', noted_at = CASE WHEN flip_id < 3 THEN noted_at - interval '400 days' ELSE noted_at END`)
	if _, mark, err := r.Flips(t.Context(), state.FlipQuery{Limit: 9}); err != nil || !mark.StoredSince.Equal(whole.StoredSince) {
		t.Errorf("before any was removed: since %v, want %v, %v", mark.StoredSince, whole.StoredSince, err)
	}
	w.Exec(t, `SELECT decision_states_trim('90 days', '365 days', 100)`)
	left, mark, err := r.Flips(t.Context(), state.FlipQuery{Limit: 9})
	if check(t, err); len(left) != 1 || !mark.StoredSince.Equal(left[0].StoredAt) || !mark.StoredSince.After(whole.StoredSince) {
		t.Errorf("%d flips, stored since %v, before that %v", len(left), mark.StoredSince, whole.StoredSince)
	}
	w.Exec(t, `UPDATE decision_flips SET noted_at = noted_at - interval '400 days'`)
	w.Exec(t, `SELECT decision_states_trim('90 days', '365 days', 100)`)
	w.none(r, "after all were removed", true)
	role := w.Name + "_flips"
	w.Exec(t, `CREATE ROLE `+role+`; GRANT USAGE ON SCHEMA public TO `+role+`; GRANT SELECT ON decision_flips, decision_states_mark TO `+role)
	t.Cleanup(func() { w.Exec(t, `DROP OWNED BY `+role+` CASCADE; DROP ROLE `+role) })
	w.none(historydb.NewReader(open(t, w.URL+"&role="+role, 20*time.Second).DB), "for a role that may not read the sequence", true)
	if _, mark, err := r.States(t.Context(), "10.0.0.1", nil, 9); err != nil || !mark.StoredSince.Equal(whole.StoredSince) {
		t.Errorf("of states: since %v, %v", mark.StoredSince, err)
	}
}

// Where there never was a flip, an answer has all of them.
func TestFlips_NoneEver(t *testing.T) {
	t.Parallel()
	w := newStated(t, 33)
	w.decide("10.0.0.1", "a/b", "r1", true, true)
	w.settled(w.states(3))
	w.none(historydb.NewReader(w.pg.DB), "before the first flip", false)
	role := w.Name + "_flips"
	w.Exec(t, `CREATE ROLE `+role+`; GRANT USAGE ON SCHEMA public TO `+role+`; GRANT SELECT ON decision_flips, decision_states_mark TO `+role)
	t.Cleanup(func() { w.Exec(t, `DROP OWNED BY `+role+` CASCADE; DROP ROLE `+role) })
	w.none(historydb.NewReader(open(t, w.URL+"&role="+role, 20*time.Second).DB), "for a role that may not read the sequence", false)
}

// none checks an answer without flips.
func (w *stated) none(r *historydb.Reader, when string, removed bool) {
	w.t.Helper()
	all, mark, err := r.Flips(w.t.Context(), state.FlipQuery{Limit: 9})
	if check(w.t, err); len(all) != 0 || mark.StoredSince.Equal(mark.StoredBefore) != removed || mark.StoredSince.After(mark.StoredBefore) {
		w.t.Errorf("%s: %d flips, stored from %v to %v", when, len(all), mark.StoredSince, mark.StoredBefore)
	}
}
