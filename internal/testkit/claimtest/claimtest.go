// Package claimtest is the suite that every port of claims passes.
package claimtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"docket/internal/history/claims"
)

// Long is a lease that no test lives to see the end of. Brief is over before the next call.
const (
	Long  = time.Hour
	Brief = time.Microsecond
)

// World makes ports that share their claims, as several processes have them.
type World func(t testing.TB) claims.Port

var prefixes atomic.Int64

// Suite holds ports to the rules of [claims.Port]. No rule depends on how long a call takes.
func Suite(t *testing.T, world World) {
	t.Helper()
	ports := make([]claims.Port, 3)
	for i := range ports {
		ports[i] = world(t)
	}
	s := suite{ports}
	t.Run("AsTheModel", s.asTheModel)
	t.Run("OneOfMany", s.oneOfMany)
	t.Run("OneUpgrade", s.oneUpgrade)
	t.Run("OneEndWins", s.oneEndWins)
	t.Run("OneInsideAtATime", s.oneInside)
}

type suite struct{ ports []claims.Port }

// key is one that no other test has.
func key(name string) string { return fmt.Sprintf("%s/%d", name, prefixes.Add(1)) }

// teller is what a test and a run of rapid have.
type teller interface {
	Helper()
	Errorf(format string, args ...any)
	Context() context.Context
}

func begin(t teller, p claims.Port, key string, of claims.Priority, lease time.Duration) int64 {
	t.Helper()
	version, err := p.Begin(t.Context(), key, of, lease)
	if err != nil {
		t.Errorf("begin %s: %v", key, err)
	}
	return version
}

func keep(t teller, p claims.Port, key string, version int64, lease time.Duration) bool {
	t.Helper()
	kept, err := p.Keep(t.Context(), key, version, lease)
	if err != nil {
		t.Errorf("keep %s: %v", key, err)
	}
	return kept
}

func end(t teller, p claims.Port, key string, version int64) bool {
	t.Helper()
	ended, err := p.End(t.Context(), key, version)
	if err != nil {
		t.Errorf("end %s: %v", key, err)
	}
	return ended
}

// held is a claim as the model has it: version 0 is none.
type held struct {
	version int64
	of      claims.Priority
}

// asTheModel plays calls of several processes on a few keys, one after another, and compares each answer. A brief lease
// is over before the next call, so nothing depends on time.
func (s suite) asTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := []string{key("model"), key("model")}
		now, last := map[string]held{}, map[string]int64{}
		versions := []int64{1} // that were given at any time, for any key
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			p, k := rapid.SampledFrom(s.ports).Draw(t, "process"), rapid.SampledFrom(keys).Draw(t, "key")
			lease := rapid.SampledFrom([]time.Duration{Long, Long, Brief}).Draw(t, "lease")
			switch rapid.IntRange(0, 3).Draw(t, "call") {
			case 0, 1:
				of := rapid.SampledFrom([]claims.Priority{claims.Low, claims.High}).Draw(t, "priority")
				version := begin(t, p, k, of, lease)
				if free := now[k].version == 0 || of > now[k].of; free != (version != 0) {
					t.Fatalf("begin with priority %d over %+v: version %d", of, now[k], version)
				}
				if version == 0 {
					break
				}
				if version <= last[k] {
					t.Fatalf("version %d came after %d", version, last[k])
				}
				last[k], now[k], versions = version, held{version, of}, append(versions, version)
				if lease == Brief {
					delete(now, k)
				}
			case 2:
				version := s.version(t, versions, now[k].version)
				if kept := keep(t, p, k, version, lease); kept != (version == now[k].version) {
					t.Fatalf("keep %d of %+v: %v", version, now[k], kept)
				} else if kept && lease == Brief {
					delete(now, k)
				}
			case 3:
				version := s.version(t, versions, now[k].version)
				if ended := end(t, p, k, version); ended != (version == now[k].version) {
					t.Fatalf("end %d of %+v: %v", version, now[k], ended)
				} else if ended {
					delete(now, k)
				}
			}
		}
	})
}

// version is the one in force, or any that was given.
func (suite) version(t *rapid.T, given []int64, inForce int64) int64 {
	if inForce != 0 && rapid.Bool().Draw(t, "in force") {
		return inForce
	}
	return rapid.SampledFrom(given).Draw(t, "version")
}

// AtOnce has n callers ask at the same time, spread over ports, and returns the versions that were given.
func AtOnce(n int, ports []claims.Port, ask func(p claims.Port, i int) int64) []int64 {
	var (
		all   sync.WaitGroup
		start = make(chan struct{})
		got   = make([]int64, n)
	)
	for i := range n {
		all.Go(func() {
			<-start
			got[i] = ask(ports[i%len(ports)], i)
		})
	}
	close(start)
	all.Wait()
	return slices.DeleteFunc(got, func(v int64) bool { return v == 0 })
}

func (s suite) oneOfMany(t *testing.T) {
	t.Parallel()
	for range 20 {
		k := key("many")
		if got := AtOnce(10, s.ports, func(p claims.Port, _ int) int64 { return begin(t, p, k, claims.High, Long) }); len(got) != 1 {
			t.Fatalf("versions %v, want one", got)
		}
	}
}

// oneUpgrade: of several that come at once over a low claim, one takes it over, and the low one is over.
func (s suite) oneUpgrade(t *testing.T) {
	t.Parallel()
	for range 20 {
		k := key("upgrade")
		low := begin(t, s.ports[0], k, claims.Low, Long)
		got := AtOnce(10, s.ports, func(p claims.Port, i int) int64 { return begin(t, p, k, claims.Priority(i%2), Long) })
		if len(got) != 1 || got[0] <= low {
			t.Fatalf("versions %v over the low %d, want one above", got, low)
		}
		if keep(t, s.ports[1], k, low, Long) || end(t, s.ports[0], k, low) {
			t.Fatal("the low claim still holds")
		}
		if !keep(t, s.ports[2], k, got[0], Long) {
			t.Fatal("the high claim was lost")
		}
	}
}

func (s suite) oneEndWins(t *testing.T) {
	t.Parallel()
	for range 20 {
		k := key("end")
		old := begin(t, s.ports[0], k, claims.Low, Brief)
		version := begin(t, s.ports[1], k, claims.High, Long)
		won := AtOnce(10, s.ports, func(p claims.Port, i int) int64 {
			of := version
			if i%3 == 2 {
				of = old
			}
			if end(t, p, k, of) {
				return of
			}
			return 0
		})
		if !slices.Equal(won, []int64{version}) {
			t.Fatalf("ended %v, want %d once", won, version)
		}
	}
}

// oneInside: many take turns. Two are never inside, and the versions rise in the order of the turns.
func (s suite) oneInside(t *testing.T) {
	t.Parallel()
	k, inside := key("inside"), atomic.Int64{}
	var turns []int64
	AtOnce(6, s.ports, func(p claims.Port, _ int) int64 {
		for done := 0; done < 15 && !t.Failed(); {
			version := begin(t, p, k, claims.High, Long)
			if version == 0 {
				continue
			}
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d are inside", n)
			}
			turns = append(turns, version) // one is inside, or the race detector tells
			inside.Add(-1)
			if !end(t, p, k, version) {
				t.Errorf("the claim %d was lost", version)
			}
			done++
		}
		return 0
	})
	if !slices.IsSorted(turns) || len(slices.Compact(slices.Clone(turns))) != len(turns) || len(turns) != 90 {
		t.Errorf("versions of %d turns: %v", len(turns), turns)
	}
}
