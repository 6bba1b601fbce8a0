//go:build integration

package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/history/archive"
	"docket/internal/history/claims"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
	"docket/internal/redis"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/claimtest"
	"docket/internal/testkit/readertest"
)

// port is one of the implementations of claims, on its real server. Each call of open is a process with a client of its
// own.
type port struct {
	name string
	open func() claims.Port
}

// claimPorts are those of Postgres and of Redis. Calls have the time that a busy machine needs.
func (y *system) claimPorts() []port {
	y.t.Helper()
	url := y.redis()
	return []port{
		{"Postgres", func() claims.Port {
			st, err := store.Open(db.Config{URL: y.dsn, StoreTimeout: patience}, zerolog.Nop())
			y.must(err)
			y.t.Cleanup(st.Close)
			return historydb.NewClaims(st.DB)
		}},
		{"Redis", func() claims.Port {
			c, err := redis.NewClaims(redis.Config{URL: url, Patience: time.Minute}, y.group)
			y.must(err)
			y.t.Cleanup(c.Close)
			return c
		}},
	}
}

// once is that of a process. A busy machine fails no call.
func (p port) once() *claims.Once { return claims.NewOnce(p.open()).Patient(patience, time.Minute) }

// several opens a port for each of n processes.
func (p port) several(n int) []claims.Port {
	all := make([]claims.Port, n)
	for i := range all {
		all[i] = p.open()
	}
	return all
}

// counted is a shelf that counts how often a day's file is opened.
type counted struct {
	archive.Shelf
	opened *atomic.Int64
}

func (c counted) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if strings.HasSuffix(name, ".jsonl.gz") {
		c.opened.Add(1)
	}
	return c.Shelf.Get(ctx, name)
}

// herd has a thousand questions for one archived day come at once, to four readers as desks have them.
func herd(y *system) (bounds []Bound) {
	const asks, readers, decisions = 1000, 4, 1000
	night := time.Date(2026, 1, 5, 23, 0, 0, 0, time.UTC)
	shelf := archive.Dir(y.t.TempDir())
	_, err := archivetest.Write(y.t.Context(), shelf, -decisions, readertest.Decisions(decisions, night)...)
	y.must(err)
	for _, p := range y.claimPorts() {
		var opened atomic.Int64
		results := y.t.TempDir()
		stores := make([]cold.Store, readers)
		for i := range stores {
			stores[i] = cold.Store{Table: &readertest.Store{}, Days: cold.New(cold.Config{
				Where: "the archive", Shelf: func() (archive.Shelf, error) { return counted{shelf, &opened}, nil }, Table: archivetest.Table,
				LineBytes: 1 << 20, Patience: patience, Once: p.once(), Results: results,
			})}
		}
		var all sync.WaitGroup
		var wrong atomic.Int64
		f := reader.Filter{Since: archive.DayOf(night).Time, Until: archive.DayOf(night).Next().Time}
		for i := range asks {
			all.Go(func() {
				found, err := stores[i%readers].Search(y.t.Context(), f, reader.Page{Limit: 100})
				if err != nil || len(found.Decisions) != 100 || len(found.NotLooked) > 0 {
					wrong.Add(1)
				}
			})
		}
		all.Wait()
		bounds = append(bounds,
			Exactly("reads of the day, "+p.name, float64(opened.Load()), 1, "reads"),
			Exactly("wrong answers, "+p.name, float64(wrong.Load()), 0, "answers"))
	}
	return bounds
}

// upgraded has a warm-up of low priority hold a claim while a person asks for the same work. The warm-up would never end
// by itself. A question that did not take it over would find it still at work.
func upgraded(y *system) (bounds []Bound) {
	never := func() bool { return false }
	for _, p := range y.claimPorts() {
		ctx, cancel := context.WithTimeout(y.t.Context(), patience)
		holds, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- p.once().Do(ctx, "7", claims.Low, never, func(ctx context.Context) error {
				close(holds)
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		select {
		case <-holds:
		case <-ctx.Done():
			y.t.Fatal("the warm-up did not begin")
		}
		stopped := 0.0
		y.must(p.once().Do(ctx, "7", claims.High, never, func(ctx context.Context) error {
			select {
			case err := <-ended:
				if errors.Is(err, claims.ErrTaken) {
					stopped++
				}
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
		cancel()
		bounds = append(bounds, Exactly("warm-ups that were taken over and stopped, "+p.name, stopped, 1, "warm-ups"))
	}
	return bounds
}

// tenAtOnce has ten processes claim the same work at once, many times.
func tenAtOnce(y *system) (bounds []Bound) {
	const rounds = 100
	for _, p := range y.claimPorts() {
		ports, least, most := p.several(10), 10, 0
		for round := range rounds {
			got := claimtest.AtOnce(10, ports, func(p claims.Port, _ int) int64 { return y.begin(p, fmt.Sprint(round), claims.High, claimtest.Long) })
			least, most = min(least, len(got)), max(most, len(got))
		}
		bounds = append(bounds,
			Exactly("most processes that one claim was given to, "+p.name, float64(most), 1, "processes"),
			Exactly("fewest, "+p.name, float64(least), 1, "processes"))
	}
	return bounds
}

func (y *system) begin(p claims.Port, key string, of claims.Priority, lease time.Duration) int64 {
	version, err := p.Begin(y.t.Context(), key, of, lease)
	if err != nil {
		y.t.Errorf("begin a claim: %v", err)
	}
	return version
}

// risingVersions has ten processes claim the same work again and again. Claims end, expire, and are taken over.
func risingVersions(y *system) (bounds []Bound) {
	const processes, turns = 10, 30
	for _, p := range y.claimPorts() {
		var mu sync.Mutex
		var given []int64 // in the order in which the server gave them: one call at a time
		ports := p.several(processes)
		claimtest.AtOnce(processes, ports, func(p claims.Port, i int) int64 {
			for turn := range turns {
				mu.Lock()
				lease := claimtest.Brief // over before the next call
				if (i+turn)%3 == 0 {
					lease = claimtest.Long
				}
				version := y.begin(p, "13", claims.Priority(turn%2), lease)
				if version != 0 { // nobody else has a call in between
					given = append(given, version)
				}
				if turn%2 == 1 && version != 0 {
					if _, err := p.End(y.t.Context(), "13", version); err != nil {
						y.t.Errorf("end a claim: %v", err)
					}
				}
				mu.Unlock()
			}
			return 0
		})
		not := 0
		for i := 1; i < len(given); i++ {
			if given[i] <= given[i-1] {
				not++
			}
		}
		// Without the lock the order is not known, but each version is given once.
		var free []int64
		claimtest.AtOnce(processes, ports, func(p claims.Port, _ int) int64 {
			for range turns {
				version := y.begin(p, "13", claims.High, claimtest.Brief)
				mu.Lock()
				free = append(free, version)
				mu.Unlock()
			}
			return 0
		})
		free = slices.DeleteFunc(free, func(v int64) bool { return v == 0 })
		slices.Sort(free)
		bounds = append(bounds,
			Exactly("versions that are not above the one before, "+p.name, float64(not), 0, "versions"),
			Exactly("versions given twice, "+p.name, float64(len(free)-len(slices.Compact(slices.Clone(free)))), 0, "versions"),
			AtLeast("versions given, "+p.name, float64(len(given)+len(free)), 100, "versions"))
	}
	return bounds
}

// oneEndWins has ten processes end the same claim at once, many times. Half of them have the version of an older claim.
func oneEndWins(y *system) (bounds []Bound) {
	const rounds = 100
	for _, p := range y.claimPorts() {
		ports, least, most, old := p.several(10), 10, 0, 0
		for round := range rounds {
			key := fmt.Sprint(round)
			before := y.begin(ports[0], key, claims.Low, claimtest.Brief)
			now := y.begin(ports[1], key, claims.High, claimtest.Long)
			got := claimtest.AtOnce(10, ports, func(p claims.Port, i int) int64 {
				of := now
				if i%2 == 1 {
					of = before
				}
				ended, err := p.End(y.t.Context(), key, of)
				if err != nil {
					y.t.Errorf("end a claim: %v", err)
				}
				if !ended {
					return 0
				}
				return of
			})
			least, most = min(least, len(got)), max(most, len(got))
			if slices.Contains(got, before) {
				old++
			}
		}
		bounds = append(bounds,
			Exactly("most processes that ended one claim, "+p.name, float64(most), 1, "processes"),
			Exactly("fewest, "+p.name, float64(least), 1, "processes"),
			Exactly("older versions that ended a claim, "+p.name, float64(old), 0, "claims"))
	}
	return bounds
}
