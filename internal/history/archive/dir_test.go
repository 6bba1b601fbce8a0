package archive

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDir_FoldersOfDays(t *testing.T) {
	t.Parallel()
	shelf := Dir(t.TempDir())
	day := Day{time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)}
	folder := Folder("decision_logs", day)
	if folder != "decision_logs/day=2026-03-04/" {
		t.Fatal(folder)
	}
	for _, name := range []string{folder + "decision_logs-1", folder + "decision_logs-2", "decision_logs-3"} {
		if err := shelf.Put(t.Context(), name, bytes.NewReader([]byte(name))); err != nil {
			t.Fatal(err)
		}
	}
	for prefix, want := range map[string][]string{
		"": {"decision_logs-3"}, "decision_logs": {"decision_logs-3"}, folder: {folder + "decision_logs-1", folder + "decision_logs-2"}, folder + "decision_logs-2": {folder + "decision_logs-2"},
		Folder("decision_logs", day.Next()): nil,
	} {
		if names, err := shelf.List(t.Context(), prefix); err != nil || !slices.Equal(names, want) {
			t.Errorf("%q: %v, %v", prefix, names, err)
		}
	}
	if err := shelf.Remove(t.Context(), folder+"decision_logs-1"); err != nil {
		t.Error(err)
	}
	if _, err := shelf.Get(t.Context(), folder+"decision_logs-1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"decision_logs/x", "day=2026-03-04/x", "../day=2026-03-04/x", "decision_logs/day=2026-03-04/../x", "decision_logs/day=2026-03-04/.x", folder, "/" + folder + "x"} {
		if err := shelf.Put(t.Context(), name, bytes.NewReader(nil)); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestDir_RangeIsAPart(t *testing.T) {
	t.Parallel()
	shelf := Dir(t.TempDir())
	whole := []byte("0123456789")
	if err := shelf.Put(t.Context(), "n", bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]int64{{0, 10}, {3, 4}, {9, 1}, {5, 0}} {
		r, err := shelf.Range(t.Context(), "n", c[0], c[1])
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, whole[c[0]:c[0]+c[1]]) {
			t.Errorf("%v: %s, %v", c, got, err)
		}
	}
	if _, err := shelf.Range(t.Context(), "m", 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	p := make([]byte, 4)
	if err := At(shelf, File{Name: "n"}).ReadAt(t.Context(), p, 6); err != nil || string(p) != "6789" {
		t.Errorf("%s, %v", p, err)
	}
	if err := At(shelf, File{Name: "n"}).ReadAt(t.Context(), p, 7); err == nil {
		t.Error("a part behind the end was read")
	}
}

// The folders of all days of a table are listed at once.
func TestDir_ListsFoldersOfDays(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	shelf := Dir(path)
	want := []string{"decision_logs/day=2026-08-01/a.0001.parquet", "decision_logs/day=2026-08-01/b.0001.parquet", "decision_logs/day=2026-08-02/a.0001.parquet"}
	for _, name := range append([]string{"decision_logs-a", "dead_letters/day=2026-08-01/a.0001.parquet"}, want...) {
		if err := shelf.Put(t.Context(), name, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"day=2026-08-03", "day=elsewhere", "lost+found"} {
		if err := os.Mkdir(filepath.Join(path, "decision_logs", other), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := shelf.List(t.Context(), Folders("decision_logs")); err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v", names, err)
	}
	if names, err := shelf.List(t.Context(), Folders("nothing")); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
}
