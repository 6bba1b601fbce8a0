package worker

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
)

// UpkeepConfig holds the settings of the upkeep.
type UpkeepConfig struct {
	Holder       string        // a name that no other desk has
	KeepResolved time.Duration // RESOLVED letters are removed after it, unless they may be an only copy; their audit stays
	Interval     time.Duration // between two checks for expired leases; 0: 1 s
	Counter      Counter       // of dead letters, for the observer; nil: not counted
	// LeftOff returns the days that an archive took out of decision_logs and did not drop, for the observer; nil: not
	// counted.
	LeftOff  func(ctx context.Context) (int64, error)
	Observer Observer // nil: none
}

// The intervals of the other tasks, and how long a desk has each for itself. A desk without a sign of life for
// alivePeriod counts as gone.
const (
	compactEvery, compactLease = 10 * time.Second, time.Minute
	removeEvery, removeLease   = time.Minute, 5 * time.Minute
	countEvery                 = 10 * time.Second
	leftOffEvery               = time.Minute
	unarchivedEvery            = time.Minute
	alivePeriod                = 10 * time.Second
	removePortion              = 1000
)

// Upkeep does the regular tasks. It returns letters with an expired lease and tells others that this desk is running.
// It sums up the counters, removes letters that were resolved long ago, and counts.
type Upkeep struct {
	cfg      UpkeepConfig
	ledger   ledger.Upkeep
	actor    ledger.Actor
	log      zerolog.Logger
	observer Observer
	chores   []chore
}

// chore is a regular task. It is due at next.
type chore struct {
	every time.Duration
	next  time.Time
	do    func(context.Context) error
	trouble
}

// NewUpkeep makes an upkeep.
func NewUpkeep(cfg UpkeepConfig, l ledger.Upkeep, actor ledger.Actor, log zerolog.Logger) *Upkeep {
	if cfg.Interval <= 0 {
		cfg.Interval = time.Second
	}
	u := &Upkeep{cfg: cfg, ledger: l, actor: actor, log: log, observer: observed(cfg.Observer)}
	add := func(work string, every time.Duration, do func(context.Context) error) {
		u.chores = append(u.chores, chore{every: every, do: do, trouble: trouble{log: log, work: work}})
	}
	add("returning dead letters whose lease ended", cfg.Interval, u.endLeases)
	add("telling that this desk is there", cfg.Interval, u.alive)
	add("summing up the counters of dead letters", compactEvery, u.compact)
	add("removing what was resolved long ago", removeEvery, u.remove)
	add("counting closed dead letters that no archive has", unarchivedEvery, u.unarchived)
	if cfg.Counter != nil {
		add("counting dead letters", countEvery, u.count)
	}
	if cfg.LeftOff != nil {
		add("looking for days that an archive left off", leftOffEvery, u.leftOff)
	}
	return u
}

// Run works until ctx ends, and returns nil then.
func (u *Upkeep) Run(ctx context.Context) error {
	for {
		now := time.Now()
		for i := range u.chores {
			c := &u.chores[i]
			if now.Before(c.next) {
				continue
			}
			err := c.do(ctx)
			if ctx.Err() != nil {
				return nil //nolint:nilerr // we stop: that is no failure
			}
			if err == nil {
				c.succeeded()
				c.next = now.Add(c.every)
				continue
			}
			c.failed(ctx, err)
			c.next = now.Add(c.pause(c.every))
		}
		if idle(ctx, u.cfg.Interval) {
			return nil
		}
	}
}

func (u *Upkeep) endLeases(ctx context.Context) error {
	n, err := u.ledger.EndLeases(ctx, u.actor)
	if n > 0 {
		u.log.Warn().Int("dead_letters", n).
			Str("hint", "check that the consumer runs; the dead letters are PENDING again").Msg("retry leases expired")
	}
	return err
}

func (u *Upkeep) alive(ctx context.Context) error {
	_, err := u.ledger.Duty(ctx, "desk:"+u.cfg.Holder, u.cfg.Holder, 0, alivePeriod)
	return err
}

func (u *Upkeep) compact(ctx context.Context) error {
	return u.duty(ctx, "compact", compactEvery, compactLease, u.ledger.Compact)
}

func (u *Upkeep) remove(ctx context.Context) error {
	return u.duty(ctx, "remove", removeEvery, removeLease, func(ctx context.Context) error {
		end := time.Now().Add(removeLease / 2)
		for time.Now().Before(end) {
			n, err := u.ledger.Remove(ctx, time.Now().Add(-u.cfg.KeepResolved), removePortion, u.actor)
			if err != nil {
				return err
			}
			if n < removePortion {
				return nil
			}
		}
		return nil // the rest is removed next time
	})
}

// count is for each desk: a gauge of a desk that counts no more would stay as it was.
func (u *Upkeep) count(ctx context.Context) error {
	n, err := u.cfg.Counter.Counts(ctx, ledger.Filter{})
	if err != nil {
		return err
	}
	u.observer.Letters(n)
	snoozed, err := u.cfg.Counter.Snoozed(ctx)
	if err == nil {
		u.observer.Snoozed(snoozed)
	}
	return err
}

func (u *Upkeep) unarchived(ctx context.Context) error {
	n, err := u.ledger.Unarchived(ctx, time.Now().Add(-u.cfg.KeepResolved))
	if err == nil {
		u.observer.Unarchived(n)
	}
	return err
}

func (u *Upkeep) leftOff(ctx context.Context) error {
	n, err := u.cfg.LeftOff(ctx)
	if err == nil {
		u.observer.LeftOff(n)
	}
	return err
}

// duty does a task that one desk does for all, if it is this desk's turn.
func (u *Upkeep) duty(ctx context.Context, name string, every, lease time.Duration, do func(context.Context) error) error {
	mine, err := u.ledger.Duty(ctx, name, u.cfg.Holder, every, lease)
	if err != nil || !mine {
		return err
	}
	if err := do(ctx); err != nil {
		return err
	}
	err = u.ledger.DutyDone(ctx, name, u.cfg.Holder)
	if errors.Is(err, ledger.ErrLost) { // it took longer than the lease, and is still done
		return nil
	}
	return err
}
