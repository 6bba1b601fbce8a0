package pipeline

import (
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// scratch is the memory that a batch is worked on in. It is cleared and used again for a later one, of any partition,
// once each of its decisions has a home or the batch is given up, and only where nobody else can still look at it: see
// [scratch.spoil]. What outlives the batch, the records that are forwarded, is never made of it.
type scratch struct {
	decoder   decision.Decoder
	opener    envelope.Opener
	envelopes []envelope.Envelope
	items     []item
	all       []*item
	rows      []Row
	spoiled   bool
}

// mostKept is how many decisions a scratch keeps memory for from one batch to the next.
const mostKept = 16 << 10

// spoil says that a write failed: whatever the store left behind may look at its rows for a while yet, so the scratch is
// not used again.
func (d *scratch) spoil() { d.spoiled, d.rows = true, nil }

// room is an empty slab with room for n, the old one where it is large enough and not too large to keep.
func room[T any](slab []T, n int) []T {
	if cap(slab) < n || cap(slab) > max(n, mostKept) {
		return make([]T, 0, n)
	}
	return slab[:0]
}

// take cuts n off a slab, or off a new one where too few are left: what was taken before stays where it is.
func take[T any](slab *[]T, n int) []T {
	from := len(*slab)
	if cap(*slab)-from < n {
		from, *slab = 0, make([]T, 0, max(n, cap(*slab)))
	}
	*slab = (*slab)[:from+n]
	return (*slab)[from : from+n : from+n]
}

// rowsOf makes rows of items, good until the next call.
func (d *scratch) rowsOf(items []*item) []Row {
	rows := room(d.rows, len(items))
	for _, it := range items {
		o := &it.env.Origin
		rows = append(rows, Row{Log: it.log, Topic: o.Topic, Partition: o.Partition, Offset: o.Offset, Index: it.index, UploadedBy: it.env.UploadedBy})
	}
	d.rows = rows
	return rows
}
