package tree

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/archive/nightly"
	"docket/internal/programs/cli/term"
)

// young is a table with some days, of which none can be opened.
type young struct {
	archive.Table
	held []archive.Held
	err  error // of opening one
}

func (y young) Name() string { return "decision_logs" }

func (y young) Days(context.Context, archive.Day) ([]archive.Held, error) { return y.held, nil }

func (y young) Open(context.Context, archive.Day) (archive.OpenDay, error) { return nil, y.err }

// TestArchive_NoDayOldEnough: a program that reads it finds no days, and not the end of the file.
func TestArchive_NoDayOldEnough(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]string{"for real": nil, "a dry run": {"--dry-run"}, "kept": {"--keep"}} {
		for _, where := range []term.Terminal{{}, person(80)} {
			w := &world{days: young{}, shelf: archive.Dir(t.TempDir()), terminal: where}
			r := w.call(append([]string{"archive", "--older-than", "90d", "--to", "x", "--operator", "mara", "--json"}, more...)...)
			var answer struct {
				Entries *[]any `json:"entries"`
			}
			if err := json.Unmarshal([]byte(r.out), &answer); err != nil || r.code != 0 || answer.Entries == nil || len(*answer.Entries) != 0 {
				t.Errorf("%s: exit %d, %v, %q", name, r.code, err, r.out)
			}
		}
	}
}

// TestArchive_OldRowsAmongOthers: rows that no archive takes are told, with the advice, and nobody is asked.
func TestArchive_OldRowsAmongOthers(t *testing.T) {
	t.Parallel()
	day, _ := archive.ParseDay("2026-03-04")
	w := &world{days: young{held: []archive.Held{{Day: day, Location: archive.Shared, Rows: 7}}}, shelf: archive.Dir(t.TempDir()), terminal: person(140)}
	r := w.call("archive", "--older-than", "90d", "--to", "x", "--operator", "mara")
	if r.code != 0 || !strings.Contains(r.err, "2026-03-04 and before: not archived") || !strings.Contains(r.err, `docs/archive.md, "What has no day of its own"`) || strings.Contains(r.out+r.err, "drop what is verified?") {
		t.Errorf("exit %d, %s%s", r.code, r.out, r.err)
	}
}

func TestArchive_UnknownFormat(t *testing.T) {
	t.Parallel()
	for format, code := range map[string]int{"parquet": 0, "jsonl": 0, "Parquet": 2, "json": 2, "": 2} {
		w := &world{days: young{}, shelf: archive.Dir(t.TempDir())}
		if r := w.call("archive", "--older-than", "90d", "--to", "x", "--operator", "mara", "--format", format); r.code != code || code != 0 && !strings.Contains(r.err, "parquet or jsonl") {
			t.Errorf("%q: exit %d, %q", format, r.code, r.err)
		}
	}
}

// TestArchive_DayInUse: the command says what to do, and archives the other days.
func TestArchive_DayInUse(t *testing.T) {
	t.Parallel()
	day, _ := archive.ParseDay("2026-03-04")
	w := &world{
		days:  young{held: []archive.Held{{Day: day, Location: archive.Attached}}, err: &archive.UncountedError{Why: "it is not counted", Do: "end session 4711"}},
		shelf: archive.Dir(t.TempDir()),
	}
	r := w.call("archive", "--older-than", "90d", "--to", "x", "--operator", "mara", "--json")
	if r.code != 1 || !strings.Contains(r.err, "2026-03-04: it is not counted") || !strings.Contains(r.err, "end session 4711") || !json.Valid([]byte(r.out)) {
		t.Errorf("exit %d, %q, %q", r.code, r.out, r.err)
	}
}

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

func (d days) Open(context.Context, archive.Day) (archive.OpenDay, error) {
	return nil, archive.ErrBusy
}

func of(t *testing.T, texts ...string) (all days) {
	t.Helper()
	for _, text := range texts {
		day, err := archive.ParseDay(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, archive.Held{Day: day, Location: archive.Attached, Rows: 1})
	}
	return all
}

// TestArchive_OlderThan: it is 2026-11-21 (UTC), so 2026-11-19 ended one day ago and some hours.
func TestArchive_OlderThan(t *testing.T) {
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

// TestArchive_RefusedDayNamedOnce: the other days are archived.
func TestArchive_RefusedDayNamedOnce(t *testing.T) {
	t.Parallel()
	w := &world{days: of(t)}
	yesterday := now.Add(-24 * time.Hour).UTC().Format(time.DateOnly)
	r := w.call("archive", "--day", yesterday, "--to", t.TempDir(), "--operator", "mara")
	if r.code != 1 || strings.Count(r.err, yesterday) != 1 || !strings.Contains(r.err, "the day is too recent") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// TestArchiveList_TellsOfTheDesk: the list says what the desk archived, what waits and why, and what it does next.
func TestArchiveList_TellsOfTheDesk(t *testing.T) {
	t.Parallel()
	n := &nightly.Note{State: nightly.Waiting, Why: "it is not within the quiet hours", Hint: "they begin at 01:00", After: 90, Hours: "01:00-05:00 UTC", Due: 1, Oldest: "2026-08-01", Next: now.Add(time.Hour)}
	n.Add(nightly.Result{Table: "decision_logs", Day: "2026-07-31", At: now, Archive: "x", Rows: 1, Bytes: 2048, Dropped: true})
	n.Add(nightly.Result{Table: "decision_logs", Day: "2026-08-01", At: now, Waits: true, Why: "it is not counted", Hint: "end session 4711\x1b[2J"})
	n.Add(nightly.Result{Table: "dead_letters", Day: "2026-08-02", At: now, Why: "the storage is full"})
	text, err := n.Text()
	if err != nil {
		t.Fatal(err)
	}
	list := func(note string, environ ...string) result {
		w := &world{book: newBook(), days: young{}, shelf: archive.Dir(t.TempDir()), environ: environ}
		w.book.remembers = note
		return w.call("archive", "list", "--from", "x")
	}
	r := list(text)
	for _, want := range []string{
		"the desk archives days after 90 days, within 01:00-05:00 UTC\n", "waiting: it is not within the quiet hours; they begin at 01:00; next look at ", "1 day is due, the oldest is 2026-08-01\n",
		"2026-07-31: archived at ", ", 1 row, 2.0 KiB\n", "2026-08-01: waits: it is not counted; end session 4711", "dead letters of 2026-08-02: failed at ", ": the storage is full\n",
	} {
		if r.code != 0 || !strings.Contains(r.err, want) || strings.Contains(r.err, "\x1b[2J") {
			t.Errorf("exit %d, no %q in\n%s", r.code, want, r.err)
		}
	}
	if r := list(""); strings.Contains(r.err, "desk") {
		t.Errorf("without a desk that archives: %s", r.err)
	}
	if r := list("", "DOCKET_ARCHIVE_AFTER=90d", "DOCKET_ARCHIVE_TO=x"); !strings.Contains(r.err, "no desk has archived by itself yet") {
		t.Errorf("with the setting alone: %s", r.err)
	}
}

// stopping is a table of which the first day is in use, and the command is stopped at the second.
type stopping struct{ days }

func (s stopping) Open(_ context.Context, day archive.Day) (archive.OpenDay, error) {
	if day == s.days[0].Day {
		return nil, archive.ErrBusy
	}
	return nil, context.Canceled
}

// TestArchive_StoppedHalfWay: the answer has the days before, which may have been dropped.
func TestArchive_StoppedHalfWay(t *testing.T) {
	t.Parallel()
	w := &world{days: stopping{of(t, "2026-08-01", "2026-08-02", "2026-08-03")}, shelf: archive.Dir(t.TempDir())}
	r := w.call("archive", "--older-than", "90d", "--to", "x", "--operator", "mara", "--json")
	var answer struct {
		Entries []struct{ Day, Error string }
	}
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || r.code != 1 || len(answer.Entries) != 2 || answer.Entries[0].Day != "2026-08-01" || answer.Entries[1].Error == "" {
		t.Errorf("exit %d, %v, %q, %q", r.code, err, r.out, r.err)
	}
}
