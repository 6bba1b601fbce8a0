package tree

import (
	"github.com/spf13/cobra"

	"docket/internal/programs/cli/archive"
	"docket/internal/programs/cli/contextcmd"
	"docket/internal/programs/cli/edits"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/jobs"
	"docket/internal/programs/cli/letters"
	"docket/internal/programs/cli/logs"
	"docket/internal/service/config"
)

// tree is all commands of docket.
type tree struct {
	frame.Call
	wrong error // an unknown command that --help was asked about
}

// root makes the tree of commands.
func (t *tree) root() *cobra.Command {
	root := t.group(&cobra.Command{
		Use:   string(config.Desk),
		Short: "Store, search and explain OPA decisions; manage dead letters",
		Long: "Store, search and explain OPA decisions; manage dead letters.\n\n" +
			"`docket consume` stores decision logs from Kafka in Postgres, where they are read.  Records that could not be stored are dead letters: `docket desk`\n" +
			"enters them into a ledger in Postgres; the dlq commands show, retry and close them.\n" +
			"Commands that change dead letters, jobs or archives need --operator (or DOCKET_OPERATOR); the name goes\n" +
			"into the audit log.",
		Example: `  # find a denied decision; explain it: why, by which policy, since when
  docket logs --denied --since 2h --match input:/user=alice
  docket why e5e72bf0

  # see dead letters by cause; explain one; after the cause is fixed: test a retry, then retry
  docket dlq groups
  docket dlq show 3f9a0c1e77b2
  docket dlq retry --fingerprint 8d0e3f21 --dry-run
  docket dlq retry --fingerprint 8d0e3f21 --rate 50 --operator mara --reason 'check widened'

  # move days older than 90 days to files or object storage; load one back
  docket archive --older-than 90d --dry-run
  docket archive --older-than 90d --to /srv/docket-archive --operator mara
  docket restore --day 2026-08-01 --from /srv/docket-archive --operator mara

  # set up; run the consumer, and the desk beside it
  docket migrate && docket check && docket consume
  docket desk`,
		SilenceErrors: true, SilenceUsage: true,
	})
	root.PersistentFlags().BoolVar(&t.AsJSON, "json", false, "print JSON")
	root.PersistentFlags().BoolVar(&t.Wide, "wide", false, "print whole ids and all columns, also on a narrow terminal")
	root.PersistentFlags().String(configFlag, "", "YAML `FILE` with settings; the environment wins (or DOCKET_CONFIG)")
	declareFormat(root.PersistentFlags())
	root.PersistentFlags().String(colorFlag, "auto", "use colours: auto, always or never (`WHEN`)")
	root.PersistentFlags().Bool(pagerFlag, false, "do not show long texts in a pager (PAGER, or less)")
	declareDesk(root.PersistentFlags())
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(t.help)
	reused := t.reused()
	for _, g := range []struct {
		id, Title string
		commands  []*cobra.Command
	}{
		{"read", "Read decisions", []*cobra.Command{logs.Search(t.Call), logs.Why(t.Call), logs.Diff(t.Call), logs.Stats(t.Call), logs.State(t.Call), logs.Flips(t.Call), reused["where-is"]}},
		{"letters", "Dead letters", []*cobra.Command{t.dlq(), t.jobs(), letters.Report(t.Call), reused["classify"]}},
		{"archive", "Archive", []*cobra.Command{archive.Command(t.OnDatabase(), t.Call), archive.Restore(t.OnDatabase())}},
		{"operate", "Operate", []*cobra.Command{reused["check"], t.topics(), reused["migrate"], reused["verify"], reused["health"], settingsTopic(t.Call), t.config(), t.contexts(), reused["version"]}},
		{"run", "Run", t.daemons()},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.Title})
		for _, c := range g.commands {
			c.GroupID = g.id
		}
		root.AddCommand(g.commands...)
	}
	root.SetHelpCommandGroupID("operate")
	root.SetCompletionCommandGroupID("operate")
	root.SetHelpCommand(t.helpCommand(root))
	inOrder(root)
	return root
}

// dlq holds the commands on dead letters.
func (t *tree) dlq() *cobra.Command {
	return t.group(&cobra.Command{
		Use: "dlq", Short: "List, explain, retry, edit and resolve dead letters",
		Long: "List, explain, retry, edit and resolve dead letters: records that could not be stored.\n\n" +
			"Name them by id (its first 6 or more characters are enough), or select many by filter flags.",
		Example: "  docket dlq groups\n  docket dlq show 3f9a0c1e77b2\n  docket dlq retry 3f9a0c1e77b2 --dry-run",
	}, letters.List(t.Call), letters.Groups(t.Call), letters.Show(t.Call), letters.Retry(t.Call), edits.Edit(t.Call), edits.Proposals(t.Call), edits.Approve(t.Call), edits.Reject(t.Call), letters.Resolve(t.Call), letters.Reopen(t.Call), letters.Assign(t.Call), letters.Snooze(t.Call), t.rules(), letters.Audit(t.Call), letters.Surplus(t.Call))
}

// rules holds the commands on rules.
func (t *tree) rules() *cobra.Command {
	return t.group(&cobra.Command{
		Use: "rules", Short: "List, add, approve and remove rules, which a desk applies to groups",
		Example: "  docket dlq rules list\n  docket dlq rules add retry --group 8d0e3f21 --until 7d --operator mara --reason 'flaky'",
	}, letters.ListRules(t.Call), letters.AddRule(t.Call), letters.ApproveRule(t.Call), letters.RemoveRule(t.Call))
}

// contexts holds the commands on names of desks.
func (t *tree) contexts() *cobra.Command {
	return t.group(&cobra.Command{
		Use: "context", Short: "Name the desks that you ask, and choose one",
		Long: "Name the desks that you ask, and choose one.\n\n" +
			"A context is a desk, with the file of your token for it. Commands that read or decide ask the desk of the\n" +
			"current context, unless a flag, DOCKET_SERVER or DOCKET_DATABASE_URL names another source. Contexts are in\n" +
			"~/.config/docket/config.yaml (or below XDG_CONFIG_HOME), which only you may read.",
		Example: "  docket context add prod --server https://desk.example:8083 --token-file ~/.docket-token\n  docket context use prod\n  docket logs --denied --since 2h",
	}, contextcmd.Add(t.Call), contextcmd.Use(t.Call), contextcmd.List(t.Call), contextcmd.Remove(t.Call))
}

// jobs holds the commands on jobs.
func (t *tree) jobs() *cobra.Command {
	return t.group(&cobra.Command{
		Use: "jobs", Short: "List, show, stop, resume and approve jobs: retries and resolves of many dead letters",
		Long: "List, show, stop and resume jobs.\n\n" +
			"`docket dlq retry` and `docket dlq resolve` with filter flags create a job. A running desk works on one\n" +
			"job at a time, also after your command has ended.",
		Example: "  docket jobs list\n  docket jobs show 12 --watch",
	}, jobs.List(t.Call), jobs.Show(t.Call), jobs.Stop(t.Call), jobs.Resume(t.Call), jobs.Approve(t.Call))
}

// Commands are shown in the order in which they are added.
func init() { cobra.EnableCommandSorting = false }

// inOrder shows flags in the order in which they are declared.
func inOrder(c *cobra.Command) {
	c.Flags().SortFlags = false
	for _, sub := range c.Commands() {
		inOrder(sub)
	}
}

// group makes a command that does nothing but hold others.
func (t *tree) group(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.AddCommand(commands...)
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 || args[0] == "help" {
			return t.explain(c, args)
		}
		return frame.NoCommand(c, args[0])
	}
	return c
}
