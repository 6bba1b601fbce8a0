//go:build integration

package ledgerdb_test

import (
	"fmt"
	"strings"
	"testing"
)

// Letters are found by the decision_id that they claim, by the index and however long the id is.
func TestClaims_FoundByTheIndex(t *testing.T) {
	t.Parallel()
	m := newModelled(t, 300, 7)
	long := strings.Repeat("long", 5000)
	for i, id := range []string{"a", "b\ufffd", "a", long, "a", "c"} {
		m.db.Exec(t, fmt.Sprintf(`UPDATE dead_letters SET decision_id = $1 WHERE dead_letter_id = '%s'`, m.letters[i].ID), id)
	}
	for id, want := range map[string][]int{"a": {0, 2, 4}, "b\x00": {1}, long: {3}, "none": nil} {
		found, err := m.Claims(t.Context(), id, 10)
		if err != nil {
			t.Fatal(err)
		}
		got, wanted := map[string]bool{}, map[string]bool{}
		for i, e := range found {
			got[e.ID] = true
			if i > 0 && e.FailedAt.After(found[i-1].FailedAt) {
				t.Errorf("%.10s: not the newest failure first", id)
			}
		}
		for _, i := range want {
			wanted[m.letters[i].ID] = true
		}
		same(t, got, wanted)
	}
	if found, err := m.Claims(t.Context(), "a", 2); err != nil || len(found) != 2 {
		t.Errorf("at most two are %d, %v", len(found), err)
	}
	var index string
	m.db.Query(t, `SELECT indexdef FROM pg_indexes WHERE indexname = 'dead_letters_decision'`, &index)
	if !strings.Contains(index, "USING hash (decision_id)") {
		t.Errorf("the index is %q", index)
	}
}
