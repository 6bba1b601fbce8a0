//go:build integration

package ledgerdb_test

import (
	"slices"
	"testing"
	"time"

	"docket/internal/desk/ledger"
)

// TestProof_KnowsOnlyWhatItSaw: a checker asks it about each record that the desk has read.
func TestProof_KnowsOnlyWhatItSaw(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	there, gone := letter(1, one), letter(2, two)
	d.Entered(there, gone)
	if _, err := d.Resolve(t.Context(), []string{gone.ID}, ann); err != nil {
		t.Fatal(err)
	}
	d.Shelved()
	if n, err := d.Remove(t.Context(), time.Now().Add(time.Hour), 10, ann); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	s := d.Put(there.ID, 500)
	for name, c := range map[string]struct {
		trace ledger.Trace
		known bool
	}{
		"a letter":                            {ledger.Trace{ID: there.ID}, true},
		"one that was removed":                {ledger.Trace{ID: gone.ID}, true},
		"a retry by its mark":                 {ledger.Trace{ID: "x", Mark: s.Mark}, true},
		"a retry by its place":                {ledger.Trace{ID: "x", Topic: original, Offset: 500}, true},
		"an id that never came":               {ledger.Trace{ID: letter(3, three).ID}, false},
		"a mark that nobody gave out":         {ledger.Trace{ID: "x", Mark: "00000000-0000-4000-8000-000000000000"}, false},
		"a mark that is none":                 {ledger.Trace{ID: "x", Mark: "'; --"}, false},
		"another offset":                      {ledger.Trace{ID: "x", Topic: original, Offset: 501}, false},
		"another partition":                   {ledger.Trace{ID: "x", Topic: original, Partition: 1, Offset: 500}, false},
		"another topic":                       {ledger.Trace{ID: "x", Topic: "other", Offset: 500}, false},
		"where a letter that is there failed": {ledger.Trace{ID: "x", Topic: original, Partition: 1, Offset: 1}, false},
	} {
		unknown := ledger.Trace{ID: "y"}
		if known, err := d.Knows(t.Context(), []ledger.Trace{unknown, c.trace, unknown}); err != nil || !slices.Equal(known, []bool{false, c.known, false}) {
			t.Errorf("%s: %v %v", name, known, err)
		}
	}
}
