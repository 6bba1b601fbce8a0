package pipeline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"docket/internal/errclass"
)

// hold stands still until the database takes a known-good row again. Nothing is parked, dead-lettered or committed
// meanwhile, fetching for this partition stops, membership of the group goes on.
func (c *carrier) hold(ctx context.Context, h Hold) error {
	return c.standStill(ctx, h, func() (Hold, bool) {
		err := c.probe(ctx)
		if err == nil {
			c.parked.reset()
			c.lookout.looked(true, c.cfg.ProbeInterval)
			return h, true
		}
		now := blame(errclass.Classify(err), err)
		c.lookout.looked(ctx.Err() == nil && !nowhere(now), c.cfg.ProbeInterval)
		return now, false
	})
}

// standStill asks again and again, at most a probe interval apart, whether to go on; meanwhile the reason is told, anew
// whenever it changes.
func (c *carrier) standStill(ctx context.Context, h Hold, goOn func() (Hold, bool)) error {
	defer c.a.Hold()()
	tell := c.held(h)
	defer func() { tell() }()
	for {
		if c.await(ctx, h); ctx.Err() != nil || c.leaving() {
			return errLeft
		}
		now, ok := goOn()
		if ok {
			return nil
		}
		if now.Event() != h.Event() || now.Code != h.Code {
			tell()
			h = now
			tell = c.held(h)
		}
	}
}

// held tells that the batch stands still, until release is called.
func (c *carrier) held(h Hold) (release func()) {
	told, followed := c.observer.Held(c.topic, c.partition, h), c.trace.Held(h)
	return func() { followed(); told() }
}

// probe asks the database for a known-good row at the time of the batch, or of the present where that time may be what
// the table refuses: then the time is to blame, not the table. It is that of the whole batch, to the end: those that
// still want a row may do so for their times' sake.
func (c *carrier) probe(ctx context.Context) error {
	c.pulse()
	defer c.pulse()
	err := c.db.Probe(ctx, middle(c.batch))
	if mayBeTheTime(err) {
		err = c.db.Probe(ctx, time.Time{})
	}
	return err
}

// mayBeTheTime says that a probe was refused for what another time could change: a constraint that has a name, or a
// trigger. A partition that is missing is neither: the table lacks it, and takes the rows once it is there.
func mayBeTheTime(err error) bool {
	return errclass.Classify(err).Rule == errclass.Await || dataFault(err)
}

// blame makes the reason of a hold from the failure of the batch and that of the probe, which knows better.
func blame(v errclass.Verdict, probe error) Hold {
	p := errclass.Classify(probe)
	h := Hold{Reason: ReasonDatabaseRefuses, Code: p.Code, Hint: hint(p, probe)}
	switch {
	case p.Code == "25006":
		h.Reason = ReasonReadOnly
	case p.Class == errclass.Transient || p.Class == errclass.Unknown:
		h.Reason, h.Hint = ReasonDatabaseAway, words(p)
		if v.Class == errclass.Systemic {
			h.Code, h.Hint = v.Code, words(v)
		}
	}
	return h
}

// hinting is an error that knows what an operator can do about it.
type hinting interface {
	error
	Hint() string
}

// hint is what an operator reads beside the reason: what the error itself knows to do about it, else what its code says.
func hint(v errclass.Verdict, err error) string {
	if knows, ok := errors.AsType[hinting](err); ok {
		if h := knows.Hint(); h != "" {
			return h
		}
	}
	return words(v)
}

// breaker counts whole batches that were parked in a row.
type breaker struct {
	limit int64 // 0: there is none
	row   atomic.Int64
}

// admit says whether one more batch may be parked.
func (b *breaker) admit() bool {
	if b.limit <= 0 {
		return true
	}
	if b.row.Add(1) > b.limit {
		b.row.Add(-1)
		return false
	}
	return true
}

// trip makes the next batch that fails hold at once.
func (b *breaker) trip() { b.row.Store(max(0, b.limit)) }

// reset is called when something was stored, or the database answered again.
func (b *breaker) reset() { b.row.Store(0) }

// Away says that the database is known to be away, or to be there again: nothing is parked on the way to finding out.
func (p *Pipeline) Away(away bool) {
	if away {
		p.parked.trip()
		return
	}
	p.parked.reset()
}

// carrier is one batch in hand.
type carrier struct {
	*Pipeline
	a         Assignment
	topic     string
	partition int32
	first     int64 // offset of the first record
	last      int64 // offset of the last record
	trace     Trace
	turn      *turn
	desk      *desk // what the batch is worked on, once it is decoded
	soiled    bool  // somebody may still look at what was on an earlier desk
	large     large
	flood     flood
	batch     []*item  // that wanted a row when it was decoded
	aside     []*item  // foreseen to be refused
	proved    bool     // the table took a good row since the batch is in hand
	foreseen  []string // constraints that were asked about for this batch, each once
	since     time.Time
	beat      atomic.Int64 // nanoseconds from since to the last sign of progress; a clock that is set does not move it
	resting   atomic.Bool  // keeping a pause, or waiting until the brokers take a commit
}

func (c *carrier) pulse() { c.beat.Store(int64(c.now().Sub(c.since))) }

func (c *carrier) leaving() bool { return c.a.Leaving().Err() != nil }

// rest says, until wake is called, that the batch waits for somebody else and makes no progress of its own.
func (c *carrier) rest() (wake func()) {
	c.resting.Store(true)
	return func() { c.pulse(); c.resting.Store(false) }
}

// pause waits, but not longer than until the partition is being given up or ctx ends.
func (c *carrier) pause(ctx context.Context, d time.Duration) {
	defer c.rest()()
	c.turn.giveBack()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-c.a.Leaving().Done():
	}
}

// hands are the batches in hand.
type hands struct {
	mu   sync.Mutex
	full map[*carrier]struct{}
}

func (p *Pipeline) pickUp(a Assignment, t *turn) *carrier {
	c := &carrier{Pipeline: p, a: a, turn: t, topic: a.Topic(), partition: a.Partition(), since: p.now(), trace: untraced{}}
	c.pulse()
	p.hands.mu.Lock()
	defer p.hands.mu.Unlock()
	if p.hands.full == nil {
		p.hands.full = map[*carrier]struct{}{}
	}
	p.hands.full[c] = struct{}{}
	return c
}

func (c *carrier) putDown() {
	c.hands.mu.Lock()
	delete(c.hands.full, c)
	c.hands.mu.Unlock()
	c.leaveDesk()
	c.giveLargeBack()
}

// Idle says that no batch is in hand, or that those which are stand still: a hold leaves the brokers to the spool.
func (p *Pipeline) Idle() bool {
	p.hands.mu.Lock()
	defer p.hands.mu.Unlock()
	for c := range p.hands.full {
		if !c.resting.Load() {
			return false
		}
	}
	return true
}

// ErrWedged says that a batch shows no sign of progress.
var ErrWedged = errors.New("a batch in hand shows no sign of progress")

// Wedged returns [ErrWedged] when a batch in hand has shown no sign of progress for longer than limit. A hold, a
// pause between tries and a commit that the brokers do not take yet are no lack of progress: a new process would wait
// for them just the same.
func (p *Pipeline) Wedged(limit time.Duration) error {
	p.hands.mu.Lock()
	defer p.hands.mu.Unlock()
	for c := range p.hands.full {
		if !c.resting.Load() && p.now().Sub(c.since)-time.Duration(c.beat.Load()) > limit {
			return ErrWedged
		}
	}
	return nil
}
