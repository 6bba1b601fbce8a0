package tree

import (
	"context"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/programs/cli/logs"
	"docket/internal/testkit/readertest"
)

// watched is a store that looks, at each question, at what was printed before.
type watched struct {
	reader.Store
	look func()
}

func (w watched) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	w.look()
	return w.Store.Search(ctx, f, p)
}

// A search of many pages prints the first ones before it asks for the last one, in formats that are made from JSON as well.
func TestFormat_WritesWhileItReads(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"csv", "id", "jsonl"} {
		w := &world{store: decisions(3 * reader.MaxLimit)}
		var seen []int
		w.both = func(s *readertest.Store, _ *cold.Days) reader.Store {
			return watched{s, func() { seen = append(seen, strings.Count(w.out.String(), "\n")) }}
		}
		if r := w.call("logs", "-n", "100000", "-o", format); r.code != 0 || strings.Count(r.out, "\n") < 3*reader.MaxLimit {
			t.Errorf("%s: exit %d, %d lines", format, r.code, strings.Count(r.out, "\n"))
		}
		if !slices.IsSorted(seen) || len(seen) < 3 || seen[len(seen)-1] < 2*reader.MaxLimit {
			t.Errorf("%s: lines before each question: %v", format, seen)
		}
	}
}

func TestFormat_CSVHasAllColumns(t *testing.T) {
	t.Parallel()
	w := &world{store: decisions(4)}
	for _, args := range []string{"logs -o csv", "logs -o csv --full", "logs " + decisionID + " -o csv"} {
		r := w.call(strings.Fields(args)...)
		rows, err := csv.NewReader(strings.NewReader(r.out)).ReadAll()
		if err != nil || r.code != 0 || len(rows) < 2 || !slices.Equal(rows[0], logs.Columns(strings.Contains(args, "--full"))) {
			t.Errorf("%s: exit %d, %v\n%s%s", args, r.code, err, r.out, r.err)
		}
	}
	if r := (&world{store: decisions(0)}).call("logs", "-o", "csv"); r.out != "" || r.code != 0 {
		t.Errorf("exit %d, %q", r.code, r.out)
	}
	if r := w.call("logs", "--help", "-o", "csv"); !strings.Contains(r.out, "Usage:") || r.code != 0 {
		t.Errorf("exit %d, %q", r.code, r.out)
	}
}

// decisionID is an id of each store of decisions.
var decisionID = readertest.Decisions(1, now)[0].ID

// The exit code is the same in each format.
func TestFormat_SameExitCode(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"", "auditor"} {
		w := &world{book: jobbed(), store: decisions(5), states: statesKept()}
		if role != "" {
			w.overDesk(t, role)
		}
		for _, args := range []string{
			"logs", "logs nothing-like-it", "logs -n 0", "why " + decisionID, "why nothing-like-it", "why x", "diff " + decisionID + " nothing-like-it", "stats", "stats --by nothing", "state alice", "state nobody", "flips",
			"dlq list", "dlq show ffffffff", "dlq show abc", "dlq groups", "jobs show 999", "jobs show x", "report --no-horizon", "bogus", "dlq list --bogus", "logs --after nothing",
		} {
			want := w.call(strings.Fields(args)...)
			for _, format := range []string{"json", "jsonl", "yaml", "csv", "wide"} {
				r := w.call(append(strings.Fields(args), "-o", format)...)
				if r.code != want.code {
					t.Errorf("%s (%s) exits with %d, and with %d as %s: %s", args, role, want.code, r.code, format, r.err)
				}
			}
		}
	}
}
