package tree

import (
	"context"
	"strings"
	"testing"

	"docket/internal/history/archive"
	"docket/internal/programs/cli"
)

// begun is an archive that is not finished.
const begun = "decision_logs-2026-11-02-002-3f9a2c-00000000"

// calendar has three days, of which one is in an archive alone.
func calendar(context.Context) (archive.Calendar, error) {
	day := func(text string) archive.Day {
		d, err := archive.ParseDay(text)
		if err != nil {
			panic(err)
		}
		return d
	}
	return archive.Calendar{
		Where: "s3://archive", Lacks: []string{"The archives could not be read.\x1b[31m"}, Shared: []archive.Held{{Day: day("2026-10-31"), Location: archive.Shared, Rows: -1, Bytes: 9}},
		Days: []archive.CalendarDay{
			{Day: day("2026-11-01"), State: archive.DayArchived, Counted: 7, Archived: 7, Size: 7 << 20, Formats: []string{"parquet"}, Made: now, By: "mara\x1b[31m"},
			{Day: day("2026-11-02"), State: archive.DayBoth, Rows: -1, Counted: -1, Archived: 9, Gaps: []string{"a file is missing"}, Unfinished: []string{begun + "\x1b[31m"}},
			{Day: day("2026-11-03"), State: archive.DayHot, Rows: 1200, Bytes: 120 << 10, Counted: 1200, Archived: -1},
		},
	}, nil
}

func TestAudit_FiltersAndPages(t *testing.T) {
	t.Parallel()
	w := &world{book: jobbed()}
	w.says(t, cli.Done, []string{"dlq", "audit"}, "closed", "!entered")
	w.says(t, cli.Done, []string{"dlq", "audit", "--act", "all", "-n", "3"}, "there may be more: --before ")
	w.says(t, cli.Done, []string{"dlq", "audit", "--actor", "mar"}, "no line fits")
	w.says(t, cli.Done, []string{"dlq", "audit", "--act", "closed", "-o", "csv"}, "closed", "PENDING")
	w.says(t, cli.Done, []string{"dlq", "audit", "--groups"}, "rule_added", "to oleg: yours", "!\x1b[31m")
	w.says(t, cli.Done, []string{"dlq", "audit", "--groups", "--actor", "mara", "--act", "assigned", "--json"}, `"act": "assigned"`, "!rule_added")
	for flag, want := range map[string]string{"--act danced": "none of", "--limit 501": "1 to 500", "--group abcd": "needs --groups", "--before x": "not the number of a line", "--since soon": "not a time", "--act rule_added": "none of"} {
		w.says(t, cli.Misuse, append([]string{"dlq", "audit"}, strings.Fields(flag)...), want)
	}
}

func TestDays_NewestFirst(t *testing.T) {
	t.Parallel()
	w := &world{book: jobbed(), calendar: calendar}
	w.says(t, cli.Done, []string{"archive", "days"}, "2026-11-03", "hot, and archived", "The archives could not be read.", "decisions up to 2026-10-31", "archive "+begun+`\x1b[31m is not finished: a run is writing it, or was killed`, "!\x1b[31m")
	w.says(t, cli.Done, []string{"archive", "days", "-o", "csv"}, ",gaps,unfinished,", begun)
	w.says(t, cli.Done, []string{"archive", "days", "-n", "1"}, "!is not finished")
	w.says(t, cli.Done, []string{"archive", "days", "-n", "2", "--json"}, `"next": "2026-11-02"`, `"rows": null`, `"counted": 1200`, `"unfinished": [`, `"lacks": [`, "The archives could not be read.", `"day": "2026-10-31"`, "!2026-11-01")
	w.says(t, cli.Done, []string{"archive", "days", "--before", "2026-11-01"}, "no day is known")
	w.says(t, cli.Misuse, []string{"archive", "days", "--before", "2026-11-31"}, "--before")
	w.says(t, cli.Misuse, []string{"archive", "days", "-n", "0"}, "1 to 4000")
	w.says(t, cli.Misuse, []string{"archive", "days", "--before", "x"})
	w.calendar = nil
	w.says(t, cli.Misuse, []string{"archive", "days"}, "no calendar")
}
