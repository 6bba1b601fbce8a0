package routing

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestTop_KeepsItsPromises compares with true counts. Halving is left out: it loses a fraction by design.
func TestTop_KeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		top := newTop(rapid.IntRange(1, 5).Draw(t, "most"))
		most := top.most
		truth, all := map[string]uint64{}, uint64(0)
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 12), 1, 200).Draw(t, "values") {
			name := fmt.Sprint(n)
			if n == 12 && len(top.heap) > 0 { // a settled value leaves
				c := top.heap[len(top.heap)/2]
				all -= truth[c.name]
				delete(truth, c.name)
				top.remove(c)
				most = 0 // the bound on the error needs a full history
			} else {
				truth[name]++
				all++
				top.arrive(name)
			}
			check(t, top)
			for name, c := range top.byName {
				if most > 0 && c.count < truth[name] || c.sure() > truth[name] || c.seen > truth[name] {
					t.Fatalf("%s has %d: count %d, sure %d, seen %d", name, truth[name], c.count, c.sure(), c.seen)
				}
			}
			for name, n := range truth {
				if most > 0 && n > all/uint64(most) && top.byName[name] == nil {
					t.Fatalf("%s with %d of %d is not among %d", name, n, all, most)
				}
			}
		}
	})
}

// check looks at the form of a top.
func check(t *rapid.T, top *top) {
	if len(top.heap) > top.most || len(top.heap) != len(top.byName) {
		t.Fatalf("%d of %d, %d by name", len(top.heap), top.most, len(top.byName))
	}
	for i, c := range top.heap {
		if c.place != i || top.byName[c.name] != c || i > 0 && c.count < top.heap[(i-1)/2].count {
			t.Fatalf("%+v at %d", c, i)
		}
	}
}

func TestTop_HalvingKeepsTheOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		top := newTop(8)
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 20), 1, 300).Draw(t, "values") {
			top.arrive(fmt.Sprint(n))
		}
		top.halve(uint(rapid.IntRange(0, 63).Draw(t, "halvings")))
		check(t, top)
	})
}
