package pipeline

import (
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// closeFlood makes the shared dead letters of a record that was read to its end. It returns the memory that they
// take. plain is the record's inflated value.
func (c *carrier) closeFlood(env *envelope.Envelope, plain []byte) (bytes int) {
	shared := c.flood.shared
	c.flood = flood{}
	if len(shared) == 0 {
		return 0
	}
	for _, it := range c.rests(env, shared, decision.OnLines(plain)) {
		c.scratch.all = append(c.scratch.all, it)
		bytes += len(it.value)
	}
	return bytes
}

// refuseRest makes one dead letter of the decisions of a large record that were not opened yet. It has the whole record.
func (c *carrier) refuseRest(env *envelope.Envelope, cause *envelope.Cause) {
	l := &c.large
	it := &item{entry: &l.entries[l.opened], env: env, index: env.Origin.Index, value: env.Record.Value, whole: true}
	err := &decision.Refusal{Reason: decision.Reason(cause.Code)}
	for ; l.opened < len(l.entries); l.opened++ {
		it.shared = append(it.shared, refusedPart{&l.entries[l.opened], decision.Part{Index: l.opened, Err: err}})
	}
	it.deadLetter(cause)
	c.scratch.all = append(c.scratch.all, it)
}

// rests makes the items of refused decisions that share a dead letter, usually one item. A topic need not take a
// record that is larger than the original. So the letter of a gzipped record is halved until it is no larger.
func (c *carrier) rests(env *envelope.Envelope, shared []refusedPart, onLines bool) []*item {
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

// commonCause returns the cause of refused decisions that share a dead letter.
func commonCause(shared []refusedPart) *envelope.Cause {
	c := envelope.Together(func(yield func(string) bool) {
		for i := range shared {
			if !yield(string(shared[i].part.Err.Reason)) {
				return
			}
		}
	}, shared[0].part.Index, shared[len(shared)-1].part.Index)
	return &c
}
