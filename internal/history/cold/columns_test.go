package cold_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

// counted is a shelf that counts the bytes of data files that are read.
type counted struct {
	archive.Shelf
	bytes, requests atomic.Int64
}

func (c *counted) Range(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	c.bytes.Add(length)
	c.requests.Add(1)
	return c.Shelf.Range(ctx, name, offset, length)
}

func (c *counted) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if !strings.HasSuffix(name, ".manifest.json") {
		return nil, fmt.Errorf("%s is read whole", name)
	}
	return c.Shelf.Get(ctx, name)
}

// manyRows archives rows of a day, and returns the bytes of its files.
func manyRows(t *testing.T, shelf archive.Shelf, n int, partRows int64) (all []reader.Decision, size int64) {
	t.Helper()
	for i := range n {
		d := readertest.Decision(i, first.Add(time.Duration(i)*time.Millisecond))
		all = append(all, d)
	}
	m, err := archivetest.Write(t.Context(), shelf, partRows, all...)
	check(t, err)
	return all, m.Bytes()
}

// TestFind_ReadsFewBytes: an id is found by the filters and one column, never by reading a whole file.
func TestFind_ReadsFewBytes(t *testing.T) {
	t.Parallel()
	shelf := &counted{Shelf: archive.Dir(t.TempDir())}
	all, size := manyRows(t, shelf, 40_000, 10_000)
	d := days(shelf)
	look := func(id string) (found cold.Found, bytes int64) {
		before := shelf.bytes.Load()
		found = d.Find(t.Context(), []string{id})
		if len(found.Gaps) > 0 {
			t.Fatal(found.Gaps)
		}
		return found, shelf.bytes.Load() - before
	}
	if found, bytes := look(all[12_345].ID); len(found.Decisions) != 1 || bytes > size/3 {
		t.Errorf("%d found, %d bytes of %d read", len(found.Decisions), bytes, size)
	}
	// The ends of the files are in memory now.
	if found, bytes := look("00000000-0000-4000-8000-000000000000"); len(found.Decisions) != 0 || bytes > 16<<10 {
		t.Errorf("%d found, %d bytes of %d read for an id that is not there", len(found.Decisions), bytes, size)
	}
	if found, bytes := look(all[30_001].ID); len(found.Decisions) != 1 || bytes > size/4 {
		t.Errorf("%d found, %d bytes of %d read", len(found.Decisions), bytes, size)
	}
}

// TestSearch_ReadsFewBytes: a page of one minute of a day does not read the rest of it.
func TestSearch_ReadsFewBytes(t *testing.T) {
	t.Parallel()
	shelf := &counted{Shelf: archive.Dir(t.TempDir())}
	_, size := manyRows(t, shelf, 40_000, 10_000)
	store := cold.Store{Table: &readertest.Store{}, Days: days(shelf)}
	for _, oldest := range []bool{false, true} {
		before := shelf.bytes.Load()
		found := search(t, store, reader.Filter{Since: first.Add(15 * time.Second), Until: first.Add(16 * time.Second)}, reader.Page{Limit: 50, Oldest: oldest})
		if read := shelf.bytes.Load() - before; len(found.Decisions) != 50 || len(found.NotLooked) > 0 || read > size/2 {
			t.Errorf("oldest %v: %d found, %v, %d bytes of %d read", oldest, len(found.Decisions), found.NotLooked, read, size)
		}
	}
	before := shelf.bytes.Load()
	if found := search(t, store, reader.Filter{Paths: []string{"no/such/path"}}, reader.Page{Limit: 50}); len(found.Decisions) > 0 || shelf.bytes.Load()-before > size/4 {
		t.Errorf("%d found, %d bytes read for a path that is not there", len(found.Decisions), shelf.bytes.Load()-before)
	}
}

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

func (w watched) Find(ctx context.Context, ids []string) ([]reader.Decision, error) {
	w.busy(1)
	defer w.busy(-1)
	return w.Archive.Find(ctx, ids)
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
