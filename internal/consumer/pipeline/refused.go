package pipeline

import (
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// flood counts what the decoder refused of one record. Beyond MaxRefused of them the refused decisions of the record share a dead letter, so that a
// small record cannot become a hundred thousand letters.
type flood struct {
	alone  int // that are forwarded alone
	shared []held
}

// held is a refused decision that shares a dead letter.
type held struct {
	entry *home.Entry
	part  decision.Part // without its log
}

// takes says whether a refused decision shares a dead letter, and notes it then.
func (f *flood) takes(most int, part *decision.Part, entry *home.Entry) bool {
	if most <= 0 || f.alone < most {
		f.alone++
		return false
	}
	f.shared = append(f.shared, held{entry, decision.Part{Index: part.Index, Value: part.Value, Err: part.Err}})
	return true
}

// closeFlood makes the dead letters of what the record has left to share, once it was read to its end, and says what they take in memory. plain
// is the record's value, inflated.
func (c *carrier) closeFlood(env *envelope.Envelope, plain []byte) (bytes int) {
	shared := c.flood.shared
	c.flood = flood{}
	if len(shared) == 0 {
		return 0
	}
	for _, it := range c.rests(env, shared, decision.OnLines(plain)) {
		c.desk.all = append(c.desk.all, it)
		bytes += len(it.value)
	}
	return bytes
}

// rests are the items of refused decisions that share a dead letter: one, but for a gzipped record of which that letter would be larger than the
// record was, as a topic need not take it. Then each half has its own.
func (c *carrier) rests(env *envelope.Envelope, shared []held, onLines bool) []*item {
	first := &shared[0]
	it := &item{entry: first.entry, env: env, index: first.part.Index, value: first.part.Value}
	if len(shared) == 1 {
		it.deadLetter(refusal(first.part.Err))
		return []*item{it}
	}
	it.index, it.shared = envelope.NoIndex, shared
	each := func(yield func(int, []byte) bool) {
		for i := range shared {
			if !yield(shared[i].part.Index, shared[i].part.Value) {
				return
			}
		}
	}
	it.value = decision.AppendRest(make([]byte, 0, decision.RestBytes(onLines, each)), onLines, each)
	if decision.IsGzip(env.Record.Value) {
		if it.value = decision.Zip(it.value); len(it.value) > len(env.Record.Value) {
			half := len(shared) / 2
			return append(c.rests(env, shared[:half], onLines), c.rests(env, shared[half:], onLines)...)
		}
	}
	it.deadLetter(commonCause(shared))
	return []*item{it}
}

// commonCause is why refused decisions are forwarded in one letter.
func commonCause(shared []held) *envelope.Cause {
	c := envelope.Together(func(yield func(string) bool) {
		for i := range shared {
			if !yield(string(shared[i].part.Err.Reason)) {
				return
			}
		}
	}, shared[0].part.Index, shared[len(shared)-1].part.Index)
	return &c
}

// give gives all decisions of an item their home.
func (it *item) give(h home.Home) {
	if it.shared == nil {
		it.entry.Give(h)
	}
	for i := range it.shared {
		it.shared[i].entry.Give(h)
	}
}

// size is how many decisions an item stands for.
func (it *item) size() int { return max(1, len(it.shared)) }

// followed is the decision of an item that a trace follows.
func (it *item) followed() int {
	if it.shared != nil {
		return it.shared[0].part.Index
	}
	return it.index
}

// decisionsOf is how many decisions items stand for.
func decisionsOf(items []*item) (n int) {
	for _, it := range items {
		n += it.size()
	}
	return n
}

// each tells of every decision of an item.
func (it *item) each(yield func(Decision) bool) bool {
	d := it.told()
	if it.shared == nil {
		return yield(d)
	}
	for i := range it.shared {
		part := &it.shared[i].part
		d.Index, d.Cause.Code, d.Cause.Message = part.Index, string(part.Err.Reason), ""
		if !yield(d) {
			return false
		}
	}
	return true
}
