package tree

import (
	"encoding/json"
	"strings"
	"testing"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
)

// TestLists_PageByPage: lists that are ordered by numbers continue after the next of the page before.
func TestLists_PageByPage(t *testing.T) {
	t.Parallel()
	b := &book{}
	for n := range 7 {
		b.jobs = append(b.jobs, ledger.Job{ID: int64(n + 1), Act: ledger.Retried, State: ledger.JobDone, Operator: "mara", CreatedAt: now})
		b.proposals = append(b.proposals, ledger.Proposal{ID: int64(n + 1), State: ledger.ProposalOpen, LetterID: deadLetters()[0].ID, Members: []string{"path"}, By: "mara", CreatedAt: now, ExpiresAt: now})
	}
	for args, member := range map[string]string{"jobs list": "id", "dlq proposals": "proposal"} {
		var seen []float64
		for after, pages := "", 0; ; pages++ {
			words := append(strings.Fields(args), "--limit", "3", "--json")
			if after != "" {
				words = append(words, "--after", after)
			}
			var list struct {
				Entries []map[string]any `json:"entries"`
				Next    string           `json:"next"`
			}
			r := (&world{book: b}).call(words...)
			if err := json.Unmarshal([]byte(r.out), &list); err != nil || r.code != cli.Done || pages > 3 {
				t.Fatalf("%s: exit %d, %v, %s%s", args, r.code, err, r.out, r.err)
			}
			for _, e := range list.Entries {
				n, _ := e[member].(float64)
				seen = append(seen, n)
			}
			if after = list.Next; after == "" {
				break
			}
		}
		if len(seen) != 7 || seen[0] != 7 || seen[6] != 1 {
			t.Errorf("%s: %v", args, seen)
		}
		w := &world{book: b}
		w.says(t, cli.Done, append(strings.Fields(args), "--limit", "3"), "3 shown; next page: --after 5")
		w.says(t, cli.Done, append(strings.Fields(args), "--limit", "7"), "!next page")
		w.says(t, cli.Done, append(strings.Fields(args), "--after", "1"), "no older")
		w.says(t, cli.Misuse, append(strings.Fields(args), "--after", "x"), "--after must be the next of the page before")
		w.says(t, cli.Misuse, append(strings.Fields(args), "--limit", "1001"), "--limit must be 1 to 1000")
	}
	(&world{book: b}).says(t, cli.Misuse, []string{"dlq", "proposals", "1", "--after", "3"}, "--after lists")
}
