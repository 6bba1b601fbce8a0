package cold_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

func (s stopping) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := s.get(ctx, name); err != nil {
		return nil, err
	}
	return s.Shelf.Get(ctx, name)
}

// hung waits until the question ends, as a storage does that does not answer.
func hung(part string) func(ctx context.Context, name string) error {
	return func(ctx context.Context, name string) error {
		if !strings.Contains(name, part) || !strings.HasSuffix(name, ".jsonl.gz") {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// threeDays archives the decisions 0 to 71, one an hour.
func threeDays(t *testing.T, dir string) archive.Shelf {
	t.Helper()
	shelf := archive.Dir(dir)
	for day := range 3 {
		var all []reader.Decision
		for hour := range 24 {
			all = append(all, made(24*day+hour, 24*day+hour))
		}
		if _, err := archivetest.Write(t.Context(), shelf, -10, all...); err != nil {
			t.Fatal(err)
		}
	}
	return shelf
}

func TestSearch_SlowDayIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shelf := stopping{threeDays(t, dir), hung("2026-08-02-001")}
	for name, by := range map[string]bool{"to be continued": false, "until a time": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := cold.Store{Table: &readertest.Store{}, Days: days(shelf)}
				p := reader.Page{Limit: 10}
				var found reader.Found
				var got, gaps int
				for page := 0; page == 0 || p.After != ""; page++ {
					if by {
						p.ArchiveBy = time.Now().Add(time.Minute)
					}
					found = search(t, store, reader.Filter{}, p)
					if got += len(found.Decisions); len(found.NotLooked) > 0 {
						gaps++
						if text := found.NotLooked[0].String(); !strings.Contains(text, "2026-08-02 w") {
							t.Error(text)
						}
					}
					p.After = found.Next
				}
				if want := 48; !by && got != want || gaps == 0 {
					t.Errorf("%d decisions of %d, %d gaps", got, want, gaps)
				}
			})
		})
	}
}

// TestSearch_StopsAndGoesOn: a search whose time is over has a place to continue from, and leaves nothing out.
func TestSearch_StopsAndGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	slow := func(_ context.Context, name string) error {
		if strings.HasSuffix(name, ".jsonl.gz") {
			time.Sleep(15 * time.Second) // in virtual time: a day has three files, so each takes most of the patience
		}
		return nil
	}
	shelf := stopping{threeDays(t, dir), slow}
	for _, oldest := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := cold.Store{Table: &readertest.Store{}, Days: days(shelf)}
			stops, got := 0, 0
			for p := (reader.Page{Limit: 1000, Oldest: oldest}); ; {
				found := search(t, store, reader.Filter{}, p)
				if got += len(found.Decisions); len(found.NotLooked) > 0 {
					t.Fatal(found.NotLooked)
				}
				if p.After = found.Next; p.After == "" {
					break
				}
				if stops++; found.Reached.IsZero() {
					t.Fatal("a stop without the time that was reached")
				}
			}
			if got != 72 || stops == 0 {
				t.Errorf("%d decisions, %d stops", got, stops)
			}
		})
	}
}

func TestSearch_BrokenDayIsNamed(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, file string){
		"missing": func(t *testing.T, file string) { check(t, os.Remove(file)) },
		"cut":     func(t *testing.T, file string) { check(t, os.Truncate(file, 100)) },
		"changed": func(t *testing.T, file string) {
			b, err := os.ReadFile(file)
			check(t, err)
			b[len(b)/2] ^= 1
			check(t, os.WriteFile(file, b, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			shelf := threeDays(t, dir)
			files, err := filepath.Glob(filepath.Join(dir, "*2026-08-02*.0002.jsonl.gz"))
			if check(t, err); len(files) != 1 {
				t.Fatal(files)
			}
			damage(t, files[0])
			found := search(t, cold.Store{Table: &readertest.Store{}, Days: days(shelf)}, reader.Filter{}, reader.Page{Limit: 1000})
			if len(found.Decisions) != 48 || len(found.NotLooked) != 1 || !strings.Contains(found.NotLooked[0].String(), "archived day 2026-08-02 in the shelf: archive") {
				t.Errorf("%d decisions, %v", len(found.Decisions), found.NotLooked)
			}
			byID := days(shelf).Find(t.Context(), []string{made(30, 30).ID, made(60, 60).ID})
			if len(byID.Decisions) != 1 || byID.Days != 2 || len(byID.Gaps) != 1 {
				t.Errorf("%+v", byID)
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSearch_StorageAwayIsNamed(t *testing.T) {
	t.Parallel()
	away := errors.New("the storage is away")
	table := &readertest.Store{}
	table.Add(made(1, 1))
	d := days(nil, func(c *cold.Config) { c.Shelf = func() (archive.Shelf, error) { return nil, away } })
	found := search(t, cold.Store{Table: table, Days: d}, reader.Filter{}, reader.Page{Limit: 10})
	if len(found.Decisions) != 1 || len(found.NotLooked) != 1 || found.NotLooked[0].Why != away.Error() || found.NotLooked[0].Name != "archived days in the shelf" {
		t.Errorf("%+v", found)
	}
	if by := d.Find(t.Context(), []string{"a"}); len(by.Gaps) != 1 {
		t.Errorf("%+v", by)
	}
}

// TestSearch_RecentNeedsNoArchive: only settled days are archived, so a page of recent decisions opens no storage.
func TestSearch_RecentNeedsNoArchive(t *testing.T) {
	t.Parallel()
	table := &readertest.Store{}
	table.Add(readertest.Decisions(100, now)...)
	d := days(nil, func(c *cold.Config) {
		c.Shelf = func() (archive.Shelf, error) { t.Error("the storage was opened"); return nil, io.EOF }
	})
	for name, f := range map[string]reader.Filter{"all": {}, "since": {Since: now.Add(-24 * time.Hour)}, "ahead": {Since: now.Add(time.Hour)}} {
		found := search(t, cold.Store{Table: table, Days: d}, f, reader.Page{Limit: 20})
		if len(found.NotLooked) > 0 || found.Archives {
			t.Errorf("%s: %v", name, found.NotLooked)
		}
	}
	none := cold.Store{Table: table, Days: days(nil, func(c *cold.Config) { c.Where = "" })}
	if found := search(t, none, reader.Filter{}, reader.Page{Limit: 1000}); len(found.Decisions) != 100 || found.Archives {
		t.Error("archives were searched although none are named")
	}
}

// TestSearch_OneReadForManyPages: the pages behind the first come from memory, if the archive has no index.
func TestSearch_OneReadForManyPages(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	reads := map[string]int{}
	shelf := stopping{threeDays(t, t.TempDir()), func(_ context.Context, name string) error {
		mu.Lock()
		defer mu.Unlock()
		reads[name]++
		return nil
	}}
	store := cold.Store{Table: &readertest.Store{}, Days: days(shelf)}
	got := 0
	for p := (reader.Page{Limit: 7, Payload: true}); ; {
		found := search(t, store, reader.Filter{}, p)
		got += len(found.Decisions)
		if p.After = found.Next; p.After == "" {
			break
		}
	}
	if got != 72 {
		t.Errorf("%d decisions", got)
	}
	for name, n := range reads {
		if strings.HasSuffix(name, ".gz") && n > 1 {
			t.Errorf("%s was read %d times", name, n)
		}
	}
}

func TestFind_SlowDayIsNamed(t *testing.T) {
	t.Parallel()
	shelf := stopping{threeDays(t, t.TempDir()), hung("2026-08-02-001")}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		found := days(shelf).Find(ctx, []string{made(30, 30).ID, made(60, 60).ID})
		if len(found.Decisions) != 1 || found.Days != 2 || len(found.Gaps) != 1 || !strings.Contains(found.Gaps[0].Why, "2026-08-02 was not read within the time") {
			t.Errorf("%+v", found)
		}
	})
}

// TestSearch_ThousandAsksOneRead: questions at the same time wait for one reading of the archive.
func TestSearch_ThousandAsksOneRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	threeDays(t, dir)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		reads := map[string]int{}
		shelf := stopping{archive.Dir(dir), func(_ context.Context, name string) error {
			mu.Lock()
			reads[name]++
			mu.Unlock()
			time.Sleep(time.Second)
			return nil
		}}
		store := cold.Store{Table: &readertest.Store{}, Days: days(shelf)}
		f := reader.Filter{Since: first.Add(24 * time.Hour), Until: first.Add(48 * time.Hour)}
		var asks sync.WaitGroup
		for range 1000 {
			asks.Go(func() {
				if found, err := store.Search(t.Context(), f, reader.Page{Limit: 50}); err != nil || len(found.Decisions) != 24 || len(found.NotLooked) > 0 {
					t.Errorf("%d found, %v, %v", len(found.Decisions), found.NotLooked, err)
				}
			})
		}
		asks.Wait()
		for name, n := range reads {
			if strings.HasSuffix(name, ".gz") && n != 1 {
				t.Errorf("%s was read %d times", name, n)
			}
		}
	})
}

// TestSearch_FailedReadIsTriedAgain: a question that ends early takes no other with it.
func TestSearch_FailedReadIsTriedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	threeDays(t, dir)
	synctest.Test(t, func(t *testing.T) {
		shelf := stopping{archive.Dir(dir), func(ctx context.Context, name string) error {
			if !strings.HasSuffix(name, ".gz") {
				return nil
			}
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		store := cold.Store{Table: &readertest.Store{}, Days: days(shelf)}
		f := reader.Filter{Since: first.Add(24 * time.Hour), Until: first.Add(48 * time.Hour)}
		short, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		var asks sync.WaitGroup
		asks.Go(func() { _, _ = store.Search(short, f, reader.Page{Limit: 50}) })
		synctest.Wait()
		asks.Go(func() {
			if found := search(t, store, f, reader.Page{Limit: 50}); len(found.Decisions) != 24 {
				t.Errorf("%d found, %v", len(found.Decisions), found.NotLooked)
			}
		})
		asks.Wait()
	})
}

// TestDays_MissingDirectoryIsNoEmptyArchive: a mount that is away must not look as if nothing was archived.
func TestDays_MissingDirectoryIsNoEmptyArchive(t *testing.T) {
	t.Parallel()
	shelf := archive.Dir(filepath.Join(t.TempDir(), "away"))
	found := search(t, cold.Store{Table: &readertest.Store{}, Days: days(shelf)}, reader.Filter{}, reader.Page{Limit: 10})
	if len(found.NotLooked) != 1 || !strings.Contains(found.NotLooked[0].Why, "does not exist") {
		t.Errorf("not looked at %v", found.NotLooked)
	}
}

// TestFind_WrongFilterIsNotReused: an archive with a wrong filter does not count as one of the day. The day is archived
// again, and the look-up finds its decisions.
func TestFind_WrongFilterIsNotReused(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	shelf := archive.Dir(path)
	one, two := made(1, 1), made(2, 2)
	m, err := archivetest.Write(t.Context(), shelf, 0, one, two)
	check(t, err)
	check(t, archivetest.ClearFilters(t.Context(), path, m))
	if found := days(shelf).Find(t.Context(), []string{one.ID}); len(found.Decisions) != 0 {
		t.Fatal("the filters are not wrong")
	}
	again, err := archivetest.Write(t.Context(), shelf, 0, one, two)
	check(t, err)
	if again.Name() == m.Name() {
		t.Error("the archive counts as one of the day")
	}
	if found := days(shelf).Find(t.Context(), []string{one.ID}); len(found.Decisions) != 1 || len(found.Gaps) > 0 {
		t.Errorf("%d decisions, %v", len(found.Decisions), found.Gaps)
	}
}
