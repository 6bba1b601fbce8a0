package demo

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// progress follows what happens and writes a line each second.
type progress struct {
	show     *show
	programs *programs
	produced atomic.Int64 // decisions that the broker has
	done     context.CancelFunc
	ended    chan struct{}
}

// follow starts to write progress until stop is called.
func (s *show) follow(ctx context.Context, p *programs) *progress {
	ctx, cancel := context.WithCancel(ctx)
	pr := &progress{show: s, programs: p, done: cancel, ended: make(chan struct{})}
	go func() {
		defer close(pr.ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var before [2]reading
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				before = pr.tell(ctx, before)
			}
		}
	}()
	return pr
}

func (p *progress) stop() {
	p.done()
	<-p.ended
}

// tell writes one line and returns what it read.
func (p *progress) tell(ctx context.Context, before [2]reading) [2]reading {
	now := before
	for i, name := range []string{Consumer, Replayer} {
		if r, err := p.programs.gauges[name].read(ctx); err == nil {
			now[i] = r
		}
	}
	lag, parkingLag, err := p.show.places.Lag(ctx)
	if err != nil {
		return now
	}
	sum := func(home string) int { return now[0].homes[home] + now[1].homes[home] }
	p.show.screen.progress(fmt.Sprintf("%4.0f s  produced %s  rows %s  duplicates %s  parked %s  dead letters %s  lag %s + %s parked  %s",
		time.Since(p.show.began).Seconds(), number(p.produced.Load()), number(sum("row")), number(sum("duplicate")),
		number(now[0].homes["parked"]), number(sum("dead_letter")), number(lag), number(parkingLag), state(before, now)))
	return now
}

// state says in a word what the programs are doing.
func state(before, now [2]reading) string {
	replayed := func(r [2]reading) int { return r[1].homes["row"] + r[1].homes["duplicate"] + r[1].homes["dead_letter"] }
	switch {
	case now[0].hold != "":
		return "HOLD: " + now[0].hold
	case now[0].homes["parked"] > before[0].homes["parked"]:
		return "parking"
	case now[0].retries > before[0].retries:
		return "trying again"
	case now[1].hold != "":
		return "replayer holds: " + now[1].hold
	case replayed(now) > replayed(before):
		return "replaying what was parked"
	}
	return "running"
}
