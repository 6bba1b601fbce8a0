package bisect_test

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"docket/internal/bisect"
)

type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

// conserved checks that each item is in exactly one place, in order, and that each suspect failed alone, twice.
func conserved(t reporter, tb *table, items []int, got bisect.Result[int]) {
	t.Helper()
	conservedWithin(t, tb, items, got, 2*(len(items)-1))
}

func conservedWithin(t reporter, tb *table, items []int, got bisect.Result[int], asks int) {
	t.Helper()
	suspects := itemsOf(got.Suspects)
	all := slices.Concat(tb.written, suspects, got.Homeless)
	slices.Sort(all)
	if !slices.Equal(all, items) {
		t.Fatalf("written %v + suspects %v + homeless %v are not %v", tb.written, suspects, got.Homeless, items)
	}
	for name, list := range map[string][]int{"written": tb.written, "suspects": suspects, "homeless": got.Homeless} {
		if !slices.IsSorted(list) {
			t.Fatalf("%s out of order: %v", name, list)
		}
	}
	if got.Err != nil && len(suspects) > 0 {
		t.Fatalf("%v and suspects %v", got.Err, suspects)
	}
	if got.Err == nil && len(got.Homeless) > 0 {
		t.Fatalf("homeless %v without an error", got.Homeless)
	}
	for _, s := range got.Suspects {
		first, again := tb.failedAlone(s.Item)
		if len(items) == 1 {
			first++ // by the error of the whole set
		}
		if first != 1 || again != 1 || s.Err == nil {
			t.Fatalf("%d is a suspect after %d and %d failures alone, with error %v", s.Item, first, again, s.Err)
		}
	}
	if n := len(items); got.Asked > asks || got.Confirmed > n || got.Asked+got.Confirmed != len(tb.log) {
		t.Fatalf("asked %d and confirmed %d of %d items in %d asks", got.Asked, got.Confirmed, n, len(tb.log))
	}
}

// refusals draws the refusals of the table, unreasonable ones included.
func refusals(t *rapid.T, n int, kinds ...string) (string, func([]int) bool) {
	item := rapid.IntRange(0, n-1)
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "items":
		return kind, among(rapid.SliceOfDistinct(item, rapid.ID).Draw(t, "bad")...)
	case "pair":
		a, b := item.Draw(t, "a"), item.Draw(t, "b")
		return kind, func(part []int) bool { return slices.Contains(part, a) && slices.Contains(part, b) }
	case "threshold":
		most := rapid.IntRange(0, n).Draw(t, "most")
		return kind, func(part []int) bool { return len(part) > most }
	case "whim": // the same answer to the same part, for no reason
		seed, per := rapid.Int().Draw(t, "seed"), rapid.IntRange(1, 10).Draw(t, "in ten")
		return kind, func(part []int) bool {
			return maphash.Comparable(whimSeed, [3]int{seed, part[0], len(part)})%10 < uint64(per)
		}
	default:
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		return kind, func([]int) bool { return random.IntN(2) == 0 }
	}
}

var whimSeed = maphash.MakeSeed()

func TestIsolate_LosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 70).Draw(t, "n")
		kind, refuse := refusals(t, n, "items", "pair", "threshold", "whim", "flapping")
		tb := &table{refuse: refuse}
		got := bisect.Isolate(context.Background(), numbers(n), errData, tb.ask, judge, nil)
		conserved(t, tb, numbers(n), got)
		if got.Err != nil {
			t.Fatalf("error %v", got.Err)
		}
		if kind == "items" || kind == "pair" {
			for i := range n {
				if alone := refuse([]int{i}); alone == slices.Contains(tb.written, i) {
					t.Fatalf("%d alone refused: %t, and yet written: %t", i, alone, !alone)
				}
			}
		}
	})
}

func TestIsolate_EndAtEveryAsk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 24).Draw(t, "n")
		_, refuse := refusals(t, n, "items", "pair", "threshold", "whim") // the same in each run
		whole := &table{refuse: refuse}
		bisect.Isolate(context.Background(), numbers(n), errData, whole.ask, judge, nil)
		for j := 1; j <= len(whole.log); j++ {
			last := fmt.Errorf("ask %d: %w", j, errWorld)
			tb := &table{refuse: refuse, before: func(ask int) error {
				if ask == j {
					return last
				}
				return nil
			}}
			got := bisect.Isolate(context.Background(), numbers(n), errData, tb.ask, judge, nil)
			conserved(t, tb, numbers(n), got)
			if got.Err != last || len(tb.log) != j {
				t.Fatalf("end at ask %d: error %v after %d asks", j, got.Err, len(tb.log))
			}
		}
	})
}

func FuzzIsolate(f *testing.F) {
	f.Add([]byte{0b1010, 3, 7}, uint8(8))
	f.Add([]byte{}, uint8(1))
	f.Fuzz(func(t *testing.T, script []byte, size uint8) {
		n := int(size)%200 + 1
		tb := &table{refuse: func([]int) bool { return false }}
		tb.before = func(ask int) error { // one byte of the script for each call
			if ask > len(script) {
				return nil
			}
			switch b := script[ask-1]; {
			case b >= 250:
				return errWorld
			case b%2 == 1:
				return errData
			}
			return nil
		}
		got := bisect.Isolate(context.Background(), numbers(n), errData, tb.ask, judge, nil)
		conserved(t, tb, numbers(n), got)
		if got.Err != nil && !errors.Is(got.Err, errWorld) {
			t.Fatalf("error %v", got.Err)
		}
	})
}
