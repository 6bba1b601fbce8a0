package tree

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/output"
	"docket/internal/testkit/completetest"
)

// leaving is a table that 2026-08-01 left, and that day.
type leaving struct {
	archive.Table
	archive.OpenDay
	note *archive.Forgotten
}

func (l *leaving) Name() string { return "decision_logs" }

func (l *leaving) Days(context.Context, archive.Day) ([]archive.Held, error) { return nil, nil }

func (l *leaving) Open(context.Context, archive.Day) (archive.OpenDay, error) { return l, nil }

func (l *leaving) Where(context.Context) (archive.Location, error) { return archive.Nowhere, nil }

func (l *leaving) Left(context.Context) (*archive.Left, error) {
	return &archive.Left{Forgotten: l.note}, nil
}

func (l *leaving) Close() {}

func (l *leaving) Forget(_ context.Context, by, reason string) error {
	l.note = &archive.Forgotten{At: now, By: by, Reason: reason}
	return nil
}

func TestForget_NotesWhoAndWhy(t *testing.T) {
	t.Parallel()
	of := &leaving{}
	place := t.TempDir()
	w := &world{days: of, environ: []string{"DOCKET_ARCHIVE_TO=" + place}}
	act := []string{"archive", "forget", "2026-08-01", "--operator", "mara", "--reason", "a year is over"}

	w.says(t, cli.Done, []string{"archive", "forget", "2026-08-01", "--dry-run"}, "2026-08-01: would be forgotten")
	for text, args := range map[string][]string{
		"give one day": {"archive", "forget"}, "in UTC": {"archive", "forget", "yesterday", "--reason", "r", "--operator", "mara"}, "no reason": act[:5], "no operator": {"archive", "forget", "2026-08-01", "--reason", "r"},
	} {
		w.says(t, cli.Misuse, args, text)
	}
	file := filepath.Join(place, "decision_logs-2026-08-01-001-3f9a2c-4f397d52.manifest.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.says(t, cli.Failed, act, "2026-08-01 is not gone", "remove all files of the day first")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.says(t, cli.Failed, append(act, "--from", place+"/nowhere"), "not known whether an archive has the day", "does not exist", "mount it")

	w.terminal, w.stdin = person(140), "n\n"
	w.says(t, cli.Done, act, "Forget 2026-08-01, which is not in "+place+" any more? [y/N]")
	if of.note != nil {
		t.Fatalf("forgotten after all: %v", of.note)
	}
	w.stdin = "y\n"
	w.says(t, cli.Done, act, "2026-08-01: forgotten\n")
	if of.note == nil || of.note.By != "mara" || of.note.Reason != "a year is over" {
		t.Fatalf("%v", of.note)
	}
	w.says(t, cli.Done, []string{"archive", "forget", "2026-08-01", "--operator", "oleg", "--reason", "x"}, "nothing was changed; it was forgotten on purpose by mara at 2026-11-21T", ": a year is over")
	w.terminal.In = false
	for _, f := range output.Formats() {
		of.note = nil
		w.says(t, cli.Done, append(act, "-o", f), "2026-08-01")
	}
}

// lettersLost is a ledger that noted archives of dead letters of 2026-08-01.
type lettersLost struct {
	lettersClosed
	noted []archive.Noted
}

func (l *lettersLost) Open(context.Context, archive.Day) (archive.LettersSession, error) {
	return &lostDay{lettersOfDay{l.lettersClosed, "2026-08-01"}, l}, nil
}

type lostDay struct {
	lettersOfDay
	of *lettersLost
}

func (d *lostDay) Noted(context.Context) ([]archive.Noted, error) { return d.of.noted, nil }

func (*lostDay) Archived(context.Context) (bool, error) { return false, nil }

func (d *lostDay) Forget(_ context.Context, archives []string, by, reason string) error {
	for i := range d.of.noted {
		if slices.Contains(archives, d.of.noted[i].Archive) {
			d.of.noted[i].Forgotten = &archive.Forgotten{At: now, By: by, Reason: reason}
		}
	}
	return nil
}

// TestForget_DeadLetters: a missing archive of dead letters is told by list and verify until it is given up, with a desk as
// without one. Days of decisions are not touched.
func TestForget_DeadLetters(t *testing.T) {
	t.Parallel()
	const one, two = "dead_letters-2026-08-01-001-3f9a2c-4f397d52", "dead_letters-2026-08-01-002-3f9a2c-4f397d52"
	for _, desk := range []bool{false, true} {
		of, place := &lettersLost{lettersClosed{}, []archive.Noted{{Archive: one}, {Archive: two}}}, t.TempDir()
		days := &leaving{}
		w := &world{days: days, letters: of, noted: func() []archive.Noted { return of.noted }, environ: []string{"DOCKET_ARCHIVE_TO=" + place}}
		act := []string{"archive", "forget", "2026-08-01", "--dead-letters", "--reason", "over"}
		if desk {
			w = w.overDesk(t, "admin")
		} else {
			act = append(act, "--operator", "adam")
		}
		list := []string{"archive", "list"}
		w.says(t, cli.Failed, list, "archives "+one+", "+two+" have no manifest any more")
		w.says(t, cli.Failed, []string{"archive", "verify", "--day", "2026-08-01"}, "have no manifest any more")
		w.says(t, cli.Done, []string{"archive", "forget", "2026-08-01", "--dead-letters", "--dry-run"}, "2026-08-01: "+one+" would be forgotten\n", "2026-08-01: "+two+" would be forgotten\n")
		write(t, place, one+".0001.jsonl.gz", "")
		w.says(t, cli.Failed, act, one+" is not gone", "bring its manifest back")
		remove(t, place, one+".0001.jsonl.gz")
		w.terminal, w.stdin = person(140), "n\n"
		w.says(t, cli.Done, act, "Forget 2 archives of dead letters of 2026-08-01, which is not in "+place+" any more? [y/N]")
		w.terminal.In = false
		w.says(t, cli.Done, act, "2026-08-01: "+one+" forgotten\n", "2026-08-01: "+two+" forgotten\n")
		if f := of.noted[0].Forgotten; f == nil || f.By != "adam" || f.Reason != "over" || days.note != nil {
			t.Errorf("%v, %v", f, days.note)
		}
		w.says(t, cli.Done, act, "2026-08-01: nothing was changed; it was forgotten on purpose by adam at 2026-11-21T", ": over")
		w.says(t, cli.Done, list, "!manifest")
		of.noted = of.noted[:1]
		of.noted[0].Forgotten = nil
		r := w.call(append(act, "--json")...)
		var done struct {
			Day, Result string
			Archives    []string
		}
		if err := json.Unmarshal([]byte(r.out), &done); err != nil || done.Result != "forgotten" || !slices.Equal(done.Archives, []string{one}) {
			t.Errorf("%v\n%s%s", err, r.out, r.err)
		}
	}
}

// TestForget_AnswersTellIt: a forgotten day is told, and makes no answer PARTIAL.
func TestForget_AnswersTellIt(t *testing.T) {
	t.Parallel()
	day, err := archive.ParseDay("2026-08-01")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*archive.Forgotten{nil, {At: now, By: "mara", Reason: "over"}} {
		w, _ := archivedWorld(t)
		w.left, w.complete = []archive.Left{{Day: day, Forgotten: f}}, completed(t, &completetest.Log{}, completetest.Books{})
		w.environ = []string{"DOCKET_ARCHIVE_TO=" + t.TempDir()}
		for _, args := range [][]string{{"logs"}, {"logs", "no-such-id-at-all"}} {
			r := w.call(append(args, "--json")...)
			var got struct {
				reader.Completeness
				NotLooked []string `json:"not_looked"`
			}
			if err := json.Unmarshal([]byte(r.out), &got); err != nil {
				t.Fatalf("%v in %s%s", err, r.out, r.err)
			}
			if (got.Freshness == reader.Partial) == (f != nil) || !strings.Contains(strings.Join(got.NotLooked, "; "), "2026-08-01") {
				t.Errorf("forgotten %v: %v: %+v", f != nil, args, got)
			}
		}
		text, says := "2026-08-01 left the table", "If it is elsewhere is not known"
		if f != nil {
			text, says = "2026-08-01 was forgotten on purpose by mara", "It was not found, and days that may have had it were forgotten on purpose"
		}
		w.says(t, cli.Done, []string{"logs"}, text)
		w.says(t, cli.Failed, []string{"logs", "no-such-id-at-all"}, says, text)
	}
}
