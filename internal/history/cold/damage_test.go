//go:build !race

// The race detector makes this take minutes, and one goroutine does nearly all of it.

package cold_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

// harmed is a shelf on which one file has other content.
type harmed struct {
	archive.Shelf
	name string
	data []byte
}

func (h harmed) Range(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if name != h.name {
		return h.Shelf.Range(ctx, name, offset, length)
	}
	return io.NopCloser(io.NewSectionReader(bytes.NewReader(h.data), offset, length)), nil
}

// A bit that turned in a Parquet file hides nothing: a question finds what is there, or says that the day could not be
// read. Filters, bounds and places of pages have no checksum in the file.
func TestParquet_DamageIsNeverSilent(t *testing.T) {
	t.Parallel()
	shelf := archive.Dir(t.TempDir())
	var all []reader.Decision
	var ids []string
	for i := range 60 {
		d := readertest.Decision(i, first.Add(time.Duration(i)*time.Minute))
		noise := make([]byte, 1500) // so that filters, pages and bounds are in blocks of their own
		for i := range noise {
			noise[i] = byte('a' + rand.IntN(26))
		}
		d.Raw = bytes.Replace(d.Raw, []byte(`"input":{`), fmt.Appendf(nil, `"input":{"noise":%q,`, noise), 1)
		all, ids = append(all, d), append(ids, d.ID)
	}
	m, err := archivetest.Write(t.Context(), shelf, 60, all...)
	check(t, err)
	file := m.Files[0]
	whole := make([]byte, file.Bytes)
	check(t, archive.At(shelf, archive.File{Name: file.Name}).ReadAt(t.Context(), whole, 0))
	filter := reader.Filter{Paths: []string{*all[7].Path}, Since: all[3].Time, Until: all[50].Time}
	want := 0
	for _, d := range all {
		if filter.Fits(d) {
			want++
		}
	}
	noticed := 0
	ask := func(place archive.Shelf, at int) {
		asked := days(place, func(c *cold.Config) { c.Format = cold.Formats() })
		defer asked.Close()
		found := asked.Find(t.Context(), ids)
		if len(found.Decisions) != len(all) && len(found.Gaps) == 0 {
			t.Errorf("byte %d of %d: %d decisions of %d are found, and no gap is told", at, len(whole), len(found.Decisions), len(all))
		}
		page := search(t, cold.Store{Table: &readertest.Store{}, Days: asked}, filter, reader.Page{Limit: 100})
		if len(page.Decisions) != want && len(page.NotLooked) == 0 {
			t.Errorf("byte %d of %d: a search has %d decisions of %d, and no gap is told", at, len(whole), len(page.Decisions), want)
		}
		if len(found.Gaps)+len(page.NotLooked) > 0 {
			noticed++
		}
	}
	if ask(shelf, 0); noticed > 0 || want == 0 || want == len(all) {
		t.Fatalf("%d gaps of an intact archive, %d decisions wanted", noticed, want)
	}
	for n := range 300 {
		at := len(whole) - 1 - rand.IntN(8<<10) // filters, places, bounds and the description
		if n%5 == 0 {
			at = rand.IntN(len(whole))
		}
		data := bytes.Clone(whole)
		data[at] ^= 1 << rand.IntN(8)
		ask(harmed{shelf, file.Name, data}, at)
	}
	if noticed < 100 {
		t.Errorf("%d damages were noticed", noticed)
	}
}
