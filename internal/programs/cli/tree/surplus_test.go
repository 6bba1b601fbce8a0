package tree

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
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

// manyRanges are open ranges with two letters each, of several clients.
func manyRanges(n int) (all []ledger.Surplus) {
	for i := range int64(n) {
		all = append(all, ledger.Surplus{ID: i + 1, Topic: "decision-logs-dlq", Client: fmt.Sprintf("edge-%d", i%5), First: 10 * i, Next: 10 * i, Last: 10*i + 1, Letters: 2, LeftAt: now, State: ledger.SurplusOpen})
	}
	return all
}

// TestSurplus_ManyRanges: no page is taken for all of the list.
func TestSurplus_ManyRanges(t *testing.T) {
	t.Parallel()
	type list struct {
		Entries []struct{ Range int64 }
		Next    string
	}
	for name, desk := range map[string]bool{"tables": false, "desk": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{book: newBook()}
			if desk {
				w.overDesk(t, "viewer")
			}
			for _, c := range []struct {
				ranges      int
				args        string
				n           int
				first       int64
				next, total string
			}{
				{1000, "", 1000, 1, "", "1,000 ranges, 2,000 dead letters in Kafka"},
				{1001, "", 1000, 1, "1000", "at least 1,000 ranges, at least 2,000 dead letters in Kafka and not in the ledger\n1,000 shown; next page: --after 1000\n"},
				{1001, " --after 1000", 1, 1001, "", "at least 1 range, at least 2 dead letters in Kafka"},
				{1001, " --all", 1000, 1001, "2", "next page: --after 2\n"},
				{1001, " --all --after 2", 1, 1, "", "at least 1 range, at least 2 dead letters in Kafka"},
			} {
				w.book.surplus = manyRanges(c.ranges)
				args := "dlq surplus" + c.args
				if r := w.call(strings.Fields(args)...); r.code != 0 || !strings.HasPrefix(r.err, c.total) && !strings.HasSuffix(r.err, c.total) || strings.Contains(r.err, "next page") != (c.next != "") {
					t.Errorf("%s of %d: exit %d, %s", args, c.ranges, r.code, r.err)
				}
				var got list
				r := w.call(strings.Fields(args + " --json")...)
				if err := json.Unmarshal([]byte(r.out), &got); err != nil || len(got.Entries) != c.n || got.Entries[0].Range != c.first || got.Next != c.next {
					t.Errorf("%s of %d: exit %d, %v, %d ranges, next is %q; %s", args, c.ranges, r.code, err, len(got.Entries), got.Next, r.err)
				}
			}
			w.says(t, cli.Misuse, []string{"dlq", "surplus", "--after", "x"}, "--after must be the next of the page before")
			w.says(t, cli.Misuse, []string{"dlq", "surplus", "--after", "3", "--enter", "1", "--reason", "x"}, "--after lists")
			w.says(t, cli.Done, []string{"dlq", "surplus", "--after", "1001"}, "no more ranges")
		})
	}
}

// TestSurplus_FormerDesk: of a full page of a desk without pages it is not known whether more follow.
func TestSurplus_FormerDesk(t *testing.T) {
	t.Parallel()
	w := &world{book: newBook()}
	w.book.former = true
	w.book.surplus = manyRanges(1000)
	w.says(t, cli.Done, []string{"dlq", "surplus"}, "at least 1,000 ranges, at least 2,000 dead letters in Kafka", "!next page")
	w.says(t, cli.Done, []string{"dlq", "list"}, "at least 2 more clients, more in other ranges")
	w.book.surplus = manyRanges(999)
	w.says(t, cli.Done, []string{"dlq", "surplus"}, "\n999 ranges, 1,998 dead letters in Kafka")
}

// TestSurplus_BesideManyRanges: the line beside a list of dead letters is exact, or says that there is more.
func TestSurplus_BesideManyRanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ranges int
		more   bool
		note   string
	}{
		{1000, false, "too many: 400 dead letters of edge-0 (in Kafka: 200 ranges), 400 dead letters of edge-1 (in Kafka: 200 ranges), 400 dead letters of edge-2 (in Kafka: 200 ranges), 2 more clients; see docket dlq surplus"},
		{1001, true, "too many: at least 400 dead letters of edge-0 (in Kafka: at least 200 ranges), at least 400 dead letters of edge-1 (in Kafka: at least 200 ranges), " +
			"at least 400 dead letters of edge-2 (in Kafka: at least 200 ranges), at least 2 more clients, more in other ranges; see docket dlq surplus"},
	} {
		for _, desk := range []bool{false, true} {
			w := &world{book: newBook(deadLetters()...)}
			if desk {
				w.overDesk(t, "viewer")
			}
			w.book.surplus = manyRanges(c.ranges)
			if r := w.call("dlq", "list"); r.code != 0 || !strings.Contains(r.err, c.note) {
				t.Errorf("%d: exit %d, %s", c.ranges, r.code, r.err)
			}
			var answer struct {
				Ledger struct {
					Surplus []struct{ Open int64 }
					More    bool   `json:"surplus_more"`
					Note    string `json:"note"`
				}
			}
			r := w.call("dlq", "list", "--json")
			if err := json.Unmarshal([]byte(r.out), &answer); err != nil || len(answer.Ledger.Surplus) != 1000 || answer.Ledger.More != c.more || !strings.Contains(answer.Ledger.Note, c.note) {
				t.Errorf("%d: %v, %d ranges, more: %v, %s", c.ranges, err, len(answer.Ledger.Surplus), answer.Ledger.More, answer.Ledger.Note)
			}
		}
	}
	w := &world{book: newBook()}
	w.book.surplus = manyRanges(1001)
	for i := range w.book.surplus[:1000] { // all of them entered, and the desk has not closed their ranges yet
		w.book.surplus[i].Entered = 2
	}
	if r := w.call("dlq", "list"); !strings.Contains(r.err, "too many: more in other ranges; see docket dlq surplus") {
		t.Error(r.err)
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
