package fallback

import (
	"context"
	"errors"
	"time"
)

const (
	pollEvery  = 250 * time.Millisecond // how often Run asks whether traffic is idle
	breather   = 50 * time.Millisecond  // between two files, so that live traffic gets the disk and the broker
	firstPause = time.Second            // after an empty scan or a failure; doubled after each failure up to RecoverEvery
)

// Run recovers files until ctx ends, then returns nil. While live traffic is idle, files follow each other with short
// pauses. If traffic is never idle, it recovers one file every RecoverEvery. After failures the pauses grow up to
// RecoverEvery. It returns an error only if the spool is closed.
func (s *Spool) Run(ctx context.Context, idle func() bool, p Publisher) error {
	pace := pace{most: s.cfg.RecoverEvery}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if pace.ready(time.Now(), idle()) {
			r, err := s.Recover(ctx, p)
			switch {
			case errors.Is(err, ErrClosed):
				return err
			case err != nil && ctx.Err() == nil:
				s.log.Warn().Str("file", r.File).Int("acked", r.Acked).Int("failed", r.Failed).Err(err).
					Msg("spool recovery failed")
			}
			pace.after(time.Now(), r, err)
		}
		timer.Reset(pace.sleep(time.Now()))
	}
}

// pace decides when the next file is due.
type pace struct {
	most  time.Duration
	last  time.Time // of the last try
	pause time.Duration
}

func (p *pace) ready(now time.Time, idle bool) bool {
	if p.last.IsZero() {
		return true
	}
	wait := p.most
	if idle {
		wait = p.pause
	}
	return now.Sub(p.last) >= wait
}

func (p *pace) after(now time.Time, r Recovery, err error) {
	p.last = now
	switch {
	case err != nil:
		p.pause = min(p.most, max(firstPause, 2*p.pause))
	case r.File != "":
		p.pause = min(p.most, breather)
	default:
		p.pause = min(p.most, firstPause)
	}
}

// sleep returns how long to wait before the next check: until a file is due, and at most pollEvery.
func (p *pace) sleep(now time.Time) time.Duration {
	due := p.last.Add(p.pause).Sub(now)
	if due <= 0 || due > pollEvery {
		due = pollEvery
	}
	return max(time.Millisecond, min(due, p.most))
}
