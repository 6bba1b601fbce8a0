//go:build !race

// The race detector makes an archive of this size take half a minute, and one goroutine does all that is measured here.

package cold_test

import (
	"context"
	"fmt"
	"io"
	"strings"
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

func TestQuestions_ReadFewBytes(t *testing.T) {
	t.Parallel()
	shelf := &counted{Shelf: archive.Dir(t.TempDir())}
	all, size := manyRows(t, shelf, 40_000, 10_000)
	findsWithFewBytes(t, shelf, all, size)
	searchesWithFewBytes(t, shelf, size)
}

// findsWithFewBytes: an id is found by the filters and one column, never by reading a whole file.
func findsWithFewBytes(t *testing.T, shelf *counted, all []reader.Decision, size int64) {
	t.Helper()
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

// searchesWithFewBytes: a page of one minute of a day does not read the rest of it.
func searchesWithFewBytes(t *testing.T, shelf *counted, size int64) {
	t.Helper()
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
