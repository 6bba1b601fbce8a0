package cold_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
)

// TestFind_ParallelWithinBounds: many days are read at once, but no more than set.
func TestFind_ParallelWithinBounds(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most := 0, 0
	shelf := archive.Dir(t.TempDir())
	for day := range 12 {
		_, err := archivetest.Write(t.Context(), shelf, 0, made(day, 24*day))
		check(t, err)
	}
	d := days(shelf, func(c *cold.Config) {
		c.Parallel = 3
		formats := cold.Formats()
		c.Format = func(shelf archive.Shelf, m *archive.Manifest, most64 int64) cold.Archive {
			return watched{formats(shelf, m, most64), func(by int) {
				mu.Lock()
				defer mu.Unlock()
				now += by
				most = max(most, now)
			}}
		}
	})
	if found := d.Find(t.Context(), []string{made(5, 24*5).ID}); len(found.Decisions) != 1 || found.Days != 12 || most > 3 {
		t.Errorf("%d found in %d days, %d at once", len(found.Decisions), found.Days, most)
	}
}

// watched tells when it is read.
type watched struct {
	cold.Archive
	busy func(by int)
}

func (w watched) Find(ctx context.Context, of cold.Sought) ([]reader.Decision, bool, error) {
	w.busy(1)
	defer w.busy(-1)
	return w.Archive.Find(ctx, of)
}

// TestFind_DamagedParquetIsNamed: other days are answered.
func TestFind_DamagedParquetIsNamed(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, file string){
		"missing": func(t *testing.T, file string) { check(t, os.Remove(file)) },
		"cut":     func(t *testing.T, file string) { check(t, os.Truncate(file, 200)) },
		"no end": func(t *testing.T, file string) {
			b, err := os.ReadFile(file)
			check(t, err)
			clear(b[len(b)-64:])
			check(t, os.WriteFile(file, b, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for day := range 3 {
				_, err := archivetest.Write(t.Context(), archive.Dir(dir), 0, made(day, 24*day))
				check(t, err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "*", "day=2026-08-02", "*.parquet"))
			if check(t, err); len(files) != 1 {
				t.Fatal(files)
			}
			damage(t, files[0])
			found := days(archive.Dir(dir)).Find(t.Context(), []string{made(2, 48).ID})
			if len(found.Decisions) != 1 || found.Days != 2 || len(found.Gaps) != 1 || !strings.Contains(found.Gaps[0].Name, "2026-08-02") {
				t.Errorf("%+v", found)
			}
		})
	}
}
