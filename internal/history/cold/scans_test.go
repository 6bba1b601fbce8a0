package cold_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/readertest"
)

// TestScans_ManyQuestionsFewReads: an archive without an index is read a few times for any number of different questions
// that come while it is read.
func TestScans_ManyQuestionsFewReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	threeDays(t, dir)
	synctest.Test(t, func(t *testing.T) {
		alone := cold.Store{Table: &readertest.Store{}, Days: days(archive.Dir(dir))}
		var reads atomic.Int64
		shelf := stopping{archive.Dir(dir), func(_ context.Context, name string) error {
			if strings.Contains(name, "2026-08-02") && strings.HasSuffix(name, ".0001.jsonl.gz") {
				reads.Add(1)
			}
			time.Sleep(time.Second)
			return nil
		}}
		d := days(shelf)
		store := cold.Store{Table: &readertest.Store{}, Days: d}
		var all sync.WaitGroup
		for i := range 24 {
			id := made(24+i, 24+i).ID
			all.Go(func() {
				if diff := cmp.Diff(alone.Days.Find(t.Context(), []string{id}), d.Find(t.Context(), []string{id})); diff != "" {
					t.Errorf("%s: -alone +together:\n%s", id, diff)
				}
			})
		}
		all.Wait()
		if n := reads.Load(); n > cold.MostReadings+1 {
			t.Errorf("24 different ids read the day %d times", n)
		}
		for i := range 4 {
			f := secondDay
			f.Since = f.Since.Add(time.Duration(i) * time.Hour)
			p := reader.Page{Limit: 7 + i, Oldest: i%2 == 0, Payload: i == 3}
			all.Go(func() {
				if diff := cmp.Diff(search(t, alone, f, p), search(t, store, f, p)); diff != "" {
					t.Errorf("search %d: -alone +together:\n%s", i, diff)
				}
			})
		}
		all.Wait()
	})
}

// TestScans_LeftFindIsNotTouched: a look-up may leave while a row of it is taken. The race detector tells if both use its answer.
func TestScans_LeftFindIsNotTouched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	threeDays(t, dir)
	shelf := stopping{archive.Dir(dir), func(_ context.Context, name string) error {
		if strings.HasSuffix(name, ".jsonl.gz") {
			time.Sleep(2 * time.Millisecond) // so that questions leave in the middle of a reading
		}
		return nil
	}}
	d := days(shelf)
	var ids []string
	for i := range 24 {
		ids = append(ids, made(24+i, 24+i).ID)
	}
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			for i := range 150 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1000+(i*37+g*991)%6000)*time.Microsecond)
				found := d.Find(ctx, ids[:len(ids)-g])
				if n := len(found.Decisions); n != 0 && n != len(ids)-g {
					t.Errorf("%d of %d decisions of a day", n, len(ids)-g)
				}
				cancel()
			}
		})
	}
	all.Wait()
}

// joined is a question to a reading of three rows, each a second apart.
type joined struct {
	rows atomic.Int64 // a question that left may be given another one
	err  error
}

// is reports whether the question ended so.
func (j *joined) is(rows int64, err error) bool {
	return j.rows.Load() == rows && errors.Is(j.err, err)
}

// scanned has readings of one archive.
type scanned struct {
	cold.Scans
	began, ended atomic.Int64
	all          sync.WaitGroup
}

// ask joins the next reading. fail is the row whose taking fails.
func (s *scanned) ask(ctx context.Context, weight int, fail int64, broken error) *joined {
	j := &joined{}
	s.all.Go(func() {
		j.err = s.Join(ctx, "archive", weight, func() error {
			if j.rows.Add(1) == fail {
				return errRefused
			}
			return nil
		}, func(ctx context.Context, pass func() bool) error {
			s.began.Add(1)
			defer s.ended.Add(1)
			for range 3 {
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return ctx.Err()
				}
				if !pass() {
					return errors.New("nobody needs more")
				}
			}
			return broken
		})
	})
	synctest.Wait()
	return j
}

var errRefused = errors.New("refused")

// two asks the questions whose readings begin at once.
func (s *scanned) two(ctx context.Context) (of [cold.MostReadings]*joined) {
	for i := range of {
		of[i] = s.ask(ctx, 1, 0, nil)
	}
	return of
}

func TestScans_LatecomersShareTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s scanned
		first := s.two(t.Context())
		all, fails, none := s.ask(t.Context(), cold.SearchWeight, 0, nil), s.ask(t.Context(), 1, 2, nil), s.ask(t.Context(), 1, 0, nil)
		s.all.Wait()
		if !first[0].is(3, nil) || !first[1].is(3, nil) || !all.is(3, nil) || !fails.is(2, errRefused) || !none.is(3, nil) {
			t.Errorf("%+v, %+v, %+v, %+v", first, all, fails, none)
		}
		if n := s.began.Load(); n != cold.MostReadings+1 || s.Left() != 0 {
			t.Errorf("%d readings, %d left", n, s.Left())
		}
	})
}

func TestScans_FailedReadingFailsItsQuestions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s scanned
		broken := errors.New("broken")
		first, second := s.ask(t.Context(), 1, 0, broken), s.ask(t.Context(), 1, 0, nil)
		s.all.Wait()
		if !first.is(3, broken) || !second.is(3, nil) {
			t.Errorf("%+v, %+v", first, second)
		}
	})
}

// TestScans_AnswersAreBounded: so many searches share a reading that their answers have room in memory.
func TestScans_AnswersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s scanned
		s.two(t.Context())
		for range cold.MostTogether/cold.SearchWeight + 1 {
			s.ask(t.Context(), cold.SearchWeight, 0, nil)
		}
		large := s.ask(t.Context(), 10*cold.MostTogether, 0, nil)
		s.all.Wait()
		if n := s.began.Load(); n != cold.MostReadings+3 || !large.is(3, nil) {
			t.Errorf("%d readings; %+v", n, large)
		}
	})
}

// TestScans_HalfOfItsTime: a look-up waits for other readings for half of its time, and then reads for itself. A search waits.
func TestScans_HalfOfItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s scanned
		s.two(t.Context())
		for range cold.MostReadings { // from the third second on
			s.ask(t.Context(), cold.MostTogether, 0, nil)
		}
		time.Sleep(1500 * time.Millisecond)
		short, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		long, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		reads, search, waits := s.ask(short, 1, 0, nil), s.ask(short, cold.SearchWeight, 0, nil), s.ask(long, 1, 0, nil)
		for _, want := range []int64{4, 5, 6} { // after 5.4, 5.6 and 6.1 seconds
			time.Sleep([]time.Duration{4: 3900 * time.Millisecond, 5: 200 * time.Millisecond, 6: 500 * time.Millisecond}[want])
			synctest.Wait()
			if n := s.began.Load(); n != want {
				t.Errorf("%d readings, not %d", n, want)
			}
		}
		s.all.Wait()
		if !reads.is(3, nil) || !search.is(3, nil) || !waits.is(3, nil) || s.ended.Load() != s.began.Load() || s.Left() != 0 {
			t.Errorf("%+v, %+v, %+v; %d of %d readings ended, %d left", reads, search, waits, s.ended.Load(), s.began.Load(), s.Left())
		}
	})
}

// TestScans_Left: a question that left has no answer, not even a part of one. A reading ends with its last question, and
// one that nobody waits for does not begin.
func TestScans_Left(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s scanned
		s.ask(t.Context(), 1, 0, nil)
		short, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		alone := s.ask(short, cold.SearchWeight, 0, nil)
		gone, leave := context.WithCancel(t.Context())
		for range 3 {
			s.ask(gone, cold.SearchWeight, 0, nil)
		}
		stays := s.ask(t.Context(), 1, 0, nil) // with the third
		leave()
		s.all.Wait()
		if !errors.Is(alone.err, context.DeadlineExceeded) || !stays.is(3, nil) || s.began.Load() != 3 || s.ended.Load() != 3 || s.Left() != 0 {
			t.Errorf("%+v, %+v; %d readings, of which %d ended", alone, stays, s.began.Load(), s.ended.Load())
		}
	})
}

// TestScans_EndsWithItsLast: a reading that waits for the storage ends when its last question leaves.
func TestScans_EndsWithItsLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s scanned
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		began := time.Now()
		s.ask(ctx, 1, 0, nil)
		s.all.Wait()
		if took := time.Since(began); took != 1500*time.Millisecond || s.ended.Load() != 1 {
			t.Errorf("the reading ended after %v", took)
		}
	})
}

// ending is a context that ends before anybody is told.
type ending struct {
	context.Context
	ended atomic.Bool
}

func (e *ending) Err() error {
	if e.ended.Load() {
		return context.Canceled
	}
	return nil
}

// TestScans_LeftAtTheEnd: the context may end with the reading. Then rows may be missing, so the question gets its error.
func TestScans_LeftAtTheEnd(t *testing.T) {
	t.Parallel()
	var s cold.Scans
	ctx := &ending{Context: t.Context()}
	err := s.Join(ctx, "archive", 1, func() error { return nil }, func(_ context.Context, pass func() bool) error {
		ctx.ended.Store(true)
		pass()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("an answer without its row: %v", err)
	}
}
