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

// TestScans_ManyQuestionsFewReads: an archive without an index is read twice for any number of different questions that
// come while it is read once.
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
		for i := range 5 {
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
		if n := reads.Load(); n > 2 {
			t.Errorf("29 different questions read the day %d times", n)
		}
	})
}

// joined is a question to a reading of three rows, each a second apart.
type joined struct {
	rows int
	err  error
}

// scanned has readings of one archive.
type scanned struct {
	cold.Scans
	began, ended int
	all          sync.WaitGroup
}

// ask joins the next reading. fail is the row whose taking fails.
func (s *scanned) ask(ctx context.Context, weight, fail int, broken error) *joined {
	j := &joined{}
	s.all.Go(func() {
		j.err = s.Join(ctx, "archive", weight, func() error {
			if j.rows++; j.rows == fail {
				return errRefused
			}
			return nil
		}, func(ctx context.Context, pass func() bool) error {
			s.began++
			defer func() { s.ended++ }()
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

func TestScans_LatecomersShareTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s scanned
		first := s.ask(t.Context(), cold.FindWeight, 0, nil)
		later := []*joined{s.ask(t.Context(), cold.SearchWeight, 0, nil), s.ask(t.Context(), cold.FindWeight, 2, nil), s.ask(t.Context(), cold.FindWeight, 0, nil)}
		s.all.Wait()
		if first.rows != 3 || first.err != nil || s.began != 2 {
			t.Errorf("the first has %d rows, %v, after %d readings", first.rows, first.err, s.began)
		}
		for i, want := range []joined{{3, nil}, {2, errRefused}, {3, nil}} {
			if *later[i] != want {
				t.Errorf("question %d has %+v, not %+v", i, *later[i], want)
			}
		}
	})
}

func TestScans_FailedReadingFailsItsQuestions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s scanned
		broken := errors.New("broken")
		first, second := s.ask(t.Context(), cold.FindWeight, 0, broken), s.ask(t.Context(), cold.FindWeight, 0, nil)
		s.all.Wait()
		if !errors.Is(first.err, broken) || second.err != nil || second.rows != 3 {
			t.Errorf("%v, then %d rows, %v", first.err, second.rows, second.err)
		}
	})
}

// TestScans_AnswersAreBounded: so many searches share a reading that their answers have room in memory.
func TestScans_AnswersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s scanned
		s.ask(t.Context(), cold.FindWeight, 0, nil)
		for range cold.MostTogether/cold.SearchWeight + 1 {
			s.ask(t.Context(), cold.SearchWeight, 0, nil)
		}
		s.all.Wait()
		if s.began != 3 {
			t.Errorf("%d readings", s.began)
		}
	})
}

// TestScans_Left: a question that left has no answer, not even a part of one. A reading ends with its last question, and
// one that nobody waits for does not begin.
func TestScans_Left(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s scanned
		short, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		first, stays := s.ask(short, cold.FindWeight, 0, nil), s.ask(t.Context(), cold.FindWeight, 0, nil)
		gone, leave := context.WithCancel(t.Context())
		for range 3 {
			s.ask(gone, cold.SearchWeight, 0, nil)
		}
		leave()
		s.all.Wait()
		if !errors.Is(first.err, context.DeadlineExceeded) || stays.err != nil || stays.rows != 3 || s.began != 2 || s.ended != 2 {
			t.Errorf("%v; %d rows, %v; %d readings, of which %d ended", first.err, stays.rows, stays.err, s.began, s.ended)
		}
		gone, leave = context.WithCancel(t.Context())
		running := s.ask(t.Context(), cold.FindWeight, 0, nil)
		waiting := s.ask(gone, cold.FindWeight, 0, nil)
		leave()
		s.all.Wait()
		if running.err != nil || !errors.Is(waiting.err, context.Canceled) || waiting.rows > 0 || s.began != 3 {
			t.Errorf("%v; %d rows, %v; %d readings", running.err, waiting.rows, waiting.err, s.began)
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
		s.ask(ctx, cold.FindWeight, 0, nil)
		s.all.Wait()
		if took := time.Since(began); took != 1500*time.Millisecond || s.ended != 1 {
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

// TestScans_LeftAtTheEnd: the context may end with the reading. Then rows may be missing, so there is no answer.
func TestScans_LeftAtTheEnd(t *testing.T) {
	t.Parallel()
	var s cold.Scans
	ctx := &ending{Context: t.Context()}
	err := s.Join(ctx, "archive", cold.FindWeight, func() error { return nil }, func(_ context.Context, pass func() bool) error {
		ctx.ended.Store(true)
		pass()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("an answer without its row: %v", err)
	}
}
