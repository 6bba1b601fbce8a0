package app

import (
	"context"
	"errors"
	"time"

	"docket/internal/consumer/lanes"
	"docket/internal/kafka"
	"docket/internal/service/telemetry"
)

// ReasonYielding is in the body of /readyz while default and bulk write one batch at a time between them. The urgent lane
// is behind then. It is not a hold, and the program stays ready.
const ReasonYielding = "yielding"

// yieldEvery is the pause between two looks at the urgent lane. A batch of it takes about as long.
const yieldEvery = 250 * time.Millisecond

// keepYielding makes the low lanes yield while the urgent lane is behind, until ctx ends. After that they do not yield:
// a program that stops has to bring home what is in hand.
//
// It looks at the urgent partitions of this process. A process that has none does not yield, as it cannot know their
// ages; docs/scaling.md says how many partitions make that rare.
func (p *Program) keepYielding(ctx context.Context) {
	for _, l := range p.lanes {
		if l.Lane.Lane != lanes.Urgent {
			continue
		}
		tick := time.NewTicker(yieldEvery)
		defer tick.Stop()
		defer p.setYielding(false, lanes.Behind{})
		var y lanes.Yielding
		for {
			b := p.behind(l.source, time.Now())
			y = y.Next(time.Now(), b)
			p.setYielding(y.Yields(), b)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

func (p *Program) setYielding(yields bool, b lanes.Behind) {
	since := p.yieldingSince()
	if yields == !since.IsZero() {
		return
	}
	p.turns.Yield(yields)
	if yields {
		now := time.Now()
		p.yielding.Store(&now)
		p.log.Info().Int64(telemetry.KeyRecords, b.Records).Dur(telemetry.KeyAge, b.Age).Msg("yielding began")
		return
	}
	p.yielding.Store(nil)
	p.log.Info().Dur(telemetry.KeyTook, time.Since(since)).Msg("yielding ended")
}

// behind is how far the partitions of a source are behind. A partition that holds does not count: nothing of it becomes
// faster if other lanes wait.
func (p *Program) behind(s Source, now time.Time) (b lanes.Behind) {
	type place struct {
		topic     string
		partition int32
	}
	holds := map[place]bool{}
	for _, h := range p.observer.Holds() {
		holds[place{h.Topic, h.Partition}] = true
	}
	if fault := (*kafka.FaultError)(nil); errors.As(s.Fault(), &fault) {
		if fault.Partition < 0 {
			return b // nothing of it is read
		}
		holds[place{fault.Topic, fault.Partition}] = true
	}
	for _, l := range s.Lag() {
		if l.Stuck || holds[place{l.Topic, l.Partition}] {
			continue
		}
		b.Records += l.Records
		if !l.Oldest.IsZero() {
			b.Age = max(b.Age, now.Sub(l.Oldest))
		}
	}
	return b
}

// yieldingReason is the entry of /readyz.
func yieldingReason(since time.Time) Reason {
	since = since.UTC()
	return Reason{
		Reason: ReasonYielding, Since: &since,
		Hint: "nothing to do: the urgent lane is behind, so default and bulk write one batch at a time between them until it has caught up",
	}
}
