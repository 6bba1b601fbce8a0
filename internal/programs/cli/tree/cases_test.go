package tree

import (
	"strings"
	"testing"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
)

var signed = []string{"--operator", "mara", "--reason", "r"}

// says calls docket and wants an exit code and texts on standard output and error together.
func (w *world) says(t *testing.T, code int, args []string, texts ...string) {
	t.Helper()
	r := w.call(args...)
	if r.code != code {
		t.Errorf("%v: exit %d\n%s%s", args, r.code, r.out, r.err)
	}
	for _, text := range texts {
		if text, not := strings.CutPrefix(text, "!"); strings.Contains(r.out+r.err, text) == not {
			t.Errorf("%v: %q\n%s%s", args, text, r.out, r.err)
		}
	}
}

func TestSnooze_HiddenUntilAsked(t *testing.T) {
	t.Parallel()
	w := &world{book: newBook(deadLetters()...)}
	id := deadLetters()[0].ID
	w.says(t, cli.Done, append([]string{"dlq", "snooze", id[:12], "--until", "2d"}, signed...), "snoozed", "until 2026-11-23")
	w.says(t, cli.Done, []string{"dlq", "list"}, "!"+id, "1 dead letter is snoozed, and not listed here")
	w.says(t, cli.Done, []string{"dlq", "list", "--snoozed"}, id)
	w.says(t, cli.Done, []string{"dlq", "show", id[:12]}, "snoozed until")
	w.says(t, cli.Done, append([]string{"dlq", "snooze", id[:12], "--off"}, signed...), "awake")
	w.says(t, cli.Done, []string{"dlq", "list"}, id, "!is snoozed")
	w.says(t, cli.Failed, append([]string{"dlq", "snooze", "ffffff", "--until", "2d"}, signed...), "refused")
}

func TestAssign_AndReopen(t *testing.T) {
	t.Parallel()
	w := &world{book: newBook(deadLetters()...)}
	first := deadLetters()[0]
	w.says(t, cli.Done, append([]string{"dlq", "assign", "oleg", first.ID[:12]}, signed...), "assigned")
	w.says(t, cli.Done, []string{"dlq", "list", "--assigned", "oleg"}, first.ID)
	w.says(t, cli.Done, append([]string{"dlq", "assign", "oleg", "--group", first.Fingerprint[:6]}, signed...), "is assigned to oleg")
	w.says(t, cli.Misuse, append([]string{"dlq", "assign", "oleg", "--group", "xy"}, signed...), "not a fingerprint")
	w.says(t, cli.Failed, append([]string{"dlq", "assign", "oleg", "--group", "abcd"}, signed...), "not in the ledger")
	note := []string{"--operator", "mara", "--note", "n"}
	w.says(t, cli.Failed, append([]string{"dlq", "reopen", first.ID[:12]}, note...), "refused")
	w.says(t, cli.Done, append([]string{"dlq", "resolve", first.ID[:12]}, note...), "resolved")
	w.says(t, cli.Done, append([]string{"dlq", "reopen", first.ID[:12]}, note...), "reopened", "PENDING")
}

func TestRules_AddedApprovedRemoved(t *testing.T) {
	t.Parallel()
	w := &world{book: newBook(deadLetters()...)}
	w.book.Two = true
	group := deadLetters()[0].Fingerprint
	add := append([]string{"dlq", "rules", "add", "retry", "--group", group[:6], "--after", "10m", "--rate", "5", "--until", "1w"}, signed...)
	w.says(t, cli.Done, add, "PROPOSED", "waits for a second person: docket dlq rules approve 1", "10m0s", "0 of 1000")
	w.says(t, cli.Failed, add, "rule 1 holds for this group and topic already")
	w.says(t, cli.Failed, append([]string{"dlq", "rules", "approve", "1"}, signed...), "another person has to approve it")
	w.says(t, cli.Done, []string{"dlq", "rules", "approve", "1", "--operator", "oleg", "--reason", "r"}, "ACTIVE")
	w.says(t, cli.Done, []string{"dlq", "rules", "list", "--json"}, `"after_seconds": 600`, `"approved_by": "oleg"`, `"act": "retry"`)
	w.says(t, cli.Done, append([]string{"dlq", "snooze", "--group", group[:6], "--until", "1h"}, signed...), "snooze", "ACTIVE")
	w.says(t, cli.Done, append([]string{"dlq", "snooze", "--group", group[:6], "--off"}, signed...), "REMOVED")
	w.says(t, cli.Done, append([]string{"dlq", "rules", "remove", "1"}, signed...), "REMOVED")
	w.says(t, cli.Done, []string{"dlq", "rules", "list"}, "no rule holds")
	w.says(t, cli.Failed, append([]string{"dlq", "rules", "remove", "9"}, signed...), "not in the ledger")
}

func TestResolve_AGroupIsBoundToItsCount(t *testing.T) {
	t.Parallel()
	w := &world{book: newBook(many(3)...)}
	w.book.Two = true
	group := many(1)[0].Fingerprint
	w.says(t, cli.Misuse, []string{"dlq", "resolve", "--group", group, "--operator", "mara"}, "no note")
	w.says(t, cli.Misuse, []string{"dlq", "resolve", "a0a0a0", "--group", group, "--operator", "mara", "--note", "n"}, "contradicts")
	w.says(t, cli.Failed, []string{"dlq", "resolve", "--group", group[:6], "--operator", "mara", "--note", "n", "--yes"}, "3 dead letters", "docket jobs approve 1")
	if j := w.book.jobs[0]; j.Limit != 3 || !j.Filter.To.Equal(now) || j.Filter.Fingerprint != group || j.State != ledger.JobProposed {
		t.Errorf("%+v", j)
	}
	w.says(t, cli.Done, []string{"jobs", "show", "1"}, "PROPOSED", "docket jobs approve 1 --operator YOU --reason '...'", "docket jobs stop 1")
	w.says(t, cli.Failed, append([]string{"jobs", "approve", "1"}, signed...), "another person has to approve it")
	w.says(t, cli.Done, []string{"jobs", "approve", "1", "--operator", "oleg", "--reason", "r"}, "WAITING")
	w.says(t, cli.Done, []string{"jobs", "show", "1"}, "approved by", "oleg")
	w.says(t, cli.Done, []string{"jobs", "show", "1", "--json"}, `"approved_by": "oleg"`)
}

// TestAssign_BreaksHalfWay: the command says what it did before the database went away.
func TestAssign_BreaksHalfWay(t *testing.T) {
	t.Parallel()
	w := &world{book: newBook(deadLetters()...)}
	begin, n := w.book.Begin, 0
	w.book.Begin = func() (func(), error) {
		if n++; n == 2 {
			return func() {}, errAway
		}
		return begin()
	}
	one, two := deadLetters()[0].ID, deadLetters()[1].ID
	r := w.call(append([]string{"dlq", "assign", "oleg", one[:12], two[:12]}, signed...)...)
	if r.code != cli.Failed || !strings.Contains(r.out, one[:12]) || !strings.Contains(r.out, "assigned") || !strings.Contains(r.err, errAway.Error()) || !strings.Contains(r.err, two[:12]) {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}
