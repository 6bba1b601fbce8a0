//go:build integration

package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// inject does a fault. It gives back what undoes it; ctx is that of the whole campaign.
type inject func(ctx context.Context, f Fault) (heal func(context.Context) error, err error)

// catalogue has what to do for every kind of a plan.
func (c *campaign) catalogue() map[string]inject {
	all := map[string]inject{}
	for _, part := range []map[string]inject{
		c.processFaults(), c.brokerFaults(), c.wireFaults(), c.topicFaults(), c.serverFaults(), c.tableFaults(), c.diskFaults(), c.standbyFaults(), c.deskFaults(), c.laneFaults(), c.redisFaults(),
	} {
		for name, do := range part {
			all[name] = do
		}
	}
	return all
}

// nemesis carries out the plan and returns when every fault has been healed once.
func (c *campaign) nemesis(ctx context.Context) {
	catalogue := c.catalogue()
	for _, kind := range c.kinds() {
		if catalogue[kind.Name] == nil {
			c.broken("the campaign", "it cannot do %q", kind.Name)
			return
		}
	}
	c.note("plan: %+v", c.plan)
	holds := map[string]func(int) []string{}
	for _, kind := range c.kinds() {
		holds[kind.Name] = kind.Holds
	}
	held := &holding{names: map[string]bool{}}
	var running sync.WaitGroup
	for _, f := range c.plan {
		running.Go(func() {
			if !wait(ctx, time.Until(c.began.Add(f.Start))) {
				return
			}
			release, ok := held.take(ctx, holds[f.Kind](f.Target), max(f.Length, c.patience))
			if !ok {
				c.note("not done: %s (%d): what it needs is not healed yet", f.Kind, f.Target)
				c.count(c.failed, f.Kind)
				return
			}
			defer release()
			c.suffer(ctx, f, catalogue[f.Kind])
		})
	}
	running.Wait()
}

// holding is what faults have for themselves just now. A heal can take longer than was planned.
type holding struct {
	mu    sync.Mutex
	names map[string]bool
}

// take waits for all of the names, and gives up after patience.
func (h *holding) take(ctx context.Context, names []string, patience time.Duration) (release func(), ok bool) {
	for until := time.Now().Add(patience); !h.tryTake(names); {
		if time.Now().After(until) || !wait(ctx, 200*time.Millisecond) {
			return nil, false
		}
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, n := range names {
			delete(h.names, n)
		}
	}, true
}

func (h *holding) tryTake(names []string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range names {
		if h.names[n] {
			return false
		}
	}
	for _, n := range names {
		h.names[n] = true
	}
	return true
}

// healLimit is how long undoing a fault may take while others are in the way.
const healLimit = 3 * time.Minute

// suffer injects a fault, lets it last and heals it.
func (c *campaign) suffer(ctx context.Context, f Fault, do inject) {
	name := fmt.Sprintf("%s (%d)", f.Kind, f.Target)
	happened := episode{fault: f, whole: Span{From: time.Now()}}
	until := happened.whole.From.Add(f.Length)
	c.enter(name)
	defer func() { c.leave(name, happened) }()
	c.note("inject %s for %v", name, f.Length.Round(time.Millisecond))
	heal, err := c.persist(ctx, f, do, time.Now().Add(max(f.Length, c.patience)))
	if err != nil {
		c.note("not done: %s: %v", name, err)
		c.count(c.failed, f.Kind)
	} else {
		c.count(c.injected, f.Kind)
		happened.inForce.From = time.Now()
		wait(ctx, time.Until(until))
		happened.inForce.To = time.Now()
	}
	if heal == nil {
		return
	}
	healing, cancel := context.WithTimeout(context.WithoutCancel(ctx), healLimit)
	defer cancel()
	if err := again(healing, func() error { return heal(healing) }); err != nil {
		c.broken("the campaign", "%s cannot be healed: %v", name, err)
		return
	}
	c.note("healed %s", name)
}

// persist tries to inject until a time: the server that it needs may be away because of another fault.
func (c *campaign) persist(ctx context.Context, f Fault, do inject, until time.Time) (func(context.Context) error, error) {
	for {
		heal, err := do(ctx, f)
		if err == nil || time.Now().After(until) || !wait(ctx, 500*time.Millisecond) {
			return heal, err
		}
		if heal != nil { // half done
			c.note("tried again: %s: %v", f.Kind, err)
			if err := heal(ctx); err != nil {
				return heal, err
			}
		}
	}
}

// again repeats what fails until it succeeds or the context ends.
func again(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		if !wait(ctx, 300*time.Millisecond) {
			return err
		}
	}
}

// meanwhile does something at every tick until the fault is healed.
func meanwhile(every time.Duration, do func(ctx context.Context)) (heal func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			do(ctx)
			if !wait(ctx, every) {
				return
			}
		}
	}()
	return func(context.Context) error {
		cancel()
		<-done
		return nil
	}
}

// healEverything makes sure that nothing is left of any fault, whatever a heal thought it had done.
func (c *campaign) healEverything(ctx context.Context) {
	c.say("healing everything")
	ctx, cancel := context.WithTimeout(ctx, healLimit)
	defer cancel()
	steps := map[string]func() error{
		"topics":   func() error { return c.takeAll(ctx) },
		"disks":    c.emptyAll,
		"Postgres": func() error { return c.wholeDatabase(ctx) },
		"Redis":    func() error { return c.wholeRedis(ctx) },
		"brokers":  func() error { return c.wholeCluster(ctx) },
		"wires":    func() error { return c.wholeWires(ctx) },
		"members":  c.wholeMembers,
	}
	for _, name := range []string{"disks", "Postgres", "Redis", "brokers", "topics", "wires", "members"} {
		if err := again(ctx, steps[name]); err != nil {
			c.broken("the campaign", "%s cannot be made whole: %v", name, err)
		}
	}
}
