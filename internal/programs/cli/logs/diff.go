package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// diff is docket diff.
type diff struct {
	finder
	all      bool
	atA, atB string
}

// Diff makes the command that compares two decisions.
func Diff(call frame.Call) *cobra.Command {
	v := &diff{finder: newFinder(call)}
	c := &cobra.Command{
		Use: "diff A B [flags]", Short: "Compare two decisions", DisableFlagsInUseLine: true,
		Long: "Compare two decisions and print the changes that turn A into B.\n\n" +
			"A and B are decision_ids, or their first 6 or more characters. Fields that always differ are left out:\n" +
			"decision_id, timestamp, req_id, metrics, trace_id, span_id, and the port of requested_by. Numbers are\n" +
			"compared as JSON numbers. Payloads are shown, which may be personal data.",
		Example: "  docket diff 502d43b4 cf0d08a7",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] == "" || args[1] == "" {
				return frame.Misuse("give two decision_ids")
			}
			return cmp.Or(idFault(args[0]), idFault(args[1]))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&v.all, "all", false, "compare all fields, also those that always differ")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "compared, also if they differ", "no decision or several have the ID A or B, or the command failed")
	c.Flags().StringVar(&v.atA, "at-a", "", "if several decisions have the ID A: its `TIMESTAMP`, like 2026-11-21T20:15:00.5Z")
	c.Flags().StringVar(&v.atB, "at-b", "", "the same for B: its `TIMESTAMP`")
	frame.Complete(c, map[string]frame.Completion{"at-a": frame.Fixed(nil), "at-b": frame.Fixed(nil)})
	c.RunE = v.Run(v.check)
	return c
}

// check looks at flags and arguments.
func (v *diff) check(args []string) (frame.Work, error) {
	whenA, errA := instantOf("--at-a", v.atA)
	whenB, errB := instantOf("--at-b", v.atB)
	return func(ctx context.Context) error {
		a, _, err := v.stored(ctx, args[0], "--at-a", whenA, lookup.DefaultLimits.Within, nil)
		if err != nil {
			return err
		}
		b, _, err := v.stored(ctx, args[1], "--at-b", whenB, lookup.DefaultLimits.Within, nil)
		if err != nil {
			return err
		}
		return v.compared(a, b)
	}, cmp.Or(errA, errB)
}

func (v *diff) compared(a, b reader.Decision) error {
	found, err := reader.Diff(a.Raw, b.Raw, reader.DiffOptions{All: v.all})
	if errors.Is(err, reader.ErrNotJSON) {
		return fmt.Errorf("compare the decisions: %w", err)
	}
	if v.AsJSON {
		out := jsonDiff{A: endOf(a), B: endOf(b), Differences: found, jsonPartial: v.partial()}
		if len(out.NotAsked)+len(out.NotRead) > 0 {
			out.Freshness = reader.Partial
		}
		v.Print(out)
		return nil
	}
	defer v.tellPartial()
	for _, end := range []struct {
		name string
		d    reader.Decision
	}{{"A", a}, {"B", b}} {
		v.Say("%s  %s  %s  %s  %s%s\n", v.Paint(term.Bold, end.name), term.Brief(end.d.ID), end.d.Time.UTC().Format(instant), v.paintVerdict(string(end.d.Verdict)), or(end.d.Path, "-"), inShard(&end.d))
	}
	v.Say("\n")
	if len(found.Changes) == 0 {
		v.Say("no difference, apart from fields that always differ (--all shows them)\n")
	}
	v.changes(found.Changes, found.More, "")
	return nil
}

type jsonDiff struct {
	A jsonEnd `json:"a"`
	B jsonEnd `json:"b"`
	reader.Differences
	Freshness reader.Freshness `json:"freshness,omitempty"`
	jsonPartial
}

type jsonEnd struct {
	DecisionID string         `json:"decision_id"`
	Timestamp  *time.Time     `json:"timestamp"`
	Path       *string        `json:"path"`
	Verdict    reader.Verdict `json:"verdict"`
	Shard      string         `json:"shard,omitempty"` // without shards it is missing
}

func endOf(d reader.Decision) jsonEnd {
	return jsonEnd{DecisionID: d.ID, Timestamp: frame.UTC(d.Time), Path: d.Path, Verdict: d.Verdict, Shard: d.Shard}
}
