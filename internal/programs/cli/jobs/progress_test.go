package jobs

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// TestProgress_BarOrLines also shows that a line comes every 5 s and not at each look.
func TestProgress_BarOrLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	at := time.Date(2026, 11, 21, 20, 15, 3, 0, time.UTC)
	s := &term.Screen{Err: &out, Clock: func() time.Time { return at }}
	p := s.Progress("job 1")
	for i := range 21 {
		p.At(int64(i*100), 4812, "fine")
		at = at.Add(frame.LookEvery)
	}
	if got := out.String(); got != "job 1: 1,000 of 4,812, fine\njob 1: 2,000 of 4,812, fine\n" {
		t.Errorf("%q", got)
	}
	var bar bytes.Buffer
	s.Err, s.Terminal = &bar, term.Terminal{Err: true, Width: 80}
	p = s.Progress("job 1")
	p.Brief = "fine"
	p.At(1200, 4812, "finer than ever")
	p.End()
	if got := bar.String(); !strings.Contains(got, "job 1: fine ") || !strings.Contains(got, "1200/4812") {
		t.Errorf("%q", got)
	}
}

// TestProgress_FitsTerminal: a line that wraps would be written again below and not in its place.
func TestProgress_FitsTerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{50, 60, 80, 100, 140} {
		var drawn bytes.Buffer
		s := &term.Screen{Err: &drawn, Clock: func() time.Time { return time.Time{} }, Terminal: term.Terminal{Err: true, Width: width}}
		p := s.Progress("job 1234")
		for _, j := range []ledger.Job{{Sent: 5, Dead: 5}, {Sent: 734, Stored: 728, Dead: 6}, {Sent: 1_200_000, Stored: 1_000_000, Dead: 100_000, Refused: 100_000}} {
			p.Brief = brief(j)
			p.At(j.Sent, 1_500_000, tally(j))
		}
		p.End()
		for _, line := range strings.FieldsFunc(drawn.String(), func(r rune) bool { return r == '\r' || r == '\x1b' }) {
			if n := utf8.RuneCountInString(line); n >= width {
				t.Errorf("%d columns of %d: %s", n, width, line)
			}
		}
		if width >= 80 && !strings.Contains(drawn.String(), "5 failed") {
			t.Errorf("%d: %q", width, drawn.String())
		}
	}
}
