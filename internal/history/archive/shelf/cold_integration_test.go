//go:build integration

package shelf

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/cold/cache"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
	"docket/internal/testkit/testenv"
)

var firstDay = time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)

// far is archived days in a bucket, and what the server has sent of them.
type far struct {
	all  []reader.Decision
	size int64 // of all files
	sent func() int64
	open func() (archive.Shelf, error)
}

// archived puts days of decisions into a bucket; rows < 0: as gzip JSON lines.
func archived(t *testing.T, days, each int, rows int64) *far {
	t.Helper()
	server := testenv.S3(t, "days")
	through, received := counted(t, server.URL)
	write := opened(t, "s3://days/archive", settings(t, server))
	f := &far{open: func() (archive.Shelf, error) {
		return Open("s3://days/archive", settings(t, server, "DOCKET_ARCHIVE_S3_ENDPOINT="+through))
	}}
	f.sent = func() int64 { return received.Swap(0) }
	for day := range days {
		var some []reader.Decision
		for i := range each {
			d := readertest.Decision(day*each+i, firstDay.AddDate(0, 0, day).Add(time.Duration(i)*time.Second))
			d.Time = d.Time.Truncate(time.Microsecond)
			some = append(some, d)
		}
		m, err := archivetest.Write(t.Context(), write, rows, some...)
		if err != nil {
			t.Fatal(err)
		}
		f.all, f.size = append(f.all, some...), f.size+m.Bytes()
	}
	return f
}

func (f *far) days(t *testing.T, kept *cache.Cache) *cold.Days {
	t.Helper()
	d := cold.New(cold.Config{
		Where: "s3://days/archive", Table: archivetest.Table, LineBytes: 1 << 20, Patience: time.Minute, Shelf: f.open, Cache: kept,
		Now: func() time.Time { return firstDay.AddDate(1, 0, 0) },
	})
	t.Cleanup(d.Close)
	return d
}

// look finds one decision by its id, and returns the bytes that came for it.
func (f *far) look(t *testing.T, d *cold.Days, n int) int64 {
	t.Helper()
	f.sent()
	found := d.Find(t.Context(), []string{f.all[n].ID})
	if len(found.Gaps) > 0 || len(found.Decisions) != 1 || !found.Decisions[0].Time.Equal(f.all[n].Time) || string(found.Decisions[0].Raw) != string(f.all[n].Raw) {
		t.Fatalf("%d decisions, %v", len(found.Decisions), found.Gaps)
	}
	return f.sent()
}

// page searches for decisions of a minute, as `docket logs` does.
func (f *far) page(t *testing.T, d *cold.Days) int64 {
	t.Helper()
	f.sent()
	store := cold.Store{Table: &readertest.Store{}, Days: d}
	since := firstDay.Add(90 * time.Minute)
	found, err := store.Search(t.Context(), reader.Filter{Since: since, Until: since.Add(time.Minute)}, reader.Page{Limit: 50})
	if err != nil || len(found.NotLooked) > 0 || len(found.Decisions) != 50 || found.Decisions[0].Archived == nil {
		t.Fatalf("%d decisions, %v, %v", len(found.Decisions), found.NotLooked, err)
	}
	return f.sent()
}

// TestCold_RangedReadsFromS3: an id and a page of archived days in a bucket come by a small part of their bytes. The
// second question reads no manifest and no description again.
func TestCold_RangedReadsFromS3(t *testing.T) {
	t.Parallel()
	f := archived(t, 3, 20_000, 10_000)
	d := f.days(t, nil)
	first := f.look(t, d, 20_123)
	second := f.look(t, d, 20_124)
	t.Logf("%d bytes of files; the first look-up read %d, the second %d", f.size, first, second)
	if first > f.size/2 || second > f.size/6 {
		t.Errorf("%d and %d bytes came of %d", first, second, f.size)
	}
	f.sent()
	if found := d.Find(t.Context(), []string{"nobody"}); len(found.Decisions)+len(found.Gaps) > 0 || found.Days != 3 {
		t.Errorf("%d decisions in %d days, %v", len(found.Decisions), found.Days, found.Gaps)
	}
	if n := f.sent(); n > 16<<10 {
		t.Errorf("%d bytes came for an id that is not there", n)
	}
	if n := f.page(t, d); n > f.size/3 {
		t.Errorf("%d bytes of %d came for a page", n, f.size)
	}
}

// TestCold_CacheSparesS3: a file that is asked for often is read from the bucket once more, and then not at all.
func TestCold_CacheSparesS3(t *testing.T) {
	t.Parallel()
	f := archived(t, 2, 5000, 0)
	kept, err := cache.Open(cache.Config{Dir: t.TempDir(), Bytes: f.size})
	if err != nil {
		t.Fatal(err)
	}
	d := f.days(t, kept)
	ctx, cancel := context.WithCancel(t.Context())
	var warm sync.WaitGroup
	warm.Go(func() { _ = d.Warm(ctx) }) // it ends with ctx, and returns nil
	defer func() { cancel(); warm.Wait() }()
	const listing = 16 << 10
	deadline := time.Now().Add(time.Minute)
	for n := 0; ; n++ {
		if read := f.look(t, d, 100+n%1000); n > 3 && read < listing { // the manifests are known, so only names come
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the file is still read from the bucket")
		}
	}
	if read := f.look(t, d, 4_999); read > listing {
		t.Errorf("%d bytes came for a file of the cache", read)
	}
	again := f.days(t, kept) // another process
	if read := f.look(t, again, 300); read > f.size/2 {
		t.Errorf("another process read %d bytes of %d", read, f.size)
	}
}

// TestCold_LinesAreReadOnceFromS3: a day of gzip JSON lines is read whole by its first question, and by no other.
func TestCold_LinesAreReadOnceFromS3(t *testing.T) {
	t.Parallel()
	f := archived(t, 1, 5000, -10_000)
	for name, bytes := range map[string]int64{"with a cache": 2 * f.size, "with a cache that is too small": f.size / 2} {
		kept, err := cache.Open(cache.Config{Dir: t.TempDir(), Bytes: bytes})
		if err != nil {
			t.Fatal(err)
		}
		first := f.look(t, f.days(t, kept), 17)
		second := f.look(t, f.days(t, kept), 18)
		if first < f.size || bytes > f.size && second > f.size/4 || bytes < f.size && second < f.size {
			t.Errorf("%s: %d bytes, then %d, of %d", name, first, second, f.size)
		}
	}
}

// TestCold_HostileFileInS3: a file that says it is larger than it is costs little, and is named.
func TestCold_HostileFileInS3(t *testing.T) {
	t.Parallel()
	server := testenv.S3(t, "days")
	shelf := opened(t, "s3://days/archive", settings(t, server))
	one := readertest.Decision(1, firstDay)
	m, err := archivetest.Write(t.Context(), shelf, 0, one)
	if err != nil {
		t.Fatal(err)
	}
	if err := shelf.Put(t.Context(), m.Files[0].Name, strings.NewReader("PAR1\xff\xff\xff\xffPAR1")); err != nil {
		t.Fatal(err)
	}
	d := cold.New(cold.Config{
		Where: "s3://days/archive", Table: archivetest.Table, LineBytes: 1 << 20, Shelf: func() (archive.Shelf, error) { return shelf, nil },
		Now: func() time.Time { return firstDay.AddDate(1, 0, 0) },
	})
	found := d.Find(t.Context(), []string{one.ID})
	if len(found.Decisions) != 0 || len(found.Gaps) != 1 || !strings.Contains(found.Gaps[0].Why, m.Files[0].Name) {
		t.Errorf("%d decisions, %v", len(found.Decisions), found.Gaps)
	}
}
