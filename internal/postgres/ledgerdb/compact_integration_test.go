//go:build integration

package ledgerdb_test

import (
	"fmt"
	"testing"
	"time"

	"docket/internal/desk/ledger"
)

func TestCompact_SumsUpCounters(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	var letters []ledger.Letter
	var ids []string
	for i := range int64(5) {
		letters = append(letters, letter(4*i, fmt.Sprint(i))) // all of one partition
		ids = append(ids, letters[i].ID)
	}
	d.Entered(letters[:3]...)
	d.Entered(letters[3:]...)
	for _, some := range [][]string{ids[:2], ids[2:]} { // a row of the counters for each
		if _, err := d.Resolve(t.Context(), some, ann); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := d.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, counters := range []string{"counts", "days"} {
			same(t, d.Text(`SELECT string_agg(format('%s %s', state, n), ', ') FROM dead_letter_`+counters), "RESOLVED 5")
		}
	}
	d.Sums()
}

// After a flood a counter may lie at the end of its table, behind pages without a row, which each answer reads. It is
// written again further ahead, so that a vacuum can give the pages back.
func TestCompact_GivesRoomBack(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	d.Entered(letter(0, "first"))
	for _, of := range []string{"dead_letter_counts", "dead_letter_days"} {
		d.Exec(t, `INSERT INTO `+of+` SELECT (jsonb_populate_record(c, jsonb_build_object('n', v.n))).*
			FROM `+of+` c, generate_series(1, 15000), (VALUES (1), (-1)) AS v (n)`)
	}
	other := letter(4, "second")
	other.Path = "another/path"
	other.Origin.Partition++
	d.Entered(other)
	pages := func() string {
		return d.Text(`SELECT (pg_relation_size('dead_letter_counts') / 8192 > 16)::text || ' ' || (pg_relation_size('dead_letter_days') / 8192 > 16)::text`)
	}
	same(t, pages(), "true true")
	for deadline := time.Now().Add(time.Minute); pages() != "false false"; {
		if time.Now().After(deadline) {
			t.Fatalf("tables with more than 16 pages: %s", pages())
		}
		if err := d.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, `VACUUM dead_letter_counts`)
		d.Exec(t, `VACUUM dead_letter_days`)
	}
	same(t, d.Text(`SELECT sum(n)::text || ' ' || count(*) FROM dead_letter_counts`), "2 2")
	d.Sums()
}
