package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"docket/internal/record/subject"
)

// fewColumns are the columns of a small table.
var fewColumns = []Column{{Name: "decision_id", Type: "text"}, {Name: "ts", Type: "timestamp with time zone"}, {Name: "n", Type: "integer"}, {Name: "raw", Type: "jsonb"}}

func fewLines(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"decision_id":"d%04d","ts":"2026-03-04T00:00:00.%06d+00:00","n":%[1]d,"raw":{"input": "%[3]s", "decision_id": "d%04[1]d"}}`, i, i+1, strings.Repeat("x", i%3*70_000)))
	}
	return lines
}

// parquet writes an archive in format 2, of three files.
func parquet(t *testing.T, shelf Shelf, lines []string) *Manifest {
	t.Helper()
	m := &Manifest{Format: FormatParquet, Table: "decision_logs", Day: "2026-03-04", Generation: 1, Source: Source{ID: "abcdef"}, Attempt: "01234567", Columns: fewColumns}
	w := newWriter(t.Context(), shelf, m, subject.Spec{})
	w.rows = 40
	for _, line := range lines {
		if err := w.line([]byte(line)); err != nil {
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

// TestProveOwn: an archive that was just written is proved by the content of each file, in both formats.
func TestProveOwn(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(Shelf) *Manifest{
		"parquet": func(shelf Shelf) *Manifest { return parquet(t, shelf, fewLines(50)) },
		"lines":   func(shelf Shelf) *Manifest { return written(t, shelf, 50) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shelf := Dir(t.TempDir())
			m := write(shelf)
			if err := proveOwn(t.Context(), shelf, m); err != nil {
				t.Fatal(err)
			}
			for i := range m.Files {
				changed := *m
				changed.Files = slices.Clone(m.Files)
				changed.Files[i].ContentSHA256 = strings.Repeat("0", 64)
				if err := proveOwn(t.Context(), shelf, &changed); !isBroken(err) {
					t.Errorf("file %d with other content: %v", i, err)
				}
				changed.Files[i] = m.Files[i]
				changed.Files[i].Rows--
				if err := proveOwn(t.Context(), shelf, &changed); !isBroken(err) {
					t.Errorf("file %d with a row more: %v", i, err)
				}
			}
		})
	}
}

// An archive without its manifest keeps its generation, by the files in the day's folder.
func TestParquet_FilesHaveAGeneration(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	shelf := Dir(path)
	m := parquet(t, shelf, fewLines(50))
	if err := os.Remove(filepath.Join(path, m.Name()+manifestSuffix)); err != nil {
		t.Fatal(err)
	}
	if n, err := next(t.Context(), shelf, m.Table, dayNamed(t, m.Day)); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestParquet_FailedRowLeavesNothing(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	shelf := Dir(path)
	m := &Manifest{Format: FormatParquet, Table: "decision_logs", Day: "2026-03-04", Generation: 1, Source: Source{ID: "abcdef"}, Attempt: "01234567", Columns: fewColumns}
	for _, line := range []string{`{"n":1}`, `{"decision_id":"d","ts":"2026-03-04T00:00:00+00:00","x":1}`, `{"ts":"2026-03-04T00:00:00+00:00","decision_id":"d"}`, `{"decision_id":"d"`} {
		w := newWriter(t.Context(), shelf, m, subject.Spec{})
		err := w.line([]byte(fewLines(1)[0]))
		if err == nil {
			err = w.line([]byte(line))
		}
		if err == nil {
			t.Errorf("%s was taken", line)
		}
		w.abandon()
	}
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !e.IsDir() {
			t.Errorf("%s was left", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestProve_WrongFilterIsBroken: an archive whose rows are right and whose filter is wrong is not one to drop a day for.
func TestProve_WrongFilterIsBroken(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	shelf := Dir(path)
	m := parquet(t, shelf, fewLines(30))
	if err := Prove(t.Context(), shelf, m); err != nil {
		t.Fatal(err)
	}
	m = withoutFilters(t, path, m)
	if err := Check(t.Context(), shelf, m, nil); err != nil {
		t.Fatal(err)
	}
	if err := Prove(t.Context(), shelf, m); !isBroken(err) || !strings.Contains(err.Error(), m.Files[0].Name) || !strings.Contains(err.Error(), "filter") {
		t.Errorf("%v", err)
	}
}

// withoutFilters empties the filters of the first file, and corrects the manifest.
func withoutFilters(t *testing.T, path string, m *Manifest) *Manifest {
	t.Helper()
	name := filepath.Join(path, m.Files[0].Name)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pq.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Metadata().RowGroups[0].Columns {
		if n := int64(c.MetaData.BloomFilterLength); n > 0 {
			clear(b[c.MetaData.BloomFilterOffset+n-n/32*32 : c.MetaData.BloomFilterOffset+n])
		}
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	other := *m
	other.Files = slices.Clone(m.Files)
	sum := sha256.Sum256(b)
	other.Files[0].SHA256, other.Files[0].Sums = hex.EncodeToString(sum[:]), nil
	return &other
}
