//go:build integration

package ledgerdb_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
	"docket/internal/testkit/pgtest"
)

func TestEdit_KeepsTheOriginal(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	l.Path = "p/one"
	d.Entered(l)
	if err := d.Edit(t.Context(), l.ID, "", []byte(two), "-1\n+2", 0, ledger.Actor{Name: "bob", Why: "typo"}); err != nil {
		t.Fatal(err)
	}
	same(t, d.State(l.ID), "PENDING 0 entered")
	same(t, d.Text(`SELECT concat_ws(' ', path, decision_id, decision_ts AT TIME ZONE 'UTC', edited, changed_by, why) FROM dead_letters`), "p/two 2 2026-01-01 00:00:00 t bob typo")
	same(t, d.Text(`SELECT concat_ws('|', actor, convert_from(original, 'UTF8'), diff) FROM dead_letter_audit WHERE act = 'edited'`), "bob|"+one+"|-1\n+2")
	if err := d.Edit(t.Context(), l.ID, "", []byte("no json"), "", soon, ann); err != nil {
		t.Fatal(err)
	}
	same(t, d.trail(l.ID), "entered >PENDING, edited PENDING>PENDING, edited PENDING>PENDING, retried PENDING>PROCESSING")
	same(t, d.Text(`SELECT path || coalesce(decision_id, 'none') FROM dead_letters`), "none")
	if s := d.Claimed("r", 1); len(s) != 1 || string(s[0].Value) != "no json" {
		t.Fatalf("%+v", s)
	}
	d.Sums()
}

// TestEdit_OfWhatWasSeen: of two editors who saw the same payload, the second changes nothing. An edit that is made again does not count as a second one.
func TestEdit_OfWhatWasSeen(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	seen := ledger.VersionOf([]byte(one))
	for range 2 {
		if err := d.Edit(t.Context(), l.ID, seen, []byte(two), "-1\n+2", 0, ann); err != nil {
			t.Fatal(err)
		}
	}
	for name, seen := range map[string]ledger.Version{"earlier": seen, "of none": ledger.VersionOf(nil), "nonsense": "x"} {
		var edited *ledger.EditedError
		if err := d.Edit(t.Context(), l.ID, seen, []byte(three), "-1\n+3", soon, ledger.Actor{Name: "bob", Why: "typo"}); !errors.As(err, &edited) || edited.ID != l.ID {
			t.Errorf("%s: %v", name, err)
		}
	}
	same(t, d.trail(l.ID), "entered >PENDING, edited PENDING>PENDING")
	same(t, d.Text(`SELECT convert_from(value, 'UTF8') FROM dead_letters`), two)
	if err := d.Edit(t.Context(), l.ID, ledger.VersionOf([]byte(two)), []byte(three), "-2\n+3", soon, ann); err != nil {
		t.Fatal(err)
	}
	d.Sums()
}

// A record that was put back before an edit is another than the one after it: the end of one tells nothing of the other.
func TestEdit_RetryFromBefore(t *testing.T) {
	t.Parallel()
	for which, want := range []string{"stored stored withdrawn", "open open stored"} {
		d := newLedger(t)
		l := letter(1, one)
		d.Entered(l)
		before := d.Put(l.ID, 500)
		same(t, d.lapse(), 1)
		again := d.Put(l.ID, 501) // the same bytes, so what becomes of the one becomes of both
		same(t, d.lapse(), 1)
		if err := d.Edit(t.Context(), l.ID, "", []byte(two), "-1\n+2", soon, ann); err != nil {
			t.Fatal(err)
		}
		after := d.Claimed("r", 1)[0]
		stored := []int64{before.ID, after.ID}[which]
		if which == 1 {
			d.Placed("r", ledger.Placed{SendingID: after.ID, Offset: 502})
		}
		if err := d.Stored(t.Context(), []int64{stored}, []string{"x"}, ann); err != nil {
			t.Fatal(err)
		}
		same(t, d.State(l.ID), "RESOLVED 0 stored")
		same(t, d.Text(`SELECT string_agg(coalesce(outcome, 'open'), ' ' ORDER BY outbox_id) FROM dead_letter_outbox`), want)
		if which == 1 { // the first is dead again, which is its own end and no attempt of a letter that is resolved
			same(t, d.Entered(home(again, 501)), ledger.EnteredCount{Known: 1})
			same(t, d.Text(`SELECT string_agg(coalesce(outcome, 'open'), ' ' ORDER BY outbox_id) FROM dead_letter_outbox`), "open dead stored")
			same(t, d.State(l.ID), "RESOLVED 0 stored")
		}
		d.Sums()
	}
}

func TestClaim_KeyWaitsForEarlierRows(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	keys := map[string]string{}
	for i, key := range []string{"a", "b", "a", "", "", "a"} {
		l := letter(int64(i), fmt.Sprint(i))
		if l.Key = []byte(key); key == "" {
			l.Key = nil
		}
		keys[l.ID] = fmt.Sprint(i)
		d.Entered(l)
		d.Retried(l.ID)
	}
	claim := func(holder string, n int) (got []string, sent []ledger.Sending) {
		sent = d.Claimed(holder, n)
		for _, s := range sent {
			got = append(got, keys[s.LetterID])
		}
		return got, sent
	}
	got, first := claim("x", 1)
	same(t, got, []string{"0"})
	got, second := claim("y", 10)
	same(t, got, []string{"1", "3", "4"}) // not 2 and 5: 0 is x's
	if err := d.Unpublished(t.Context(), "x", first[0].ID, "timeout", soon, false); err != nil {
		t.Fatal(err)
	}
	if got, _ = claim("y", 10); len(got) != 0 {
		t.Fatalf("%v passed an earlier one that waits", got)
	}
	d.Exec(t, `UPDATE dead_letter_outbox SET next_try_at = now() WHERE tries = 1`)
	got, third := claim("y", 2)
	same(t, got, []string{"0", "2"})
	same(t, third[0].Tries, 1)
	d.Placed("y", ledger.Placed{SendingID: third[0].ID, Partition: 1, Offset: 9}, ledger.Placed{SendingID: third[1].ID, Partition: 1, Offset: 10})
	if got, _ = claim("x", 9); !slices.Equal(got, []string{"5"}) {
		t.Fatalf("got %v", got)
	}
	d.Exec(t, `UPDATE dead_letter_outbox SET claimed_until = now() WHERE claimed_by = 'y'`)
	got, _ = claim("z", 9)
	same(t, got, []string{"1", "3", "4"})
	if err := d.Unpublished(t.Context(), "y", second[0].ID, "timeout", 0, false); !errors.Is(err, ledger.ErrLost) {
		t.Fatalf("%v of a row that z has", err)
	}
}

func TestPublished_FirstPlaceStays(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	s := d.Put(l.ID, 500)
	d.Placed("other", ledger.Placed{SendingID: s.ID, Partition: 3, Offset: 501}, ledger.Placed{SendingID: s.ID, Partition: 3, Offset: 502})
	same(t, d.Text(`SELECT format('%s %s %s', published_partition, published_offset, claimed_by) FROM dead_letter_outbox`), "0 500 ")
}

func TestUnpublished_Failed(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	d.Retried(l.ID)
	s := d.Claimed("r", 1)[0]
	if err := d.Unpublished(t.Context(), "r", s.ID, "MESSAGE_TOO_LARGE", 0, true); err != nil {
		t.Fatal(err)
	}
	same(t, d.State(l.ID), "FAILED 0 refused")
	same(t, d.Text(`SELECT outcome || code FROM dead_letter_outbox`), "refusedMESSAGE_TOO_LARGE")
	same(t, len(d.Claimed("r", 1)), 0)
	// It took it all the same, and lost the answer.
	d.Placed("r", ledger.Placed{SendingID: s.ID, Offset: 500})
	same(t, d.Text(`SELECT coalesce(outcome, 'open') FROM dead_letter_outbox`), "open")
	if n := d.Entered(home(s, 500)); n.DeadAgain != 1 {
		t.Fatalf("%+v", n)
	}
	same(t, d.State(l.ID), "FAILED 1 died")
	same(t, d.trail(l.ID), "entered >PENDING, retried PENDING>PROCESSING, refused PROCESSING>FAILED, died FAILED>FAILED")
}

func TestEndLeases_GivesTheLetterBack(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	waiting, claimed, away := letter(1, one), letter(2, two), letter(3, three)
	d.Entered(waiting, claimed, away)
	gone := d.Put(away.ID, 500)
	d.Retried(claimed.ID)
	held := d.Claimed("r", 1)[0]
	d.Retried(waiting.ID)
	same(t, d.lapse(), 2)
	same(t, d.State(waiting.ID), "PENDING 0 lease_ended")
	same(t, d.State(away.ID), "PENDING 0 lease_ended")
	same(t, d.State(claimed.ID), "PROCESSING 0 retried") // somebody is publishing it
	d.Exec(t, `UPDATE dead_letter_outbox SET claimed_until = now()`)
	same(t, d.lapse(), 1)
	same(t, d.Text(`SELECT string_agg(coalesce(outcome, 'open'), ' ' ORDER BY outbox_id) FROM dead_letter_outbox`), "open withdrawn withdrawn")
	same(t, len(d.Claimed("r", 9)), 0)
	// The holder was only slow: the record is in the topic and is watched.
	d.Placed("r", ledger.Placed{SendingID: held.ID, Offset: 501})
	same(t, d.Text(`SELECT string_agg(coalesce(outcome, 'open'), ' ' ORDER BY outbox_id) FROM dead_letter_outbox`), "open open withdrawn")
	if err := d.Stored(t.Context(), []int64{held.ID, gone.ID}, []string{"x", "y"}, ann); err != nil {
		t.Fatal(err)
	}
	same(t, d.State(claimed.ID), "RESOLVED 0 stored")
	same(t, d.State(away.ID), "RESOLVED 0 stored")
	d.Sums()
}

func TestReentry_WithdrawnMark(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	d.Retried(l.ID)
	s := d.Claimed("r", 1)[0]
	d.Exec(t, `UPDATE dead_letter_outbox SET claimed_until = now()`)
	d.lapse()
	if n := d.Entered(home(s, 500)); n.Known != 1 {
		t.Fatalf("%+v", n)
	}
	same(t, d.State(l.ID), "PENDING 0 lease_ended")
	d.Placed("r", ledger.Placed{SendingID: s.ID, Offset: 500})
	same(t, d.Text(`SELECT outcome FROM dead_letter_outbox`), "dead") // it has ended: nobody looks for it
}

func TestReentry_OldRetryBesideANewOne(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	old := d.Put(l.ID, 500)
	d.lapse()
	d.Retried(l.ID)
	if n := d.Entered(home(old, 500)); n.DeadAgain != 1 {
		t.Fatalf("%+v", n)
	}
	same(t, d.State(l.ID), "PROCESSING 1 died")
	next := d.Claimed("r", 1)
	if len(next) != 1 {
		t.Fatal("the later retry is gone")
	}
	d.Placed("r", ledger.Placed{SendingID: next[0].ID, Offset: 501})
	if err := d.Stored(t.Context(), []int64{next[0].ID}, []string{"x"}, ann); err != nil {
		t.Fatal(err)
	}
	same(t, d.State(l.ID), "RESOLVED 1 stored")
}

func TestStored_TakesBackWaitingRetries(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	old := d.Put(l.ID, 500)
	d.lapse()
	d.Retried(l.ID)
	if err := d.Stored(t.Context(), []int64{old.ID}, []string{"x"}, ann); err != nil {
		t.Fatal(err)
	}
	same(t, d.State(l.ID), "RESOLVED 0 stored")
	same(t, d.Text(`SELECT string_agg(outcome, ' ' ORDER BY outbox_id) FROM dead_letter_outbox`), "stored withdrawn")
	same(t, len(d.Claimed("r", 9)), 0)
}

func TestMatching_OldestFirstOncePerJob(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	var letters []ledger.Letter
	for i := range int64(10) {
		l := letter(i, fmt.Sprint(i))
		l.FirstFailedAt = noon.Add(time.Duration(i) * time.Second)
		if i%2 == 1 {
			l.Path = "odd"
		}
		letters = append(letters, l)
	}
	d.Entered(letters...)
	d.Exec(t, `INSERT INTO dead_letter_jobs (act, filter, operator, reason, matched) VALUES ('retried', '{}', 'ann', 'because', 5)`)
	job := ledger.Actor{Name: "ann", Why: "because", Job: 1}
	odd := ledger.Filter{Path: "odd", Fingerprint: ledger.Fingerprint(pgtest.CheckFailed)[:6]}
	before := time.Now().Add(time.Hour)
	for _, want := range []int{2, 2, 1, 0} {
		ids, err := d.RetryMatching(t.Context(), odd, before, 2, soon, job)
		if err != nil || len(ids) != want {
			t.Fatalf("%v, %v", ids, err)
		}
	}
	same(t, d.Text(`SELECT string_agg(origin_offset::text, ' ' ORDER BY outbox_id) FROM dead_letter_outbox JOIN dead_letters USING (dead_letter_id)`), "1 3 5 7 9")
	same(t, d.Text(`SELECT sent::text FROM dead_letter_jobs`), "5")
	d.lapse()
	ids, err := d.RetryMatching(t.Context(), odd, before, 9, soon, job)
	if err != nil || len(ids) != 0 {
		t.Fatalf("the job took again what it had: %v, %v", ids, err)
	}
	if n, err := d.ResolveMatching(t.Context(), ledger.Filter{States: []ledger.State{ledger.Failed, ledger.Resolved}}, before, 9, ann); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := d.ResolveMatching(t.Context(), ledger.Filter{}, noon, 9, ann); n != 0 || err != nil {
		t.Fatal("moved what was moved later", n, err)
	}
	if n, err := d.ResolveMatching(t.Context(), ledger.Filter{}, before, 9, ann); n != 9 || err != nil {
		t.Fatal(n, err)
	}
	d.Sums()
}

// A refusal that never was in Kafka has its id from its value alone: the same one, found after the first was removed, enters.
func TestRemove_SameRefusalLater(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	l.Origin.Partition, l.Origin.Offset, l.Origin.Index = envelope.NoPlace, envelope.NoPlace, envelope.NoIndex
	l.ID = envelope.ID(l.Origin, l.Value)
	d.Entered(l)
	if _, err := d.Resolve(t.Context(), []string{l.ID}, ann); err != nil {
		t.Fatal(err)
	}
	d.Shelved()
	if n, err := d.Remove(t.Context(), time.Now().Add(time.Hour), 10, ann); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n := d.Entered(l); n.New != 0 || n.Known != 1 {
		t.Errorf("what was read again came back: %+v", n)
	}
	l.Found.Offset, l.Found.Stamp = l.Found.Offset+1, time.Now().Add(time.Minute)
	if n := d.Entered(l); n.New != 1 {
		t.Errorf("a new refusal did not enter: %+v", n)
	}
	same(t, d.State(l.ID), "PENDING 0 entered")
	d.Sums()
}

func TestRemove_AuditStays(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l, open := letter(1, one), letter(2, two)
	d.Entered(l, open)
	d.Put(l.ID, 500)
	d.lapse()
	if _, err := d.Resolve(t.Context(), []string{l.ID}, ann); err != nil {
		t.Fatal(err)
	}
	d.Shelved()
	if n, err := d.Remove(t.Context(), noon, 10, ann); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := d.Remove(t.Context(), time.Now().Add(time.Hour), 10, ledger.Actor{Name: "desk-1", Why: "168h"}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	same(t, d.State(l.ID), "none")
	same(t, d.Text(`SELECT concat_ws(' ', actor, why) FROM dead_letter_audit WHERE act = 'removed'`), "desk-1 168h")
	same(t, d.Text(`SELECT count(*)::text FROM dead_letter_outbox`), "0")
	if n := d.Entered(l); n.Known != 1 {
		t.Fatalf("it came back: %+v", n)
	}
	d.Sums()
}

func TestRemove_RetriesStayKnown(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	dead := home(d.Put(l.ID, 500), 500)
	if n := d.Entered(dead); n.DeadAgain != 1 {
		t.Fatalf("%+v", n)
	}
	if _, err := d.Resolve(t.Context(), []string{l.ID}, ann); err != nil {
		t.Fatal(err)
	}
	d.Shelved()
	if n, err := d.Remove(t.Context(), time.Now().Add(time.Hour), 10, ann); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	known, err := d.Knows(t.Context(), []ledger.Trace{{ID: dead.ID, Mark: dead.RetryOf, Topic: dead.Origin.Topic, Partition: dead.Origin.Partition, Offset: dead.Origin.Offset}})
	if err != nil || !known[0] {
		t.Errorf("the checker takes it for lost: %v, %v", known, err)
	}
	if n := d.Entered(dead); n.Known != 1 {
		t.Errorf("what was resolved came back under another id: %+v", n)
	}
	other := dead
	other.Value = []byte(two)
	other.ID = envelope.ID(other.Origin, other.Value)
	if n := d.Entered(other); n.New != 1 {
		t.Errorf("another value under the same mark did not enter: %+v", n)
	}
	d.Sums()
}

func TestDuty_OneDeskAtATime(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	take := func(name, holder string, every, lease time.Duration) bool {
		t.Helper()
		mine, err := d.Duty(t.Context(), name, holder, every, lease)
		if err != nil {
			t.Fatal(err)
		}
		return mine
	}
	same(t, take("report", "a", soon, soon), true)
	same(t, take("report", "b", soon, soon), false)
	same(t, take("report", "a", soon, soon), true)
	if err := d.DutyDone(t.Context(), "report", "b"); !errors.Is(err, ledger.ErrLost) {
		t.Fatal(err)
	}
	if err := d.DutyDone(t.Context(), "report", "a"); err != nil {
		t.Fatal(err)
	}
	same(t, take("report", "a", soon, soon), false) // done within the hour
	same(t, take("report", "b", 0, soon), true)
	d.Exec(t, `UPDATE dead_letter_duties SET until = now()`) // b died
	same(t, take("report", "a", 0, soon), true)

	same(t, take("alerts", "a", soon, soon), true)
	same(t, take("alerts", "a", soon, 0), true) // given back, and not done
	same(t, take("alerts", "b", soon, soon), true)

	take("desk:a", "a", 0, soon)
	take("desk:b", "b", 0, soon)
	desks, err := d.Desks(t.Context(), soon)
	if err != nil {
		t.Fatal(err)
	}
	same(t, desks, []string{"a", "b"})
	d.Exec(t, `UPDATE dead_letter_duties SET done_at = now() - interval '2 hours' WHERE duty = 'desk:a'`)
	if desks, _ = d.Desks(t.Context(), soon); !slices.Equal(desks, []string{"b"}) {
		t.Fatal(desks)
	}

	text, at, err := d.Remembered(t.Context(), "told")
	if text != "" || !at.IsZero() || err != nil {
		t.Fatal(text, at, err)
	}
	for _, text := range []string{"x", "y"} {
		if err := d.Remember(t.Context(), "told", text); err != nil {
			t.Fatal(err)
		}
	}
	if text, at, err = d.Remembered(t.Context(), "told"); text != "y" || at.IsZero() || err != nil {
		t.Fatal(text, at, err)
	}
}

func TestMoves_OfTheDatabase(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	var want []string
	for _, m := range ledger.Moves() {
		want = append(want, fmt.Sprintf("%s>%s %s", m.From, m.To, m.Act))
	}
	slices.Sort(want)
	var got []string
	d.Query(t, `SELECT array_agg(m ORDER BY m COLLATE "C") FROM (SELECT format('%s>%s %s', from_state, to_state, act) AS m FROM dead_letter_moves) x`, &got)
	same(t, got, want)
}

func TestMoves_ByHand(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	for _, refused := range []struct{ what, code, sql string }{
		{"a move that there is not", "23514", `UPDATE dead_letters SET state = 'FAILED', changed_act = 'refused'`},
		{"a move that nothing is said of", "23514", `UPDATE dead_letters SET state = 'RESOLVED'`},
		{"a new id", "23514", `UPDATE dead_letters SET dead_letter_id = 'x'`},
		{"one that is resolved from the start", "23514", `INSERT INTO dead_letters SELECT (jsonb_populate_record(d, '{"dead_letter_id": "x", "state": "RESOLVED"}')).* FROM dead_letters d`},
		{"removing what is open", "23514", `DELETE FROM dead_letters`},
		{"removing all at once", "42501", `TRUNCATE dead_letters CASCADE`},
		{"another audit", "42501", `UPDATE dead_letter_audit SET actor = 'nobody'`},
		{"less audit", "42501", `DELETE FROM dead_letter_audit`},
		{"no audit", "42501", `TRUNCATE dead_letter_audit`},
		{"two retries that wait", "23505", `INSERT INTO dead_letter_outbox (dead_letter_id, topic, value_hash, actor) VALUES ('x', 't', '', 'a'), ('x', 't', '', 'a')`},
	} {
		var got string
		d.Exec(t, `CREATE OR REPLACE FUNCTION tried() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN `+refused.sql+`; RETURN 'done'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $f$`)
		if d.Query(t, `SELECT tried()`, &got); got != refused.code {
			t.Errorf("%s: %s, not %s", refused.what, got, refused.code)
		}
	}
	d.Exec(t, `UPDATE dead_letters SET state = 'RESOLVED', changed_act = 'closed'`)
	same(t, d.Text(`SELECT actor || ': ' || why FROM dead_letter_audit WHERE act = 'closed'`), "postgres (SQL): changed by hand")
	d.Shelved()
	d.Exec(t, `DELETE FROM dead_letters`)
	same(t, d.trail(l.ID), "entered >PENDING, closed PENDING>RESOLVED, archived RESOLVED>RESOLVED, removed RESOLVED>")
	d.Sums()
}
