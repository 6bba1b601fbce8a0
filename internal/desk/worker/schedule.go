package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

// ScheduleBook is the part of the ledger that the schedule needs. Any [ledger.Book] is one.
type ScheduleBook interface {
	RetryMatching(ctx context.Context, filter ledger.Filter, before time.Time, n int, lease time.Duration, by ledger.Actor) ([]int64, error)
	Duty(ctx context.Context, name, holder string, every, lease time.Duration) (mine bool, err error)
	DutyDone(ctx context.Context, name, holder string) error
	Remember(ctx context.Context, name, text string) error
	Remembered(ctx context.Context, name string) (text string, at time.Time, err error)
}

// ScheduleConfig says which letters are retried automatically, and when.
type ScheduleConfig struct {
	Holder     string          // a name that no other desk has
	First      time.Duration   // from the start to the first run
	Interval   time.Duration   // from run to run; default 5 min
	Kinds      []envelope.Kind // kinds that are retried; none: no retries
	Lease      time.Duration   // how long a retry may go without news, as in the whole desk; default 15 min
	Portion    int             // limit of letters moved in one transaction; default 50
	Backoff    time.Duration   // pause between two portions; after failures it doubles; default 100 ms
	MaxBackoff time.Duration   // longest of these pauses; default 10 s
	// MaxAttempts excludes letters with this many attempts; default 3. FAILED letters are never retried.
	MaxAttempts int
}

// Schedule retries letters whose failure can pass with time. Of several desks one does so at a time.
type Schedule struct {
	cfg   ScheduleConfig
	book  ScheduleBook
	table Prober
	log   zerolog.Logger
}

// NewSchedule makes a schedule. Kind decode is an error, because time does not make such records readable.
func NewSchedule(cfg ScheduleConfig, book ScheduleBook, table Prober, log zerolog.Logger) (*Schedule, error) {
	for _, kind := range cfg.Kinds {
		switch kind {
		case envelope.Decode:
			return nil, errors.New("records of kind decode are never retried by themselves: no time makes them readable; take decode out of DOCKET_DESK_RETRY_KINDS")
		case envelope.Transient, envelope.Exhausted, envelope.Data, envelope.Conflict:
		default:
			return nil, fmt.Errorf("kind %q cannot be retried; DOCKET_DESK_RETRY_KINDS takes transient, exhausted, data, conflict", kind)
		}
	}
	slices.Sort(cfg.Kinds)
	cfg.Kinds = slices.Compact(cfg.Kinds)
	defaultTo(&cfg.Interval, 5*time.Minute)
	defaultTo(&cfg.Lease, 15*time.Minute)
	defaultTo(&cfg.Portion, 50)
	defaultTo(&cfg.MaxAttempts, 3)
	defaultTo(&cfg.Backoff, 100*time.Millisecond)
	defaultTo(&cfg.MaxBackoff, 10*time.Second)
	return &Schedule{cfg: cfg, book: book, table: table, log: log}, nil
}

// scheduleDuty is the name of the duty, and of the note with the start of its last run.
const scheduleDuty = "schedule"

// Run retries until ctx ends, and returns nil then.
func (s *Schedule) Run(ctx context.Context) error {
	if len(s.cfg.Kinds) == 0 {
		<-ctx.Done()
		return nil
	}
	for next := s.cfg.First; pause(ctx, next); {
		begin := time.Now()
		before, mine, err := s.turn(ctx)
		if err != nil || !mine {
			if err != nil && ctx.Err() == nil {
				s.log.Warn().Err(err).Msg("scheduled retry not started")
			}
			next = s.slack() // another desk did it, or will
			continue
		}
		s.once(ctx, before, begin.Add(s.cfg.Interval-s.slack()))
		next = max(0, s.cfg.Interval-time.Since(begin))
	}
	return nil
}

// slack is the tolerance for the interval between two runs, because two desks and the database do not act at the same
// instant. It is also the pause between two tries to take the duty from another desk.
func (s *Schedule) slack() time.Duration {
	return min(max(s.cfg.Interval/20, time.Millisecond), 5*time.Second)
}

// turn takes the duty if no desk began a run within the interval. before is the start of this run, by the database's
// clock. The duty is noted as done at once. So if the desk dies half-way, the next run is due at the usual time.
func (s *Schedule) turn(ctx context.Context) (before time.Time, mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Interval)
	defer cancel()
	mine, err = s.book.Duty(ctx, scheduleDuty, s.cfg.Holder, s.cfg.Interval-s.slack(), s.cfg.Interval)
	if err != nil || !mine {
		return time.Time{}, false, err
	}
	if err := s.book.Remember(ctx, scheduleDuty, s.cfg.Holder); err != nil {
		return time.Time{}, false, err
	}
	if _, before, err = s.book.Remembered(ctx, scheduleDuty); err != nil {
		return time.Time{}, false, err
	}
	return before, true, s.book.DutyDone(ctx, scheduleDuty, s.cfg.Holder)
}

// once is one run: portion by portion until no letter is left that was moved before its start, or the next run is
// near.
func (s *Schedule) once(ctx context.Context, before, until time.Time) {
	sent := 0
	defer func() {
		if sent > 0 {
			s.log.Info().Int("letters", sent).Msg("scheduled retry completed")
		}
	}()
	for _, kind := range s.cfg.Kinds {
		n, done := s.all(ctx, kind, before, until)
		if sent += n; !done {
			return
		}
	}
}

// all moves all letters of one kind. done is false if the run has to end.
func (s *Schedule) all(ctx context.Context, kind envelope.Kind, before, until time.Time) (sent int, done bool) {
	for failures := 0; ; {
		n, err := s.portion(ctx, kind, before)
		sent += n
		rest := s.cfg.Backoff
		switch {
		case err == nil && n < s.cfg.Portion:
			return sent, true
		case err == nil:
			failures = 0
		case ctx.Err() != nil:
			return sent, false
		default:
			rest = s.backoff(failures)
			failures++
			s.log.Warn().Err(err).Str("kind", string(kind)).Dur("pause", rest).Msg("scheduled retry failed")
		}
		if !time.Now().Add(rest).Before(until) || !pause(ctx, rest) {
			return sent, false
		}
	}
}

// backoff returns the pause after this many failures in a row.
func (s *Schedule) backoff(failures int) time.Duration {
	d := s.cfg.Backoff
	for ; failures > 0 && d < s.cfg.MaxBackoff; failures-- {
		d *= 2
	}
	return min(d, max(s.cfg.MaxBackoff, s.cfg.Backoff))
}

// portion moves at most a portion of letters of one kind, if the table takes a known-good row, so that an outage
// spends no attempts. Snoozes and rules win: it leaves those letters out.
func (s *Schedule) portion(ctx context.Context, kind envelope.Kind, before time.Time) (int, error) {
	if err := s.table.Probe(ctx, time.Now()); err != nil {
		return 0, fmt.Errorf("probe the table: %w", err)
	}
	pending := ledger.Filter{Kind: kind, States: []ledger.State{ledger.Pending}, AttemptsBelow: s.cfg.MaxAttempts, Free: true}
	ids, err := s.book.RetryMatching(ctx, pending, before, s.cfg.Portion, s.cfg.Lease, ledger.Actor{Name: scheduleDuty, Why: "time can heal it"})
	if err != nil {
		return 0, fmt.Errorf("retry letters: %w", err)
	}
	return len(ids), nil
}
