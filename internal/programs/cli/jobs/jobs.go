package jobs

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/pick"
	"docket/internal/programs/cli/term"
)

// target is how many a job is to move.
func target(j ledger.Job) int64 {
	n := j.Matched
	if j.Limit > 0 {
		n = min(n, j.Limit)
	}
	return max(n, j.Sent)
}

// underWay is how many retries of a job have not ended. A job that resolves has none.
func underWay(j ledger.Job) int64 {
	if j.Act == ledger.Closed {
		return 0
	}
	return max(j.Open(), 0)
}

func jobID(args []string) (int64, error) {
	if len(args) != 1 {
		return 0, frame.Misuse("give one job number, as `docket jobs list` prints it")
	}
	id, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || id < 1 {
		return 0, frame.Misuse("%s is not a job number", term.Quoted(args[0]))
	}
	return id, nil
}

// completeJobs suggests the numbers of jobs.
func completeJobs(call frame.Call) frame.Completion {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return call.Suggest(func(ctx context.Context, _ string) ([]string, error) {
			jobs, err := call.Sys.Book.ListJobs(ctx, 0, frame.Suggested)
			var out []string
			for _, j := range jobs {
				out = append(out, fmt.Sprintf("%d\t%s %s %s", j.ID, j.State, Verbs[j.Act].Name, term.Brief(pick.Described(j.Filter))))
			}
			return out, err
		})(c, args, begun)
	}
}

// Verbs are how an act is called.
var Verbs = map[ledger.Act]struct{ Name, Doing, Ask string }{
	ledger.Retried: {"retry", "retrying", "Retry"},
	ledger.Closed:  {"resolve", "resolving", "Resolve"},
}

// Paced writes a rate, behind a comma; empty: there is no limit.
func Paced(rate float64) string {
	if rate == 0 {
		return ""
	}
	return fmt.Sprintf(", %g per second", rate)
}
