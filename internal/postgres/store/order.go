package store

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"docket/internal/consumer/pipeline"
	"docket/internal/record/decision"
)

// order gives the positions of rows in the order of their identity. So two batches with rows in common lock them in one
// order and cannot deadlock. The first row of each identity is in firsts, and the later ones are in doubles, in that order.
func order(rows []pipeline.Row) (firsts, doubles []int) {
	s := sorters.Get().(*sorter)
	defer s.release()
	firsts = make([]int, 0, len(rows))
	var last keyed
	for k, e := range s.sort(rows) {
		if k > 0 && e.key == last.key && sameIdentity(rows[e.row].Log, rows[last.row].Log) {
			doubles = append(doubles, int(e.row))
			continue
		}
		firsts, last = append(firsts, int(e.row)), e
	}
	return firsts, doubles
}

func sameIdentity(a, b *decision.Log) bool { return a.ID == b.ID && micros(a.Time) == micros(b.Time) }

// compareRows is the order of identities; of one identity the earlier row comes first.
func compareRows(rows []pipeline.Row, a, b uint32) int {
	x, y := rows[a].Log, rows[b].Log
	if c := strings.Compare(x.ID, y.ID); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(micros(x.Time), micros(y.Time)), cmp.Compare(a, b))
}

// keyed is a row by eight bytes of its id, which nearly always say where it belongs.
type keyed struct {
	key uint64
	row uint32
}

// sorter is memory to sort in. It holds numbers, and so keeps nothing of a batch alive.
type sorter struct{ entries, other []keyed }

var sorters = sync.Pool{New: func() any { return new(sorter) }}

// maxKept bounds what is kept for the next batch, in rows.
const maxKept = 1 << 16

func (s *sorter) release() {
	if cap(s.entries) <= maxKept {
		sorters.Put(s)
	}
}

// fewRows are sorted by comparing: below this the counting of bytes costs more.
const fewRows = 128

// sort gives the rows in their order. The result is good until release.
func (s *sorter) sort(rows []pipeline.Row) []keyed {
	s.entries = slices.Grow(s.entries[:0], len(rows))[:len(rows)]
	s.other = slices.Grow(s.other[:0], len(rows))[:len(rows)]
	skip := commonPrefix(rows)
	for i := range rows {
		s.entries[i] = keyed{keyOf(rows[i].Log.ID[skip:]), uint32(i)}
	}
	if len(rows) < fewRows {
		slices.SortFunc(s.entries, func(a, b keyed) int {
			return cmp.Or(cmp.Compare(a.key, b.key), compareRows(rows, a.row, b.row))
		})
		return s.entries
	}
	s.byKey()
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && s.entries[to].key == s.entries[from].key {
			to++
		}
		if to-from > 1 {
			slices.SortFunc(s.entries[from:to], func(a, b keyed) int { return compareRows(rows, a.row, b.row) })
		}
		from = to
	}
	return s.entries
}

// commonPrefix is how many bytes all the ids begin with alike: ids that tell their time or their maker first would
// otherwise have but one key.
func commonPrefix(rows []pipeline.Row) int {
	if len(rows) == 0 {
		return 0
	}
	common := rows[0].Log.ID
	for i := range rows {
		id := rows[i].Log.ID
		if strings.HasPrefix(id, common) {
			continue
		}
		n := 0
		for n < min(len(id), len(common)) && id[n] == common[n] {
			n++
		}
		common = common[:n]
	}
	return len(common)
}

// keyOf is the first bytes as a number that compares as they do; an end counts as a zero.
func keyOf(id string) uint64 {
	if len(id) >= 8 {
		return uint64(id[0])<<56 | uint64(id[1])<<48 | uint64(id[2])<<40 | uint64(id[3])<<32 |
			uint64(id[4])<<24 | uint64(id[5])<<16 | uint64(id[6])<<8 | uint64(id[7])
	}
	var b [8]byte
	copy(b[:], id)
	return binary.BigEndian.Uint64(b[:])
}

// byKey sorts by the keys' bytes, from the last to the first; entries of one key stay in the order that they were in.
func (s *sorter) byKey() {
	var counts [8][256]uint32
	for i := range s.entries {
		key := s.entries[i].key
		for b := range counts {
			counts[b][byte(key>>(8*b))]++
		}
	}
	for b := range counts {
		shift, at := 8*b, &counts[b]
		if at[byte(s.entries[0].key>>shift)] == uint32(len(s.entries)) {
			continue // all the same
		}
		sum := uint32(0)
		for i, n := range at {
			at[i], sum = sum, sum+n
		}
		for _, e := range s.entries {
			place := &at[byte(e.key>>shift)]
			s.other[*place] = e
			*place++
		}
		s.entries, s.other = s.other, s.entries
	}
}
