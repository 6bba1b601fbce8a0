package tree

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/archive/nightly"
	"docket/internal/programs/cli"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

// TestDesk_SameArchives: a desk lists and verifies its archive as the command on its host does, whatever the place lacks.
func TestDesk_SameArchives(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	const orphan = "decision_logs-2026-07-01-001-3f9a2c-00000000"
	for name, change := range map[string]func(t *testing.T, w *world, dir string, all []*archive.Manifest){
		"intact": func(*testing.T, *world, string, []*archive.Manifest) {},
		"a manifest is gone": func(t *testing.T, _ *world, dir string, all []*archive.Manifest) {
			remove(t, dir, all[0].Name()+".manifest.json")
		},
		"a file is damaged": func(t *testing.T, _ *world, dir string, all []*archive.Manifest) {
			write(t, dir, all[1].Files[0].Name, "x")
		},
		"a file is gone": func(t *testing.T, _ *world, dir string, all []*archive.Manifest) {
			remove(t, dir, all[0].Files[0].Name)
		},
		"a manifest is broken": func(t *testing.T, _ *world, dir string, all []*archive.Manifest) {
			write(t, dir, all[0].Name()+".manifest.json", "{")
		},
		"all manifests are broken": func(t *testing.T, _ *world, dir string, all []*archive.Manifest) {
			for _, m := range all {
				write(t, dir, m.Name()+".manifest.json", "{")
			}
		},
		"files without a manifest": func(t *testing.T, _ *world, dir string, _ []*archive.Manifest) {
			write(t, dir, "decision_logs/day=2026-07-01/"+orphan+".0001.parquet", "x")
		},
		"a run was killed": func(t *testing.T, _ *world, dir string, _ []*archive.Manifest) {
			write(t, dir, orphan+".started", "")
			write(t, dir, "decision_logs/day=2026-07-01/"+orphan+".0001.parquet", "x")
		},
		"days without an archive": func(_ *testing.T, w *world, _ string, _ []*archive.Manifest) {
			for i := range 3 {
				w.left = append(w.left, archive.Left{Day: archive.DayOf(at.AddDate(0, 0, -10-i))})
			}
		},
		"an interrupted day": func(_ *testing.T, w *world, _ string, _ []*archive.Manifest) {
			w.days = young{held: []archive.Held{{Day: archive.DayOf(at.AddDate(0, 0, 5)), Location: archive.Leaving}}}
		},
		"the note of the desk": func(t *testing.T, w *world, _ string, _ []*archive.Manifest) {
			n := &nightly.Note{State: nightly.Waiting, Why: "it is not within the quiet hours", Hint: "they begin at 01:00", After: 90, Hours: "01:00-05:00 UTC", Due: 1, Oldest: "2026-08-01", Next: now.Add(time.Hour), Aged: 2, AgedAt: now}
			n.Add(nightly.Result{Table: "decision_logs", Day: "2026-07-31", At: now, Archive: "x", Rows: 1, Bytes: 2048, Dropped: true})
			n.Add(nightly.Result{Table: "decision_logs", Day: "2026-08-01", At: now, Waits: true, Why: "it is not counted", Hint: "end session 4711\x1b[2J"})
			n.Add(nightly.Result{Table: "dead_letters", Day: "2026-08-02", At: now, Why: "the storage is full"})
			text, err := n.Text()
			if err != nil {
				t.Fatal(err)
			}
			w.book.remembers = text
		},
		"no note yet": func(_ *testing.T, w *world, _ string, _ []*archive.Manifest) {
			w.environ = append(w.environ, "DOCKET_ARCHIVE_AFTER=90d")
		},
	} {
		for _, how := range []string{"list", "list --json", "list --wide", "list -o csv", "verify --all", "verify --all --json", "verify --day 2026-08-01", "verify --day 2026-07-01", "verify --day 2026-08-02"} {
			role := "viewer"
			if strings.HasPrefix(how, "verify") {
				role = "operator"
			}
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				left := archive.Left{Day: archive.DayOf(at)}
				var all []*archive.Manifest
				for i := range 2 {
					m, err := archivetest.Write(t.Context(), archive.Dir(dir), 10, readertest.Decision(200+i, at.Add(time.Duration(i)*time.Minute)))
					if err != nil {
						t.Fatal(err)
					}
					all, left.Archives = append(all, m), append(left.Archives, m.Name())
				}
				first := &world{book: newBook(), days: young{}, left: []archive.Left{left}, environ: []string{"DOCKET_ARCHIVE_TO=" + dir}}
				change(t, first, dir, all)
				both(t, role, func() *world {
					return &world{book: first.book, days: first.days, left: first.left, environ: first.environ}
				}, strings.Fields("archive "+how)...)
			})
		}
	}
}

// TestDesk_VerifiesTheOthers: an archive that a desk does not read is named, and the others are read. A part of the list that
// the desk left out is not said to be well.
func TestDesk_VerifiesTheOthers(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		prove func(n int) error
		left  int
		want  []string
	}{
		"one is not read": {prove: func(n int) error {
			if n != 1 {
				return nil
			}
			return &archive.ShelfError{Err: errors.New("the bucket is away"), Do: "bring it back"}
		}, want: []string{`"verified": true`, `"verified": false`, "was not read", "the bucket is away"}},
		"one has a long line": {prove: func(n int) error {
			if n != 1 {
				return nil
			}
			return &archive.LineError{File: "x", Line: 7, Most: 8}
		}, want: []string{`"verified": true`, `"verified": false`, "line 7 of x", "raise DOCKET_MAX_RECORD_BYTES"}},
		"much is missing": {left: 4001, want: []string{`"verified": true`, "1 line of the desk is missing here"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, asked := t.TempDir(), 0
			for i := range 3 {
				if _, err := archivetest.Write(t.Context(), archive.Dir(dir), 10, readertest.Decision(200+i, at.Add(time.Duration(i)*time.Minute))); err != nil {
					t.Fatal(err)
				}
			}
			w := &world{book: newBook(), days: young{}, environ: []string{"DOCKET_ARCHIVE_TO=" + dir}}
			if c.prove != nil {
				w.prove = func() error { asked++; return c.prove(asked - 1) }
			}
			for i := range c.left {
				w.left = append(w.left, archive.Left{Day: archive.DayOf(at.AddDate(0, 0, -10-i))})
			}
			r := w.overDesk(t, "operator").call("archive", "verify", "--day", "2026-08-01", "--json")
			for _, want := range c.want {
				if !strings.Contains(r.out+r.err, want) {
					t.Errorf("no %s", want)
				}
			}
			if r.code != cli.Failed || strings.Count(r.out, `"verified"`) != 3 {
				t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDesk_Forget: a desk notes the name of the token, asks before, and refuses as the command on its host does.
func TestDesk_Forget(t *testing.T) {
	t.Parallel()
	of := &leaving{}
	place := t.TempDir()
	w := (&world{days: of, environ: []string{"DOCKET_ARCHIVE_TO=" + place}}).overDesk(t, "admin")
	act := []string{"archive", "forget", "2026-08-01", "--reason", "a year is over"}
	w.says(t, cli.Done, []string{"archive", "forget", "2026-08-01", "--dry-run"}, "2026-08-01: would be forgotten")
	w.says(t, cli.Misuse, act[:3], "no reason")
	w.says(t, cli.Misuse, append(act, "--operator", "mara"), "leave --operator away")
	w.says(t, cli.Misuse, append(act, "--from", "x"), "leave away --from")
	file := "decision_logs-2026-08-01-001-3f9a2c-4f397d52.manifest.json"
	write(t, place, file, "")
	w.says(t, cli.Failed, act, "docket: 2026-08-01: 2026-08-01 is not gone", "remove all files of the day first", "!the desk at")
	remove(t, place, file)
	w.terminal, w.stdin = person(140), "n\n"
	w.says(t, cli.Done, act, "Forget 2026-08-01, which is not in "+place+" any more? [y/N]")
	if of.note != nil {
		t.Fatalf("forgotten after all: %v", of.note)
	}
	w.stdin = "y\n"
	w.says(t, cli.Done, act, "2026-08-01: forgotten\n")
	if of.note == nil || of.note.By != "adam" || of.note.Reason != "a year is over" {
		t.Fatalf("%v", of.note)
	}
	w.terminal.In = false
	w.says(t, cli.Done, act, "nothing was changed; it was forgotten on purpose by adam at 2026-11-21T", ": a year is over")
	r := w.call(append(act, "--json")...)
	var done struct{ Day, Result, Note string }
	if err := json.Unmarshal([]byte(r.out), &done); err != nil || done.Result != "forgotten before" || !strings.HasSuffix(done.Note, ": a year is over") {
		t.Errorf("%v\n%s%s", err, r.out, r.err)
	}
}
