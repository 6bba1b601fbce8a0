package claims

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

const (
	usualLease = 5 * time.Second  // of a claim that is not kept
	usualCall  = time.Second      // for one call of a port
	keepEvery  = time.Second      // while the work is in progress
	avoided    = 30 * time.Second // how long a port that failed is not asked
	firstWait  = 10 * time.Millisecond
	mostWait   = 200 * time.Millisecond
)

// Once has one of several processes do a piece of work. It is safe for concurrent use.
type Once struct {
	ports []*guarded
	lease time.Duration

	taken, shared, late, alone, refused, waited atomic.Int64
}

// Counts are how claims ended since the program began.
type Counts struct {
	Taken   int64 // this process did the work
	Shared  int64 // it used the result of another one
	Late    int64 // it waited for half of its time, and then did the work, too
	Alone   int64 // no port answered, so it did the work
	Refused int64 // the work was of low priority, and another process had it
	Waited  time.Duration
}

// Counts returns how claims ended. A nil Once made none.
func (o *Once) Counts() Counts {
	if o == nil {
		return Counts{}
	}
	return Counts{o.taken.Load(), o.shared.Load(), o.late.Load(), o.alone.Load(), o.refused.Load(), time.Duration(o.waited.Load())}
}

// NewOnce makes a Once of ports. It asks the first one that answers: all processes name the same ones in the same order.
func NewOnce(ports ...Port) *Once {
	o := &Once{lease: usualLease}
	for _, p := range ports {
		o.ports = append(o.ports, &guarded{Port: p, patience: usualCall})
	}
	return o
}

// Patient lets claims last for a lease after their process was killed, and a call of a port take a time. Without it these
// are 5 s and 1 s. It is for a busy machine, and before the first [Once.Do].
func (o *Once) Patient(lease, call time.Duration) *Once {
	o.lease = lease
	for _, p := range o.ports {
		p.patience = call
	}
	return o
}

// Close closes the ports that have a Close. They do not answer any more.
func (o *Once) Close() {
	for _, p := range o.ports {
		if c, ok := p.Port.(interface{ Close() }); ok {
			c.Close()
		}
	}
}

// guarded is a port that is left alone for a while after it failed.
type guarded struct {
	Port
	patience time.Duration // for one call
	until    atomic.Int64  // in nanoseconds
}

// call asks a port. It reports whether it answered.
func (g *guarded) call(ctx context.Context, ask func(ctx context.Context) error) bool {
	if time.Now().UnixNano() < g.until.Load() {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	err := ask(limited)
	if err != nil && ctx.Err() == nil { // a caller that gives up says nothing about the port
		g.until.Store(time.Now().Add(avoided).UnixNano())
	}
	return err == nil
}

// Do has one process do the work of a key. It returns nil once the work is done or known reports true: the result of
// another process is there. A call of high priority waits for that for half of its time, and then works, too. One of
// low priority does not wait: it returns [ErrTaken]. So it does if a call of high priority takes the work over; the
// context of the work ends then. Without a port that answers, the caller works. Another error is that of the work or of
// ctx.
func (o *Once) Do(ctx context.Context, key string, p Priority, known func() bool, work func(ctx context.Context) error) error {
	half := HalfOf(ctx)
	began, waiting := time.Now(), false
	waited := func() {
		if waiting {
			o.waited.Add(int64(time.Since(began)))
			waiting = false
		}
	}
	defer waited()
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		if known() {
			o.shared.Add(1)
			return nil
		}
		mine, answered := o.begin(ctx, key, p)
		switch {
		case mine != nil:
			o.taken.Add(1)
			waited()
			return mine.do(ctx, known, work)
		case ctx.Err() != nil:
			return ctx.Err()
		case !answered:
			o.alone.Add(1)
			return work(ctx)
		case p == Low:
			o.refused.Add(1)
			return ErrTaken
		}
		waiting = true
		select {
		case <-time.After(wait):
		case <-half:
			o.late.Add(1)
			waited()
			return work(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Try claims a key for work that its caller does until release, or reports false at once if another process has it. The
// context of the work ends with [ErrTaken] as its cause if a call of higher priority takes the work over. Without a port
// that answers, the caller works.
func (o *Once) Try(ctx context.Context, key string, p Priority) (working context.Context, release func(), ok bool) {
	mine, answered := o.begin(ctx, key, p)
	switch {
	case mine != nil:
		o.taken.Add(1)
		working, release = mine.hold(ctx)
		return working, release, true
	case answered:
		o.refused.Add(1)
	default:
		o.alone.Add(1)
	}
	return ctx, func() {}, !answered
}

type deadlineKey struct{}

// Sharing returns ctx for work that several questions share. The work does not end with the first of them, but
// [Once.Do] waits for other processes for half of the time of that question.
func Sharing(ctx, question context.Context) context.Context {
	if deadline, ok := question.Deadline(); ok {
		return context.WithValue(ctx, deadlineKey{}, deadline)
	}
	return ctx
}

// HalfOf ends when half of the time of ctx is over; never without a deadline.
func HalfOf(ctx context.Context) <-chan time.Time {
	deadline, ok := ctx.Deadline()
	if !ok {
		if deadline, ok = ctx.Value(deadlineKey{}).(time.Time); !ok {
			return nil
		}
	}
	return time.After(time.Until(deadline) / 2)
}

// begin claims a key at the first port that answers. nil: another has it, or no port answered.
func (o *Once) begin(ctx context.Context, key string, p Priority) (mine *held, answered bool) {
	for _, port := range o.ports {
		var version int64
		if !port.call(ctx, func(ctx context.Context) (err error) {
			version, err = port.Begin(ctx, key, p, o.lease)
			return err
		}) {
			continue
		}
		if version == 0 {
			return nil, true
		}
		return &held{port, key, p, version, o.lease}, true
	}
	return nil, false
}

// held is a claim of this process.
type held struct {
	port     *guarded
	key      string
	priority Priority
	version  int64
	lease    time.Duration
}

// do works while it keeps the claim, and ends it.
func (h *held) do(ctx context.Context, known func() bool, work func(ctx context.Context) error) error {
	working, release := h.hold(ctx)
	defer release()
	if known() { // the one before ended its claim between the look and this claim
		return nil
	}
	err := work(working)
	if err != nil && errors.Is(context.Cause(working), ErrTaken) {
		return ErrTaken
	}
	return err
}

// hold keeps the claim until release is called, which ends it.
func (h *held) hold(ctx context.Context) (working context.Context, release func()) {
	working, stop := context.WithCancelCause(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		h.keep(working, stop)
	}()
	return working, func() {
		stop(nil)
		<-kept
		h.port.call(context.WithoutCancel(ctx), func(ctx context.Context) error {
			_, err := h.port.End(ctx, h.key, h.version)
			return err // a claim that was not ended expires
		})
	}
}

// keep extends the claim until ctx ends. Once the claim is lost, work of low priority stops. Work of high priority
// continues, as a person waits for it.
func (h *held) keep(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		still := true
		h.port.call(ctx, func(ctx context.Context) (err error) {
			still, err = h.port.Keep(ctx, h.key, h.version, h.lease)
			still = still || err != nil
			return err
		})
		if still {
			continue
		}
		if h.priority == Low {
			stop(ErrTaken)
		}
		return
	}
}
