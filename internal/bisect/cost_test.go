package bisect_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"docket/internal/bisect"
)

func bound(n, k int) float64 {
	k = max(k, 1)
	return 2*float64(k)*(math.Log2(float64(n)/float64(k))+1) + 2
}

// hintedBound limits all writes, confirmations included, if every bad item is named.
func hintedBound(n, k int) float64 {
	k = max(k, 1)
	return float64(k) * (math.Log2(float64(n)/float64(k)) + 4)
}

// bill is the cost of a search, including the write of the whole set.
type bill struct {
	asks, confirmed, suspects, rows int
	found                           []int
}

func (b bill) writes() int { return b.asks + b.confirmed }

// hinter reads an index from an error about a part, like the caller of Isolate.
type hinter func(err error, part []int) (int, bool)

// right names the first bad item of a part.
func right(bad []bool) hinter {
	return func(_ error, part []int) (int, bool) {
		i := slices.IndexFunc(part, func(item int) bool { return bad[item] })
		return i, i >= 0
	}
}

// charge searches a set with these bad items, without remembering the calls.
func charge(items []int, bad []bool, hint hinter) bill {
	n := len(items)
	below := make([]int, n+1) // the number of bad items before each
	for i, is := range bad {
		below[i+1] = below[i]
		if is {
			below[i+1]++
		}
	}
	b := bill{asks: 1, rows: n}
	got := bisect.Isolate(context.Background(), items, errData, func(_ context.Context, part []int, _ bool) error {
		b.rows += len(part)
		lo, hi := part[0], part[len(part)-1]+1
		refused := below[hi] > below[lo]
		if hi-lo > len(part) { // one is left out
			refused = slices.ContainsFunc(part, func(item int) bool { return bad[item] })
		}
		if refused {
			return errData
		}
		return nil
	}, func(error) bisect.Answer { return bisect.Divide }, hint)
	b.asks += got.Asked
	b.confirmed, b.suspects, b.found = got.Confirmed, len(got.Suspects), itemsOf(got.Suspects)
	return b
}

// counting searches a set of n with these bad items, without hints.
func counting(n int, bad []bool) (asks, confirmed, suspects int) {
	b := charge(numbers(n), bad, nil)
	return b.asks - 1, b.confirmed, b.suspects
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

func TestCost_BoundForEverySize(t *testing.T) {
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

func TestCost_BoundForRandomSets(t *testing.T) {
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

// spread has k bad items at random places of 10000, the same at every call.
func spread(k int) []bool {
	return marked(10000, rand.New(rand.NewPCG(1, uint64(k))).Perm(10000)[:k]...)
}

func TestCost_DocumentedCounts(t *testing.T) {
	t.Parallel()
	rows := tableOfThePackage(t, 6)
	if len(rows) != 7 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		k := row[0]
		bad := spread(k)
		plain, hinted := charge(numbers(10000), bad, nil), charge(numbers(10000), bad, right(bad))
		got := []int{k, plain.writes(), plain.rows, hinted.writes(), hinted.rows, 10000 + k}
		if !slices.Equal(got, row) {
			t.Errorf("took %v, the package says %v", got, row)
		}
	}
}

func TestCost_OneAmongTenThousand(t *testing.T) {
	t.Parallel()
	items := numbers(10000)
	for place := 0; place < len(items); place += 7 {
		bad := marked(len(items), place)
		if b := charge(items, bad, nil); b.writes() > 31 || b.suspects != 1 {
			t.Fatalf("%d: %d writes", place, b.writes())
		}
		if b := charge(items, bad, right(bad)); b.writes() != 4 || b.suspects != 1 {
			t.Fatalf("%d, named: %d writes", place, b.writes())
		}
	}
}

// millis is the time of a write in the model: by COPY, on the machine of the measurement. The server reads as many of
// its rows as read says.
func millis(rows, read int, refused bool) float64 {
	fixed := 0.5
	switch {
	case rows == 1 && !refused:
		fixed = 0.42
	case refused:
		fixed = 0.35 + 0.15*min(1, float64(rows)/50)
	}
	return fixed + 0.013*float64(read) + 0.0015*float64(rows-read)
}

// BenchmarkModel reports the time of a search by the model, as a share of the time row by row.
func BenchmarkModel(b *testing.B) {
	for _, hints := range []bool{true, false} {
		for _, k := range []int{0, 1, 10, 100, 1000, 5000, 10000} {
			b.Run(fmt.Sprintf("hints=%t/bad=%d", hints, k), func(b *testing.B) {
				bad, items := spread(k), numbers(10000)
				var total float64
				for b.Loop() {
					total = modelled(items, bad, hints)
				}
				byRow := float64(len(items)-k)*millis(1, 1, false) + 2*float64(k)*millis(1, 1, true)
				b.ReportMetric(total, "model-ms")
				b.ReportMetric(total/byRow, "of-row-by-row")
			})
		}
	}
}

func modelled(items []int, bad []bool, hints bool) (total float64) {
	var hint hinter
	if hints {
		hint = right(bad)
	}
	ask := func(_ context.Context, part []int, _ bool) error {
		first := slices.IndexFunc(part, func(item int) bool { return bad[item] })
		read := len(part)
		if hints && first >= 0 { // otherwise the server sees it at the end
			read = first + 1
		}
		if total += millis(len(part), read, first >= 0); first >= 0 {
			return errData
		}
		return nil
	}
	first := ask(context.Background(), items, false)
	bisect.Isolate(context.Background(), items, first, ask, judge, hint)
	return total
}
