package complete

import (
	"time"

	"docket/internal/history/reader"
)

// statesLate is how far states may be behind the clock in an answer that is FRESH. A desk that keeps up is less behind.
const statesLate = time.Minute

// EndStates is End for states and flips, which have what was stored before the time mark. Until when they are complete is not
// known: a record may have reached Kafka long before it was stored, from the parking topic or by a retry, and be stored behind the mark.
// States that are further behind than a minute are CATCHING_UP. Of shards, mark is the earliest.
func (b Begun) EndStates(f Facts, mark time.Time) reader.Completeness {
	c := b.End(f)
	c.CompleteUntil = nil
	one := b
	if len(b.shards) > 0 {
		one = b.shards[0]
	}
	if (c.Freshness == reader.Fresh || c.Freshness == reader.NotFound) && one.status.now().Sub(mark) > statesLate {
		c.Freshness = reader.CatchingUp
	}
	return c
}
