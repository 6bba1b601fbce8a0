package demo

import (
	"context"
	"time"
)

// pace spreads n steps evenly over a time.
type pace struct {
	began time.Time
	steps int
	over  time.Duration
}

func newPace(steps int, over time.Duration) pace { return pace{time.Now(), steps, over} }

// wait returns when it is time for step i, counted from 0, or with the error of ctx.
func (p pace) wait(ctx context.Context, i int) error {
	at := p.began.Add(time.Duration(float64(p.over) * float64(i) / float64(p.steps)))
	early := time.Until(at)
	if early <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(early)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
