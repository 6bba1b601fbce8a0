package bisect_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// worst is the most calls that k bad items among n can take, by a recurrence. Behind each bad item an adversary
// chooses the distance to the next.
type worst struct {
	hints bool
	memo  map[[3]int]int
}

func newWorst(hints bool) worst { return worst{hints, map[[3]int]int{}} }

// whole is for a set that is known to fail, with k bad items.
func (w worst) whole(n, k int) (asks int) {
	if w.hints && n > 2 {
		asks = 1 // all but the named one
	}
	if asks > 0 && k == 1 {
		return asks + 1
	}
	most := 0
	for gap := range n - k + 1 {
		most = max(most, w.pin(n, gap, true)+w.behind(n-gap-1, min(n/2, gap+1), k-1))
	}
	return asks + most
}

// behind is for the m items behind a bad one, k of them bad, when the next stretch has this length.
func (w worst) behind(m, length, k int) (asks int) {
	length = min(max(1, length), m)
	key := [3]int{m, length, k}
	if most, ok := w.memo[key]; ok {
		return most
	}
	if k == 0 {
		for ; m > 0; m, length = m-length, 2*length {
			length = min(length, m)
			asks++
		}
		return asks
	}
	most := 0
	for gap := range m - k + 1 {
		asks, at, stretch := 1, 0, length
		for ; at+stretch <= gap; asks++ {
			at, stretch = at+stretch, min(2*stretch, m-at-stretch)
		}
		most = max(most, asks+w.pin(stretch, gap-at, true)+w.behind(m-gap-1, min(stretch/2, gap+1), k-1))
	}
	w.memo[key] = most
	return most
}

// pin is the cost to reach the bad item at place in a part, and to ask it alone. The flag asked says whether the part
// was asked.
func (w worst) pin(size, place int, asked bool) int {
	switch left := size / 2; {
	case size == 1 && asked:
		return 0
	case size == 1 || w.hints && place == 0:
		return 1
	case w.hints:
		return 2
	case place < left:
		return 1 + w.pin(left, place, true)
	default:
		return 1 + w.pin(size-left, place-left, false)
	}
}

// tableOfThePackage reads the rows with this many numbers from the package documentation.
func tableOfThePackage(t *testing.T, columns int) (rows [][]int) {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(doc)) {
		var row []int
		fields := strings.Fields(strings.TrimPrefix(line, "//"))
		for _, field := range fields {
			if n, err := strconv.Atoi(field); err == nil {
				row = append(row, n)
			}
		}
		if len(row) == columns && len(fields) == columns {
			rows = append(rows, row)
		}
	}
	return rows
}

func TestCost_DocumentedWorstCases(t *testing.T) {
	t.Parallel()
	plain, hinted := newWorst(false), newWorst(true)
	rows := tableOfThePackage(t, 5)
	if len(rows) != 9 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		n, k := row[0], row[1]
		got := []int{n, k, plain.whole(n, k), hinted.whole(n, k), k}
		if !slices.Equal(got, row) {
			t.Errorf("at worst %v, the package says %v", got, row)
		}
	}
	for n := 2; n <= 64; n++ { // the recurrence itself stays within the bounds
		for k := 1; k <= n; k++ {
			if asks := plain.whole(n, k); float64(asks+1) > bound(n, k) {
				t.Fatalf("%d bad among %d: %d asks", k, n, asks)
			}
			if asks := hinted.whole(n, k); float64(1+asks+k) > hintedBound(n, k) {
				t.Fatalf("%d bad among %d, all named: %d asks", k, n, asks)
			}
		}
	}
}

// The recurrence is useful only if a search can be exactly that bad. So all subsets of small sets are tried.
func TestCost_WorstCaseIsMetExactly(t *testing.T) {
	t.Parallel()
	for _, hints := range []bool{false, true} {
		w := newWorst(hints)
		for n := 2; n <= 11; n++ {
			seen, computed := make([]int, n+1), make([]int, n+1)
			for set := 1; set < 1<<n; set++ {
				bad, k := make([]bool, n), 0
				for i := range bad {
					if set&(1<<i) != 0 {
						bad[i] = true
						k++
					}
				}
				var hint hinter
				if hints {
					hint = right(bad)
				}
				seen[k] = max(seen[k], charge(numbers(n), bad, hint).asks-1)
				computed[k] = w.whole(n, k)
			}
			if !slices.Equal(seen, computed) {
				t.Errorf("n=%d, hints %t: seen %v, computed %v", n, hints, seen, computed)
			}
		}
	}
}
