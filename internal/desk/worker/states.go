package worker

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/history/state"
)

// StatesConfig says how states are kept.
type StatesConfig struct {
	Holder    string        // of the duty: this desk
	Idle      time.Duration // states that were not seen for this long are removed
	KeepFlips time.Duration // flips are removed after it
	Metrics   *StateMetrics
}

// Keeper keeps the states in the database.
type Keeper interface {
	// Follow folds the next decisions into the states, and moves the mark behind them, in one transaction.
	Follow(ctx context.Context) (state.Round, error)
	// Trim removes idle states and old flips, and returns how many states. It may leave some for the next time.
	Trim(ctx context.Context, idle, keep time.Duration) (int64, error)
}

// Duties gives a duty to one desk at a time. Each [ledger.Upkeep] is one.
type Duties interface {
	Duty(ctx context.Context, name, holder string, every, lease time.Duration) (mine bool, err error)
	DutyDone(ctx context.Context, name, holder string) error
}

// States follows stored decisions and keeps the newest answer of each subject and path. One desk at a time does it.
type States struct {
	cfg    StatesConfig
	keeper Keeper
	duties Duties
	alerts *StateAlerts // nil: none
	log    zerolog.Logger
	until  time.Time // of the lease, by this desk's clock; zero: another desk may have the duty
	trim   time.Time // when idle states are removed next
	full   bool
}

// The duty of the states, and its pauses. The desk with the duty may be silent for a lease. One that comes back later
// repeats nothing, because the database locks the mark.
const (
	statesDuty  = "states"
	statesLease = time.Minute
	statesRenew = statesLease / 3
	statesAway  = 5 * time.Second // between two looks for the duty
	statesPause = time.Second
	statesRest  = 20 // pauses are so many times as long as the work
	longestRest = 30 * time.Second
	cleanEvery  = time.Hour
	cleanAgain  = 10 * time.Second
)

// NewStates makes the keeping of states. alerts may be nil.
func NewStates(cfg StatesConfig, keeper Keeper, duties Duties, alerts *StateAlerts, log zerolog.Logger) *States {
	return &States{cfg: cfg, keeper: keeper, duties: duties, alerts: alerts, log: log}
}

// Run works until ctx ends, and returns nil then.
func (s *States) Run(ctx context.Context) error {
	defer s.leave(ctx)
	t := trouble{log: s.log, work: "keeping states of subjects"}
	for {
		pause, err := s.round(ctx)
		if err != nil {
			t.failed(ctx, err)
			pause = t.pause(statesPause)
		} else {
			t.succeeded()
		}
		if idle(ctx, pause) {
			return nil
		}
	}
}

// round works once, and returns the pause before the next round.
func (s *States) round(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	mine, err := s.mine(ctx, began)
	if err != nil || !mine {
		return statesAway, err
	}
	s.cfg.Metrics.lag.begin(began)
	r, err := s.keeper.Follow(ctx)
	if err != nil {
		return 0, err
	}
	s.cfg.Metrics.round(r, time.Now())
	s.tell(r)
	if mine, err := s.mine(ctx, time.Now()); err != nil || !mine { // the work may take longer than the lease
		return statesAway, err
	}
	// Neither keeps the other from its work.
	var told error
	if s.alerts != nil {
		told = s.alerts.check(ctx, time.Now())
	}
	if err := errors.Join(told, s.clean(ctx, began)); err != nil {
		return 0, err
	}
	if r.More {
		return 0, nil
	}
	return min(max(statesPause, statesRest*time.Since(began)), longestRest), nil
}

// mine takes or renews the duty.
func (s *States) mine(ctx context.Context, now time.Time) (bool, error) {
	if now.Before(s.until.Add(-statesLease + statesRenew)) {
		return true, nil
	}
	mine, err := s.duties.Duty(ctx, statesDuty, s.cfg.Holder, 0, statesLease)
	if err != nil { // it says nothing of another desk
		s.until = time.Time{}
		return false, err
	}
	if !mine || !time.Now().Before(s.until) { // another desk has it, or may have had it since
		s.alerts.leave()
	}
	if !mine {
		s.until = time.Time{}
		s.cfg.Metrics.idle()
		return false, nil
	}
	s.until = now.Add(statesLease)
	return true, nil
}

// leave gives the duty back, so that another desk need not wait for the end of the lease.
func (s *States) leave(ctx context.Context) {
	if s.until.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := s.duties.DutyDone(ctx, statesDuty, s.cfg.Holder); err != nil && !errors.Is(err, ledger.ErrLost) {
		s.log.Debug().Err(err).Msg("duty not given back")
	}
}

// tell logs once that further subjects have no room.
func (s *States) tell(r state.Round) {
	if full := r.Counts.Full > 0; full && !s.full {
		s.full = true
		s.log.Warn().Int64("states", r.States).
			Str("hint", "raise DOCKET_STATES_MAX, or lower DOCKET_STATES_IDLE; if a sender invents subjects, set DOCKET_READER_SUBJECT to a field that it does not choose").
			Msg("no room for further states")
	} else if !full && r.Counts.Began > 0 {
		s.full = false
	}
}

func (s *States) clean(ctx context.Context, now time.Time) error {
	if now.Before(s.trim) {
		return nil
	}
	gone, err := s.keeper.Trim(ctx, s.cfg.Idle, s.cfg.KeepFlips)
	if err != nil {
		return err
	}
	if s.trim = now.Add(cleanEvery); gone > 0 {
		s.trim = now.Add(cleanAgain) // there may be more
	}
	return nil
}
