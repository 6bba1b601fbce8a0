package pipeline

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// outgoing is an item with the record that forwards it.
type outgoing struct {
	*item
	record   *kgo.Record
	oversize bool  // the broker refused it even with only the necessary headers
	refusal  error // of the last publish
}

// together is how many records are forwarded at a time. It bounds the memory of records that are not yet
// acknowledged.
const together = 1000

// settle gives items without a row their home: an acknowledged record of their topic, or else a line of a synced
// file. If neither takes an item, the batch holds.
func (c *carrier) settle(ctx context.Context, items []*item) error {
	failed := c.forward(ctx, items)
	c.turn.release()
	out := c.spoolRest(ctx, failed)
	if len(out) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	h := withHint(Hold{Reason: ReasonNoHome, Hint: "check the brokers and the spool: Kafka does not accept the record, and the spool is off, full or failing"}, out)
	return c.waitUntil(ctx, h, func(h Hold) (Hold, bool) {
		if c.pause(ctx, c.cfg.ProbeInterval); ctx.Err() != nil || c.leaving() {
			return h, false
		}
		for _, l := range out {
			l.record.Timestamp = c.now() // its topic's retention counts from the forwarding
		}
		out = c.spoolRest(ctx, c.offer(ctx, out))
		h = withHint(h, out)
		return h, len(out) == 0
	})
}

// withHint adds the advice of the brokers' last errors to a hold. An error without advice, such as a timeout, keeps
// the earlier advice.
func withHint(h Hold, out []outgoing) Hold {
	for _, l := range out {
		if knows, ok := errors.AsType[hinting](l.refusal); ok && knows.Hint() != "" {
			h.Hint = knows.Hint() + "; the spool is off, full or failing"
			break
		}
	}
	return h
}

// forward publishes items with a destination in order, a portion at a time, and returns those that were not
// acknowledged. All portions share the deadline of one publish. While Kafka takes everything, the batch keeps its
// turn. Otherwise each partition could have a whole batch in memory.
func (c *carrier) forward(ctx context.Context, items []*item) (failed []outgoing) {
	going := forwarded(items)
	if len(going) <= together {
		c.turn.release()
	}
	if len(going) == 0 {
		return nil
	}
	if c.cfg.PublishTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.PublishTimeout)
		defer cancel()
	}
	sealer := envelope.Sealer{Keys: c.cfg.Keys}
	sealer.Expect(len(going))
	for part := range slices.Chunk(going, together) {
		out := c.seal(&sealer, part)
		if err := ctx.Err(); err != nil { // no time is left to try
			c.notTaken(out, err)
			failed = append(failed, out...)
			continue
		}
		if failed = append(failed, c.offer(ctx, out)...); len(failed) > 0 {
			c.turn.release()
		}
	}
	return failed
}

// forwarded returns the items that go to a topic.
func forwarded(items []*item) []*item {
	var going []*item
	for i, it := range items {
		if it.to == home.None {
			continue
		}
		if going == nil {
			going = make([]*item, 0, len(items)-i)
		}
		going = append(going, it)
	}
	return going
}

// seal makes the records to forward, in order.
func (c *carrier) seal(sealer *envelope.Sealer, items []*item) []outgoing {
	out := make([]outgoing, len(items))
	now := c.now()
	for i, it := range items {
		s := envelope.Sealed{
			Topic: c.topicOf(it.to), Index: it.index, Value: it.value, Decision: it.bare, At: now, Attempt: it.attempt, Consumer: c.consumer(), Refused: it.rest(),
			Traceparent: c.trace.Letter(it.env.Record, it.followed()),
		}
		if it.to == home.Parked {
			s.NotBefore = now.Add(c.pauseOf(it))
		}
		r := sealer.Seal(it.env, it.cause, s)
		it.id = envelope.IDOf(r)
		out[i] = outgoing{item: it, record: r}
	}
	return out
}

// consumer returns who reads the partition, for the x-consumer header.
func (c *carrier) consumer() string {
	if c.cfg.ConsumerOf != nil {
		return c.cfg.ConsumerOf(c.topic)
	}
	return c.cfg.Consumer
}

func (p *process) topicOf(h home.Home) string {
	switch h {
	case home.Parked:
		return p.cfg.ParkingTopic
	case home.Exhausted:
		return p.cfg.ParkingDLQTopic
	default:
		return p.cfg.DLQTopic
	}
}

// offer publishes records. It sends too large ones again with only the necessary headers. It returns the records that
// the broker did not acknowledge.
func (c *carrier) offer(ctx context.Context, out []outgoing) []outgoing {
	tooLarge, failed := c.publish(ctx, out)
	if len(tooLarge) == 0 {
		return failed
	}
	for i := range tooLarge {
		tooLarge[i].record = c.cfg.Keys.Bare(tooLarge[i].record)
	}
	refused, failedBare := c.publish(ctx, tooLarge)
	for i := range refused {
		refused[i].oversize = true
	}
	return append(append(failed, failedBare...), refused...)
}

// spoolRest spools the records that Kafka did not take, and returns those that still have no home.
func (c *carrier) spoolRest(ctx context.Context, out []outgoing) []outgoing {
	if c.spool == nil || len(out) == 0 || ctx.Err() != nil {
		return out
	}
	return c.append(ctx, out)
}

// publish sends records and gives those that the broker acknowledged their home.
func (c *carrier) publish(ctx context.Context, out []outgoing) (tooLarge, failed []outgoing) {
	records := make([]*kgo.Record, len(out))
	for i := range out {
		records[i] = out[i].record
	}
	c.pulse()
	defer c.pulse()
	var missed unsent
	for i, err := range c.publisher.Publish(ctx, records) {
		l := out[i]
		switch {
		case err == nil:
			l.give(l.to)
		case errors.Is(err, kerr.MessageTooLarge):
			tooLarge = append(tooLarge, l)
		default:
			l.refusal = err
			failed = append(failed, l)
		}
		if err != nil {
			c.exposed = true
			c.notSent(&missed, l.record.Topic, err)
		}
	}
	c.tell(missed)
	return tooLarge, failed
}

// notTaken reports records that there was no time to publish.
func (c *carrier) notTaken(out []outgoing, err error) {
	var missed unsent
	for _, l := range out {
		c.notSent(&missed, l.record.Topic, err)
	}
	c.tell(missed)
}

// append writes records into the spool and returns those that it did not take.
func (c *carrier) append(ctx context.Context, out []outgoing) (homeless []outgoing) {
	for _, oversize := range []bool{false, true} {
		var part []outgoing
		var records []*kgo.Record
		for _, l := range out {
			if l.oversize == oversize {
				part, records = append(part, l), append(records, l.record)
			}
		}
		if len(part) == 0 {
			continue
		}
		c.pulse()
		if err := c.spool.Append(ctx, records, oversize); err != nil {
			c.on(c.log.Error()).Err(err).Int(keyRecords, len(part)).Msg("records not spooled")
			homeless = append(homeless, part...)
			continue
		}
		for _, l := range part {
			l.give(home.Spooled)
		}
	}
	return homeless
}
