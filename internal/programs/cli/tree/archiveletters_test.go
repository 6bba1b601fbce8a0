package tree

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"docket/internal/history/archive"
)

// lettersClosed are ids of dead letters that were closed on a day, by day, and are in no archive.
type lettersClosed map[string][]string

func (d *lettersOfDay) Noted(context.Context) ([]archive.Noted, error) { return nil, nil }

func (*lettersOfDay) Archived(context.Context) (bool, error) { return false, nil }

func (d *lettersOfDay) Forget(context.Context, []string, string, string) error { return nil }

func (c lettersClosed) Days(_ context.Context, before archive.Day) (held []archive.LettersHeld, err error) {
	for text, ids := range c {
		if day, _ := archive.ParseDay(text); day.Before(before.Time) && len(ids) > 0 {
			held = append(held, archive.LettersHeld{Day: day, Letters: int64(len(ids)), Bytes: 2048})
		}
	}
	return held, nil
}

func (c lettersClosed) Open(_ context.Context, day archive.Day) (archive.LettersSession, error) {
	if c[day.String()] == nil {
		c[day.String()] = []string{}
	}
	return &lettersOfDay{c, day.String()}, nil
}

type lettersOfDay struct {
	of  lettersClosed
	day string
}

func (d *lettersOfDay) Close()                    {}
func (d *lettersOfDay) Columns() []archive.Column { return nil }
func (d *lettersOfDay) Source(context.Context) (archive.Source, error) {
	return archive.Source{ID: "3f9a2c"}, nil
}

func (d *lettersOfDay) Waiting(context.Context) (int64, error) { return int64(len(d.of[d.day])), nil }

func (d *lettersOfDay) Read(_ context.Context, each func([]byte) error) error {
	for _, id := range d.of[d.day] {
		if err := each([]byte(`{"dead_letter_id":"` + id + `"}`)); err != nil {
			return err
		}
	}
	return nil
}

func (d *lettersOfDay) Note(_ context.Context, _, _ string, lines [][]byte) (int64, error) {
	d.of[d.day] = d.of[d.day][len(lines):]
	return int64(len(lines)), nil
}

func (d *lettersOfDay) Load(_ context.Context, _, _ string, _ []archive.Column, lines [][]byte) (archive.LettersLoaded, error) {
	return archive.LettersLoaded{Stored: int64(len(lines)) - 1, Differs: 1, Conflicts: []string{"b1ff"}}, nil
}

// entriesOf are the entries of a JSON answer.
func entriesOf(t *testing.T, r result) (entries []map[string]any) {
	t.Helper()
	var answer struct {
		Entries []map[string]any `json:"entries"`
	}
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil {
		t.Fatalf("%v: %q, %s", err, r.out, r.err)
	}
	return answer.Entries
}

// TestArchiveLetters_WithTheDaysAndAlone: closed dead letters are archived whatever the age that is asked for, since the desk waits for it.
func TestArchiveLetters_WithTheDaysAndAlone(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"with the days": {"--older-than", "90d"}, "alone": {"--dead-letters"}, "of a day": {"--dead-letters", "--day", "2026-11-18"}} {
		w := &world{days: young{}, letters: lettersClosed{"2026-11-18": {"a1", "a2", "a3"}, "2026-11-20": {"too recent"}}}
		place := t.TempDir()
		if name != "of a day" {
			dry := entriesOf(t, w.call(append([]string{"archive", "--dry-run", "--json"}, args...)...))
			if len(dry) != 1 || dry[0]["table"] != "dead_letters" || dry[0]["day"] != "2026-11-18" || dry[0]["rows_about"] != 3.0 {
				t.Errorf("%s: a dry run says %v", name, dry)
			}
		}
		done := entriesOf(t, w.call(append([]string{"archive", "--json", "--to", place, "--operator", "mara"}, args...)...))
		if len(done) != 1 || done[0]["table"] != "dead_letters" || done[0]["rows"] != 3.0 || !strings.HasPrefix(done[0]["archive"].(string), "dead_letters-2026-11-18-001-") {
			t.Errorf("%s: %v", name, done)
		}
		again := w.call(append([]string{"archive", "--to", place, "--operator", "mara"}, args...)...)
		if again.code != 0 || strings.Contains(again.out, "verified") {
			t.Errorf("%s: again: exit %d, %s%s", name, again.code, again.out, again.err)
		}
		list := w.call("archive", "list", "--from", place)
		if !strings.Contains(list.out, "dead letters") || list.code != 0 {
			t.Errorf("%s: %s%s", name, list.out, list.err)
		}
		verified := w.call("archive", "verify", "--all", "--from", place)
		if verified.code != 0 || !strings.Contains(verified.out, ": ok, 3 rows") {
			t.Errorf("%s: %s%s", name, verified.out, verified.err)
		}
		back := w.call("restore", "--dead-letters", "--day", "2026-11-18", "--from", place, "--operator", "mara")
		if back.code != 1 || !strings.Contains(back.out, "2026-11-18: 2 dead letters stored, 0 already there, verified") || !strings.Contains(back.err, "1 dead letter differ from those in the ledger with the same id. The ledger's were kept: b1ff") {
			t.Errorf("%s: exit %d, %s%s", name, back.code, back.out, back.err)
		}
	}
}

// TestArchiveLetters_NotWhereDecisionsAreKept: --keep drops nothing, and so lets nothing be dropped later.
func TestArchiveLetters_NotWhereDecisionsAreKept(t *testing.T) {
	t.Parallel()
	waiting := lettersClosed{"2026-11-18": {"a1"}}
	w := &world{days: young{}, letters: waiting}
	r := w.call("archive", "--older-than", "90d", "--keep", "--to", t.TempDir(), "--operator", "mara")
	if r.code != 0 || len(waiting["2026-11-18"]) != 1 {
		t.Errorf("exit %d, %s, %v", r.code, r.err, waiting)
	}
}

func TestArchiveLetters_WrongUse(t *testing.T) {
	t.Parallel()
	w := &world{days: young{}}
	for _, args := range [][]string{
		{"--dead-letters", "--older-than", "9d"}, {"--dead-letters", "--keep"}, {}, {"--dead-letters", "--day", "yesterday"}, {"--day", "2026-08-01", "--older-than", "9d"},
	} {
		if r := w.call(append([]string{"archive", "--to", "x", "--operator", "mara"}, args...)...); r.code != 2 {
			t.Errorf("%v: exit %d, %s", args, r.code, r.err)
		}
	}
	if r := w.call("archive", "--dead-letters", "--to", t.TempDir(), "--operator", "mara"); r.code != 0 || !strings.Contains(r.err, "no dead letters that were closed before yesterday (UTC) wait for an archive") {
		t.Errorf("nothing there: exit %d, %s", r.code, r.err)
	}
}
