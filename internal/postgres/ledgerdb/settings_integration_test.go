//go:build integration

package ledgerdb_test

import (
	"testing"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
)

// A database whose sessions show dates and bytes in other forms has the same ledger.
func TestLedger_OddSettings(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	d.OddSettings(t)
	d.Ledger = ledgerdb.New(open(t, d.URL, 0).DB)
	one, two := letter(1, "{\"a\":\"\\u00e4\"}"), letter(2, "\x00\\\xff'")
	d.Entered(one, two)
	for _, l := range []ledger.Letter{one, two} {
		shown, err := d.Show(t.Context(), l.ID)
		if err != nil || string(shown.Value) != string(l.Value) || !shown.FirstFailedAt.Equal(l.FirstFailedAt) {
			t.Fatalf("%q, first failed at %v: %v", shown.Value, shown.FirstFailedAt, err)
		}
	}
	list, err := d.List(t.Context(), ledger.Filter{}, ledger.Page{Limit: 10})
	if err != nil || len(list.Entries) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	s := d.Put(two.ID, 7)
	same(t, string(s.Value), string(two.Value))
	if n := d.Entered(home(s, 7)); n.DeadAgain != 1 {
		t.Errorf("the retry came back: %+v", n)
	}
	same(t, d.trail(two.ID), "entered >PENDING, retried PENDING>PROCESSING, died PROCESSING>PENDING")
	d.Sums()
}
