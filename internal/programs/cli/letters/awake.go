package letters

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// awake are the flags by which lists choose by snooze and person. Without them they leave out what is snoozed.
type awake struct {
	snoozed  bool
	assigned string
}

func (a *awake) declare(c *cobra.Command) {
	c.Flags().BoolVar(&a.snoozed, "snoozed", false, "list only those that are snoozed (default: those that are not)")
	c.Flags().StringVar(&a.assigned, "assigned", "", "only those assigned to `NAME`; a dash: those without a name")
}

// on adds the choice to a filter.
func (a *awake) on(f ledger.Filter) ledger.Filter {
	f.Snoozed, f.Assigned = ledger.NotSnoozed, a.assigned
	if a.snoozed {
		f.Snoozed = ledger.OnlySnoozed
	}
	return f
}

// of chooses among groups. A group stays in both lists while letters of both kinds are in it.
func (a *awake) of(groups []ledger.Group) []ledger.Group {
	return slices.DeleteFunc(slices.Clone(groups), func(g ledger.Group) bool {
		if a.assigned == ledger.Nobody && g.Assigned != "" || a.assigned != "" && a.assigned != ledger.Nobody && g.Assigned != a.assigned {
			return true
		}
		if a.snoozed {
			return g.Snoozed == 0
		}
		return g.Snoozed > 0 && g.Snoozed >= g.Open() && g.Counts[ledger.Resolved] == 0
	})
}

// told says how many are left out.
func (a *awake) told(ctx context.Context, call frame.Call, chosen bool) error {
	if a.snoozed {
		return nil
	}
	n, err := call.Sys.Book.Snoozed(ctx)
	if err != nil || n == 0 {
		return err
	}
	of := ""
	if chosen {
		of = " in the whole ledger"
	}
	call.Tell("%s snoozed%s, and not listed here: --snoozed lists them\n", term.Counted(n, "dead letter")+map[bool]string{true: " is", false: " are"}[n == 1], of)
	return nil
}
