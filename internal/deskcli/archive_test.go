package deskcli

import (
	"context"
	"strings"
	"testing"
	"time"

	"docket/internal/archive"
)

// days is a table with a day's partition for each of some days.
type days []archive.Held

func (d days) Name() string { return "decision_logs" }

func (d days) Days(_ context.Context, before archive.Day) (held []archive.Held, err error) {
	for _, h := range d {
		if h.Day.Before(before.Time) {
			held = append(held, h)
		}
	}
	return held, nil
}

func (d days) Open(context.Context, archive.Day) (archive.Session, error) {
	return nil, archive.ErrBusy
}

func of(t *testing.T, texts ...string) (all days) {
	t.Helper()
	for _, text := range texts {
		day, err := archive.ParseDay(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, archive.Held{Day: day, Place: archive.Attached, Rows: 1})
	}
	return all
}

// TestOlderThanMeansDaysThatEndedSoLongAgo: it is 2026-11-21 (UTC), so 2026-11-19 ended one day ago and some hours.
func TestOlderThanMeansDaysThatEndedSoLongAgo(t *testing.T) {
	t.Parallel()
	w := &world{days: of(t, "2026-08-22", "2026-08-23", "2026-08-24", "2026-11-18", "2026-11-19", "2026-11-20", "2026-11-21")}
	for older, want := range map[string]string{
		"1d": "2026-08-22 2026-08-23 2026-08-24 2026-11-18 2026-11-19", "2d": "2026-08-22 2026-08-23 2026-08-24 2026-11-18", "90d": "2026-08-22", "89d": "2026-08-22 2026-08-23", "91d": "",
	} {
		r := w.call("archive", "--older-than", older, "--dry-run")
		var got []string
		for line := range strings.Lines(r.out) {
			if day, _, _ := strings.Cut(line, " "); strings.HasPrefix(day, "2026-") {
				got = append(got, day)
			}
		}
		if strings.Join(got, " ") != want || r.code != 0 {
			t.Errorf("%s: %v, want %s; exit %d, %s", older, got, want, r.code, r.err)
		}
	}
	for _, older := range []string{"0d", "-1d", "90", "d", "1.5d", "36501d", "90days"} {
		if r := w.call("archive", "--older-than", older, "--dry-run"); r.code != 2 || r.out != "" {
			t.Errorf("%q: exit %d, %s", older, r.code, r.out)
		}
	}
	if r := w.call("archive", "--older-than", "90d", "--day", "2026-08-22", "--dry-run"); r.code != 2 {
		t.Errorf("two answers to which days: exit %d", r.code)
	}
}

// TestADayThatIsRefusedIsNamedOnce, and the others go on.
func TestADayThatIsRefusedIsNamedOnce(t *testing.T) {
	t.Parallel()
	w := &world{days: of(t)}
	yesterday := now.Add(-24 * time.Hour).UTC().Format(time.DateOnly)
	r := w.call("archive", "--day", yesterday, "--to", t.TempDir(), "--operator", "mara")
	if r.code != 1 || strings.Count(r.err, yesterday) != 1 || !strings.Contains(r.err, "not over long enough") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}
