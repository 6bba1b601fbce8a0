package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"docket/internal/history/archive"
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
			"It reads the manifests and lists the files. An archive is missing if a day that left the table needs it, and\n" +
			"it has no manifest. Files without a manifest are named: those of a run that is not finished, and those of an\n" +
			"archive that lost it. Use docket archive verify to read the files.",
	}
	c.Flags().StringVar(&l.place, "from", "", whereText)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_ARCHIVE_TO"}, "listed, also if there are none", "an archive or a file of one is missing, a manifest is broken, or the command failed")
	c.RunE = l.Run(func([]string) (frame.Work, error) { return l.listed, l.locate("--from") })
	return c
}

func (l *list) listed(ctx context.Context) error {
	shelf, let, err := l.shelf()
	if err != nil {
		return err
	}
	defer let()
	left := l.left(ctx)
	all, broken := l.archives(ctx, shelf, nil)
	if broken != nil && all == nil {
		return broken
	}
	lacks, err := l.lacking(ctx, shelf, left, all, broken, nil)
	if err != nil {
		return err
	}
	superseded := archive.Superseded(all)
	if l.AsJSON {
		l.Print(frame.ListOf(all, "", func(m *archive.Manifest) jsonArchive {
			j := archiveOf(m, superseded[m.Name()])
			j.MissingFiles = lacks.files.Lacks(m)
			return j
		}))
	} else {
		var rows [][]term.Cell
		for _, m := range all {
			note := ""
			if superseded[m.Name()] {
				note = "superseded"
			}
			if n := len(lacks.files.Lacks(m)); n > 0 {
				note = fmt.Sprintf("%d of %d files missing", n, len(m.Files))
			}
			rows = append(rows, term.Cells(m.Day, contents(m), formatOf(m), term.Grouped(m.Rows), sized(m.Bytes()), fmt.Sprint(len(m.Files)), term.Stamp(m.CreatedAt), term.Brief(m.CreatedBy), m.Name(), note))
		}
		l.Table([]term.Column{{Title: "day"}, {Title: "of"}, {Title: "format", Rank: 3}, {Title: "rows", Right: true}, {Title: "bytes", Right: true}, {Title: "files", Right: true}, {Title: "made"}, {Title: "by", Rank: 2},
			{Title: "archive", Rank: 1}, {Title: ""}}, rows, "")
	}
	l.alone(lacks)
	l.leftOff(ctx)
	l.nightly(ctx)
	if l.missing(lacks, all) {
		if broken != nil {
			l.Failed(broken)
		}
		return frame.Exit(1)
	}
	return broken
}

// archives are those of decisions and, after them, of dead letters, as [archive.Whole] has each.
func (b *base) archives(ctx context.Context, shelf archive.Shelf, day *archive.Day) ([]*archive.Manifest, error) {
	all, broken := archive.Whole(ctx, shelf, b.Sys.Days.Name(), day)
	if wrong := (*archive.BrokenError)(nil); broken != nil && !errors.As(broken, &wrong) {
		return nil, broken
	}
	letters, err := archive.Whole(ctx, shelf, archive.LettersName, day)
	return append(all, letters...), errors.Join(broken, err)
}

func contents(m *archive.Manifest) string {
	if m.Table == archive.LettersName {
		return "dead letters"
	}
	return "decisions"
}

// leftOff prints the days that were taken out of the table and not dropped. Archives can be listed without the database.
func (l *list) leftOff(ctx context.Context) {
	held, err := l.Sys.Days.Days(ctx, archive.DayOf(l.Now()))
	if err != nil {
		l.Tell("cannot ask the database for interrupted archives: %v\n", err)
		return
	}
	for _, h := range held {
		if h.Location == archive.Leaving {
			l.Tell("%s was interrupted: it is out of the table but not dropped; run docket archive --day %s\n", h.Day, h.Day)
		}
	}
}
