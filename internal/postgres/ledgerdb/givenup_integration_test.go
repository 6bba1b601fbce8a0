//go:build integration

package ledgerdb_test

import (
	"testing"
	"time"

	"docket/internal/desk/ledger"
)

// A broker that takes the record and loses each answer: the letter is FAILED, and its row is there.
func TestGivenUp_StoredAllTheSame(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	d.Retried(l.ID)
	s := d.Claimed("r", 1)
	if err := d.Unpublished(t.Context(), "r", s[0].ID, "unanswered", 0, true); err != nil {
		t.Fatal(err)
	}
	same(t, d.State(l.ID), "FAILED 0 refused")
	awaited, err := d.Awaited(t.Context(), 10)
	if err != nil || len(awaited) != 1 || awaited[0].ID != s[0].ID || string(awaited[0].Value) != one {
		t.Fatalf("it is not looked for: %+v, %v", awaited, err)
	}
	if err := d.LookAgain(t.Context(), []int64{s[0].ID}, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if awaited, err := d.Awaited(t.Context(), 10); err != nil || len(awaited) != 0 {
		t.Errorf("it is looked for at once again: %+v, %v", awaited, err)
	}
	if err := d.Stored(t.Context(), []int64{s[0].ID}, []string{"row of x"}, ann); err != nil {
		t.Fatal(err)
	}
	same(t, d.State(l.ID), "RESOLVED 0 stored")
	same(t, d.Text(`SELECT coalesce(look_at::text, 'never') FROM dead_letter_outbox`), "never")
	d.Exec(t, `UPDATE dead_letter_outbox SET look_at = now() - interval '1 s'`)
	if awaited, err := d.Awaited(t.Context(), 10); err != nil || len(awaited) != 0 {
		t.Errorf("it is looked for for ever: %+v, %v", awaited, err)
	}
	d.Sums()
}

func TestGivenUp_LookedForWhileFailed(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	d.Retried(l.ID)
	s := d.Claimed("r", 1)
	if err := d.Unpublished(t.Context(), "r", s[0].ID, "unanswered", 0, true); err != nil {
		t.Fatal(err)
	}
	d.Retried(l.ID)
	same(t, d.Text(`SELECT coalesce(look_at::text, 'never') FROM dead_letter_outbox WHERE outcome = 'refused'`), "never")
	if awaited, err := d.Awaited(t.Context(), 10); err != nil || len(awaited) != 0 {
		t.Errorf("%+v, %v", awaited, err)
	}
}

// Each pause of a retry that was given up is that of [ledger.GivenUpPauses], the last one again and again.
func TestGivenUp_Pauses(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	d.Retried(l.ID)
	s := d.Claimed("r", 1)
	if err := d.Unpublished(t.Context(), "r", s[0].ID, "unanswered", 0, true); err != nil {
		t.Fatal(err)
	}
	pauses := ledger.GivenUpPauses()
	for _, pause := range append(pauses, pauses[len(pauses)-1]) {
		var before, after, until time.Time
		d.Query(t, `SELECT clock_timestamp()`, &before)
		if err := d.LookAgain(t.Context(), []int64{s[0].ID}, time.Hour); err != nil {
			t.Fatal(err)
		}
		d.Query(t, `SELECT look_at FROM dead_letter_outbox`, &until)
		d.Query(t, `SELECT clock_timestamp()`, &after)
		if until.Before(before.Add(pause)) || until.After(after.Add(pause)) {
			t.Errorf("pause of %s, want %s", until.Sub(before), pause)
		}
	}
}
