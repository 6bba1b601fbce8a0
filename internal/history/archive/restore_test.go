package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/record/subject"
)

// loading is a table, and its one open day. It keeps the loaded rows.
type loading struct {
	OpenDay
	lines []string
	calls []int
	tally []int                    // number of lines at each
	spoil func(line []byte) []byte // the act of a trigger; nil: none
}

func (l *loading) Left(context.Context) (*Left, error) { return nil, nil }

func (l *loading) Name() string                              { return "decision_logs" }
func (l *loading) Days(context.Context, Day) ([]Held, error) { return nil, nil }
func (l *loading) Open(context.Context, Day) (OpenDay, error) {
	return l, nil
}
func (l *loading) Where(context.Context) (Location, error) { return Attached, nil }
func (l *loading) Close()                                  {}

func (l *loading) Tally(context.Context) error {
	l.tally = append(l.tally, len(l.lines))
	return nil
}

func (l *loading) Load(_ context.Context, _ []Column, lines [][]byte) (done Loaded, err error) {
	l.calls = append(l.calls, len(lines))
	for _, line := range lines {
		l.lines = append(l.lines, string(line))
		if l.spoil != nil {
			line = l.spoil(bytes.Clone(line))
		}
		done.Total.Add(line)
		done.Stored++
	}
	return done, nil
}

// TestRestore_EveryLineOnce: exactly a batch, one line more, many lines, and lines so long that their bytes end a
// batch.
func TestRestore_EveryLineOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lines, long, calls int }{
		"none": {0, 0, 0}, "one": {1, 0, 1}, "a batch": {loadRows, 0, 1}, "a line more": {loadRows + 1, 0, 2}, "batches and a rest": {2*loadRows + 7, 200, 3}, "long lines": {9, loadBytes / 2, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shelf := Dir(t.TempDir())
			m := &Manifest{Format: FormatLines, Table: "decision_logs", Day: "2026-03-04", Generation: 1, Source: Source{ID: "abcdef"}, Attempt: "01234567"}
			w := newWriter(t.Context(), shelf, m, subject.Spec{})
			w.rows = 700 // a file ends within a batch
			var want []string
			for i := range c.lines {
				want = append(want, fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("x", c.long)))
				if err := w.line([]byte(want[i])); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.end(); err != nil {
				t.Fatal(err)
			}
			m.Files, m.Rows, m.Hash = w.files, w.total.Rows, w.total.Hash()
			if err := seal(t.Context(), shelf, m); err != nil {
				t.Fatal(err)
			}
			day, _ := ParseDay(m.Day)
			table := &loading{}
			carrier := Carrier{Table: table, Shelf: shelf, By: "mara", Now: time.Now}
			done, err := carrier.Restore(t.Context(), day)
			if err != nil || !slices.Equal(table.lines, want) || done.Stored != int64(c.lines) || done.Lines != int64(c.lines) || len(table.calls) != c.calls {
				t.Fatalf("%d lines of %d in batches of %v, stored %d, %v", len(table.lines), c.lines, table.calls, done.Stored, err)
			}
			if !slices.Equal(table.tally, []int{c.lines}) {
				t.Errorf("counted once after all %d lines, not after %v", c.lines, table.tally)
			}
			if c.lines == 0 {
				return
			}
			// A trigger's change is reported, even in the last line alone.
			table = &loading{spoil: func(line []byte) []byte {
				return bytes.Replace(line, fmt.Appendf(nil, `"n":%d,`, c.lines-1), []byte(`"n":-1,`), 1)
			}}
			carrier.Table = table
			if _, err := carrier.Restore(t.Context(), day); err == nil {
				t.Error("a line was changed, and it is whole")
			}
			if len(table.tally) > 0 {
				t.Error("what is not whole was counted")
			}
		})
	}
}

// With a limit each row is granted before it is stored, and a wait that ends says so.
func TestRestore_TakesItsRows(t *testing.T) {
	t.Parallel()
	shelf := Dir(t.TempDir())
	m := &Manifest{Format: FormatLines, Table: "decision_logs", Day: "2026-03-04", Generation: 1, Source: Source{ID: "abcdef"}, Attempt: "01234567"}
	w := newWriter(t.Context(), shelf, m, subject.Spec{})
	const all = loadRows + 50
	for i := range all {
		if err := w.line(fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	m.Files, m.Rows, m.Hash = w.files, w.total.Rows, w.total.Hash()
	if err := seal(t.Context(), shelf, m); err != nil {
		t.Fatal(err)
	}
	day, _ := ParseDay(m.Day)
	granted := 0
	table := &loading{}
	take := func(_ context.Context, rows int) int {
		if granted != len(table.lines) {
			t.Errorf("%d rows granted, %d loaded", granted, len(table.lines))
		}
		n := min(rows, loadRows/4)
		granted += n
		return n
	}
	carrier := Carrier{Table: table, Shelf: shelf, By: "mara", Now: time.Now, Take: take}
	done, err := carrier.Restore(t.Context(), day)
	if err != nil || granted != all || done.Stored != all || slices.Max(table.calls) != loadRows/4 || len(table.calls) != 5 {
		t.Fatalf("granted %d, stored %d in %v, %v", granted, done.Stored, table.calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	table = &loading{}
	carrier = Carrier{Table: table, Shelf: shelf, By: "mara", Now: time.Now, Take: func(context.Context, int) int { cancel(); return 0 }}
	if _, err := carrier.Restore(ctx, day); !errors.Is(err, context.Canceled) || len(table.lines) != 0 {
		t.Errorf("%v, %d rows", err, len(table.lines))
	}
}
