package worker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"docket/internal/desk/ledger"
)

// ReportLines limits the lines of dead letters in a text report; the others are counted.
const ReportLines = 20

// Report lists unresolved dead letters, and records that may be lost.
type Report struct {
	At         time.Time     `json:"at"`
	Unresolved int64         `json:"unresolved"`
	Lines      []ReportRow   `json:"lines"`
	Horizons   []HorizonLine `json:"horizons,omitempty"`
}

// ReportRow is a line of a report.
type ReportRow struct {
	Kind       string                 `json:"kind"`
	Code       string                 `json:"code"`
	Path       string                 `json:"path"`
	Unresolved int64                  `json:"unresolved"`
	Counts     map[ledger.State]int64 `json:"counts"`
	Oldest     time.Time              `json:"oldest,omitzero"` // first failure
}

// NewReport sorts lines by number and sums them up.
func NewReport(lines []ledger.ReportLine, horizons []HorizonLine, now time.Time) Report {
	r := Report{At: now, Horizons: horizons, Lines: make([]ReportRow, 0, len(lines))}
	for _, l := range lines {
		open := l.Counts[ledger.Pending] + l.Counts[ledger.Processing] + l.Counts[ledger.Failed]
		if open <= 0 {
			continue
		}
		r.Unresolved += open
		r.Lines = append(r.Lines, ReportRow{
			Kind: string(l.Kind), Code: l.Code, Path: l.Path, Unresolved: open, Counts: l.Counts, Oldest: l.Oldest,
		})
	}
	slices.SortFunc(r.Lines, func(a, b ReportRow) int {
		return cmp.Or(cmp.Compare(b.Unresolved, a.Unresolved), a.Oldest.Compare(b.Oldest),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Path, b.Path))
	})
	return r
}

// Text returns the report as plain text of at most width columns, 0: 100. Each line ends with a line feed.
func (r Report) Text(width int) string {
	var b strings.Builder
	for _, l := range r.text(width) {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return b.String()
}

func (r Report) text(width int) []string {
	if width <= 0 {
		width = 100
	}
	var out []string
	if r.Unresolved == 0 {
		out = append(out, "No open dead letters.")
	} else {
		out = append(out, r.table(width)...)
	}
	for i := range r.Horizons {
		out = append(out, r.Horizons[i].Text(r.At))
	}
	return out
}

// table returns one line for each row. The path gets the rest of the width.
func (r Report) table(width int) []string {
	rows := [][]string{{"OPEN", "KIND", "CODE", "PENDING", "PROCESSING", "FAILED", "OLDEST", "PATH"}}
	for _, l := range r.Lines[:min(len(r.Lines), ReportLines)] {
		rows = append(rows, []string{
			thousands(l.Unresolved), l.Kind, shortened(l.Code, 20), thousands(l.Counts[ledger.Pending]), thousands(l.Counts[ledger.Processing]),
			thousands(l.Counts[ledger.Failed]), Age(r.At.Sub(l.Oldest)), shortened(l.Path, 200),
		})
	}
	last := len(rows[0]) - 1
	widths, left := make([]int, last), width
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		left -= widths[i] + 2
	}
	out := make([]string, 0, len(rows)+1)
	for _, row := range rows {
		var b strings.Builder
		for i, w := range widths {
			b.WriteString(row[i])
			b.WriteString(strings.Repeat(" ", w+2-utf8.RuneCountInString(row[i])))
		}
		b.WriteString(shortened(row[last], max(left, 8)))
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	if rest := r.Lines[min(len(r.Lines), ReportLines):]; len(rest) > 0 {
		var n int64
		for _, l := range rest {
			n += l.Unresolved
		}
		out = append(out, fmt.Sprintf("and %s more lines with %s dead letters", thousands(int64(len(rest))), thousands(n)))
	}
	return out
}

// Text describes the state of a topic in one line.
func (l *HorizonLine) Text(now time.Time) string {
	start := l.Topic + ": "
	switch {
	case l.Error != "":
		return start + "unknown when it loses records: " + l.Error
	case l.Gone > 0:
		return start + fmt.Sprintf("LOST: %s records were deleted before they were read", thousands(l.Gone)) + l.also()
	case l.Oldest.IsZero() && l.Lane != "":
		return start + "all of it is committed"
	case l.Oldest.IsZero():
		return start + "nothing unread or parked is left in it"
	case !l.RetentionKnown:
		return start + "its retention is unknown; the oldest record that is still needed is " + Age(now.Sub(l.Oldest)) + " old" + l.also()
	case l.Forever:
		return start + "keeps records of any age" + l.earlier() + l.also()
	case !l.Deadline.After(now):
		return start + "the oldest record that is still needed can be deleted at any moment" + l.earlier() + l.also()
	}
	return start + fmt.Sprintf("the oldest record that is still needed can be deleted in %s, at %s; %.0f%% of the retention has passed",
		Age(l.Deadline.Sub(now)), l.Deadline.UTC().Format("2006-01-02 15:04 UTC"), 100*l.Used) + l.earlier() + l.also()
}

func (l *HorizonLine) earlier() string {
	if !l.BytesLimited {
		return ""
	}
	return " (or earlier: retention.bytes is set)"
}

func (l *HorizonLine) also() string {
	switch {
	case l.Unread == 0:
		return ""
	case l.Parked:
		return fmt.Sprintf("; %s parked records wait in it", thousands(l.Unread))
	case l.Lane != "":
		return fmt.Sprintf("; lane %s, %s not committed", l.Lane, thousands(l.Unread))
	}
	return "; " + NotEntered(l.Unread)
}

// NotEntered says that n dead letters are only in their topic.
func NotEntered(n int64) string {
	if n == 1 {
		return "1 dead letter is not in the ledger yet"
	}
	return thousands(n) + " dead letters are not in the ledger yet"
}

// Age returns a duration in its two largest units.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// shortened returns s without unprintable characters, cut to n characters.
func shortened(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
