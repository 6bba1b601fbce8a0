package bisect_test

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"docket/internal/bisect"
)

type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

// conserved checks what holds whatever happens: each item is in exactly one
// place, in order, and nobody is a suspect who did not fail alone, twice.
func conserved(t reporter, tb *table, items []int, got bisect.Result[int]) {
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
			first++ // by the error of the whole
		}
		if first != 1 || again != 1 || s.Err == nil {
			t.Fatalf("%d is a suspect after %d and %d failures alone, with error %v", s.Item, first, again, s.Err)
		}
	}
	if n := len(items); got.Asked > 2*(n-1) || got.Confirmed > n || got.Asked+got.Confirmed != len(tb.log) {
		t.Fatalf("asked %d and confirmed %d of %d items in %d asks", got.Asked, got.Confirmed, n, len(tb.log))
	}
}

// refusals draws what the table may refuse, the unreasonable among it.
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
	case "whim": // the same answer to the same part, without any sense
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

func TestNothingIsLostOrDoubledWhateverTheTableRefuses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 70).Draw(t, "n")
		kind, refuse := refusals(t, n, "items", "pair", "threshold", "whim", "flapping")
		tb := &table{refuse: refuse}
		got := bisect.Isolate(context.Background(), numbers(n), errData, tb.ask, judge)
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

func TestTheWorldMayEndAtEveryAsk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 24).Draw(t, "n")
		_, refuse := refusals(t, n, "items", "pair", "threshold", "whim") // runs alike each time
		whole := &table{refuse: refuse}
		bisect.Isolate(context.Background(), numbers(n), errData, whole.ask, judge)
		for j := 1; j <= len(whole.log); j++ {
			last := fmt.Errorf("ask %d: %w", j, errWorld)
			tb := &table{refuse: refuse, before: func(ask int) error {
				if ask == j {
					return last
				}
				return nil
			}}
			got := bisect.Isolate(context.Background(), numbers(n), errData, tb.ask, judge)
			conserved(t, tb, numbers(n), got)
			if got.Err != last || len(tb.log) != j {
				t.Fatalf("end at ask %d: error %v after %d asks", j, got.Err, len(tb.log))
			}
		}
	})
}

func bound(n, k int) float64 {
	k = max(k, 1)
	return 2*float64(k)*(math.Log2(float64(n)/float64(k))+1) + 2
}

// counting asks a set of n of which bad fail, without remembering the asks.
func counting(n int, bad []bool) (asks, confirmed, suspects int) {
	below := make([]int, n+1) // how many bad ones there are before each
	for i, is := range bad {
		below[i+1] = below[i]
		if is {
			below[i+1]++
		}
	}
	got := bisect.Isolate(context.Background(), numbers(n), errData, func(_ context.Context, part []int, _ bool) error {
		if below[part[len(part)-1]+1] > below[part[0]] {
			return errData
		}
		return nil
	}, func(error) bisect.Answer { return bisect.Divide })
	return got.Asked, got.Confirmed, len(got.Suspects)
}

func checkCost(t reporter, n int, bad []bool) {
	t.Helper()
	k := 0
	for _, is := range bad {
		if is {
			k++
		}
	}
	asks, confirmed, suspects := counting(n, bad)
	if suspects != k {
		t.Fatalf("n=%d: found %d of %d", n, suspects, k)
	}
	if float64(asks+1) > bound(n, k) {
		t.Fatalf("n=%d k=%d: %d asks and the whole, more than %.1f", n, k, asks, bound(n, k))
	}
	if falseAlarms := max(1-k, 0); confirmed > k+falseAlarms {
		t.Fatalf("n=%d k=%d: %d confirmations", n, k, confirmed)
	}
}

func TestTheCostStaysWithinItsBoundForEverySize(t *testing.T) {
	t.Parallel()
	patterns := map[string]func(i, n int) bool{
		"none":      func(int, int) bool { return false },
		"first":     func(i, _ int) bool { return i == 0 },
		"last":      func(i, n int) bool { return i == n-1 },
		"middle":    func(i, n int) bool { return i == n/2 },
		"alternate": func(i, _ int) bool { return i%2 == 0 },
		"odd":       func(i, _ int) bool { return i%2 == 1 },
		"all":       func(int, int) bool { return true },
	}
	for name, is := range patterns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= 4096; n++ {
				bad := make([]bool, n)
				for i := range bad {
					bad[i] = is(i, n)
				}
				checkCost(t, n, bad)
			}
		})
	}
}

func TestTheCostStaysWithinItsBoundForRandomSets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4096).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		bad := make([]bool, n)
		for _, i := range random.Perm(n)[:k] {
			bad[i] = true
		}
		checkCost(t, n, bad)
	})
}

// worst has for each k the most asks that k bad ones among n can take, given
// that the set is known to fail: either half may hold any share of them.
func worst(n int, memo map[int][]int) []int {
	if n == 1 {
		return []int{0, 0}
	}
	if known, ok := memo[n]; ok {
		return known
	}
	l, r := worst(n/2, memo), worst(n-n/2, memo)
	most := make([]int, n+1)
	for left := range l {
		for right := range r {
			var asks int
			switch {
			case left == 0 && right == 0:
				continue
			case right == 0: // both asked
				asks = 2 + l[left]
			case left == 0 && len(r) == 2: // a single one is asked although inferred
				asks = 2
			case left == 0: // the right one inferred
				asks = 1 + r[right]
			default:
				asks = 2 + l[left] + r[right]
			}
			most[left+right] = max(most[left+right], asks)
		}
	}
	memo[n] = most
	return most
}

// tableOfThePackage reads the rows of the package's documentation.
func tableOfThePackage(t *testing.T) (rows [][4]int) {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(doc)) {
		var row [4]int
		if n, _ := fmt.Sscanf(line, "// %d %d %d %d", &row[0], &row[1], &row[2], &row[3]); n == 4 {
			rows = append(rows, row)
		}
	}
	return rows
}

func TestTheCostTableOfThePackageIsTheWorstCase(t *testing.T) {
	t.Parallel()
	memo := map[int][]int{}
	rows := tableOfThePackage(t)
	if len(rows) != 9 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		n, k, asks, confirmations := row[0], row[1], row[2], row[3]
		if got := worst(n, memo)[k]; got != asks || confirmations != k {
			t.Errorf("%d bad among %d: at worst %d asks, the package says %d and %d", k, n, got, asks, confirmations)
		}
		if float64(asks+1) > bound(n, k) {
			t.Errorf("%d bad among %d: over the bound", k, n)
		}
	}
	for n := 2; n <= 256; n++ { // the recurrence itself never leaves the bound
		for k, asks := range worst(n, memo) {
			if k > 0 && float64(asks+1) > bound(n, k) {
				t.Fatalf("%d bad among %d: %d asks", k, n, asks)
			}
		}
	}
}

// The recurrence is only worth something if a search can be as bad as it says
// and no worse: all subsets of small sets are tried.
func TestTheWorstCaseIsMetExactly(t *testing.T) {
	t.Parallel()
	memo := map[int][]int{}
	for n := 2; n <= 11; n++ {
		seen := make([]int, n+1)
		for set := 1; set < 1<<n; set++ {
			bad, k := make([]bool, n), 0
			for i := range bad {
				if set&(1<<i) != 0 {
					bad[i] = true
					k++
				}
			}
			asks, _, _ := counting(n, bad)
			seen[k] = max(seen[k], asks)
		}
		if !slices.Equal(seen, worst(n, memo)) {
			t.Errorf("n=%d: seen %v, computed %v", n, seen, worst(n, memo))
		}
	}
}

func FuzzNothingIsLostOrDoubled(f *testing.F) {
	f.Add([]byte{0b1010, 3, 7}, uint8(8))
	f.Add([]byte{}, uint8(1))
	f.Fuzz(func(t *testing.T, script []byte, size uint8) {
		n := int(size)%200 + 1
		tb := &table{refuse: func([]int) bool { return false }}
		tb.before = func(ask int) error { // one byte of the script for each ask
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
		got := bisect.Isolate(context.Background(), numbers(n), errData, tb.ask, judge)
		conserved(t, tb, numbers(n), got)
		if got.Err != nil && !errors.Is(got.Err, errWorld) {
			t.Fatalf("error %v", got.Err)
		}
	})
}
