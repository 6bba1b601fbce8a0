//go:build integration

package historydb_test

import (
	"testing"

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
	if _, mark, err := r.States(t.Context(), "10.0.0.1", nil, 9); err != nil || !mark.StoredSince.Equal(whole.StoredSince) {
		t.Errorf("of states: since %v, %v", mark.StoredSince, err)
	}
}
