package pipeline

import (
	"context"

	"docket/internal/record/decision"
	"docket/internal/record/home"
)

// leastOpened is how many bytes any record may be opened to beside those of other partitions.
const leastOpened = 128 << 10

// opening is how far a record may be opened.
type opening struct {
	bytes     int64 // that it is gunzipped into
	decisions int   // at a time
	alone     bool  // what is beyond them is opened later
}

// room is how far a record may be opened in a batch of so many bytes; 0 or less: as far as any.
func (c *carrier) room(most int64) opening {
	if most <= 0 {
		return opening{bytes: c.cfg.MaxRecordBytes, decisions: decision.MaxDecisions}
	}
	most = max(most, leastOpened)
	return opening{bytes: most, decisions: int(min(most/itemBytes, decision.MaxDecisions))}
}

// large is a record in hand that grows to more than its batch may. One partition of a process has such a one at a time, from
// before it is opened until it is settled, in a hold too: else some kilobytes in each partition would take gigabytes. Its
// decisions are opened in portions, each when the one before has its homes.
type large struct {
	mine    bool         // this partition is the one
	plain   []byte       // the record's value
	entries []home.Entry // of all its decisions
	opened  int          // how many of these
}

// openLarge opens the first portion of a batch's first record, once no other partition has a large one.
func (c *carrier) openLarge(ctx context.Context, b *home.Batch) error {
	c.leaveDesk() // waiting may take long
	if err := c.takeLarge(ctx); err != nil {
		return err
	}
	c.desk = c.newDesk(1)
	room := c.room(c.cfg.BatchBytes)
	room.bytes, room.alone = c.cfg.MaxRecordBytes, true
	c.open(b, 0, room)
	return nil
}

// takeLarge waits until this partition may have a large record in hand, without a turn.
func (c *carrier) takeLarge(ctx context.Context) error {
	c.turn.giveBack()
	defer c.rest()()
	select {
	case c.larges <- struct{}{}:
		c.large.mine = true
	case <-ctx.Done():
		return ctx.Err()
	case <-c.a.Leaving().Done():
		return errLeft
	}
	c.turn.take(ctx, c.a.Leaving())
	return nil
}

func (c *carrier) giveLargeBack() {
	if c.large.mine {
		c.large = large{}
		<-c.larges
	}
}
