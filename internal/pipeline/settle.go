package pipeline

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/envelope"
	"docket/internal/home"
)

// letter is an item and the record by which it is forwarded.
type letter struct {
	*item
	record   *kgo.Record
	oversize bool // the broker refused it even with the necessary headers alone
}

// settle gives what has no row its home: an acknowledged record of the topic that it has to go to, else a line of a
// synced file. Where neither takes it, the batch is held.
func (c *carrier) settle(ctx context.Context, items []*item) error {
	letters := c.seal(items)
	if letters = c.forward(ctx, letters); len(letters) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	h := Hold{Reason: ReasonNoHome, Hint: "Kafka does not take the record and the spool is off, full or failing"}
	return c.standStill(ctx, h, func() (Hold, bool) {
		for _, l := range letters {
			l.record.Timestamp = c.now() // its topic's retention counts from when it is forwarded
		}
		letters = c.forward(ctx, letters)
		return h, len(letters) == 0
	})
}

// seal makes the records to forward, in order.
func (c *carrier) seal(items []*item) []letter {
	n := 0
	for _, it := range items {
		if it.to != home.None {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	var sealer envelope.Sealer
	sealer.Expect(n)
	letters := make([]letter, 0, n)
	now := c.now()
	for _, it := range items {
		if it.to == home.None {
			continue
		}
		s := envelope.Sealed{
			Topic: c.topicOf(it.to), Index: it.index, Value: it.value, At: now, Attempt: it.attempt, Consumer: c.cfg.Consumer,
		}
		if it.to == home.Parked {
			s.NotBefore = now.Add(c.backoff(it.attempt))
		}
		r := sealer.Seal(it.env, it.cause, s)
		it.id = envelope.IDOf(r)
		letters = append(letters, letter{item: it, record: r})
	}
	return letters
}

func (p *Pipeline) topicOf(h home.Home) string {
	switch h {
	case home.Parked:
		return p.cfg.ParkingTopic
	case home.Exhausted:
		return p.cfg.ParkingDLQTopic
	default:
		return p.cfg.DLQTopic
	}
}

// forward publishes letters, spools what was not acknowledged, and returns what has no home even then.
func (c *carrier) forward(ctx context.Context, letters []letter) []letter {
	if len(letters) == 0 {
		return nil
	}
	tooLarge, failed := c.publish(ctx, letters)
	if len(tooLarge) > 0 {
		for i := range tooLarge {
			tooLarge[i].record = envelope.Bare(tooLarge[i].record)
		}
		var refused []letter
		refused, failedBare := c.publish(ctx, tooLarge)
		for i := range refused {
			refused[i].oversize = true
		}
		failed = append(append(failed, failedBare...), refused...)
	}
	if c.spool == nil || len(failed) == 0 || ctx.Err() != nil {
		return failed
	}
	return c.append(ctx, failed)
}

// publish sends letters and gives those that the broker acknowledged their home.
func (c *carrier) publish(ctx context.Context, letters []letter) (tooLarge, failed []letter) {
	records := make([]*kgo.Record, len(letters))
	for i := range letters {
		records[i] = letters[i].record
	}
	c.pulse()
	defer c.pulse()
	for i, err := range c.publisher.Publish(ctx, records) {
		l := letters[i]
		switch {
		case err == nil:
			l.entry.Give(l.to)
		case errors.Is(err, kerr.MessageTooLarge):
			tooLarge = append(tooLarge, l)
		default:
			failed = append(failed, l)
		}
		if err != nil {
			c.observer.PublishFailed(l.record.Topic, err)
		}
	}
	return tooLarge, failed
}

// append writes letters into the spool and returns those that it did not take.
func (c *carrier) append(ctx context.Context, letters []letter) (homeless []letter) {
	for _, oversize := range []bool{false, true} {
		var part []letter
		var records []*kgo.Record
		for _, l := range letters {
			if l.oversize == oversize {
				part, records = append(part, l), append(records, l.record)
			}
		}
		if len(part) == 0 {
			continue
		}
		c.pulse()
		if err := c.spool.Append(ctx, records, oversize); err != nil {
			c.log.Error().Err(err).Int("records", len(part)).Msg("spool did not take records")
			homeless = append(homeless, part...)
			continue
		}
		for _, l := range part {
			l.entry.Give(home.Spooled)
		}
	}
	return homeless
}
