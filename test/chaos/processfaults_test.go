//go:build integration

package chaos

import (
	"context"
	"time"
)

func (c *campaign) processFaults() map[string]inject {
	return map[string]inject{
		ConsumerKilled: func(_ context.Context, f Fault) (func(context.Context) error, error) {
			return c.killed(f.Target), nil
		},
		"process terminated": func(_ context.Context, f Fault) (func(context.Context) error, error) {
			s := c.slots[f.Target]
			s.terminate()
			return starting(s), nil
		},
		"process stopped beyond its session": func(_ context.Context, f Fault) (func(context.Context) error, error) {
			s := c.slots[f.Target]
			s.freeze()
			return func(context.Context) error { s.thaw(); return nil }, nil
		},
		"two processes killed at once": func(_ context.Context, f Fault) (func(context.Context) error, error) {
			return c.killed(f.Target, Consumers+f.Target), nil
		},
		"both consumers terminated at once": func(context.Context, Fault) (func(context.Context) error, error) {
			done := make(chan struct{})
			go func() { c.slots[0].terminate(); close(done) }()
			c.slots[1].terminate()
			<-done
			return starting(c.slots[0], c.slots[1]), nil
		},
		"member added": func(_ context.Context, f Fault) (func(context.Context) error, error) {
			s := c.slots[members+f.Target]
			if err := s.start(); err != nil {
				return nil, err
			}
			return func(context.Context) error { s.terminate(); return nil }, nil
		},
		"killed again and again": func(_ context.Context, f Fault) (func(context.Context) error, error) {
			return c.killedAgain(c.slots[f.Target]), nil
		},
	}
}

// killedAgain kills a process each time that it has begun to work, until that is healed.
func (c *campaign) killedAgain(s *slot) (heal func(context.Context) error) {
	n := 0
	stop := meanwhile(0, func(ctx context.Context) {
		_ = s.start() // tried again at once
		n++
		wait(ctx, time.Duration(700+317*n%1500)*time.Millisecond)
		if s.kill() {
			c.count(c.kills, "at random")
		}
	})
	return func(ctx context.Context) error {
		_ = stop(ctx)
		return s.start()
	}
}

// killed kills processes; healing starts them again.
func (c *campaign) killed(numbers ...int) func(context.Context) error {
	var slots []*slot
	for _, n := range numbers {
		slots = append(slots, c.slots[n])
	}
	done := make(chan bool, len(slots))
	for _, s := range slots {
		go func() { done <- s.kill() }()
	}
	for range slots {
		if <-done {
			c.count(c.kills, "at random")
		}
	}
	return starting(slots...)
}

func starting(slots ...*slot) func(context.Context) error {
	return func(context.Context) error {
		for _, s := range slots {
			if err := s.start(); err != nil {
				return err
			}
		}
		return nil
	}
}

// wholeMembers has every process run that ever ran, those that came and went as well: their spools may hold records. One
// that would still kill itself is replaced.
func (c *campaign) wholeMembers() error {
	for _, s := range c.ran() {
		s.thaw()
		s.unarm()
		if err := s.start(); err != nil {
			return err
		}
	}
	return nil
}

// ran are the slots that ever had a process.
func (c *campaign) ran() []*slot {
	var all []*slot
	for _, s := range c.slots {
		if s.used.Load() {
			all = append(all, s)
		}
	}
	return all
}
