//go:build integration

package ledgerdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/testkit/pgtest"
)

// ruled adds a rule that holds for an hour.
func (d *ledgerDB) ruled(r ledger.Rule) ledger.Rule {
	d.T.Helper()
	r.Fingerprint, r.EndsAt = fingerprint, time.Now().Add(time.Hour)
	if r.Most == 0 {
		r.Most = 100
	}
	if r.Failures == 0 {
		r.Failures = 3
	}
	made, err := d.AddRule(context.Background(), r, ann)
	check(d.T, err)
	return made
}

// wide is a turn that looks at all letters of a small ledger.
var wide = ledger.Turn{Look: 1000, Move: 100, Lease: soon}

// turn is one turn of a rule.
func (d *ledgerDB) turn(r ledger.Rule) ledger.Acting {
	d.T.Helper()
	a, err := d.ActRule(context.Background(), r.ID, wide)
	check(d.T, err)
	return a
}

func (d *ledgerDB) rule(id int64) ledger.Rule {
	d.T.Helper()
	all, err := d.Rules(context.Background(), "", true, 100)
	check(d.T, err)
	for _, r := range all {
		if r.ID == id {
			return r
		}
	}
	d.T.Fatalf("no rule %d", id)
	return ledger.Rule{}
}

func TestRule_RetriesOnceForEachFailure(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, "1")
	d.Entered(l)
	r := d.ruled(ledger.Rule{Act: ledger.Retried})
	same(t, d.turn(r), ledger.Acting{Moved: 1})
	same(t, d.turn(r), ledger.Acting{})
	d.lapse() // nothing was heard of it: the cause is the same
	same(t, d.State(l.ID), "PENDING 0 lease_ended")
	same(t, d.turn(r), ledger.Acting{})
	s := d.Put(l.ID, 50) // by hand
	d.Entered(home(s, 50))
	same(t, d.State(l.ID), "PENDING 1 died")
	same(t, d.turn(r), ledger.Acting{Moved: 1})
	same(t, d.rule(r.ID).Acted, int64(2))
	same(t, d.Text(`SELECT string_agg(actor, ', ' ORDER BY audit_id) FROM dead_letter_audit WHERE act = 'retried' AND actor <> 'ann'`),
		fmt.Sprintf("rule %d of ann, rule %d of ann", r.ID, r.ID))
	d.Sums()
}

func TestRule_StopsItself(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	var all []ledger.Letter
	for i := range int64(6) {
		all = append(all, letter(i, fmt.Sprint(i)))
	}
	d.Entered(all...)
	r := d.ruled(ledger.Rule{Act: ledger.Retried, Failures: 2})
	same(t, d.turn(r), ledger.Acting{Moved: 2}) // no more than may fail
	same(t, d.turn(r), ledger.Acting{})
	for i, s := range d.Claimed("relay", 10) {
		d.Placed("relay", ledger.Placed{SendingID: s.ID, Partition: 1, Offset: int64(100 + i)})
		d.Entered(home(s, int64(100+i)))
	}
	same(t, d.turn(r), ledger.Acting{Stopped: "2 retries in a row were not stored"})
	same(t, d.turn(r), ledger.Acting{})
	stopped := d.rule(r.ID)
	same(t, []any{stopped.State, stopped.Ended.Why, stopped.Ended.By}, []any{ledger.RuleStopped, "2 retries in a row were not stored", r.Actor().Name})
	history, err := d.GroupHistory(t.Context(), fingerprint, 10)
	check(t, err)
	same(t, []any{history[0].Act, history[0].Rule}, []any{"rule_stopped", r.ID})
	most := d.ruled(ledger.Rule{Act: ledger.Closed, Most: 3})
	same(t, d.turn(most), ledger.Acting{Moved: 3})
	same(t, d.turn(most), ledger.Acting{Stopped: "it moved as many letters as it may"})
}

func TestRule_ClosesOnce(t *testing.T) {
	t.Parallel()
	d, all := threeLetters(t)
	r := d.ruled(ledger.Rule{Act: ledger.Closed, Topic: original})
	same(t, d.turn(r), ledger.Acting{Moved: 2})
	_, err := d.Reopen(t.Context(), []string{all[0].ID}, ann)
	check(t, err)
	same(t, d.turn(r), ledger.Acting{})
	same(t, []string{d.State(all[0].ID), d.State(all[1].ID), d.State(all[2].ID)}, []string{"PENDING 0 reopened", "RESOLVED 0 closed", "PENDING 0 entered"})
	if _, err := d.AddRule(t.Context(), ledger.Rule{Fingerprint: fingerprint, Topic: original, Act: ledger.Retried, Most: 1, Failures: 1, EndsAt: time.Now().Add(time.Hour)}, ann); !errors.As(err, new(*ledger.RuleExistsError)) {
		t.Error(err)
	}
	d.later()
	d.ruled(ledger.Rule{Act: ledger.Retried, Topic: original})
	same(t, d.rule(r.ID).Ended.Why, "its time had passed")
}

func TestRule_TwoDesksAtOnce(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	var all []ledger.Letter
	for i := range int64(60) {
		all = append(all, letter(i, fmt.Sprint(i)))
	}
	d.Entered(all...)
	r := d.ruled(ledger.Rule{Act: ledger.Retried, Failures: 60, Most: 50})
	var desks sync.WaitGroup
	moved := make(chan int, 40)
	for range 4 {
		desks.Go(func() {
			for range 10 {
				a, err := d.ActRule(context.Background(), r.ID, ledger.Turn{Look: 100, Move: 7, Lease: soon})
				if err != nil {
					t.Error(err)
				}
				moved <- a.Moved
			}
		})
	}
	desks.Wait()
	close(moved)
	sum := 0
	for n := range moved {
		sum += n
	}
	same(t, sum, 50)
	same(t, d.Text(`SELECT count(*) || ' ' || count(DISTINCT dead_letter_id) FROM dead_letter_outbox`), "50 50")
	same(t, d.Text(`SELECT count(*) || ' ' || count(outbox_id) FROM dead_letter_rule_acts`), "50 50")
}

// TestRule_TurnIsBounded: letters that a rule may not move cost each turn no more than its look, and do not hide those behind them.
func TestRule_TurnIsBounded(t *testing.T) {
	t.Parallel()
	for _, act := range []ledger.Act{ledger.Retried, ledger.Closed} {
		t.Run(string(act), func(t *testing.T) {
			t.Parallel()
			d := newLedger(t)
			var all []ledger.Letter
			for i := range int64(30) {
				l := letter(i, fmt.Sprint(i))
				l.FirstFailedAt = noon.Add(time.Duration(i/4) * time.Second) // some at the same moment
				all = append(all, l)
			}
			d.Entered(all...)
			r := d.ruled(ledger.Rule{Act: act, Failures: 100})
			d.Exec(t, fmt.Sprintf(`INSERT INTO dead_letter_rule_acts SELECT %d, dead_letter_id, 0 FROM dead_letters WHERE first_failed_at < '%s'`, r.ID, noon.Add(6*time.Second).Format(time.RFC3339Nano)))
			turn := ledger.Turn{Look: 10, Move: 4, Lease: soon}
			var moved []int
			for range 6 { // 24 of 30 are not due
				a, err := d.ActRule(t.Context(), r.ID, turn)
				check(t, err)
				moved = append(moved, a.Moved)
				if turn.After = a.Next; !a.More {
					break
				}
			}
			same(t, moved, []int{0, 0, 4, 2})
			same(t, turn.After, ledger.Mark{})
		})
	}
}

// TestRule_ReadsByIndexes: the reads of a turn do not grow with the letters that the rule moved before, nor with those of other groups.
func TestRule_ReadsByIndexes(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	d.Entered(letter(1, "1"))
	tx, err := pgxConnect(t, d.URL).Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), ledgerdb.OrderedSQL)
	check(t, err)
	chosen, ends := []any{1, 1, "", time.Duration(0), noon, "", 10, 5}, []any{1, 5}
	for _, c := range []struct {
		sql, index string
		args       []any
	}{
		{ledgerdb.ChosenToRetrySQL, "Index Scan using dead_letters_first ", chosen}, {ledgerdb.ChosenToCloseSQL, "Index Scan using dead_letters_first ", chosen},
		{ledgerdb.RuleEndsSQL, "Scan Backward using dead_letter_outbox_rule ", ends}, {ledgerdb.RuleOpenSQL, "Scan using dead_letter_outbox_rule ", ends},
	} {
		lines, err := tx.Query(t.Context(), `EXPLAIN `+c.sql, append([]any{pgx.QueryExecModeSimpleProtocol}, c.args...)...)
		check(t, err)
		all, err := pgx.CollectRows(lines, pgx.RowTo[string])
		check(t, err)
		if plan := strings.Join(all, "\n"); !strings.Contains(plan, c.index) || strings.Contains(plan, "Seq Scan on dead_letter") {
			t.Errorf("%s is not by %s\n%s", c.sql, c.index, plan)
		}
	}
}

func TestRule_SnoozeAndScheduleGiveWay(t *testing.T) {
	t.Parallel()
	d, all := threeLetters(t)
	free := ledger.Filter{Kind: "data", States: []ledger.State{ledger.Pending}, Free: true}
	scheduled := func(want int) {
		t.Helper()
		ids, err := d.RetryMatching(t.Context(), free, time.Now().Add(time.Minute), 10, soon, by("schedule"))
		check(t, err)
		same(t, len(ids), want)
	}
	_, err := d.Snooze(t.Context(), []string{all[0].ID}, time.Now().Add(time.Hour), ann)
	check(t, err)
	r := d.ruled(ledger.Rule{Act: ledger.Retried, Topic: original})
	scheduled(1) // the one of the other topic
	same(t, d.turn(r), ledger.Acting{Moved: 1})
	same(t, d.State(all[0].ID), "PENDING 0 entered")
	d.later()
	scheduled(1)
}

func TestRule_NeedsASecondPerson(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.Entered(letter(1, "1"))
	mara, oleg, desk := o.person(t, "docket_desk"), o.person(t, "docket_desk"), o.person(t, "docket_desk_api")
	want := ledger.Rule{Fingerprint: fingerprint, Act: ledger.Closed, Most: 10, Failures: 1, EndsAt: time.Now().Add(time.Hour)}
	r, err := mara.AddRule(t.Context(), want, by("mara"))
	check(t, err)
	same(t, []any{r.State, r.Login}, []any{ledger.RuleProposed, mara.login})
	same(t, o.turn(r), ledger.Acting{})
	for _, c := range []struct {
		p    person
		by   ledger.Actor
		want ledger.Because
	}{{oleg, by(" MARA"), ledger.BecauseName}, {mara, by("oleg"), ledger.BecauseLogin}, {desk, vouched("oleg"), ledger.BecauseOtherWay}} {
		var refused *ledger.ProposalError
		if _, err := c.p.ApproveRule(t.Context(), r.ID, c.by); !errors.As(err, &refused) || refused.Because != c.want {
			t.Errorf("%s: %v", c.by.Name, err)
		}
	}
	mara.does(t, "23514", `UPDATE dead_letter_rules SET state = 'ACTIVE', approved_by = 'oleg', approved_why = 'x'`)
	mara.does(t, "42501", `UPDATE dead_letter_rules SET state = 'ACTIVE', approved_by = 'oleg', approved_why = 'x', vouched = true`)
	mara.does(t, "23514", `UPDATE dead_letter_rules SET login = 'oleg'`)
	mara.does(t, "23514", `UPDATE dead_letter_rules SET vouched = true, acted = 0`)
	mara.does(t, "42501", `DELETE FROM dead_letter_rules`)
	mara.does(t, "42501", `UPDATE dead_letter_group_audit SET actor = 'x'`)
	r, err = oleg.ApproveRule(t.Context(), r.ID, by("oleg"))
	check(t, err)
	same(t, []any{r.State, r.Approved.By, r.Approved.Login, r.Vouched}, []any{ledger.RuleActive, "oleg", oleg.login, false})
	same(t, o.turn(r), ledger.Acting{Moved: 1})
	oleg.does(t, "23514", `UPDATE dead_letter_rules SET most = 1000`)
	oleg.does(t, "23514", `UPDATE dead_letter_rules SET acted = 0`)
	// A snooze changes nothing, so one person is enough.
	snooze, err := mara.AddRule(t.Context(), ledger.Rule{Fingerprint: fingerprint, Act: ledger.Snoozed, EndsAt: time.Now().Add(time.Hour)}, by("mara"))
	check(t, err)
	same(t, snooze.State, ledger.RuleActive)
}

func TestJob_ToCloseNeedsASecondPerson(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.Entered(letter(1, "1"))
	mara, oleg := o.person(t, "docket_desk"), o.person(t, "docket_desk")
	j, err := mara.CreateJob(t.Context(), ledger.Job{Act: ledger.Closed, Filter: ledger.Filter{Fingerprint: fingerprint}, Operator: "mara", Reason: "done"})
	check(t, err)
	same(t, []any{j.State, j.Matched}, []any{ledger.JobProposed, int64(1)})
	taken := func(want error) {
		t.Helper()
		if _, err := o.TakeJob(t.Context(), "desk", time.Minute); !errors.Is(err, want) {
			t.Fatal(err)
		}
	}
	taken(ledger.ErrNotFound)
	for sql, code := range map[string]string{
		`UPDATE dead_letter_jobs SET state = 'WAITING'`:                                                                                "23514",
		`UPDATE dead_letter_jobs SET proposed = false, state = 'WAITING'`:                                                              "23514",
		`UPDATE dead_letter_jobs SET filter = '{}'`:                                                                                    "23514",
		`UPDATE dead_letter_jobs SET approved_by = 'oleg', state = 'WAITING'`:                                                          "23514",
		`UPDATE dead_letter_jobs SET approved_by = 'oleg', vouched = true, state = 'WAITING'`:                                          "42501",
		`INSERT INTO dead_letter_jobs (act, filter, operator, reason, matched, state) VALUES ('closed', '{}', 'x', 'x', 1, 'WAITING')`: "",
	} {
		mara.does(t, code, sql)
	}
	taken(ledger.ErrNotFound) // that of a former desk waits, too
	if _, err := mara.StopJob(t.Context(), j.ID, "no", by("mara")); err != nil {
		t.Fatal(err)
	}
	j, err = mara.ResumeJob(t.Context(), j.ID, by("mara"))
	check(t, err)
	same(t, j.State, ledger.JobProposed)
	var refused *ledger.ProposalError
	if _, err := mara.ApproveJob(t.Context(), j.ID, by("oleg")); !errors.As(err, &refused) || refused.Because != ledger.BecauseLogin {
		t.Fatal(err)
	}
	j, err = oleg.ApproveJob(t.Context(), j.ID, by("oleg"))
	check(t, err)
	same(t, []any{j.State, j.ApprovedBy}, []any{ledger.JobWaiting, "oleg"})
	if _, err := oleg.ApproveJob(t.Context(), j.ID, by("oleg")); !errors.As(err, &refused) || refused.Because != ledger.BecauseEnded {
		t.Fatal(err)
	}
	taken(nil)
	again, err := mara.CreateJob(t.Context(), ledger.Job{Act: ledger.Retried, Filter: ledger.Filter{Fingerprint: fingerprint}, Operator: "mara", Reason: "try"})
	check(t, err)
	same(t, again.State, ledger.JobWaiting)
}

// TestRule_AlikeEngine holds the statements of rules against the functions in memory.
func TestRule_AlikeEngine(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	rapid.Check(t, func(rt *rapid.T) {
		d.Exec(t, `SET session_replication_role = replica; TRUNCATE dead_letters, dead_letter_cases, dead_letter_rule_acts, dead_letter_rules, dead_letter_proposals, dead_letter_decisions, dead_letter_edits, dead_letter_outbox, dead_letter_counts, dead_letter_days`)
		topics := []string{original, "other"}
		var letters []ledger.Letter
		for i := range rapid.IntRange(1, 4).Draw(rt, "letters") {
			l := letter(int64(i), fmt.Sprint(i))
			l.Origin.Topic = rapid.SampledFrom(topics).Draw(rt, "topic")
			letters = append(letters, l)
		}
		d.Entered(letters...)
		subjects := map[string]ledger.Subject{}
		acted := map[int64]map[string][]int{}
		now := time.Now()
		for _, l := range letters {
			s := ledger.Subject{State: rapid.SampledFrom([]ledger.State{ledger.Pending, ledger.Failed, ledger.Processing, ledger.Resolved}).Draw(rt, "state"), Topic: l.Origin.Topic,
				Attempts: rapid.IntRange(0, 2).Draw(rt, "attempts"), ChangedAt: now.Add(-rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(rt, "changed"))}
			d.Exec(t, pgtest.Unwatched+fmt.Sprintf(`UPDATE dead_letters SET state = '%s', attempts = %d, changed_at = '%s' WHERE dead_letter_id = '%s'`, s.State, s.Attempts, s.ChangedAt.Format(time.RFC3339Nano), l.ID))
			if rapid.Bool().Draw(rt, "snoozed") {
				s.SnoozedUntil = now.Add(rapid.SampledFrom([]time.Duration{-time.Hour, time.Hour}).Draw(rt, "until"))
				d.Exec(t, pgtest.Unwatched+fmt.Sprintf(`INSERT INTO dead_letter_cases VALUES ('%s', NULL, '%s', 'x', 'x')`, l.ID, s.SnoozedUntil.Format(time.RFC3339Nano)))
			}
			subjects[l.ID] = s
		}
		for range rapid.IntRange(1, 4).Draw(rt, "rules") {
			r := ledger.Rule{Fingerprint: fingerprint, Topic: rapid.SampledFrom(append(topics, "")).Draw(rt, "of topic"), Act: rapid.SampledFrom([]ledger.Act{ledger.Retried, ledger.Closed, ledger.Snoozed}).Draw(rt, "act"),
				After: rapid.SampledFrom([]time.Duration{0, 30 * time.Minute}).Draw(rt, "after"), Most: 100, Failures: 100, EndsAt: now.Add(time.Hour)}
			made, err := d.AddRule(context.Background(), r, ann)
			if errors.As(err, new(*ledger.RuleExistsError)) {
				continue
			}
			check(t, err)
			acted[made.ID] = map[string][]int{}
			if rapid.IntRange(0, 3).Draw(rt, "over") == 0 {
				d.Exec(t, pgtest.Unwatched+fmt.Sprintf(`UPDATE dead_letter_rules SET ends_at = now() - interval '1 second' WHERE rule_id = %d`, made.ID))
			}
			for _, l := range letters {
				if made.Act != ledger.Snoozed && rapid.IntRange(0, 2).Draw(rt, "acted") == 0 {
					at := rapid.IntRange(0, 2).Draw(rt, "at")
					acted[made.ID][l.ID] = []int{at}
					d.Exec(t, pgtest.Unwatched+fmt.Sprintf(`INSERT INTO dead_letter_rule_acts VALUES (%d, '%s', %d)`, made.ID, l.ID, at))
				}
			}
		}
		all, err := d.Rules(context.Background(), fingerprint, true, 100)
		check(t, err)
		for _, r := range all {
			want := 0
			for id, s := range subjects {
				if by, snoozed, found := ledger.Governing(all, s, now); found && !snoozed && by.ID == r.ID && r.Due(s, acted[r.ID][id], now) {
					want++
				}
			}
			a, err := d.ActRule(context.Background(), r.ID, wide)
			if err != nil || a.Moved != want {
				rt.Fatalf("rule %d, %s of %q: moved %d, want %d: %v", r.ID, r.Act, r.Topic, a.Moved, want, err)
			}
		}
	})
}
