//go:build integration

package historydb_test

import (
	"fmt"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/history/complete"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
)

func TestWaiting_OpenLettersOfTheRange(t *testing.T) {
	t.Parallel()
	d := pgtest.NewLetters(t)
	r := historydb.NewReader(pgtest.Open(t, d.URL, 0).DB)
	early, late, dark, held, done := pgtest.Letter(1, "a"), pgtest.Letter(2, "b"), pgtest.Letter(3, "c"), pgtest.Letter(4, "[\n2,3]"), pgtest.Letter(5, "e")
	at := early.DecisionTime
	late.DecisionTime, late.Path = at.Add(time.Hour), "c"
	dark.DecisionTime, dark.Path, dark.DecisionID = time.Time{}, "", ""
	held.DecisionTime, held.Path, held.DecisionID, held.Refused = time.Time{}, "", "", 2
	d.Entered(early, late, dark, held, done)
	d.Closed(done)
	for name, c := range map[string]struct {
		r    complete.Range
		want int64
	}{
		"all":     {complete.Range{}, 5},
		"since":   {complete.Range{Since: at.Add(time.Minute)}, 4},
		"until":   {complete.Range{Until: at.Add(time.Hour)}, 4},
		"neither": {complete.Range{Since: at.Add(time.Minute), Until: at.Add(time.Hour)}, 3},
		"path":    {complete.Range{Paths: []string{"c"}}, 4},
		"below":   {complete.Range{Paths: []string{"a/*"}}, 4},
		"nothing": {complete.Range{Since: at.Add(time.Hour), Until: at}, 3},
		"both":    {complete.Range{Since: at.Add(-time.Minute), Until: at.Add(time.Minute), Paths: []string{"c"}}, 3},
	} {
		n, known, primary, err := r.Waiting(t.Context(), c.r)
		if err != nil || n != c.want || !known || !primary {
			t.Errorf("%s: %d, known %v, primary %v, %v; want %d", name, n, known, primary, err, c.want)
		}
		if n, known, err := r.WaitingOneByOne(t.Context(), c.r); err != nil || n != c.want || !known {
			t.Errorf("%s, without the counters: %d, known %v, %v; want %d", name, n, known, err, c.want)
		}
	}
	d.Retried(early.ID)
	if n, _, _, err := r.Waiting(t.Context(), complete.Range{}); err != nil || n != 5 {
		t.Errorf("a letter that is being retried: %d, %v", n, err)
	}
	counts := func(what string, want int64) {
		t.Helper()
		if n, _, _, err := r.Waiting(t.Context(), complete.Range{}); err != nil || n != want {
			t.Errorf("%s: %d, %v; want %d", what, n, err, want)
		}
	}
	for _, s := range d.Claimed("r", 1) {
		d.Placed("r", ledger.Placed{SendingID: s.ID, Partition: 1, Offset: 7})
	}
	// The letter is closed while a retry of it is on its way, which stores it later.
	again := d.Put(held.ID, 8)
	counts("two are on their way", 5)
	d.Exec(t, pgtest.Unwatched+`UPDATE dead_letters SET lease_until = now() - interval '1 s'`)
	if n, err := d.EndLeases(t.Context(), ledger.Actor{Name: "desk"}); err != nil || n != 2 {
		t.Fatalf("%d leases ended, %v", n, err)
	}
	d.Closed(held)
	counts("one of them is closed", 5)
	if n, _, _, err := r.Waiting(t.Context(), complete.Range{Paths: []string{"elsewhere"}}); err != nil || n != 3 {
		t.Errorf("of another path: %d, %v; want 3", n, err)
	}
	check(t, d.Stored(t.Context(), []int64{again.ID}, []string{"stored"}, ledger.Actor{Name: "desk"}))
	counts("it is stored", 3)
	many := func(from, to int) {
		d.Exec(t, pgtest.Unwatched+fmt.Sprintf(`INSERT INTO dead_letter_outbox (dead_letter_id, topic, value_hash, actor, published_at, published_partition, published_offset, look_at)
			SELECT 'none-' || n, 'decision-logs', '', 'x', now(), 0, n, now() + interval '1 h' FROM generate_series(%d, %d) AS n`, from, to))
	}
	var underWay int
	d.Query(t, `SELECT count(*) FROM dead_letter_outbox WHERE published_at IS NOT NULL AND ended_at IS NULL`, &underWay)
	many(1, historydb.MostUnderWay-underWay)
	if n, known, _, err := r.Waiting(t.Context(), complete.Range{}); err != nil || !known || n != 3 {
		t.Errorf("as many retries as may be: %d, known %v, %v", n, known, err)
	}
	many(historydb.MostUnderWay, historydb.MostUnderWay)
	if _, known, primary, err := r.Waiting(t.Context(), complete.Range{}); err != nil || known || !primary {
		t.Errorf("too many retries: known %v, primary %v, %v", known, primary, err)
	}
	d.Exec(t, pgtest.Unwatched+`DELETE FROM dead_letter_outbox WHERE dead_letter_id LIKE 'none-%'`)
	d.Exec(t, `INSERT INTO dead_letter_surplus (topic, partition, client, hour, first_offset, last_offset, next_offset, letters, first_at, last_at) VALUES ('decision-logs-dlq', 0, 'c', now(), 1, 2, 1, 2, now(), now())`)
	if _, known, primary, err := r.Waiting(t.Context(), complete.Range{}); err != nil || known || !primary {
		t.Errorf("a desk left letters in Kafka: known %v, primary %v, %v", known, primary, err)
	}
}

// TestWaiting_MoreThanAreCounted: the counters tell of a million letters, and of a span of time only so many are counted.
func TestWaiting_MoreThanAreCounted(t *testing.T) {
	t.Parallel()
	d := pgtest.NewLetters(t)
	r := historydb.NewReader(pgtest.Open(t, d.URL, 0).DB)
	one := pgtest.Letter(1, "a")
	d.Entered(one)
	d.Exec(t, fmt.Sprintf(`INSERT INTO dead_letters (dead_letter_id, group_id, path, decision_id, decision_ts, origin_topic, origin_partition, origin_offset, found_topic, found_partition, found_offset, found_at,
			first_failed_at, last_failed_at, changed_by, changed_act, message, why)
		SELECT lpad(to_hex(n), 64, '0'), group_id, path, decision_id, decision_ts, origin_topic, origin_partition, n, found_topic, found_partition, n, found_at, first_failed_at, last_failed_at, changed_by, changed_act, message, why
		  FROM dead_letters, generate_series(1, %d) AS n`, historydb.MostOpen-1))
	span := complete.Range{Since: one.DecisionTime, Until: one.DecisionTime.Add(time.Second)}
	if n, known, _, err := r.Waiting(t.Context(), span); err != nil || !known || n != historydb.MostOpen {
		t.Fatalf("as many as are counted: %d, known %v, %v", n, known, err)
	}
	two := pgtest.Letter(2, "b")
	two.Path = "other"
	dark := pgtest.Letter(3, "c")
	dark.DecisionTime, dark.Path, dark.DecisionID = time.Time{}, "", ""
	d.Entered(two, dark)
	counted := func(what string, of complete.Range, want int64, few bool) {
		t.Helper()
		if n, known, _, err := r.Waiting(t.Context(), of); err != nil || !known || n != want {
			t.Errorf("%s: %d, known %v, %v; want %d", what, n, known, err, want)
		}
		if _, known, err := r.WaitingOneByOne(t.Context(), of); err != nil || known != few {
			t.Errorf("%s, without the counters: known %v, %v", what, known, err)
		}
	}
	counted("more than are looked at, none outside", span, historydb.MostOpen+2, false)
	counted("of a path", complete.Range{Since: span.Since, Paths: []string{"other"}}, 2, false)
	late := pgtest.Letter(4, "d")
	late.DecisionTime = one.DecisionTime.Add(time.Hour)
	d.Entered(late)
	counted("one outside", span, historydb.MostOpen+2, false)
	counted("only that one", complete.Range{Since: span.Until}, 2, true) // and the one without a time
	d.Exec(t, fmt.Sprintf(`INSERT INTO dead_letters (dead_letter_id, group_id, path, decision_id, decision_ts, origin_topic, origin_partition, origin_offset, found_topic, found_partition, found_offset, found_at,
			first_failed_at, last_failed_at, changed_by, changed_act, message, why)
		SELECT 'b' || lpad(to_hex(n), 63, '0'), group_id, path, decision_id, decision_ts, origin_topic, origin_partition, n, found_topic, found_partition, n, found_at, first_failed_at, last_failed_at, changed_by, changed_act, message, why
		  FROM dead_letters, generate_series(1, %d) AS n WHERE dead_letter_id = '%s'`, historydb.MostOpen, late.ID))
	if _, known, primary, err := r.Waiting(t.Context(), span); err != nil || known || !primary {
		t.Errorf("too many inside and outside: known %v, primary %v, %v", known, primary, err)
	}
	if n, known, _, err := r.Waiting(t.Context(), complete.Range{}); err != nil || !known || n != 2*historydb.MostOpen+3 {
		t.Errorf("of all times: %d, known %v, %v", n, known, err)
	}
}

func TestWaiting_WithoutRights(t *testing.T) {
	t.Parallel()
	d := pgtest.NewLetters(t)
	r := historydb.NewReader(pgtest.Open(t, d.URL, 0).DB)
	for i, readable := range []bool{true, true, false, false, true} {
		switch i {
		case 2:
			d.Exec(t, `ALTER TABLE dead_letter_surplus RENAME TO elsewhere`)
		case 4:
			d.Exec(t, `ALTER TABLE elsewhere RENAME TO dead_letter_surplus`)
		}
		if n, known, primary, err := r.Waiting(t.Context(), complete.Range{}); err != nil || known != readable || !primary || n != 0 {
			t.Errorf("question %d: %d, known %v, primary %v, %v", i, n, known, primary, err)
		}
	}
	d.Exec(t, `ALTER TABLE dead_letter_counts RENAME TO hidden`)
	for i, readable := range []bool{false, true} { // one question notices it
		if n, known, primary, err := r.Waiting(t.Context(), complete.Range{}); err != nil || known != readable || !primary || n != 0 {
			t.Errorf("question %d without the counters: %d, known %v, primary %v, %v", i, n, known, primary, err)
		}
	}
}
