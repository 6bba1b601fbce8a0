package historydb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/postgres/db"
)

// StatesConfig says how stored decisions are followed for their states.
type StatesConfig struct {
	Question reader.Question // where subjects are
	Most     int64           // states in all; further subjects have none
	Slack    time.Duration   // how far the mark stays behind the clock; 0: statesSlack. Tests have less
	Rows     int             // decisions that are folded together; 0: stateRows
}

const (
	// statesSlack is for a session that took its time and is not yet on the list, and for a server's clock that is put back.
	statesSlack = 10 * time.Second
	// stateRows is how many decisions are in memory at a time.
	stateRows = 50_000
	// stateRound is how many portions of them one transaction follows at best: the fewer, the more often a state is written.
	stateRound = 10
	// Spans of time that one transaction follows. They adapt to the rows that are in them.
	firstStateSpan, leastStateSpan, mostStateSpan = 4 * time.Second, 250 * time.Millisecond, 30 * 24 * time.Hour
	// stateStatement and stateTime limit one statement and one round.
	stateStatement, stateTime = time.Minute, 5 * time.Minute
)

// States keeps decision_states and decision_flips: it follows stored decisions, each once, in the order of storing. It is for
// one caller at a time; several processes may have one each, and one of them works.
type States struct {
	db   *db.DB
	read *Reader
	cfg  StatesConfig
	by   string

	horizon horizon
	span    time.Duration
	names   map[string]string // revisions by the text of bundles
	words   map[string]string // paths and verdicts
}

// NewStates makes the states of a database.
func NewStates(d *db.DB, cfg StatesConfig) *States {
	if cfg.Slack == 0 {
		cfg.Slack = statesSlack
	}
	if cfg.Rows == 0 {
		cfg.Rows = stateRows
	}
	return &States{db: d, read: NewReader(d), cfg: cfg, by: cfg.Question.SubjectsBy(), span: firstStateSpan, names: map[string]string{}, words: map[string]string{}}
}

// SubjectsError says that the states were made with other settings.
type SubjectsError struct{ Had, Has string }

func (e *SubjectsError) Error() string {
	return fmt.Sprintf("decision_states has subjects by %s, and the settings are %s", e.Had, e.Has)
}

// Hint says what an operator can do.
func (*SubjectsError) Hint() string {
	return "set DOCKET_READER_SUBJECT and DOCKET_READER_EXTRACTORS back; or begin again: SELECT decision_states_restart() as the owner of the tables"
}

const (
	stateLimitsSQL = `
SELECT set_config('statement_timeout', $1, true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true), set_config('cursor_tuple_fraction', '1', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)`
	lockStatesSQL = `SELECT stored_before, states, subject_by FROM decision_states_mark FOR UPDATE SKIP LOCKED`
	// A prepared transaction is on no list of open ones, and may have begun at any time.
	preparedSQL   = `SELECT EXISTS (SELECT FROM pg_prepared_xacts WHERE database = current_database())`
	olderSQL      = `SELECT EXISTS (SELECT FROM decision_logs WHERE stored_at < $1)`
	moveStatesSQL = `UPDATE decision_states_mark SET stored_before = $1, states = states + $2, subject_by = $3, since = coalesce(since, $4),
	full_at = CASE WHEN $5 THEN clock_timestamp() ELSE full_at END RETURNING states`
)

// Follow folds what was stored from the mark on into the states, and moves the mark behind it, in one transaction: so a kill
// repeats and skips nothing. It stops before the moment from which on more may be stored, and does not go past a transaction that is
// open, however long. It returns at once if another process works, or nothing is complete.
func (s *States) Follow(ctx context.Context) (state.Round, error) {
	if err := s.db.Usable(); err != nil {
		return state.Round{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, stateTime)
	defer cancel()
	done, now, err := s.horizon.complete(ctx, s.read, s.cfg.Slack)
	if err != nil {
		return state.Round{}, s.db.Noted("look for open transactions", err)
	}
	round := &followRound{of: s, done: done, now: now, Round: state.Round{Skipped: map[string]int64{}}}
	var own *SubjectsError
	err = pgx.BeginTxFunc(ctx, s.db.Pool(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		err := round.run(ctx, tx)
		errors.As(err, &own)
		return err
	})
	switch {
	case own != nil:
		return state.Round{}, own
	case err != nil:
		s.span = max(s.span/4, leastStateSpan)
		return state.Round{}, s.db.Noted("follow stored decisions", err)
	}
	s.adapt(round)
	return round.Round, nil
}

// adapt chooses the next span by the rows of this one.
func (s *States) adapt(r *followRound) {
	switch {
	case r.Rows > 2*stateRound*int64(s.cfg.Rows):
		s.span = max(s.span/2, leastStateSpan)
	case r.Rows <= stateRound*int64(s.cfg.Rows)/2 && r.More:
		s.span = min(s.span*2, mostStateSpan)
	}
}

// followRound is one round.
type followRound struct {
	state.Round
	of          *States
	done, now   time.Time // all that was stored before done is complete
	from, until time.Time
	had, added  int64
	states      *state.Fold // not written yet
}

func (r *followRound) run(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, stateLimitsSQL, string(db.Milliseconds(stateStatement))); err != nil {
		return err
	}
	var mark pgtype.Timestamptz
	var by string
	switch err := tx.QueryRow(ctx, lockStatesSQL).Scan(&mark, &r.had, &by); {
	case errors.Is(err, pgx.ErrNoRows):
		r.Busy = true
		return nil
	case err != nil:
		return err
	}
	r.States = r.had
	if by != "" && by != r.of.by {
		return &SubjectsError{Had: by, Has: r.of.by}
	}
	begun := mark.InfinityModifier == pgtype.Finite
	if begun {
		r.from, r.Lag = mark.Time, max(r.now.Sub(mark.Time), 0)
	}
	var prepared bool
	if err := tx.QueryRow(ctx, preparedSQL).Scan(&prepared); err != nil {
		return err
	}
	if prepared || r.done.IsZero() || begun && !r.from.Before(r.done) {
		return nil
	}
	if !begun {
		if err := r.oldest(ctx, tx); err != nil {
			return err
		}
	}
	r.until = r.done
	if end := r.from.Add(r.of.span); end.Before(r.done) {
		r.until, r.More = end, true
	}
	if err := r.follow(ctx, tx); err != nil {
		return err
	}
	if err := r.write(ctx, tx); err != nil {
		return err
	}
	r.Lag = max(r.now.Sub(r.until), 0)
	return tx.QueryRow(ctx, moveStatesSQL, r.until, r.added, r.of.by, r.from, r.Counts.Full > 0).Scan(&r.States)
}

// oldest finds a time before which nothing was stored.
func (r *followRound) oldest(ctx context.Context, tx pgx.Tx) error {
	const long = 36500 * 24 * time.Hour
	for back := 24 * time.Hour; ; back *= 4 {
		r.from = r.done.Add(-min(back, long))
		var older bool
		if err := tx.QueryRow(ctx, olderSQL, r.from).Scan(&older); err != nil || !older || back >= long {
			return err
		}
	}
}
