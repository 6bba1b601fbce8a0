package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
)

// walked follows next from the first page to the last, and returns the numbers of all lines.
func walked(t *testing.T, page func(after string) (lines []int64, next string)) (all []int64) {
	t.Helper()
	for after, n := "", 0; ; n++ {
		lines, next := page(after)
		all = append(all, lines...)
		if next == "" {
			return all
		}
		if after = next; n > 20 {
			t.Fatal("the pages do not end")
		}
	}
}

func afterIn(cursor string) string {
	if cursor == "" {
		return ""
	}
	return "&after=" + cursor
}

func down(from, to int64) (all []int64) {
	for n := from; n >= to; n-- {
		all = append(all, n)
	}
	return all
}

func TestJobs_PageByPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 25 {
		w.book.jobs = append(w.book.jobs, ledger.Job{ID: int64(n + 1), Act: ledger.Retried, State: ledger.JobDone, Operator: "olga", Reason: "r"})
	}
	got := walked(t, func(after string) (lines []int64, next string) {
		var list api.JobList
		w.ask(t, "viewer", "GET", "/jobs?limit=10"+afterIn(after), "").into(t, &list)
		for _, j := range list.Jobs {
			lines = append(lines, j.ID)
		}
		return lines, list.Next
	})
	if !slices.Equal(got, down(25, 1)) {
		t.Error(got)
	}
	var list api.JobList
	if w.ask(t, "viewer", "GET", "/jobs?limit=25", "").into(t, &list); list.Next != "" {
		t.Errorf("after all jobs there is %q", list.Next)
	}
}

func TestProposals_PageByPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book.proposed = nil
	for n := range 12 {
		w.book.proposed = append(w.book.proposed, ledger.Proposal{ID: int64(n + 1), LetterID: id(n % 3), State: ledger.ProposalOpen, Members: []string{"path"}, By: "adam", Why: "r"})
	}
	for query, want := range map[string][]int64{"": down(12, 1), "&dead_letter=" + id(1): {11, 8, 5, 2}, "&dead_letter=" + id(4): nil} {
		got := walked(t, func(after string) (lines []int64, next string) {
			var list api.ProposalList
			w.ask(t, "viewer", "GET", "/proposals?limit=3"+afterIn(after)+query, "").into(t, &list)
			for _, p := range list.Proposals {
				lines = append(lines, p.ID)
			}
			return lines, list.Next
		})
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v", query, got)
		}
	}
}

func TestGroups_PageByPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 9 {
		w.book.alike = append(w.book.alike, ledger.Group{Fingerprint: fmt.Sprintf("%016x", n), Kind: "data", Code: "23514", Counts: map[ledger.State]int64{ledger.Pending: int64(9 - n)}, FirstSeen: noon, Newest: noon})
	}
	all := func(query string) []int64 {
		return walked(t, func(after string) (lines []int64, next string) {
			var list api.Groups
			w.ask(t, "viewer", "GET", "/groups?assigned=-"+afterIn(after)+query, "").into(t, &list)
			for _, g := range list.Groups {
				lines = append(lines, g.Open)
			}
			return lines, list.Next
		})
	}
	if got := all("&limit=4"); !slices.Equal(got, down(9, 1)) {
		t.Error(got)
	}
	if got := all(""); !slices.Equal(got, down(9, 1)) {
		t.Error("without a limit:", got)
	}
}

func TestPages_ForeignCursorIs422(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/jobs?after=x", "/proposals?after=-1", "/groups?after=x"} {
		if p := w.ask(t, "viewer", "GET", path, "").problem(t); p.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %+v", path, p)
		}
	}
}
