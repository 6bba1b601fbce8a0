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
		pr.run(ctx)
	}()
	return pr
}

func (p *progress) stop() {
	p.done()
	<-p.ended
}

// run looks often, so that nothing short is missed, and writes a line each second.
func (p *progress) run(ctx context.Context) {
	const looks = 5
	tick := time.NewTicker(time.Second / looks)
	defer tick.Stop()
	var last, told [2]reading
	for i := 1; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := p.read(ctx, last)
		for _, event := range events(last, now) {
			p.show.screen.say("%4.0f s  %s", time.Since(p.show.began).Seconds(), event)
		}
		last = now
		if i%looks == 0 {
			p.tell(ctx, told, now)
			told = now
		}
	}
}

// read reads the metrics of both; what cannot be read stays as it was.
func (p *progress) read(ctx context.Context, before [2]reading) [2]reading {
	for i, name := range []string{Consumer, Replayer} {
		if r, err := p.programs.gauges[name].read(ctx); err == nil {
			before[i] = r
		}
	}
	return before
}

// events are the turns of the outage, as the consumer goes through them.
func events(before, now [2]reading) []string {
	var out []string
	b, n := before[0], now[0]
	if b.retries == 0 && n.retries > 0 {
		out = append(out, "-> write failed with a transient error; retrying")
	}
	if b.homes["parked"] == 0 && n.homes["parked"] > 0 {
		out = append(out, "-> parking: whole batches go to "+topicParking)
	}
	if b.hold == "" && n.hold != "" {
		out = append(out, "-> HOLD ("+n.hold+"): the consumer pauses and probes the database")
	}
	if b.hold != "" && n.hold == "" {
		out = append(out, "-> resumed: a probe succeeded; no restart was needed")
	}
	if replayed(before) == 0 && replayed(now) > 0 {
		out = append(out, "-> replaying: the replayer stores the parked records")
	}
	return out
}

func replayed(r [2]reading) int {
	return r[1].homes["row"] + r[1].homes["duplicate"] + r[1].homes["dead_letter"]
}

// tell writes one line.
func (p *progress) tell(ctx context.Context, before, now [2]reading) {
	lag, parkingLag, err := p.show.places.Lag(ctx)
	if err != nil {
		return // asked again in a second
	}
	sum := func(home string) int { return now[0].homes[home] + now[1].homes[home] }
	format := "%4.0f s  produced %s  rows %s  duplicates %s  parked %s  dead letters %s  lag %s  parking lag %s  %s"
	if p.show.cfg.Live {
		format = "%4.0f s  %s in, %s rows, %s dup, %s parked, %s dead, lag %s+%s, %s"
	}
	p.show.screen.progress(fmt.Sprintf(format, time.Since(p.show.began).Seconds(),
		number(p.produced.Load()), number(sum("row")), number(sum("duplicate")), number(now[0].homes["parked"]),
		number(sum("dead_letter")), number(lag), number(parkingLag), state(before, now)))
}

// state names what the programs are doing.
func state(before, now [2]reading) string {
	switch {
	case now[0].hold != "":
		return "HOLD: " + now[0].hold
	case now[0].homes["parked"] > before[0].homes["parked"]:
		return "parking"
	case now[0].retries > before[0].retries:
		return "retrying"
	case now[1].hold != "":
		return "replayer holds: " + now[1].hold
	case replayed(now) > replayed(before):
		return "replaying"
	}
	return "running"
}
