//go:build !race

// The race detector makes an archive of this size take half a minute, and one goroutine does all that is measured here.

package cold_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/record/subject"
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

// A search for a subject reads only files that may have it.
func TestSearch_SubjectReadsFewBytes(t *testing.T) {
	t.Parallel()
	shelf := &counted{Shelf: archive.Dir(t.TempDir())}
	var all []reader.Decision
	for i := range 8000 {
		d := readertest.Decision(i, first.Add(time.Duration(i)*time.Millisecond))
		d.Raw = bytes.Replace(d.Raw, []byte(`"input":{`), fmt.Appendf(nil, `"input":{"who":"u%d",`, i/5), 1)
		all = append(all, d)
	}
	m, err := archivetest.WriteWith(t.Context(), shelf, 1000, func(c *archive.Carrier) { c.Subject = subject.Spec{Kind: subject.Input, Pointer: "/who"} }, all...)
	check(t, err)
	store := cold.Store{Table: &readertest.Store{}, Days: days(shelf)}
	ask := func(who string, want int) int64 {
		t.Helper()
		before := shelf.bytes.Load()
		f := reader.Filter{Matches: []reader.Match{{In: "input", Pointer: "/who", Value: []byte(who)}}}
		if found := search(t, store, f, reader.Page{Limit: 50}); len(found.Decisions) != want || len(found.NotLooked) > 0 {
			t.Errorf("%s: %d found, %v", who, len(found.Decisions), found.NotLooked)
		}
		return shelf.bytes.Load() - before
	}
	ask(`"u1"`, 5) // reads the ends of the files
	if read := ask(`"u1000"`, 5); read > m.Bytes()/4 {
		t.Errorf("%d bytes of %d read for a subject of one file", read, m.Bytes())
	}
	if read := ask(`"v"`, 0); read > 64<<10 {
		t.Errorf("%d bytes of %d read for a subject that is not there", read, m.Bytes())
	}
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

// A look-up by id reads one block of a long filter, and a second one of the same id nothing of it. Other ids find blocks that
// were read before.
func TestFind_LongFilterIsReadOnce(t *testing.T) {
	t.Parallel()
	shelf := &counted{Shelf: archive.Dir(t.TempDir())}
	all, _ := manyRows(t, shelf, 30_000, 30_000)
	d := days(shelf)
	defer d.Close()
	look := func(id string, want int) (bytes, requests int64) {
		t.Helper()
		bytes, requests = shelf.bytes.Load(), shelf.requests.Load()
		if found := d.Find(t.Context(), []string{id}); len(found.Decisions) != want || len(found.Gaps) > 0 {
			t.Errorf("%s: %d found, %v", id, len(found.Decisions), found.Gaps)
		}
		return shelf.bytes.Load() - bytes, shelf.requests.Load() - requests
	}
	look(all[0].ID, 1) // reads the end of the file
	var requested int64
	mistaken := 0
	for n := range 200 {
		bytes, requests := look(fmt.Sprintf("nobody-%d", n), 0)
		if bytes > 2*archive.BlockBytes { // the filter does not rule it out, so the ids are read
			mistaken++
			continue
		}
		if requested += requests; requests > 1 {
			t.Errorf("first look-up: %d bytes in %d requests", bytes, requests)
		}
		if bytes, requests := look(fmt.Sprintf("nobody-%d", n), 0); requests > 0 || bytes > 0 {
			t.Errorf("second look-up: %d bytes in %d requests", bytes, requests)
		}
	}
	if requested < 2 || requested > 5 || mistaken > 10 {
		t.Errorf("the filter was read in %d requests, and was mistaken %d times", requested, mistaken)
	}
	look(all[29_999].ID, 1)
}

// Blocks of a filter without checksums are not kept, as a damaged one would hide ids for as long as the process runs.
func TestFind_FilterWithoutSumsIsNotKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shelf := &counted{Shelf: archive.Dir(dir)}
	all, _ := manyRows(t, shelf, 30_000, 30_000)
	manifests, err := archive.Whole(t.Context(), shelf, archivetest.Table, nil)
	if err != nil || len(manifests) != 1 || len(manifests[0].Files) != 1 || manifests[0].Files[0].Sums == nil {
		t.Fatalf("%d archives, %v", len(manifests), err)
	}
	manifests[0].Files[0].Sums = nil // as earlier releases wrote it
	text, err := json.Marshal(manifests[0])
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, manifests[0].Name()+".manifest.json"), text, 0o600))
	d := days(shelf)
	defer d.Close()
	look := func(id string, want int) int64 {
		t.Helper()
		before := shelf.bytes.Load()
		if found := d.Find(t.Context(), []string{id}); len(found.Decisions) != want || len(found.Gaps) > 0 {
			t.Errorf("%s: %d found, %v", id, len(found.Decisions), found.Gaps)
		}
		return shelf.bytes.Load() - before
	}
	look(all[0].ID, 1) // reads the end of the file
	read := 0
	for n := range 50 {
		for range 2 {
			if look(fmt.Sprintf("nobody-%d", n), 0) == 32 {
				read++
			}
		}
	}
	if read < 90 { // the filter is mistaken about some
		t.Errorf("%d of 100 look-ups read 32 bytes of the filter", read)
	}
}
