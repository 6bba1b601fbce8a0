package historydb

import (
	"testing"
	"time"

	"docket/internal/history/reader"
)

// A window without an index is searched block by block. Row after row is tried once, and kept only where it is faster.
func TestSearch_ChoosesTheWayOfAWindow(t *testing.T) {
	t.Parallel()
	const minute, ms = time.Minute, time.Millisecond
	denied := reader.Filter{Verdicts: []reader.Verdict{reader.Denied}}
	type window struct {
		of   way
		span time.Duration
		took time.Duration
	}
	for name, c := range map[string]struct {
		filter  reader.Filter
		ways    ways
		indexed bool
		looked  []window
		want    way
	}{
		"in days with indexes":                  {filter: denied, ways: ways{askers: true, bloom: true}, indexed: true, want: byIndex},
		"not by who asked":                      {filter: denied, ways: ways{paths: true, bloom: true}, want: byRow},
		"nothing tells where a host is not":     {filter: denied, ways: ways{askers: true}, want: byRow},
		"the first window":                      {filter: denied, ways: ways{askers: true, bloom: true}, want: byBlocks},
		"a narrow window tells nothing":         {filter: denied, ways: ways{askers: true, bloom: true}, looked: []window{{byBlocks, 4 * minute, 9 * ms}}, want: byBlocks},
		"rows are tried":                        {filter: denied, ways: ways{askers: true, bloom: true}, looked: []window{{byBlocks, 16 * minute, 9 * ms}}, want: byRow},
		"rows are tried for a path":             {filter: reader.Filter{Paths: []string{"a/b"}}, ways: ways{askers: true, bloom: true}, looked: []window{{byBlocks, 16 * minute, 9 * ms}}, want: byRow},
		"nothing else rules rows out":           {ways: ways{askers: true, bloom: true}, looked: []window{{byBlocks, 16 * minute, 9 * ms}}, want: byBlocks},
		"rows are faster":                       {filter: denied, ways: ways{askers: true, bloom: true}, looked: []window{{byBlocks, 16 * minute, 8 * ms}, {byRow, 64 * minute, 20 * ms}}, want: byRow},
		"rows are a little faster":              {filter: denied, ways: ways{askers: true, bloom: true}, looked: []window{{byBlocks, 16 * minute, 8 * ms}, {byRow, 64 * minute, 23 * ms}}, want: byBlocks},
		"rows are slower":                       {filter: denied, ways: ways{askers: true, bloom: true}, looked: []window{{byBlocks, 16 * minute, 1 * ms}, {byRow, 64 * minute, 20 * ms}}, want: byBlocks},
		"the widest window counts":              {filter: denied, ways: ways{askers: true, bloom: true}, looked: []window{{byBlocks, 64 * minute, 40 * ms}, {byBlocks, 16 * minute, 1 * ms}, {byRow, 64 * minute, 20 * ms}}, want: byRow},
		"the last of two that are equally wide": {filter: denied, ways: ways{askers: true, bloom: true}, looked: []window{{byBlocks, 16 * minute, 1 * ms}, {byRow, 64 * minute, 20 * ms}, {byBlocks, 16 * minute, 9 * ms}}, want: byRow},
	} {
		from := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
		s := &search{filter: c.filter, ways: c.ways}
		s.noted(byBlocks, from, time.Millisecond) // the time to come says nothing
		s.at = spot{at: from, set: true}
		for _, w := range c.looked {
			s.noted(w.of, from.Add(-w.span), w.took)
		}
		if got := s.way(c.indexed); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}
