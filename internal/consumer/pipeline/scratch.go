package pipeline

import (
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// scratch is the working memory of a batch. A later batch, of any partition, uses it again after each decision has a
// home or the batch is given up. It is used again only if nothing can still read it: see [scratch.spoil]. Forwarded
// records outlive the batch, so they never use it.
type scratch struct {
	decoder   decision.Decoder
	opener    envelope.Opener
	envelopes []envelope.Envelope
	items     []item
	all       []*item
	rows      []Row
	spoiled   bool
}

// mostKept is the number of decisions that a scratch keeps memory for between batches.
const mostKept = 16 << 10

// spoil says that a write failed. The store may still read the rows for a while, so the scratch is not used again.
func (d *scratch) spoil() { d.spoiled, d.rows = true, nil }

// room returns an empty slab with room for n: the old one if it is large enough and not too large to keep.
func room[T any](slab []T, n int) []T {
	if cap(slab) < n || cap(slab) > max(n, mostKept) {
		return make([]T, 0, n)
	}
	return slab[:0]
}

// take cuts n elements off a slab, or off a new one if too few are left. Elements taken before do not move.
func take[T any](slab *[]T, n int) []T {
	from := len(*slab)
	if cap(*slab)-from < n {
		from, *slab = 0, make([]T, 0, max(n, cap(*slab)))
	}
	*slab = (*slab)[:from+n]
	return (*slab)[from : from+n : from+n]
}

// rowsOf makes rows of items. They are valid until the next call.
func (d *scratch) rowsOf(items []*item) []Row {
	rows := room(d.rows, len(items))
	for _, it := range items {
		o := &it.env.Origin
		rows = append(rows, Row{Log: it.log, Topic: o.Topic, Partition: o.Partition, Offset: o.Offset, Index: it.index, UploadedBy: it.env.UploadedBy})
	}
	d.rows = rows
	return rows
}
