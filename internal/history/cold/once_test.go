package cold_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/internal/history/archive"
	"docket/internal/history/claims"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/readertest"
)

// processes are several desks that share an archive, claims and a directory of results.
type processes struct {
	reads  atomic.Int64 // of the archive's second day
	stores []cold.Store
}

func share(n int, from, results string, once func() *claims.Once) *processes {
	p := &processes{}
	for range n {
		shelf := stopping{archive.Dir(from), func(_ context.Context, name string) error {
			if strings.Contains(name, "2026-08-02") && strings.HasSuffix(name, ".0001.jsonl.gz") {
				p.reads.Add(1)
			}
			time.Sleep(time.Second)
			return nil
		}}
		p.stores = append(p.stores, cold.Store{Table: &readertest.Store{}, Days: days(shelf, func(c *cold.Config) {
			c.Once, c.Results = once(), results
		})})
	}
	return p
}

var secondDay = reader.Filter{Since: first.Add(24 * time.Hour), Until: first.Add(48 * time.Hour)}

// ask has each process asked at once, and returns their answers.
func (p *processes) ask(t *testing.T, asks int, page reader.Page) []reader.Found {
	answers := make([]reader.Found, asks)
	var all sync.WaitGroup
	for i := range asks {
		all.Go(func() { answers[i] = search(t, p.stores[i%len(p.stores)], secondDay, page) })
	}
	all.Wait()
	return answers
}

func TestSearch_ManyProcessesOneRead(t *testing.T) {
	t.Parallel()
	dir, results := t.TempDir(), t.TempDir()
	threeDays(t, dir)
	synctest.Test(t, func(t *testing.T) {
		port := &claims.Memory{}
		p := share(5, dir, results, func() *claims.Once { return claims.NewOnce(port) })
		want := search(t, share(1, dir, "", func() *claims.Once { return nil }).stores[0], secondDay, reader.Page{Limit: 50, Payload: true})
		for _, found := range p.ask(t, 25, reader.Page{Limit: 50, Payload: true}) {
			if diff := cmp.Diff(want, found); diff != "" {
				t.Fatalf("an answer of another process differs: -want +got:\n%s", diff)
			}
		}
		if n := p.reads.Load(); n != 1 {
			t.Errorf("the day was read %d times", n)
		}
	})
}

func TestFind_ManyProcessesOneRead(t *testing.T) {
	t.Parallel()
	dir, results := t.TempDir(), t.TempDir()
	threeDays(t, dir)
	synctest.Test(t, func(t *testing.T) {
		port, ids := &claims.Memory{}, []string{made(30, 30).ID, made(60, 60).ID}
		p := share(5, dir, results, func() *claims.Once { return claims.NewOnce(port) })
		want := share(1, dir, "", func() *claims.Once { return nil }).stores[0].Days.Find(t.Context(), ids)
		var all sync.WaitGroup
		for i := range 25 {
			all.Go(func() {
				if diff := cmp.Diff(want, p.stores[i%5].Days.Find(t.Context(), ids)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
		all.Wait()
		if n := p.reads.Load(); n != 1 || len(want.Decisions) != 2 {
			t.Errorf("the day was read %d times, %d found", n, len(want.Decisions))
		}
	})
}

// taken is a port at which another process has every claim, for ever.
type taken struct{ claims.Memory }

func (*taken) Begin(context.Context, string, claims.Priority, time.Duration) (int64, error) {
	return 0, nil
}

// A look-up waits for another process for half of its time, and reads the days by itself then.
func TestFind_ReadsAfterHalfOfItsTime(t *testing.T) {
	t.Parallel()
	dir, results := t.TempDir(), t.TempDir()
	threeDays(t, dir)
	synctest.Test(t, func(t *testing.T) {
		p := share(1, dir, results, func() *claims.Once { return claims.NewOnce(&taken{}) })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		found := p.stores[0].Days.Find(ctx, []string{made(30, 30).ID})
		if len(found.Decisions) != 1 || len(found.Gaps) > 0 || found.Days != 3 || ctx.Err() != nil {
			t.Errorf("%d decisions of %d days, missing %v", len(found.Decisions), found.Days, found.Gaps)
		}
	})
}

// Processes with directories of their own have nothing to wait for.
func TestSearch_OtherDirectoryDoesNotWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	threeDays(t, dir)
	synctest.Test(t, func(t *testing.T) {
		port := &claims.Memory{}
		once := func() *claims.Once { return claims.NewOnce(port) }
		began := time.Now()
		share(1, dir, t.TempDir(), once).ask(t, 1, reader.Page{Limit: 50})
		alone := time.Since(began)
		p, q := share(1, dir, t.TempDir(), once), share(1, dir, t.TempDir(), once)
		p.stores = append(p.stores, q.stores...)
		began = time.Now()
		p.ask(t, 2, reader.Page{Limit: 50})
		if n := p.reads.Load() + q.reads.Load(); n != 2 || time.Since(began) != alone {
			t.Errorf("the day was read %d times, in %v; one takes %v", n, time.Since(began), alone)
		}
	})
}

// Without claims, without a directory, or with a broken one, each process answers as before.
func TestSearch_AnswersWithoutClaims(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	threeDays(t, dir)
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o600))
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			results string
			once    *claims.Once
		}{
			"no claims": {t.TempDir(), nil}, "no port": {t.TempDir(), claims.NewOnce()}, "no directory": {"", claims.NewOnce(&claims.Memory{})},
			"no right to it": {filepath.Join(file, "below"), claims.NewOnce(&claims.Memory{})},
		} {
			p := share(3, dir, c.results, func() *claims.Once { return c.once })
			for _, found := range p.ask(t, 30, reader.Page{Limit: 50}) {
				if len(found.Decisions) != 24 || len(found.NotLooked) > 0 {
					t.Errorf("%s: %d found, %v", name, len(found.Decisions), found.NotLooked)
				}
			}
			if n := p.reads.Load(); n != 3 {
				t.Errorf("%s: the day was read %d times", name, n)
			}
		}
	})
}

// A result that is damaged or old does not answer.
func TestSearch_BadResultIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	threeDays(t, dir)
	for name, spoil := range map[string]func(t *testing.T, file string){
		"cut":   func(t *testing.T, file string) { check(t, os.Truncate(file, 20)) },
		"short": func(t *testing.T, file string) { check(t, os.Truncate(file, 200)) },
		"changed": func(t *testing.T, file string) {
			b, err := os.ReadFile(file)
			check(t, err)
			b[len(b)/2] ^= 1
			check(t, os.WriteFile(file, b, 0o600))
		},
		"old": func(t *testing.T, file string) {
			at := time.Now().Add(-time.Hour)
			check(t, os.Chtimes(file, at, at))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				port := &claims.Memory{}
				p := share(3, dir, results, func() *claims.Once { return claims.NewOnce(port) })
				p.ask(t, 1, reader.Page{Limit: 50})
				files, err := filepath.Glob(filepath.Join(results, "*.result"))
				if check(t, err); len(files) != 1 {
					t.Fatal(files)
				}
				spoil(t, files[0])
				for _, found := range p.ask(t, 3, reader.Page{Limit: 50}) {
					if len(found.Decisions) != 24 {
						t.Errorf("%d found", len(found.Decisions))
					}
				}
				if n := p.reads.Load(); n != 2 {
					t.Errorf("the day was read %d times", n)
				}
			})
		})
	}
}

// Results go when they are old, also if no other is saved: when a program starts, answers, or just runs.
func TestResults_GoWithoutASave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	threeDays(t, dir)
	for name, wake := range map[string]func(t *testing.T, results string){
		"at the start": func(t *testing.T, results string) { share(1, dir, results, func() *claims.Once { return nil }) },
		"by a timer": func(t *testing.T, results string) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			p := share(1, filepath.Join(dir, "none"), results, func() *claims.Once { return nil })
			plant(t, results)
			check(t, p.stores[0].Days.Warm(ctx))
		},
		"by an answer": func(t *testing.T, results string) {
			p := share(1, dir, results, func() *claims.Once { return claims.NewOnce(&claims.Memory{}) })
			plant(t, results)
			p.ask(t, 1, reader.Page{Limit: 50})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				plant(t, results)
				wake(t, results)
				if _, err := os.Stat(filepath.Join(results, "planted.result")); err == nil {
					t.Error("an old result is still there")
				}
				if _, err := os.Stat(filepath.Join(results, "fresh.result")); err != nil {
					t.Error("a fresh result is gone")
				}
			})
		})
	}
}

// plant leaves an old result and a fresh one.
func plant(t *testing.T, results string) {
	t.Helper()
	for name, age := range map[string]time.Duration{"planted.result": time.Hour, "fresh.result": -time.Minute} {
		file := filepath.Join(results, name)
		check(t, os.WriteFile(file, []byte("x"), 0o600))
		at := time.Now().Add(-age)
		check(t, os.Chtimes(file, at, at))
	}
}

// The directory has no more than its limits, and nothing that others may read.
func TestSearch_ResultsAreBounded(t *testing.T) {
	t.Parallel()
	dir, results := t.TempDir(), filepath.Join(t.TempDir(), "results")
	threeDays(t, dir)
	synctest.Test(t, func(t *testing.T) {
		for i := range 80 { // each is another question of another process
			share(1, dir, results, func() *claims.Once { return claims.NewOnce(&claims.Memory{}) }).ask(t, 1, reader.Page{Limit: 201 + i})
		}
		entries, err := os.ReadDir(results)
		check(t, err)
		if len(entries) < 60 || len(entries) > 65 { // with the id
			t.Errorf("%d files", len(entries))
		}
		for _, e := range entries {
			if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", e.Name(), info, err)
			}
		}
		if info, err := os.Stat(results); err != nil || info.Mode().Perm() != 0o700 {
			t.Error(info, err)
		}
	})
}
