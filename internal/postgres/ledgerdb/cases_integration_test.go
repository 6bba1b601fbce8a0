//go:build integration

package ledgerdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/testkit/pgtest"
)

var fingerprint = ledger.Fingerprint(pgtest.CheckFailed)

// listed are the offsets of the letters that a filter lists, in order.
func (d *ledgerDB) listed(f ledger.Filter) string {
	d.T.Helper()
	list, err := d.List(context.Background(), f, ledger.Page{})
	check(d.T, err)
	var of []string
	for _, e := range list.Entries {
		of = append(of, fmt.Sprint(e.Origin.Offset))
	}
	slices.Sort(of)
	return strings.Join(of, " ")
}

// counted wants that every total has all three letters, and how many of them are snoozed.
func (d *ledgerDB) counted(snoozed int64) {
	d.T.Helper()
	counts, err := d.Counts(context.Background(), ledger.Filter{})
	check(d.T, err)
	groups, err := d.Groups(context.Background(), ledger.Filter{})
	check(d.T, err)
	n, err := d.Snoozed(context.Background())
	check(d.T, err)
	same(d.T, []int64{counts[ledger.Pending], groups[0].Open(), groups[0].Snoozed, n}, []int64{3, 3, snoozed, snoozed})
}

// later lets the time of all snoozes and rules pass.
func (d *ledgerDB) later() {
	d.T.Helper()
	d.Exec(d.T, pgtest.Unwatched+`UPDATE dead_letter_cases SET snoozed_until = now() - interval '1 second' WHERE snoozed_until IS NOT NULL; UPDATE dead_letter_rules SET ends_at = now() - interval '1 second'`)
}

func threeLetters(t *testing.T) (*ledgerDB, []ledger.Letter) {
	t.Helper()
	d := newLedger(t)
	all := []ledger.Letter{letter(0, "0"), letter(1, "1"), letter(2, "2")}
	all[2].Origin.Topic = "other"
	d.Entered(all...)
	return d, all
}

func TestSnooze_OfALetter(t *testing.T) {
	t.Parallel()
	d, all := threeLetters(t)
	until := time.Now().Add(time.Hour)
	outcomes, err := d.Snooze(t.Context(), []string{all[0].ID, strings.Repeat("f", 64)}, until, ann)
	check(t, err)
	if outcomes[0].Err != nil || !errors.Is(outcomes[1].Err, ledger.ErrNotFound) {
		t.Fatal(outcomes)
	}
	for _, f := range []ledger.Filter{{}, {Code: "23514"}, {Topic: original}} {
		f.Snoozed = ledger.NotSnoozed
		if got := d.listed(f); strings.Contains(got, "0") || !strings.Contains(got, "1") {
			t.Errorf("%+v lists %q", f, got)
		}
	}
	same(t, d.listed(ledger.Filter{}), "0 1 2")
	same(t, d.listed(ledger.Filter{Snoozed: ledger.OnlySnoozed}), "0")
	d.counted(1)
	e, err := d.Show(t.Context(), all[0].ID)
	check(t, err)
	if e.SnoozedUntil.Sub(until).Abs() > time.Millisecond || e.State != ledger.Pending {
		t.Errorf("%+v", e)
	}
	d.later()
	same(t, d.listed(ledger.Filter{Snoozed: ledger.NotSnoozed}), "0 1 2")
	d.counted(0)
	_, err = d.Snooze(t.Context(), []string{all[0].ID}, time.Time{}, ann)
	check(t, err)
	if got := d.Text(`SELECT string_agg(split_part(why, ' ', 1) || ' ' || actor, ', ' ORDER BY audit_id) FROM dead_letter_audit WHERE act = 'snoozed'`); got != "until ann, no ann" {
		t.Error(got)
	}
	for _, wrong := range []time.Time{time.Now().Add(-time.Second), time.Now().Add(ledger.LongestHold + time.Hour)} {
		if _, err := d.Snooze(t.Context(), []string{all[0].ID}, wrong, ann); !errors.As(err, new(*ledger.InvalidError)) {
			t.Errorf("until %s: %v", wrong, err)
		}
	}
}

func TestSnooze_OfAGroup(t *testing.T) {
	t.Parallel()
	d, all := threeLetters(t)
	_, err := d.AddRule(t.Context(), ledger.Rule{Fingerprint: fingerprint, Topic: "other", Act: ledger.Snoozed, EndsAt: time.Now().Add(time.Hour)}, ann)
	check(t, err)
	same(t, d.listed(ledger.Filter{Snoozed: ledger.NotSnoozed}), "0 1")
	d.counted(1)
	first, err := d.AddRule(t.Context(), ledger.Rule{Fingerprint: fingerprint, Act: ledger.Snoozed, EndsAt: time.Now().Add(time.Hour)}, ann)
	check(t, err)
	_, err = d.Snooze(t.Context(), []string{all[1].ID}, time.Now().Add(time.Hour), ann)
	check(t, err)
	same(t, d.listed(ledger.Filter{Snoozed: ledger.NotSnoozed}), "")
	same(t, d.listed(ledger.Filter{Snoozed: ledger.OnlySnoozed}), "0 1 2")
	d.counted(3)
	// Another snooze takes the place of the first. Its end brings the letters back.
	second, err := d.AddRule(t.Context(), ledger.Rule{Fingerprint: fingerprint, Act: ledger.Snoozed, EndsAt: time.Now().Add(2 * time.Hour)}, ann)
	check(t, err)
	e, err := d.Show(t.Context(), all[0].ID)
	check(t, err)
	same(t, e.SnoozedUntil, second.EndsAt)
	gone, err := d.Rules(t.Context(), fingerprint, true, 10)
	check(t, err)
	at := slices.IndexFunc(gone, func(r ledger.Rule) bool { return r.ID == first.ID })
	same(t, gone[at].State, ledger.RuleRemoved)
	_, err = d.RemoveRule(t.Context(), second.ID, ann)
	check(t, err)
	same(t, d.listed(ledger.Filter{Snoozed: ledger.NotSnoozed}), "0")
	d.later()
	d.counted(0)
	// A resolved letter is not snoozed, whatever holds.
	_, err = d.AddRule(t.Context(), ledger.Rule{Fingerprint: fingerprint, Act: ledger.Snoozed, EndsAt: time.Now().Add(time.Hour)}, ann)
	check(t, err)
	_, err = d.Resolve(t.Context(), []string{all[0].ID}, ann)
	check(t, err)
	n, err := d.Snoozed(t.Context())
	check(t, err)
	same(t, n, int64(2))
	same(t, d.listed(ledger.Filter{Snoozed: ledger.NotSnoozed}), "0")
}

func TestAssign_LettersAndGroups(t *testing.T) {
	t.Parallel()
	d, all := threeLetters(t)
	check(t, d.Assign(t.Context(), all[0].ID, "mara", ann))
	same(t, d.listed(ledger.Filter{Assigned: "mara"}), "0")
	same(t, d.listed(ledger.Filter{Assigned: ledger.Nobody}), "1 2")
	check(t, d.AssignGroup(t.Context(), fingerprint, "oleg", ann))
	same(t, d.listed(ledger.Filter{Assigned: "oleg"}), "1 2")
	check(t, d.Assign(t.Context(), all[0].ID, "", ann))
	check(t, d.Assign(t.Context(), all[0].ID, "", ann)) // nothing is noted
	same(t, d.listed(ledger.Filter{Assigned: "oleg"}), "0 1 2")
	groups, err := d.Groups(t.Context(), ledger.Filter{})
	check(t, err)
	same(t, groups[0].Assigned, "oleg")
	same(t, d.trail(all[0].ID), "entered >PENDING, assigned PENDING>PENDING, assigned PENDING>PENDING")
	history, err := d.GroupHistory(t.Context(), fingerprint, 10)
	check(t, err)
	same(t, []string{history[0].Act, history[0].By, history[0].Why}, []string{"assigned", "ann", "to oleg: because"})
	for _, err := range []error{d.Assign(t.Context(), strings.Repeat("f", 64), "mara", ann), d.AssignGroup(t.Context(), "0123456789abcdef", "mara", ann)} {
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Error(err)
		}
	}
	if err := d.Assign(t.Context(), all[0].ID, strings.Repeat("m", 65), ann); !errors.As(err, new(*ledger.InvalidError)) {
		t.Error(err)
	}
}

func TestReopen_OnlyWhatWasClosed(t *testing.T) {
	t.Parallel()
	d, all := threeLetters(t)
	s := d.Put(all[0].ID, 100)
	check(t, d.Stored(t.Context(), []int64{s.ID}, []string{"row"}, ann))
	_, err := d.Resolve(t.Context(), []string{all[1].ID, all[2].ID}, ann)
	check(t, err)
	d.Exec(t, `SET ROLE NONE; UPDATE dead_letters SET archived_in = 'x' WHERE dead_letter_id = '`+all[2].ID+`'`)
	outcomes, err := d.Reopen(t.Context(), []string{all[0].ID, all[1].ID, all[2].ID, all[1].ID}, ann)
	check(t, err)
	for i, refused := range []bool{true, false, true, false} {
		if errors.As(outcomes[i].Err, new(*ledger.RefusedError)) != refused {
			t.Errorf("%d: %v", i, outcomes[i].Err)
		}
	}
	same(t, d.trail(all[1].ID), "entered >PENDING, closed PENDING>RESOLVED, reopened RESOLVED>PENDING")
	d.Retried(all[1].ID)
	d.Sums()
}

// TestReopen_NotWhatWasStoredLate: a retry was stored after its lease had ended, and a person had closed the letter meanwhile.
func TestReopen_NotWhatWasStoredLate(t *testing.T) {
	t.Parallel()
	d, all := threeLetters(t)
	s := d.Put(all[0].ID, 100)
	d.Exec(t, pgtest.Unwatched+`UPDATE dead_letters SET lease_until = now() - interval '1 minute' WHERE dead_letter_id = '`+all[0].ID+`'`)
	_, err := d.EndLeases(t.Context(), ann)
	check(t, err)
	_, err = d.Resolve(t.Context(), []string{all[0].ID}, ann)
	check(t, err)
	check(t, d.Stored(t.Context(), []int64{s.ID}, []string{"row"}, ann))
	outcomes, err := d.Reopen(t.Context(), []string{all[0].ID}, ann)
	check(t, err)
	if !errors.As(outcomes[0].Err, new(*ledger.RefusedError)) {
		t.Errorf("it has its row, and is open again: %v", outcomes[0].Err)
	}
}
