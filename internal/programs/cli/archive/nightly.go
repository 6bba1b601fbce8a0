package archive

import (
	"fmt"
	"time"

	"docket/internal/history/archive/inventory"
	"docket/internal/history/archive/nightly"
	"docket/internal/programs/cli/term"
)

// mostDone limits the archived days that the list repeats from the note of the desk.
const mostDone = 3

// nightly prints the last results of the desk that archives days by itself, and why it waits.
func (l *list) nightly(n inventory.Nightly) {
	switch {
	case n.Unknown != "":
		l.Tell("cannot ask the database how far the desk's own archive is: %s\n", n.Unknown)
	case n.Note != nil:
		l.told(n.Note)
	case n.Wanted:
		l.Tell("DOCKET_ARCHIVE_AFTER is set, and no desk has archived by itself yet: give it to docket desk, too\n")
	}
}

// told prints a note, a line each.
func (l *list) told(n *nightly.Note) {
	l.Tell("the desk archives days after %s, %s\n", term.Counted(int64(n.After), "day"), hoursText(n.Hours))
	if silent := l.Now().Sub(n.Wrote); silent > nightly.Silent {
		l.Tell("no desk has reported for %s: check that docket desk runs with DOCKET_ARCHIVE_AFTER\n", silent.Truncate(time.Minute))
	}
	l.Tell("%s\n", stateText(n))
	if n.Due > 0 {
		l.Tell("%s due, the oldest is %s\n", areDue(n.Due), term.Brief(n.Oldest))
	}
	done := 0
	for _, r := range n.Days {
		if r.Why == "" {
			if done++; done > mostDone {
				continue
			}
		}
		l.Tell("%s\n", resultText(r))
	}
	if n.Aged > 0 {
		l.Tell("%s got another storage class at %s\n", term.Counted(int64(n.Aged), "file"), term.Stamp(n.AgedAt))
	}
}

func hoursText(hours string) string {
	if hours == (nightly.Hours{}).String() {
		return "at " + hours
	}
	return "within " + term.Brief(hours)
}

func areDue(n int) string {
	if n == 1 {
		return "1 day is"
	}
	return fmt.Sprintf("%s days are", term.Grouped(int64(n)))
}

// stateText says what the archive does, why, and when it looks again.
func stateText(n *nightly.Note) string {
	text := term.Brief(string(n.State))
	if n.Why != "" {
		text += ": " + term.Brief(n.Why)
	}
	if n.Hint != "" {
		text += "; " + term.Brief(n.Hint)
	}
	if !n.Next.IsZero() {
		text += "; next look at " + term.Stamp(n.Next)
	}
	return text
}

// resultText says how the last try of a day ended.
func resultText(r nightly.Result) string {
	of := term.Brief(r.Day)
	if r.Table != decisionsTable {
		of = "dead letters of " + of
	}
	switch {
	case r.Why == "":
		return fmt.Sprintf("%s: archived at %s, %s, %s", of, term.Stamp(r.At), term.Counted(r.Rows, "row"), sized(r.Bytes))
	case r.Waits:
		return fmt.Sprintf("%s: waits: %s%s", of, term.Brief(r.Why), advice(r.Hint))
	}
	return fmt.Sprintf("%s: failed at %s: %s%s", of, term.Stamp(r.At), term.Brief(r.Why), advice(r.Hint))
}

func advice(hint string) string {
	if hint == "" {
		return ""
	}
	return "; " + term.Brief(hint)
}
