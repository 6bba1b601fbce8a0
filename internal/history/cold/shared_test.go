package cold_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/readertest"
)

// overseen is a shelf that counts listings, manifests and the files of which something is read.
type overseen struct {
	archive.Shelf
	lists, manifests atomic.Int64
	mu               sync.Mutex
	files            map[string]int
	hold             func(ctx context.Context, name string) error // before a file is read; nil: nothing
	holdList         chan struct{}                                // before a listing; nil: nothing
}

func (w *overseen) List(ctx context.Context, prefix string) ([]string, error) {
	w.lists.Add(1)
	if w.holdList != nil {
		<-w.holdList
	}
	return w.Shelf.List(ctx, prefix)
}

func (w *overseen) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if strings.HasSuffix(name, ".manifest.json") {
		w.manifests.Add(1)
	} else if err := w.read(ctx, name); err != nil {
		return nil, err
	}
	return w.Shelf.Get(ctx, name)
}

func (w *overseen) Range(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := w.read(ctx, name); err != nil {
		return nil, err
	}
	return w.Shelf.Range(ctx, name, offset, length)
}

func (w *overseen) read(ctx context.Context, name string) error {
	w.mu.Lock()
	if w.files == nil {
		w.files = map[string]int{}
	}
	w.files[name]++
	w.mu.Unlock()
	if w.hold != nil {
		return w.hold(ctx, name)
	}
	return nil
}

// reset forgets what was counted, and returns it.
func (w *overseen) reset() (lists, manifests int64, files map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files, w.files = w.files, nil
	return w.lists.Swap(0), w.manifests.Swap(0), files
}

// year archives days, each with two decisions in a file.
func year(t *testing.T, shelf archive.Shelf, n int) (all []reader.Decision) {
	t.Helper()
	for i := range n {
		two := []reader.Decision{readertest.Decision(2*i, first.AddDate(0, 0, -i)), readertest.Decision(2*i+1, first.AddDate(0, 0, -i))}
		_, err := archivetest.Write(t.Context(), shelf, 0, two...)
		check(t, err)
		all = append(all, two...)
	}
	return all
}

// TestFind_SecondReadsNoManifest: in a year of archived days the second look-up lists once, and reads only the file that
// has the id.
func TestFind_SecondReadsNoManifest(t *testing.T) {
	t.Parallel()
	const n = 100
	shelf := &overseen{Shelf: archive.Dir(t.TempDir())}
	all := year(t, shelf, n)
	shelf.reset()
	d := days(shelf)
	if found := d.Find(t.Context(), []string{"nobody"}); len(found.Gaps) > 0 || found.Days != n {
		t.Fatalf("%d days, %v", found.Days, found.Gaps)
	}
	if lists, manifests, files := shelf.reset(); lists != 1 || manifests != n || len(files) != n {
		t.Errorf("the first: %d listings, %d manifests, %d files", lists, manifests, len(files))
	}
	found := d.Find(t.Context(), []string{all[123].ID})
	if len(found.Decisions) != 1 || found.Days != n {
		t.Fatalf("%d decisions of %d days, %v", len(found.Decisions), found.Days, found.Gaps)
	}
	lists, manifests, files := shelf.reset()
	if lists != 1 || manifests != 0 || len(files) != 1 || files[found.Decisions[0].Archived.File] == 0 {
		t.Errorf("the second: %d listings, %d manifests, %v", lists, manifests, files)
	}
	search(t, cold.Store{Table: &readertest.Store{}, Days: d}, reader.Filter{Since: first.AddDate(0, 0, -5)}, reader.Page{Limit: 5})
	if _, manifests, _ := shelf.reset(); manifests != 0 {
		t.Errorf("a search read %d manifests", manifests)
	}
}

// TestFind_ListingTellsWhichDays: a day that was removed or archived meanwhile is noticed, and so is one that came back.
func TestFind_ListingTellsWhichDays(t *testing.T) {
	t.Parallel()
	shelf := &overseen{Shelf: archive.Dir(t.TempDir())}
	all := year(t, shelf, 3)
	d := days(shelf)
	look := func(id string, days, decisions int) {
		t.Helper()
		if found := d.Find(t.Context(), []string{id}); len(found.Gaps) > 0 || found.Days != days || len(found.Decisions) != decisions {
			t.Fatalf("%d decisions of %d days, %v, want %d of %d", len(found.Decisions), found.Days, found.Gaps, decisions, days)
		}
	}
	look(all[2].ID, 3, 1)
	day := archive.DayOf(all[2].Time)
	names, err := shelf.Shelf.List(t.Context(), archivetest.Table+"-"+day.String())
	check(t, err)
	r, err := shelf.Shelf.Get(t.Context(), names[0])
	check(t, err)
	text, err := io.ReadAll(r)
	check(t, errors.Join(err, r.Close()))
	check(t, shelf.Remove(t.Context(), names[0]))
	look(all[2].ID, 2, 0)
	check(t, shelf.Put(t.Context(), names[0], strings.NewReader(string(text))))
	look(all[2].ID, 3, 1)
	late := all[2]
	late.Path = nil
	_, err = archivetest.Write(t.Context(), shelf.Shelf, 0, late)
	check(t, err)
	if found := d.Find(t.Context(), []string{late.ID}); len(found.Decisions) != 1 || found.Decisions[0].Path != nil {
		t.Errorf("a later archive does not count: %v", found.Gaps)
	}
}

// TestFind_ManyAtOnceReadOnce: questions for one id share the reading of each file, and each has its own listing or one
// that began after it.
func TestFind_ManyAtOnceReadOnce(t *testing.T) {
	t.Parallel()
	dir := archive.Dir(t.TempDir())
	all := year(t, dir, 2)
	alone := &overseen{Shelf: dir}
	if found := days(alone).Find(t.Context(), []string{all[0].ID}); len(found.Decisions) != 1 {
		t.Fatal(found.Gaps)
	}
	_, _, want := alone.reset()
	let, lists := make(chan struct{}), make(chan struct{})
	shelf := &overseen{Shelf: dir, hold: func(context.Context, string) error { <-let; return nil }, holdList: lists}
	d := days(shelf)
	const n = 100
	var asked sync.WaitGroup
	for range n {
		asked.Go(func() {
			if found := d.Find(t.Context(), []string{all[0].ID}); len(found.Decisions) != 1 || len(found.Gaps) > 0 {
				t.Errorf("%d decisions, %v", len(found.Decisions), found.Gaps)
			}
		})
	}
	kafkatest.Eventually(t, "one lists, and the others wait for the next listing", func() bool { return d.Listing() == n })
	close(lists)
	kafkatest.Eventually(t, "all wait for the same two archives", func() bool { return d.Finding() == 2*n })
	close(let)
	asked.Wait()
	listings, manifests, files := shelf.reset()
	if listings > 2 || manifests != 2 || fmt.Sprint(files) != fmt.Sprint(want) {
		t.Errorf("%d listings, %d manifests, %v, one question reads %v", listings, manifests, files, want)
	}
}

// TestFind_SharedOutlivesItsFirst: the question that began a reading may leave. The others have their answer. Once all
// have left, the reading ends.
func TestFind_SharedOutlivesItsFirst(t *testing.T) {
	t.Parallel()
	dir := archive.Dir(t.TempDir())
	all := year(t, dir, 1)
	release := make(chan struct{})
	shelf := &overseen{Shelf: dir}
	shelf.hold = func(ctx context.Context, _ string) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	d := days(shelf)
	ask := func(ctx context.Context, to *cold.Found, waiting int) (done chan struct{}) {
		done = make(chan struct{})
		go func() { *to = d.Find(ctx, []string{all[0].ID}); close(done) }()
		kafkatest.Eventually(t, "the question waits", func() bool { return d.Finding() == waiting })
		return done
	}
	ctx, cancel := context.WithCancel(t.Context())
	var one, two cold.Found
	first := ask(ctx, &one, 1)
	second := ask(t.Context(), &two, 2)
	cancel()
	<-first
	if len(one.Gaps) != 1 || len(one.Decisions) > 0 {
		t.Errorf("it left and has %d decisions, %v", len(one.Decisions), one.Gaps)
	}
	close(release)
	<-second
	if len(two.Gaps) > 0 || len(two.Decisions) != 1 {
		t.Errorf("it stayed and has %d decisions, %v", len(two.Decisions), two.Gaps)
	}
	release = make(chan struct{})
	ctx, cancel = context.WithCancel(t.Context())
	d = days(shelf)
	third := ask(ctx, &one, 1)
	cancel()
	<-third // and no goroutine is left
}

// TestDays_OneShelfForAll: the storage is opened once, and again after Close.
func TestDays_OneShelfForAll(t *testing.T) {
	t.Parallel()
	opened, closed := 0, 0
	shelf := &closing{archive.Dir(t.TempDir()), &closed}
	d := days(shelf, func(c *cold.Config) {
		c.Shelf = func() (archive.Shelf, error) {
			if opened++; opened == 1 {
				return nil, errors.New("away")
			}
			return shelf, nil
		}
	})
	if found := d.Find(t.Context(), []string{"x"}); len(found.Gaps) != 1 {
		t.Errorf("%v", found.Gaps)
	}
	for range 3 {
		if found := d.Find(t.Context(), []string{"x"}); len(found.Gaps) != 0 {
			t.Errorf("%v", found.Gaps)
		}
	}
	if opened != 2 || closed != 0 {
		t.Errorf("opened %d times, closed %d times", opened, closed)
	}
	d.Close()
	d.Close()
	d.Find(t.Context(), []string{"x"})
	d.Close()
	if opened != 3 || closed != 2 {
		t.Errorf("opened %d times, closed %d times", opened, closed)
	}
}

type closing struct {
	archive.Shelf
	n *int
}

func (c *closing) Close() { *c.n++ }
