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
	Rows     int             // decisions that are in memory at a time; 0: stateRows
	Portions int             // of so many decisions that one round follows; 0: stateRound
}

const (
	// statesSlack is for a session that took its time and is not yet on the list, and for a server's clock that is put back.
	statesSlack = 10 * time.Second
	// stateRows is how many decisions are in memory at a time, at most. The index of the present day is read once for each portion.
	stateRows = 200_000
	// stateRound is how many portions one round follows at most: the fewer rounds, the less often a state is written.
	stateRound = 100
	// stateWork limits how long a round reads, so that answers are not far behind and little is done again after a kill.
	stateWork = 20 * time.Second
	// Spans of time that are read at once. They adapt to the rows that are in them.
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
	room    int                    // states that a round folds before it is written; twice as many flips
	last    int                    // rows of the last span
	names   map[string]string      // revisions by the text of bundles
	said    map[string]*state.Said // by the columns that they come from
	key     []byte                 // of said
	careful bool                   // subjects are looked at for what they are: one may have been an object or array

	beforeWrite func() // of tests; nil: nothing
}

// NewStates makes the states of a database.
func NewStates(d *db.DB, cfg StatesConfig) *States {
	if cfg.Slack == 0 {
		cfg.Slack = statesSlack
	}
	if cfg.Rows == 0 {
		cfg.Rows = stateRows
	}
	if cfg.Portions == 0 {
		cfg.Portions = stateRound
	}
	return &States{db: d, read: NewReader(d), cfg: cfg, by: cfg.Question.SubjectsBy(), span: firstStateSpan, room: mostFolded, names: map[string]string{}, said: map[string]*state.Said{}}
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

// Follow folds what was stored from the mark on into the states, and moves the mark behind it. Decisions are read in short
// transactions that write nothing. The states and the mark are written in one, if the mark is where it was: so a kill repeats
// and skips nothing. Follow stops before the moment from which on more may be stored, and does not go past a transaction that
// is open, however long. It returns at once if another process writes, or nothing is complete.
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
	r := &followRound{of: s, done: done, now: now, Round: state.Round{Skipped: map[string]int64{}}}
	err = r.run(ctx)
	var own *SubjectsError
	switch {
	case errors.As(err, &own):
		return state.Round{}, own
	case err != nil:
		s.learn(true)
		return state.Round{}, s.db.Noted("follow stored decisions", err)
	}
	s.learn(false)
	return r.Round, nil
}

// learn makes rounds smaller after one that failed, and larger again after one that did not. Where a server writes states
// slower than it reads decisions, a round of the largest size would never end in time.
func (s *States) learn(failed bool) {
	if !failed {
		s.room = min(2*s.room, mostFolded)
		return
	}
	s.span, s.room = max(s.span/4, leastStateSpan), max(s.room/2, leastFolded)
}

// statesMarked is the mark as it was read.
type statesMarked struct {
	before pgtype.Timestamptz // not finite: nothing was followed yet
	states int64
	by     string
}

func (m statesMarked) begun() bool { return m.before.InfinityModifier == pgtype.Finite }

// followRound is one round.
type followRound struct {
	state.Round
	of          *States
	done, now   time.Time // all that was stored before done is complete
	mark        statesMarked
	from, until time.Time
	fold        *state.Fold
	next        time.Time // the end of the next span; zero: by the length of spans
	unsure      bool      // a subject may be the text of an object or array
	gone        days      // that had left the table when the portion was read
}

// run reads, folds and writes.
func (r *followRound) run(ctx context.Context) error {
	if err := r.begin(ctx); err != nil || r.fold == nil {
		return err
	}
	if err := r.follow(ctx); err != nil {
		return err
	}
	if r.of.beforeWrite != nil {
		r.of.beforeWrite()
	}
	return r.in(ctx, writing, func(ctx context.Context, tx pgx.Tx) error {
		mark, there, err := lockMark(ctx, tx)
		if err != nil {
			return err
		}
		if !there || mark != r.mark { // another process has written meanwhile
			r.Round = state.Round{Skipped: map[string]int64{}, States: mark.states, Busy: true}
			return nil
		}
		added, err := r.write(ctx, tx)
		if err != nil {
			return err
		}
		r.Lag, r.More = max(r.now.Sub(r.until), 0), r.until.Before(r.done)
		return tx.QueryRow(ctx, moveStatesSQL, r.until, added, r.of.by, r.from, r.Counts.Full > 0).Scan(&r.States)
	})
}

// writing is the transactions that move the mark. [followRound.portion] reads in one snapshot.
var writing = pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}

// in runs do in a transaction with the limits of a round.
func (r *followRound) in(ctx context.Context, mode pgx.TxOptions, do func(ctx context.Context, tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, r.of.db.Pool(), mode, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, stateLimitsSQL, string(db.Milliseconds(stateStatement))); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

// begin reads the mark, and makes the fold if there is something to follow.
func (r *followRound) begin(ctx context.Context) error {
	return r.in(ctx, writing, func(ctx context.Context, tx pgx.Tx) (err error) {
		var there bool
		if r.mark, there, err = lockMark(ctx, tx); err != nil || !there {
			r.Busy = err == nil
			return err
		}
		r.States = r.mark.states
		if r.mark.by != "" && r.mark.by != r.of.by {
			return &SubjectsError{Had: r.mark.by, Has: r.of.by}
		}
		if r.mark.begun() {
			r.from, r.Lag = r.mark.before.Time, max(r.now.Sub(r.mark.before.Time), 0)
		}
		var prepared bool
		if err := tx.QueryRow(ctx, preparedSQL).Scan(&prepared); err != nil {
			return err
		}
		if prepared || r.done.IsZero() || r.mark.begun() && !r.from.Before(r.done) {
			r.Unbegun = !r.mark.begun()
			return nil
		}
		if !r.mark.begun() {
			if err := r.oldest(ctx, tx); err != nil {
				return err
			}
		}
		r.until, r.fold = r.from, state.New(nil, r.of.cfg.Most-r.mark.states)
		return nil
	})
}

// lockMark locks the mark and reads it. It is not there if another process has it.
func lockMark(ctx context.Context, tx pgx.Tx) (m statesMarked, there bool, err error) {
	err = tx.QueryRow(ctx, lockStatesSQL).Scan(&m.before, &m.states, &m.by)
	if errors.Is(err, pgx.ErrNoRows) {
		return m, false, nil
	}
	m.before.Time = m.before.Time.UTC()
	return m, err == nil, err
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
