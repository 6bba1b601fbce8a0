package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

type countedDecisions struct {
	times []time.Duration
	began time.Time
	fail  int
}

func (c *countedDecisions) Count(context.Context) (int64, error) {
	c.times = append(c.times, time.Since(c.began))
	if len(c.times) <= c.fail {
		return 0, errors.New("away")
	}
	return 1, nil
}

func TestTally_CountsInSpiteOfFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &countedDecisions{began: time.Now(), fail: 2}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute-time.Second)
		defer cancel()
		if err := NewTally(c, zerolog.Nop()).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(c.times) != 10 {
			t.Errorf("counted at %v", c.times)
		}
	})
}
