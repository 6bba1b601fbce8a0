package worker

import (
	"context"
	"fmt"
	"time"

	"docket/internal/desk/ledger"
)

// retry does one step of a job that retries: it sends the letters that are due now, or sets the reason for waiting.
func (c *jobRun) retry(ctx context.Context) (*ending, error) {
	if end, err := c.judge(ctx); end != nil || err != nil {
		return end, err
	}
	if c.exhausted || c.left(1) == 0 {
		return c.await(), nil
	}
	n := c.due()
	if n == 0 {
		if c.job.Open() > 0 && time.Since(c.heard) >= c.cfg.First {
			return &ending{ledger.JobStopped, fmt.Sprintf("no result of %s in %s; is a consumer running? %s",
				records(c.job.Open()), c.cfg.First, c.progress())}, nil
		}
		return nil, nil
	}
	if err := c.table.Probe(ctx, time.Now()); err != nil {
		return nil, &errProbe{err}
	}
	c.unprobed, c.waits = 0, ""
	ids, err := c.book.RetryMatching(ctx, c.job.Filter, c.job.CreatedAt, n, c.cfg.LetterLease, c.actor())
	if err != nil {
		return nil, fmt.Errorf("retry letters: %w", err)
	}
	if len(ids) > 0 {
		c.heard = time.Now()
	}
	c.job.Sent += int64(len(ids))
	c.exhausted = len(ids) < n
	c.ramp.sent(len(ids))
	c.ramp.grow()
	return nil, nil
}

// due returns how many letters to send now. Until a retry was stored, earlier ones have to end first. No more are
// sent than are needed to see that they fail alike.
func (c *jobRun) due() int {
	sent, over := c.job.Sent-c.base.Sent, ended(c.job)-ended(c.base)
	size := c.ramp.size
	if c.job.Stored == c.base.Stored {
		if sent > over {
			c.waits = "waiting for the results of " + records(sent-over) + " before more are sent; is a consumer running?"
			if sent == 1 {
				c.waits = "waiting for the result of the first record; is a consumer running?"
			}
			return 0
		}
		if alike := int64(c.cfg.Alike); sent > 0 && sent < alike {
			size = int(alike - sent)
		}
	}
	room := c.cfg.Window - int(min(int64(c.cfg.Window), c.job.Open()))
	if room <= 0 {
		c.waits = "waiting for results of those in progress; is a consumer running?"
		return 0
	}
	c.waits = ""
	return c.ramp.allows(c.left(min(size, room)))
}

// judge stops a job whose first retries, since it was taken, all failed alike.
func (c *jobRun) judge(ctx context.Context) (*ending, error) {
	before := ended(c.base)
	if c.judged || ended(c.job)-before < int64(c.cfg.Alike) {
		return nil, nil
	}
	ends, err := c.book.FirstEnds(ctx, c.job.ID, int(before)+c.cfg.Alike)
	if err != nil {
		return nil, fmt.Errorf("read the ends of the first retries: %w", err)
	}
	if len(ends) < int(before)+c.cfg.Alike {
		return nil, nil
	}
	ends = ends[before:]
	for _, s := range ends {
		if s.Outcome != ledger.SendingDead && s.Outcome != ledger.SendingRefused || s.Code != ends[0].Code {
			c.judged = true
			return nil, nil
		}
	}
	return &ending{ledger.JobStopped, fmt.Sprintf("the first %d failed in the same way: %s; nothing more was sent", len(ends), ends[0].Code)}, nil
}

// await waits for the running retries after all are sent.
func (c *jobRun) await() *ending {
	c.waits = ""
	open := c.job.Open()
	switch {
	case open <= 0:
		return &ending{ledger.JobDone, "done: " + c.progress()}
	case time.Since(c.heard) >= c.cfg.LetterLease:
		return &ending{ledger.JobDone, fmt.Sprintf("done: %s; no result of %s in %s, they become PENDING again",
			c.progress(), records(open), c.cfg.LetterLease)}
	}
	return nil
}
