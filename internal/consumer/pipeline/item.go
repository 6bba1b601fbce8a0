package pipeline

import (
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// item is a decision in hand, or a Kafka record that could not be read as decisions.
type item struct {
	entry *home.Entry
	env   *envelope.Envelope // of its Kafka record
	index int                // place inside its Kafka record; envelope.NoIndex where it was never decoded
	value []byte             // the value to forward, if it is forwarded
	bare  []byte             // the decision in value, which may be compressed or have an array around it; nil: it is value
	log   *decision.Log      // nil if the decoder refused it

	to        home.Home       // its destination; None while it may still get a row
	cause     *envelope.Cause // nil while to is None
	attempt   int             // the value of x-retry-attempt
	behind    *item           // an earlier item of the same identity that is parked too; this one is due no sooner
	id        string          // dead-letter id, once sealed
	shared    []refusedPart   // nil if the item is one decision; else the decisions of the record that share this dead letter
	whole     bool            // shared, and the value is the whole record; else that of a shared dead letter is a rest
	suspected bool            // expected to be refused, and not written with the others
}

// open reports whether the item may still get a row.
func (it *item) open() bool { return it.to == home.None && it.entry.Home() == home.None }

// deadLetter sends the item to the dead-letter topic.
func (it *item) deadLetter(c *envelope.Cause) { it.send(home.DeadLetter, c, it.env.Attempt) }

// conflict dead-letters the item because its identity is stored with a different payload.
func (it *item) conflict() {
	it.deadLetter(&envelope.Cause{
		Kind: envelope.Conflict, Code: "id_conflict",
		Message: "a decision with this decision_id and timestamp is stored with a different payload",
	})
}

// exhaust sends the item to the replayer's dead-letter topic after this many attempts.
func (it *item) exhaust(code string, attempts int) {
	it.send(home.Exhausted, exhausted(code, attempts), attempts)
}

// park sends the item to the parking topic. A replay spends an attempt; the first parking starts at 0.
func (it *item) park(c *envelope.Cause) {
	attempt := 0
	if it.env.Parked {
		attempt = it.env.Attempt + 1
	}
	it.send(home.Parked, c, attempt)
}

// postpone sends the item to the parking topic without spending an attempt.
func (it *item) postpone(c *envelope.Cause) { it.send(home.Parked, c, it.env.Attempt) }

// parkBehind parks the item for the reason of an earlier one of the same identity. It is due no sooner than that one.
func (it *item) parkBehind(first *item) {
	it.postpone(first.cause)
	it.behind = first
}

// parked reports whether the item goes to the parking topic.
func (it *item) parked() bool { return it.to == home.Parked }

// send sets the destination of the item. Several items may share a cause.
func (it *item) send(to home.Home, c *envelope.Cause, attempt int) {
	it.to, it.cause, it.attempt = to, c, attempt
}

// homeless returns the items that may still get a row, in order. If these are all, it returns items itself, so
// callers must not write to the result.
func homeless(items []*item) []*item {
	n := 0
	for _, it := range items {
		if it.open() {
			n++
		}
	}
	if n == len(items) {
		return items[:n:n]
	}
	if n == 0 {
		return nil
	}
	open := make([]*item, 0, n)
	for _, it := range items {
		if it.open() {
			open = append(open, it)
		}
	}
	return open
}

// toReport returns the report of the item.
func (it *item) toReport() Decision {
	d := Decision{Home: it.entry.Home(), Offset: it.env.Record.Offset, Index: it.index, Came: it.env.Record.Timestamp, ID: it.id}
	if it.log != nil {
		d.Time = it.log.Time
	}
	if it.cause != nil {
		d.Cause = *it.cause
	}
	return d
}

// give gives all decisions of the item their home.
func (it *item) give(h home.Home) {
	if it.shared == nil {
		it.entry.Give(h)
	}
	for i := range it.shared {
		it.shared[i].entry.Give(h)
	}
}

// size returns the number of decisions in the item.
func (it *item) size() int { return max(1, len(it.shared)) }

// rest returns the number of decisions if the value is a rest, else 0.
func (it *item) rest() int {
	if it.whole {
		return 0
	}
	return len(it.shared)
}

// followed returns the index of the decision that a trace follows.
func (it *item) followed() int {
	if it.shared != nil {
		return it.shared[0].part.Index
	}
	return it.index
}

// decisionsOf returns the number of decisions in items.
func decisionsOf(items []*item) (n int) {
	for _, it := range items {
		n += it.size()
	}
	return n
}

// each yields every decision of the item.
func (it *item) each(yield func(Decision) bool) bool {
	d := it.toReport()
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
