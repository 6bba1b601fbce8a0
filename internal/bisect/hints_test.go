package bisect_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"docket/internal/bisect"
)

func TestHint_OneNamedItemTakesFourWrites(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 1, 4, 7} {
		tb := &table{refuse: among(at)}
		got := bisect.Isolate(t.Context(), numbers(8), errData, tb.ask, judge, right(marked(8, at)))
		expect(t, "suspects", itemsOf(got.Suspects), []int{at})
		var parts [][]int
		for _, a := range tb.log {
			parts = append(parts, a.part)
		}
		others := slices.Delete(numbers(8), at, at+1)
		expect(t, "asks", parts, [][]int{others, {at}, {at}})
		expect(t, "again", []bool{tb.log[1].again, tb.log[2].again}, []bool{false, true})
		expect(t, "counts", []int{got.Asked, got.Confirmed}, []int{2, 1})
		expect(t, "written", tb.written, others)
	}
}

func TestHint_WrongItemIsWritten(t *testing.T) {
	t.Parallel()
	for _, named := range []int{0, 3, 7} {
		tb := &table{refuse: among(5)}
		got := bisect.Isolate(t.Context(), numbers(8), errData, tb.ask, judge, func(_ error, part []int) (int, bool) {
			i := slices.Index(part, named)
			return i, i >= 0
		})
		expect(t, "suspects", itemsOf(got.Suspects), []int{5})
		expect(t, "written", tb.written, []int{0, 1, 2, 3, 4, 6, 7})
	}
	tb := &table{refuse: among()} // nothing is wrong any more
	got := bisect.Isolate(t.Context(), numbers(8), errData, tb.ask, judge, func(error, []int) (int, bool) { return 2, true })
	expect(t, "suspects", len(got.Suspects), 0)
	expect(t, "written", tb.written, []int{0, 1, 3, 4, 5, 6, 7, 2})
}

func TestHint_NotUsedAfterAWrongOne(t *testing.T) {
	t.Parallel()
	for _, named := range []int{0, 3} {
		tb := &table{refuse: among(5, 7)}
		got := bisect.Isolate(t.Context(), numbers(8), errData, tb.ask, judge, func(_ error, part []int) (int, bool) {
			if slices.Contains(tb.written, named) {
				t.Errorf("asked about %v after item %d, which it had named, was written", part, named)
			}
			i := slices.Index(part, named)
			return i, i >= 0
		})
		expect(t, "suspects", itemsOf(got.Suspects), []int{5, 7})
	}
}

func TestHint_BeyondThePart(t *testing.T) {
	t.Parallel()
	for _, index := range []int{-1, 1 << 40} {
		tb, plain := &table{refuse: among(5)}, &table{refuse: among(5)}
		bisect.Isolate(t.Context(), numbers(8), errData, tb.ask, judge, func(_ error, part []int) (int, bool) {
			return max(index, len(part)*min(index, 1)), true
		})
		isolate(t, plain, 8)
		expect(t, "asks", len(tb.log), len(plain.log))
	}
}

// An exclusion constraint names the later of two.
func TestHint_EarlierOfTwoWins(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 60).Draw(t, "n")
		rival := make([]int, n) // for each item an earlier one, or itself
		for i := range rival {
			rival[i] = i
			if rapid.IntRange(0, 9).Draw(t, "any") == 0 {
				rival[i] = rapid.IntRange(0, i).Draw(t, "rival")
			}
		}
		tb := &table{}
		stumbles := func(part []int) int {
			return slices.IndexFunc(part, func(item int) bool {
				has := func(other int) bool { return slices.Contains(tb.written, other) || slices.Contains(part, other) }
				return slices.ContainsFunc(numbers(n), func(other int) bool {
					return other != item && has(other) && (rival[item] == other || other > item && rival[other] == item && slices.Contains(tb.written, other))
				})
			})
		}
		tb.refuse = func(part []int) bool { return stumbles(part) >= 0 }
		got := bisect.Isolate(context.Background(), numbers(n), errData, tb.ask, judge, func(_ error, part []int) (int, bool) {
			i := stumbles(part)
			return i, i >= 0
		})
		var want []int // by row
		for i, other := range rival {
			if other != i && !slices.Contains(want, other) {
				want = append(want, i)
			}
		}
		if found := itemsOf(got.Suspects); !slices.Equal(found, want) || got.Err != nil {
			t.Fatalf("suspects %v, want %v (%v)", found, want, got.Err)
		}
	})
}

// hints draws the hints for a part with these bad items, wrong hints included.
func hints(t *rapid.T, bad []bool) (kind string, hint hinter) {
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "hints"), 2))
	names := right(bad)
	switch kind := rapid.SampledFrom([]string{"right", "absent", "first", "last", "beyond", "random", "by turns", "some"}).Draw(t, "hint"); kind {
	case "right":
		return kind, names
	case "absent":
		return kind, nil
	case "first":
		return kind, func(error, []int) (int, bool) { return 0, true }
	case "last":
		return kind, func(_ error, part []int) (int, bool) { return len(part) - 1, true }
	case "beyond":
		return kind, func(_ error, part []int) (int, bool) { return len(part) + random.IntN(3), true }
	case "random":
		return kind, func(_ error, part []int) (int, bool) { return random.IntN(len(part)), true }
	case "by turns":
		return kind, func(err error, part []int) (int, bool) {
			if random.IntN(4) == 0 {
				return random.IntN(len(part)), true
			}
			return names(err, part)
		}
	default: // some bad ones are found without a place, as by foreign keys, behind all others
		told := make([]bool, len(bad))
		for i := range told {
			told[i] = bad[i] && random.IntN(2) == 0
		}
		return kind, right(told)
	}
}

// marked is a set of n in which these are bad.
func marked(n int, items ...int) []bool {
	bad := make([]bool, n)
	for _, i := range items {
		bad[i] = true
	}
	return bad
}

func TestHint_FindsExactlyTheBadOnes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(1, 70), rapid.IntRange(1, 10000)).Draw(t, "n")
		k := rapid.OneOf(rapid.IntRange(0, min(n, 3)), rapid.IntRange(0, n/100), rapid.IntRange(0, n)).Draw(t, "k")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		want := random.Perm(n)[:k]
		if near := rapid.Bool().Draw(t, "near each other"); near {
			from := random.IntN(n - k + 1)
			for i := range want {
				want[i] = from + i
			}
		}
		slices.Sort(want)
		bad := marked(n, want...)
		kind, hint := hints(t, bad)
		b := charge(numbers(n), bad, hint)
		if !slices.Equal(b.found, want) {
			t.Fatalf("n=%d, %d bad, hints %s: found %d", n, k, kind, b.suspects)
		}
		writes, sent := bound(n, k)+float64(max(1, k)+3), 11*n+2*k
		if kind == "right" && k > 0 {
			writes, sent = hintedBound(n, k), 6*n+2*k
		}
		if float64(b.writes()) > writes || b.rows > sent {
			t.Fatalf("n=%d, %d bad, hints %s: %d writes, at most %.1f; %d sent, at most %d", n, k, kind, b.writes(), writes, b.rows, sent)
		}
	})
}

func TestHint_LosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		_, refuse := refusals(t, n, "items", "pair", "threshold", "whim", "flapping")
		_, hint := hints(t, marked(n, rapid.SliceOfDistinct(rapid.IntRange(0, n-1), rapid.ID).Draw(t, "named")...))
		dies := rapid.IntRange(1, 4*n).Draw(t, "dies")
		tb := &table{refuse: refuse, before: func(ask int) error {
			if ask >= dies {
				return fmt.Errorf("ask %d: %w", ask, errWorld)
			}
			return nil
		}}
		got := bisect.Isolate(context.Background(), numbers(n), errData, tb.ask, judge, hint)
		slices.Sort(tb.written) // the first named item may have come last
		conservedWithin(t, tb, numbers(n), got, 2*(n-1)+3)
		if got.Err != nil && (!errors.Is(got.Err, errWorld) || len(tb.log) != dies) {
			t.Fatalf("error %v after %d asks", got.Err, len(tb.log))
		}
	})
}
