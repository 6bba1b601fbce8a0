package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/desk/notify"
)

// AlertConfig says when alerts are sent.
type AlertConfig struct {
	Holder         string        // of duties: this desk
	Threshold      int64         // number of unresolved dead letters that raises an alert
	Interval       time.Duration // between two checks
	Repeat         time.Duration // least time between two messages about a lasting alert
	ReportInterval time.Duration
	Observer       Observer // nil: none
}

// AlertBook is the part of the ledger that alerts need. Each [ledger.Book] is one.
type AlertBook interface {
	Counts(ctx context.Context, f ledger.Filter) (map[ledger.State]int64, error)
	Snoozed(ctx context.Context) (int64, error)
	Report(ctx context.Context) ([]ledger.ReportLine, error)
	Duty(ctx context.Context, name, holder string, every, lease time.Duration) (mine bool, err error)
	DutyDone(ctx context.Context, name, holder string) error
	Remembered(ctx context.Context, name string) (text string, at time.Time, err error)
	Remember(ctx context.Context, name, text string) error
}

// Sender takes messages. It never waits and never fails.
type Sender interface {
	Send(m notify.Message)
}

// Deliverer takes messages. It never waits. It calls done once, from any goroutine: with true if a person can have seen
// the message, or with false if nobody took it. done does not wait.
type Deliverer interface {
	Deliver(m notify.Message, done func(taken bool))
}

// Alerts tells people about conditions that need a person.
type Alerts struct {
	cfg     AlertConfig
	book    AlertBook
	horizon *Horizon
	to      Sender
	log     zerolog.Logger
	untold  map[string]bool // topics of lanes whose horizon is not known; of check alone

	mu      sync.Mutex
	unnamed int            // fingerprints beyond those in fresh
	fresh   []ledger.Group // never seen before and not reported yet, at most namedGroups
	over    bool           // Run has ended
	wake    chan struct{}
}

// NewAlerts makes alerts. horizon is nil without Kafka.
func NewAlerts(cfg AlertConfig, book AlertBook, horizon *Horizon, to Sender, log zerolog.Logger) *Alerts {
	cfg.Observer = observed(cfg.Observer)
	return &Alerts{cfg: cfg, book: book, horizon: horizon, to: to, log: log, untold: map[string]bool{}, wake: make(chan struct{}, 1)}
}

// Run checks and sends until ctx ends, and returns nil then. Failures are logged and retried.
func (a *Alerts) Run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { a.announce(ctx) })
	all.Go(func() { a.duty(ctx, "alerts", a.cfg.Interval, a.check) })
	all.Go(func() { a.duty(ctx, "report", a.cfg.ReportInterval, a.report) })
	all.Wait()
	return nil
}

// If many new fingerprints come, one message names at most this many, and the next follows after this pause.
const (
	namedGroups = 10
	stormPause  = 5 * time.Second
)

// New reports fingerprints that were never seen before: at once, or together if many come. It does not wait.
func (a *Alerts) New(groups []ledger.Group) {
	if len(groups) == 0 {
		return
	}
	a.mu.Lock()
	named := min(len(groups), namedGroups-len(a.fresh))
	a.fresh = append(a.fresh, groups[:named]...)
	a.unnamed += len(groups) - named
	over := a.over
	a.mu.Unlock()
	if over { // a batch in hand can be entered after that
		a.tellNew()
		return
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *Alerts) announce(ctx context.Context) {
	// Report groups that come up to the end and after it, because no later batch has them as new.
	defer func() {
		a.mu.Lock()
		a.over = true
		a.mu.Unlock()
		a.tellNew()
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		}
		a.tellNew()
		select {
		case <-ctx.Done():
			return
		case <-time.After(stormPause):
		}
	}
}

func (a *Alerts) tellNew() {
	a.mu.Lock()
	groups, unnamed := a.fresh, a.unnamed
	a.fresh, a.unnamed = nil, 0
	a.mu.Unlock()
	if len(groups) > 0 {
		a.to.Send(newGroups(groups, unnamed))
	}
}

// dutyLease is how long the desk with the duty may be silent before another takes it. Its own check ends before.
const dutyLease = time.Minute

// duty does work once in every interval, on one desk at a time. After a failure another desk has a turn first, as it may
// reach what this one cannot.
func (a *Alerts) duty(ctx context.Context, name string, every time.Duration, work func(ctx context.Context, now time.Time) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	ill := false
	for {
		err := a.once(ctx, name, every, work)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !ill:
			a.log.Warn().Err(err).Str("duty", name).Msg("alert check failed")
		case err == nil && ill:
			a.log.Info().Str("duty", name).Msg("alert check recovered")
		}
		switch {
		case err != nil:
			tick.Reset(min(every*3/2, 2*dutyLease))
		case ill:
			tick.Reset(every)
		}
		ill = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (a *Alerts) once(ctx context.Context, name string, every time.Duration, work func(ctx context.Context, now time.Time) error) error {
	ctx, cancel := context.WithTimeout(ctx, dutyLease-dutyLease/6)
	defer cancel()
	// A tenth less, because ticks are not exact and one that is a moment early must not be skipped.
	mine, err := a.book.Duty(ctx, name, a.cfg.Holder, every-every/10, dutyLease)
	if err != nil || !mine {
		return err
	}
	now, err := a.now(ctx)
	if err == nil {
		err = work(ctx, now)
	}
	if err != nil { // given back, but not done
		_, back := a.book.Duty(ctx, name, a.cfg.Holder, every-every/10, 0)
		return errors.Join(err, back)
	}
	return a.book.DutyDone(ctx, name, a.cfg.Holder)
}

// now returns the database's time. It decides how long messages are held back, whatever a desk's own clock says.
func (a *Alerts) now(ctx context.Context) (time.Time, error) {
	if err := a.book.Remember(ctx, "alerts:looked", a.cfg.Holder); err != nil {
		return time.Time{}, err
	}
	_, at, err := a.book.Remembered(ctx, "alerts:looked")
	return at, err
}
