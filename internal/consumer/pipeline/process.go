package pipeline

import (
	"time"

	"github.com/rs/zerolog"

	"docket/internal/record/decision"
)

// process is shared by all batches of a program: its settings, its ports, and what the batches learn from each other.
// It is safe for concurrent use.
type process struct {
	cfg       Config
	db        Store
	publisher Publisher
	spool     Spool // nil: there is none
	observer  Observer
	log       zerolog.Logger
	now       func() time.Time

	decodeValue func(d *decision.Decoder, value []byte, maxBytes int64, from, most int) (decision.Record, *decision.Refusal)

	parked    breaker
	portion   portion
	foresight foresight
	election  election
	rota      rota
	inHand    inHand
	larges    [2]chan struct{} // each holds one while a partition has a large record in hand: of the low lanes, of the urgent one
	scratches chan *scratch    // not used by any batch
}

// turnOf returns the turn of a partition of a topic, which it does not have yet.
func (p *process) turnOf(topic string) *turn {
	t := &turn{turns: p.cfg.Turns}
	if p.cfg.LaneOf != nil {
		t.lane = p.cfg.LaneOf(topic)
	}
	return t
}

// backoff returns the pause before try number attempt (from 0) of a parked record.
func (p *process) backoff(attempt int) time.Duration {
	pause := p.cfg.Backoff
	for range attempt {
		if pause >= p.cfg.MaxBackoff/2 {
			return p.cfg.MaxBackoff
		}
		pause *= 2
	}
	return min(pause, p.cfg.MaxBackoff)
}

// pauseOf returns the pause of a parked item. It is never shorter than that of the item that it waits for.
func (p *process) pauseOf(it *item) time.Duration {
	if it.behind == nil {
		return p.backoff(it.attempt)
	}
	return p.backoff(max(it.attempt, it.behind.attempt))
}
