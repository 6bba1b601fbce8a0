package store

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"docket/internal/consumer/pipeline"
	"docket/internal/record/decision"
)

// simply is the order as it is said in words: by id, then by time, then by place in the batch.
func simply(rows []pipeline.Row) (firsts, doubles []int) {
	all := make([]int, len(rows))
	for i := range all {
		all[i] = i
	}
	identity := func(a, b int) int {
		return cmp.Or(cmp.Compare(rows[a].Log.ID, rows[b].Log.ID), cmp.Compare(micros(rows[a].Log.Time), micros(rows[b].Log.Time)))
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Or(identity(a, b), cmp.Compare(a, b)) })
	for k, i := range all {
		if k > 0 && identity(all[k-1], i) == 0 {
			doubles = append(doubles, i)
		} else {
			firsts = append(firsts, i)
		}
	}
	return firsts, doubles
}

// someIDs have a common beginning or none, and some end within others.
var someIDs = map[string]func(*rand.Rand) string{
	"short":    func(r *rand.Rand) string { return []string{"", "a", "b", "ab", "B", "a\x00", "\xff"}[r.IntN(7)] },
	"uuids":    func(r *rand.Rand) string { return fmt.Sprintf("%08x-%04x-%016x", r.Uint32(), r.IntN(4), r.Uint64()) },
	"few":      func(r *rand.Rand) string { return fmt.Sprintf("%08x-%04x", r.IntN(900)*7919, r.IntN(2)) },
	"numbered": func(r *rand.Rand) string { return fmt.Sprint("decision-", r.IntN(3000)) },
	"one":      func(*rand.Rand) string { return "0123456789" },
	"alike": func(r *rand.Rand) string { // many have more in common than the beginning that all share
		return "common" + []string{"x", "12345678"}[r.IntN(2)] + strings.Repeat("z", r.IntN(20))
	},
	"bytes": func(r *rand.Rand) string {
		b := make([]byte, r.IntN(12))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return string(b)
	},
}

func rowsOf(n int, r *rand.Rand, id func(*rand.Rand) string) []pipeline.Row {
	rows := make([]pipeline.Row, n)
	for i := range rows {
		rows[i].Log = &decision.Log{ID: id(r), Time: time.Unix(r.Int64N(5)-2, r.Int64N(2500))}
	}
	return rows
}

func TestOrder_SortsAndFindsDoubles(t *testing.T) {
	t.Parallel()
	kinds := slices.Sorted(maps.Keys(someIDs))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(fewRows-2, fewRows+2), rapid.IntRange(0, 2000)).Draw(t, "rows")
		id := someIDs[rapid.SampledFrom(kinds).Draw(t, "ids")]
		rows := rowsOf(n, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), id)
		firsts, doubles := order(rows)
		wantFirsts, wantDoubles := simply(rows)
		if !slices.Equal(firsts, wantFirsts) || !slices.Equal(doubles, wantDoubles) {
			t.Fatalf("%d rows: %v and %v, want %v and %v", n, firsts, doubles, wantFirsts, wantDoubles)
		}
	})
}

func TestOrder_MemoryIsUsedAgain(t *testing.T) { //nolint:paralleltest // it counts what the whole process allocates
	rows, s := rowsOf(5000, rand.New(rand.NewPCG(1, 1)), someIDs["uuids"]), new(sorter)
	if n := testing.AllocsPerRun(20, func() { s.sort(rows) }); n > 0 {
		t.Errorf("%.0f allocations", n)
	}
}

func BenchmarkOrder(b *testing.B) {
	for _, kind := range []string{"uuids", "numbered", "alike"} {
		rows := rowsOf(5000, rand.New(rand.NewPCG(1, 1)), someIDs[kind])
		for name, by := range map[string]func([]pipeline.Row) ([]int, []int){"by key": order, "simply": simply} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					by(rows)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
			})
		}
	}
}
