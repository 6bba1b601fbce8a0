package lookup

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// Refused decisions in a shared dead letter are found each by its id, in the topic and in a spool. Each has its place
// in the upload and its own code.
func TestFind_SharedLetter(t *testing.T) {
	t.Parallel()
	const torn = `{"timestamp":"2026-05-01T11:00:00Z","decision_id":"d-1"`
	array := "[\n\n0,\n\n\n" + log("d-1", `,"labels":7`) + ",1]"
	for name, c := range map[string]struct {
		value string
		count string
		index int
		code  string
	}{
		"array":              {array, "3", 6, "wrong_type"},
		"gzip":               {string(decision.Zip([]byte(array))), "3", 6, "wrong_type"},
		"lines":              {"\n\n\n" + log("x", "") + "\n\n" + torn, "2", 5, "syntax"},
		"lines, none whole":  {"\n\n{\n\n\n" + torn, "2", 5, "syntax"},
		"stored now":         {"[\n" + log("d-1", "") + ",1]", "2", 1, "missing_field"},
		"not as many":        {array, "4", 1, "missing_field"},
		"no count of others": {array, "x", 1, "missing_field"},
	} {
		for _, spool := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", spooled ", spool), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				headers := []string{"x-original-topic", "logs", "x-original-partition", "3", "x-original-offset", "41", "x-failure-kind", "decode", "x-failure-code", "missing_field", "x-refused-decisions", c.count}
				if spool {
					w.spool("1700000000_a_1.jsonl.gz", spooledWith(t, "dlq", headers, c.value))
				} else {
					w.put("dlq", c.value, headers...)
				}
				f := one(t, w.find())
				if want := (envelope.Origin{Topic: "logs", Partition: 3, Offset: 41, Index: c.index}); f.Origin.Topic != want.Topic || f.Origin.Partition != want.Partition || f.Origin.Offset != want.Offset || f.Origin.Index != want.Index || f.Code != c.code {
					t.Errorf("%+v, code %s", f.Origin, f.Code)
				}
			})
		}
	}
}

// A decision of an array that is refused as a whole is found by its id, with its place, unread and as a dead letter.
func TestFind_RefusedArray(t *testing.T) {
	t.Parallel()
	torn := "[" + log("x", "") + ",7," + log("d-1", `,"labels":tru`) + "]"
	for name, c := range map[string]struct{ value, code string }{
		"torn":      {torn, "syntax"},
		"gzip":      {string(decision.Zip([]byte(torn))), "syntax"},
		"cut":       {torn[:len(torn)-2], "syntax"},
		"too large": {string(decision.Zip([]byte("[0,1," + log("d-1", "") + "," + strings.Repeat(" ", 17<<20) + "0]"))), "too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("logs", c.value)
			if f := one(t, w.find()); f.Where != Unread || f.Origin.Index != 2 || f.Code != c.code || !f.Time.Equal(noon.Add(-time.Hour)) {
				t.Errorf("unread: %+v", f)
			}
			w = newWorld(t)
			w.put("dlq", c.value, "x-original-topic", "logs", "x-original-partition", "3", "x-original-offset", "41", "x-failure-kind", "decode", "x-failure-code", c.code)
			if f := one(t, w.find()); f.Where != Dead || f.Origin.Offset != 41 || f.Origin.Index != 2 || f.Code != c.code {
				t.Errorf("dead: %+v", f)
			}
		})
	}
}

// Refused decisions that share a dead letter are found each by its id once the letter is archived. Each has its time and its
// place in the upload.
func TestFind_SharedArchivedLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	archiveLines(w,
		`{"dead_letter_id":"l-1","decision_id":null,"origin_topic":"logs","origin_partition":3,"origin_offset":41,"origin_index":4,"value":"\\x5b5d",`+
			`"decisions":{"refused":4,"places":[4,6,9],"ids":["x","d-1","d-2"],"times":[null,"2026-05-01T11:00:00+00:00",null]}}`,
		`{"dead_letter_id":"l-2","decision_id":"d-3","decision_ts":"0001-01-01T00:00:00+00:00 BC","decisions":null}`)
	all := w.look().All(t.Context(), []string{"d-1", "d-2", "d-3"})
	for i, want := range []struct {
		letter string
		index  int
		time   time.Time
	}{{"l-1", 6, noon.Add(-time.Hour)}, {"l-1", 9, time.Time{}}, {"l-2", envelope.NoIndex, time.Time{}}} {
		f := one(t, all[i])
		if f.Where != Archived || f.Letter != want.letter || f.Origin.Index != want.index || !f.Time.Equal(want.time) || f.Same || !all[i].Complete() {
			t.Errorf("%s: %+v, not looked at %v", all[i].ID, f, all[i].NotLooked)
		}
	}
	w.rows = []reader.Decision{{Row: reader.Row{ID: "d-1", Time: noon, Topic: "logs", Partition: 3, Offset: 41, Index: 6}}}
	if f := one(t, w.find()); !f.Same {
		t.Errorf("stored since: %+v", f)
	}
}

// archiveLetters writes an archive with a dead letter for each id.
func archiveLetters(w *world, ids ...string) {
	w.t.Helper()
	var lines []string
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf(`{"dead_letter_id":"l-%s","decision_id":%q,"decision_ts":"2026-05-01T11:00:00+00:00","kind":"data","code":"23514","origin_topic":"logs","origin_partition":3,"origin_offset":41,"origin_index":null,"value":"\\x7b7d"}`, id, id))
	}
	archiveLines(w, lines...)
}

// archiveLines writes an archive of dead letters with these lines.
func archiveLines(w *world, lines ...string) {
	w.t.Helper()
	book := &closedDay{lines: lines}
	c := archive.LettersCarrier{Table: book, Shelf: archive.Dir(w.shelf), By: "mara", Docket: "test", Now: func() time.Time { return noon }}
	day, err := archive.ParseDay("2026-03-01")
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := c.Archive(w.t.Context(), day); err != nil {
		w.t.Fatal(err)
	}
}

// closedDay is a ledger with a day of closed letters.
type closedDay struct {
	lines []string
	noted bool
}

func (d *closedDay) Days(context.Context, archive.Day) ([]archive.LettersHeld, error) {
	return nil, nil
}
func (d *closedDay) Open(context.Context, archive.Day) (archive.LettersSession, error) { return d, nil }
func (d *closedDay) Columns() []archive.Column {
	return []archive.Column{{Name: "dead_letter_id", Type: "text"}}
}
func (d *closedDay) Source(context.Context) (archive.Source, error) {
	return archive.Source{ID: "3f9a2c"}, nil
}
func (d *closedDay) Waiting(context.Context) (int64, error) {
	if d.noted {
		return 0, nil
	}
	return int64(len(d.lines)), nil
}
func (d *closedDay) Read(_ context.Context, each func([]byte) error) error {
	for _, line := range d.lines {
		if err := each([]byte(line)); err != nil {
			return err
		}
	}
	return nil
}
func (d *closedDay) Note(_ context.Context, _, _ string, lines [][]byte) (int64, error) {
	d.noted = true
	return int64(len(lines)), nil
}
func (d *closedDay) Load(context.Context, string, string, []archive.Column, [][]byte) (archive.LettersLoaded, error) {
	return archive.LettersLoaded{}, nil
}
func (d *closedDay) Noted(context.Context) ([]archive.Noted, error)         { return nil, nil }
func (*closedDay) Archived(context.Context) (bool, error)                   { return false, nil }
func (d *closedDay) Forget(context.Context, []string, string, string) error { return nil }
func (d *closedDay) Close()                                                 {}
