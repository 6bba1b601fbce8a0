package tree

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/term"
)

// overflown are ranges in every state.
func overflown() []ledger.Surplus {
	one := ledger.Surplus{ID: 1, Topic: "decision-logs-dlq", Partition: 2, Client: "edge-7\x1b[31m", Hour: now.Add(-time.Hour), First: 1000, Last: 21000, Next: 5000, Letters: 20000, Entered: 4000,
		FirstAt: now.Add(-time.Hour), LastAt: now, LeftAt: now.Add(-time.Hour), State: ledger.SurplusOpen}
	two := one
	two.ID, two.Partition, two.Client, two.Letters, two.Entered, two.Next, two.OrderedBy, two.OrderedWhy, two.OrderedAt = 2, 0, "", 10, 0, 1000, "mara", "it is fixed", now
	entered, archived, lost := one, one, one
	entered.ID, entered.State, entered.Entered, entered.ClosedAt, entered.Next = 3, ledger.SurplusEntered, 20000, now, 21001
	archived.ID, archived.State, archived.Archived, archived.ArchivedFrom, archived.ArchivedIn, archived.ClosedAt = 4, ledger.SurplusArchived, 16000, 5000, "dead_letters-2026-11-21-001", now
	lost.ID, lost.State, lost.Lost, lost.ClosedAt = 5, ledger.SurplusLost, 16000, now
	return []ledger.Surplus{one, two, entered, archived, lost}
}

func TestSurplus_Shown(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"surplus": {"dlq", "surplus"}, "surplus_all": {"dlq", "surplus", "--all"}} {
		for how, terminal := range map[string]term.Terminal{"80": person(80), "140": person(140), "pipe": {}, "json": {}} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				w := &world{book: newBook(), terminal: terminal}
				w.book.surplus = overflown()
				with := args
				if how == "json" {
					with = append(append([]string{}, args...), "--json")
				}
				r := w.call(with...)
				if r.code != 0 || how == "json" && !json.Valid([]byte(r.out)) {
					t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
				}
				quiet(t, r.out+r.err)
				golden(t, name+"_"+how+".txt", r.out+"---\n"+r.err)
			})
		}
	}
	w := &world{book: newBook()}
	if r := w.call("dlq", "surplus"); r.code != 0 || r.out != "" || r.err != "all dead letters that a desk has read are in the ledger\n" {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestSurplus_Enter(t *testing.T) {
	t.Parallel()
	w := &world{book: newBook()}
	w.book.surplus = overflown()
	if r := w.call("dlq", "surplus", "--enter", "1", "--operator", "mara"); r.code != 2 || !strings.Contains(r.err, "no reason") || w.book.changes() != "" {
		t.Errorf("without a reason: exit %d\n%s", r.code, r.err)
	}
	if r := w.call("dlq", "surplus", "--reason", "so"); r.code != 2 {
		t.Errorf("a reason for nothing: exit %d\n%s", r.code, r.err)
	}
	if r := w.call("dlq", "surplus", "--enter", "1", "--operator", "mara", "--reason", "so"); r.code != 0 || r.out != "range 1: a running desk enters it within seconds\n" {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if got := w.book.changes(); got != "range 1 is ordered by mara: so" {
		t.Error(got)
	}
	for _, id := range []string{"1", "2", "3", "9"} { // ordered, ordered by another, over, nowhere
		if r := w.call("dlq", "surplus", "--enter", id, "--operator", "mara", "--reason", "so", "--json"); r.code != 1 || !strings.Contains(r.out, `"refused"`) {
			t.Errorf("%s: exit %d\n%s%s", id, r.code, r.out, r.err)
		}
	}
}

// TestSurplus_Beside: lists of dead letters say what is not among them.
func TestSurplus_Beside(t *testing.T) {
	t.Parallel()
	const note = "not entered, as their clients brought too many: 10 dead letters of (no proven client) (in Kafka: decision-logs-dlq/0/1000..21000), " +
		`16,000 dead letters of edge-7\x1b[31m (in Kafka: 2 ranges); see docket dlq surplus`
	for _, args := range []string{"dlq list", "dlq groups"} {
		w := &world{book: newBook(deadLetters()...)}
		w.book.surplus = overflown()
		half := w.book.surplus[0]
		w.book.surplus[0].Letters, half.Letters, half.ID = 12000, 12000, 6
		w.book.surplus = append(w.book.surplus, half)
		r := w.call(strings.Fields(args)...)
		if r.code != 0 || !strings.Contains(r.err, note) {
			t.Errorf("%s: exit %d\n%s", args, r.code, r.err)
		}
		r = w.call(append(strings.Fields(args), "--json")...)
		var answer struct{ Ledger toldLedger }
		if err := json.Unmarshal([]byte(r.out), &answer); err != nil || len(answer.Ledger.Surplus) != 3 || answer.Ledger.Surplus[1].Open != 10 || !strings.Contains(answer.Ledger.Note, "16,000") {
			t.Errorf("%s: %v\n%+v", args, err, answer.Ledger)
		}
	}
}
