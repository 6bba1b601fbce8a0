package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"docket/internal/record/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func totalOf(lines ...string) Total {
	var t Total
	for _, l := range lines {
		t.Add([]byte(l))
	}
	return t
}

func TestTotal_SetsAndOrder(t *testing.T) {
	t.Parallel()
	want := totalOf(`{"a":1,"b":2}`, `{"a":3,"b":4}`, `{"a":5}`)
	if got := totalOf(`{"a":5}`, `{"a":1,"b":2}`, `{"a":3,"b":4}`); got != want {
		t.Error("the order counts")
	}
	for name, got := range map[string]Total{
		"values that changed places": totalOf(`{"a":1,"b":4}`, `{"a":3,"b":2}`, `{"a":5}`),
		"one twice, one missing":     totalOf(`{"a":1,"b":2}`, `{"a":1,"b":2}`, `{"a":5}`),
		"a pair more":                totalOf(`{"a":1,"b":2}`, `{"a":3,"b":4}`, `{"a":5}`, `{"a":7}`, `{"a":7}`),
	} {
		if got.Sum == want.Sum {
			t.Errorf("%s: the hash is the same", name)
		}
	}
	if back, err := parseTotal(want.Rows, want.Hash()); err != nil || back != want {
		t.Errorf("%v, %v", back, err)
	}
}

// TestWriter_LinesOfSeveralParts: lines that come together go into as many parts as lines that come one by one.
func TestWriter_LinesOfSeveralParts(t *testing.T) {
	t.Parallel()
	var lines [][]byte
	for i := range 500 {
		lines = append(lines, fmt.Appendf(nil, `{"decision_id":"d%03d","ts":"2026-03-04T00:00:00.%06d+00:00","raw":{"text": "%s"}}`, i, i+1, strings.Repeat("x", i%7*40)))
	}
	for _, format := range []int{FormatLines, FormatParquet} {
		var first []File
		for _, together := range []int{1, 3, 70, len(lines)} {
			shelf := Dir(t.TempDir())
			m := &Manifest{Format: format, Table: "decision_logs", Day: "2026-03-04", Generation: 1, Source: Source{ID: "abcdef"}, Attempt: "01234567",
				Columns: []Column{{Name: "decision_id", Type: "text"}, {Name: "ts", Type: "timestamp with time zone"}, {Name: "raw", Type: "jsonb"}}, Files: []File{}}
			w := newWriter(t.Context(), shelf, m, subject.Spec{})
			w.rows, w.bytes = 90, 12_000
			for some := range slices.Chunk(lines, together) {
				if err := w.lines(some); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.end(); err != nil {
				t.Fatal(err)
			}
			m.Files, m.Rows, m.Hash = w.files, w.total.Rows, w.total.Hash()
			n := 0
			err := Check(t.Context(), shelf, m, func(line []byte) error {
				if !bytes.Equal(line, lines[n]) {
					return fmt.Errorf("line %d is another", n)
				}
				n++
				return nil
			})
			if err != nil || n != len(lines) || m.Rows != int64(len(lines)) {
				t.Errorf("%d together: %d lines, %v", together, n, err)
			}
			for i, f := range m.Files {
				if f.Rows > 90 || f.ContentBytes > 12_000 {
					t.Errorf("%d together: part %d has %d rows and %d bytes", together, i, f.Rows, f.ContentBytes)
				}
			}
			if first == nil {
				first = m.Files
			}
			if format == FormatParquet && fmt.Sprint(m.Files) != fmt.Sprint(first) || len(m.Files) != len(first) {
				t.Errorf("%d together: %v", together, m.Files)
			}
		}
	}
}

func written(t *testing.T, shelf Shelf, lines int) *Manifest {
	t.Helper()
	m := &Manifest{Format: FormatLines, Table: "decision_logs", Day: "2026-03-04", Generation: 1, Source: Source{ID: "abcdef"}, Attempt: "01234567"}
	w := newWriter(t.Context(), shelf, m, subject.Spec{})
	w.rows = 40
	for i := range lines {
		if err := w.line(fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, i, strings.Repeat("x", i%3*70_000))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	m.Files, m.Rows, m.Hash = w.files, w.total.Rows, w.total.Hash()
	if err := w.seal(m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCheck_FindsAnyDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "shelf")
	shelf := Dir(path)
	m := written(t, shelf, 100)
	if len(m.Files) != 3 {
		t.Fatalf("%d files", len(m.Files))
	}
	n := 0
	if err := Check(t.Context(), shelf, m, func([]byte) error { n++; return nil }); err != nil || n != 100 {
		t.Fatalf("%d lines, %v", n, err)
	}
	for _, f := range []string{"", m.Files[0].Name, m.Name() + manifestSuffix} {
		info, err := os.Stat(filepath.Join(path, f))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q: %v, %v", f, info.Mode(), err)
		}
	}
	file := filepath.Join(path, m.Files[1].Name)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	harm := map[string][]byte{"empty": {}, "cut": whole[:len(whole)-1], "longer": append(slices.Clone(whole), 0), "another file": nil}
	for _, at := range []int{4, len(whole) / 3, len(whole) - 6} {
		b := slices.Clone(whole)
		b[at] ^= 1
		harm[fmt.Sprintf("a bit at %d", at)] = b
	}
	if harm["another file"], err = os.ReadFile(filepath.Join(path, m.Files[0].Name)); err != nil {
		t.Fatal(err)
	}
	for name, b := range harm {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Check(t.Context(), shelf, m, nil); !isBroken(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhole_NeedsAManifest(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	shelf := Dir(path)
	m := written(t, shelf, 50)
	day, _ := ParseDay(m.Day)
	if all, err := Whole(t.Context(), shelf, m.Table, &day); err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if n, err := next(t.Context(), shelf, m.Table, day); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	manifest := filepath.Join(path, m.Name()+manifestSuffix)
	b, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"half": b[:len(b)/2], "another day": bytes.ReplaceAll(b, []byte("-03-04"), []byte("-03-05")), "a format to come": bytes.Replace(b, []byte(`"format": 1`), []byte(`"format": 2`), 1),
	} {
		if err := os.WriteFile(manifest, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := Whole(t.Context(), shelf, m.Table, &day); !isBroken(err) || len(all) != 0 {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	if all, err := Whole(t.Context(), shelf, m.Table, &day); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if n, err := next(t.Context(), shelf, m.Table, day); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestWhole_ManifestWithFewerFiles: a listing of archives reports it too, although it reads no rows.
func TestWhole_ManifestWithFewerFiles(t *testing.T) {
	t.Parallel()
	shelf := Dir(t.TempDir())
	m := written(t, shelf, 100)
	m.Files = m.Files[:len(m.Files)-1]
	if err := seal(t.Context(), shelf, m); err != nil {
		t.Fatal(err)
	}
	if all, err := Whole(t.Context(), shelf, m.Table, nil); !isBroken(err) || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestDir_FailedPutLeavesNothing(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	shelf := Dir(path)
	if err := shelf.Put(t.Context(), "n", io.MultiReader(strings.NewReader("half"), failing{})); err == nil {
		t.Error("half of it was taken")
	}
	w := newWriter(t.Context(), shelf, &Manifest{Format: FormatLines, Table: "m"}, subject.Spec{})
	if err := w.line([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	w.abandon()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := shelf.Put(ctx, "n", strings.NewReader("late")); err == nil {
		t.Error("it was stopped, and stored")
	}
	for _, name := range []string{"../n", "a/b", "", ".hidden"} {
		if err := shelf.Put(t.Context(), name, strings.NewReader("")); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestDay_SettledBeforeYesterday(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 0, 30, 0, 0, time.FixedZone("", 7200)) // the third in UTC
	for text, want := range map[string]bool{"2026-03-01": true, "2026-03-02": false, "2026-03-03": false, "2026-03-04": false} {
		if day, err := ParseDay(text); err != nil || day.Settled(now) != want {
			t.Errorf("%s: %t, %v", text, day.Settled(now), err)
		}
	}
}
