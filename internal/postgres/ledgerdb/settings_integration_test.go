//go:build integration

package ledgerdb_test

import (
	"sync"
	"testing"
	"time"

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

// TestLedger_SerializableByDefault has several desks in a database whose transactions are serializable by default. None fails because
// others work.
func TestLedger_SerializableByDefault(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	d.OddSettings(t)
	const desks, letters = 6, 12
	var wait sync.WaitGroup
	for desk := range desks {
		l := ledgerdb.New(open(t, d.URL, 0).DB)
		wait.Go(func() {
			for n := range letters {
				one := letter(int64(desk*letters+n), `{}`)
				if _, err := l.Enter(t.Context(), []ledger.Letter{one}, atMost, ledger.Actor{Name: "desk"}); err != nil {
					t.Errorf("enter: %v", err)
				}
				if _, err := l.Retry(t.Context(), []string{one.ID}, time.Hour, ledger.Actor{Name: "ann", Why: "because"}); err != nil {
					t.Errorf("retry: %v", err)
				}
			}
		})
	}
	wait.Wait()
	d.Sums()
}
