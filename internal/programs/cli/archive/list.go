package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
	"docket/internal/history/archive/nightly"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// list is docket archive list.
type list struct{ base }

func listCommand(call frame.Call) *cobra.Command {
	l := &list{base{Call: call}}
	c := &cobra.Command{
		Use: "list [flags]", Short: "List archives, unfinished days, and how far the desk's own archive is", DisableFlagsInUseLine: true,
		Example: "  docket archive list --from s3://archive/docket", Args: frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Long: "List archives, unfinished days, and how far the desk's own archive is.\n\n" +
			"It reads the manifests and lists the files. An archive without a manifest is missing if a day that left the\n" +
			"table needs it, or if the ledger of dead letters noted it. Files without a manifest are named: those of a run that is not finished, and those of an\n" +
			"archive that lost it. Use docket archive verify to read the files. With --server, the desk lists its own\n" +
			"archive, that of its DOCKET_ARCHIVE_TO.",
	}
	c.Flags().StringVar(&l.place, "from", "", whereText)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_ARCHIVE_TO"}, "listed, also if there are none", "an archive or a file of one is missing, a manifest is broken, or the command failed")
	c.RunE = l.Run(func([]string) (frame.Work, error) { return l.listed, l.locateOrDesk("--from") })
	return c
}

func (l *list) listed(ctx context.Context) error {
	v, err := l.inventory(ctx)
	if err != nil {
		return err
	}
	l.unknown(v)
	wrong := broken(v)
	if wrong != nil && len(v.Archives) == 0 {
		return wrong
	}
	if l.AsJSON {
		l.Print(frame.ListOf(v.Archives, "", listedOf))
	} else {
		l.rows(v.Archives)
	}
	l.alone(v.Alone)
	l.leftOff(v)
	l.nightly(v.Nightly)
	if v.More > 0 {
		l.Tell("%s left out: run docket archive list on the host of the desk to see all\n", term.Counted(int64(v.More), "other line"))
	}
	missing := l.missing(v.Absent)
	for i := range v.Archives {
		missing = l.lacks(v.Archives[i].Name, v.Archives[i].Missing) || missing
	}
	if missing {
		if wrong != nil {
			l.Failed(wrong)
		}
		return frame.Exit(1)
	}
	return wrong
}

// inventory asks the desk, if one is chosen, or looks at the place itself.
func (l *list) inventory(ctx context.Context) (*inventory.Inventory, error) {
	if l.Sys.Desk != nil {
		return l.Sys.Inventory(ctx)
	}
	shelf, let, err := l.shelf()
	if err != nil {
		return nil, err
	}
	defer let()
	return inventory.Source{
		Shelf: shelf, Table: l.Sys.Days, Left: l.Sys.Left, Letters: l.Sys.Noted, Today: archive.DayOf(l.Now()), Wanted: l.Setting("DOCKET_ARCHIVE_AFTER") != "", Told: error.Error,
		Note: func(ctx context.Context) (string, time.Time, error) {
			return l.Sys.Book.Remembered(ctx, nightly.NoteName)
		},
	}.Take(ctx)
}

// rows prints the table of archives.
func (l *list) rows(all []inventory.Archive) {
	var rows [][]term.Cell
	for i := range all {
		a := &all[i]
		note := ""
		if a.Superseded {
			note = "superseded"
		}
		if n := len(a.Missing); n > 0 {
			note = fmt.Sprintf("%d of %d files missing", n, a.Files)
		}
		rows = append(rows, term.Cells(a.Day, contents(a.Table), formatOf(a.Format), term.Grouped(a.Rows), sized(a.Bytes), fmt.Sprint(a.Files), term.Stamp(a.CreatedAt), term.Brief(a.CreatedBy), a.Name, note))
	}
	l.Table([]term.Column{{Title: "day"}, {Title: "of"}, {Title: "format", Rank: 3}, {Title: "rows", Right: true}, {Title: "bytes", Right: true}, {Title: "files", Right: true}, {Title: "made"}, {Title: "by", Rank: 2},
		{Title: "archive", Rank: 1}, {Title: ""}}, rows, "")
}

func contents(table string) string {
	if table == archive.LettersName {
		return "dead letters"
	}
	return "decisions"
}

// leftOff prints the days that were taken out of the table and not dropped. Archives can be listed without the database.
func (l *list) leftOff(v *inventory.Inventory) {
	if v.LeftOffUnknown != "" {
		l.Tell("cannot ask the database for interrupted archives: %s\n", v.LeftOffUnknown)
	}
	for _, day := range v.LeftOff {
		l.Tell("%s was interrupted: it is out of the table but not dropped; run docket archive --day %s\n", day, day)
	}
}
