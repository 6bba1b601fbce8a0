//go:build integration

package ledgerdb_test

import (
	"strings"
	"testing"

	"docket/internal/desk/ledger"
)

// largeLetters are as many as the ledger gives out together by bytes, and some more.
func largeLetters(d *ledgerDB) (ids []string) {
	var letters []ledger.Letter
	for i := range int64(8) {
		l := letter(i, strings.Repeat("x", 5<<20))
		l.Key = nil
		letters = append(letters, l)
		ids = append(ids, l.ID)
	}
	d.Entered(letters...)
	return ids
}

func TestClaim_FewLargeValues(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	ids := largeLetters(d)
	d.Retried(ids...)
	claimed := 0
	for i, want := range []int{4, 4, 0} {
		got := d.Claimed("r", 50)
		if len(got) != want {
			t.Fatalf("claim %d gave %d rows, not %d", i+1, len(got), want)
		}
		claimed += len(got)
	}
	if claimed != len(ids) {
		t.Errorf("claimed %d of %d", claimed, len(ids))
	}
}

func TestEntries_FewLargeValues(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	ids := largeLetters(d)
	seen := map[string]bool{}
	if err := d.Values(t.Context(), ledger.Filter{}, 200, 0, func(entries []ledger.Entry) error {
		if len(entries) > 4 {
			t.Errorf("%d of them together", len(entries))
		}
		for _, e := range entries {
			seen[e.ID] = true
		}
		return nil
	}); err != nil || len(seen) != len(ids) {
		t.Errorf("%d of %d, %v", len(seen), len(ids), err)
	}
	n := 0
	if err := d.Values(t.Context(), ledger.Filter{}, 3, 7, func(entries []ledger.Entry) error { n += len(entries); return nil }); err != nil || n != 7 {
		t.Errorf("%d, %v", n, err)
	}
}
