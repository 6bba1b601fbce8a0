package archive

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/history/archive"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// days is docket archive days.
type days struct {
	frame.Call
	before string
	limit  int
}

// mostDays limits the days that are listed.
const (
	defaultDays = 100
	mostDays    = 4000
)

func daysCommand(call frame.Call) *cobra.Command {
	d := &days{Call: call}
	c := &cobra.Command{
		Use: "days [flags]", Short: "List days, and where the decisions of each are: table, archive or both", DisableFlagsInUseLine: true,
		Long: "List days in UTC, the newest first, and where the decisions of each are.\n\n" +
			"  hot                in the table\n" +
			"  hot, and archived  in both: restored, or not dropped yet\n" +
			"  archived           in an archive alone\n" +
			"  at work            a process archives or restores it now\n" +
			"  left off           out of the table and not dropped: run docket archive --day again\n" +
			"  dropped            counted once, and no known place has it\n" +
			"  forgotten          no known place has it, and an operator gave it up: docket archive forget\n" +
			"  missing            nothing is known of it\n\n" +
			"A day with an archive that is not finished names it: a run is writing it, or was killed. The next archive of\n" +
			"the day by the same database removes what a killed run left.",
		Example: "  docket archive days\n  docket archive days -n 31 --before 2026-11-01 -o csv", Args: frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&d.before, "before", "", "only days before this `DAY`: YYYY-MM-DD, in UTC")
	c.Flags().IntVarP(&d.limit, "limit", "n", defaultDays, "list at most `N` days, 1 to 4000")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_ARCHIVE_TO"}, "listed, also if there are none", "")
	c.RunE = d.Run(func([]string) (frame.Work, error) {
		if d.limit < 1 || d.limit > mostDays {
			return nil, frame.Misuse("--limit must be 1 to %d", mostDays)
		}
		var before archive.Day
		if d.before != "" {
			var err error
			if before, err = archive.ParseDay(d.before); err != nil {
				return nil, frame.Misuse("--before %s: %v", term.Quoted(d.before), err)
			}
		}
		return func(ctx context.Context) error { return d.list(ctx, before) }, nil
	})
	return c
}

func (d *days) list(ctx context.Context, before archive.Day) error {
	if d.Sys.Calendar == nil {
		return frame.Misuse("%s has no calendar of days: with shards, ask the database of one", d.Source())
	}
	c, err := d.Sys.Calendar(ctx)
	if err != nil {
		return err
	}
	var all []archive.CalendarDay
	next := ""
	for i := range slices.Backward(c.Days) {
		if d.before != "" && !c.Days[i].Day.Before(before.Time) {
			continue
		}
		if len(all) == d.limit {
			next = all[d.limit-1].Day.String()
			break
		}
		all = append(all, c.Days[i])
	}
	switch {
	case d.AsJSON:
		d.Print(jsonDaysOf(all, next, c))
	case len(all) == 0:
		d.Tell("no day is known\n")
	default:
		d.rows(all)
	}
	for i := range all {
		for _, name := range all[i].Unfinished {
			d.Tell("%s\n", term.Line(archive.NotFinished(name)))
		}
	}
	for _, h := range c.Shared {
		d.Tell("decisions up to %s are in a part of the table that has no days of its own, and no archive takes them\n", h.Day)
	}
	for _, text := range c.Lacks {
		d.Tell("%s\n", term.Brief(text))
	}
	if next != "" {
		d.Tell("there are more: --before %s\n", next)
	}
	return nil
}

func (d *days) rows(all []archive.CalendarDay) {
	number := func(n int64) string {
		if n < 0 {
			return ""
		}
		return term.Grouped(n)
	}
	var rows [][]term.Cell
	for i := range all {
		day := &all[i]
		made := ""
		if !day.Made.IsZero() {
			made = term.Stamp(day.Made)
		}
		rows = append(rows, term.Cells(day.Day.String(), string(day.State), number(day.Rows), sized(day.Bytes), number(day.Counted), number(day.Archived), sized(day.Size), strings.Join(day.Formats, ", "), made, term.Brief(day.By), term.Brief(strings.Join(day.Gaps, "; ")), term.Brief(day.Forgotten)))
	}
	d.Table([]term.Column{
		{Title: "day"}, {Title: "where"}, {Title: "rows", Right: true}, {Title: "bytes", Right: true, Rank: 3}, {Title: "counted", Right: true, Rank: 4}, {Title: "archived", Right: true, Rank: 1}, {Title: "archive bytes", Right: true, Rank: 2},
		{Title: "format", Rank: 6}, {Title: "made", Rank: 5}, {Title: "by", Rank: 7}, {Title: "gaps", Rank: 8, Least: 12}, {Title: "forgotten", Rank: 9, Least: 12},
	}, rows, "")
}

// jsonDay has the names of the API.
type jsonDay struct {
	Day        string     `json:"day"`
	State      string     `json:"state"`
	Rows       *int64     `json:"rows"`
	Bytes      int64      `json:"bytes"`
	Counted    *int64     `json:"counted"`
	Archived   *int64     `json:"archived"`
	Size       int64      `json:"archive_bytes"`
	Formats    []string   `json:"formats,omitempty"`
	MadeAt     *time.Time `json:"made_at,omitempty"`
	MadeBy     string     `json:"made_by,omitempty"`
	Gaps       []string   `json:"gaps,omitempty"`
	Unfinished []string   `json:"unfinished,omitempty"`
	Forgotten  string     `json:"forgotten,omitempty"`
}

// jsonDays is a list of days, with what it lacks.
type jsonDays struct {
	frame.List[jsonDay]
	Shared []jsonHeld `json:"shared,omitempty"` // parts of the table that have several days together
	Lacks  []string   `json:"lacks,omitempty"`  // places that could not be looked at
}

func jsonDaysOf(all []archive.CalendarDay, next string, c archive.Calendar) jsonDays {
	out := jsonDays{List: frame.ListOf(all, next, calendarDayOf), Lacks: c.Lacks}
	for _, h := range c.Shared {
		out.Shared = append(out.Shared, heldOf(h))
	}
	return out
}

func calendarDayOf(d archive.CalendarDay) jsonDay {
	known := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	return jsonDay{Day: d.Day.String(), State: string(d.State), Rows: known(d.Rows), Bytes: d.Bytes, Counted: known(d.Counted), Archived: known(d.Archived), Size: d.Size,
		Formats: d.Formats, MadeAt: frame.UTC(d.Made), MadeBy: d.By, Gaps: d.Gaps, Unfinished: d.Unfinished, Forgotten: d.Forgotten}
}
