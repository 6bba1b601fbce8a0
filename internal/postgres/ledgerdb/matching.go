package ledgerdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

// RetryMatching implements [ledger.Decider].
func (l *Ledger) RetryMatching(ctx context.Context, filter ledger.Filter, before time.Time, n int, lease time.Duration, by ledger.Actor) ([]int64, error) {
	if lease <= 0 {
		return nil, ledger.ErrNoLease
	}
	var sendings []int64
	err := l.matching(ctx, "retry dead letters", filter, before, n, by, func(ctx context.Context, tx pgx.Tx, ids []string) (moved int, err error) {
		sendings, err = retry(ctx, tx, ids, lease, by)
		return len(sendings), err
	})
	return sendings, err
}

// ResolveMatching implements [ledger.Decider].
func (l *Ledger) ResolveMatching(ctx context.Context, filter ledger.Filter, before time.Time, n int, by ledger.Actor) (int, error) {
	moved := 0
	err := l.matching(ctx, "resolve dead letters", filter, before, n, by, func(ctx context.Context, tx pgx.Tx, ids []string) (_ int, err error) {
		moved, err = resolve(ctx, tx, ids, by)
		return moved, err
	})
	return moved, err
}

// matching moves letters that filter chooses and counts them for the job. It gives up only where there are none left: one
// that somebody moved between the look and the lock does not count.
func (l *Ledger) matching(ctx context.Context, act string, filter ledger.Filter, before time.Time, n int, by ledger.Actor, move func(context.Context, pgx.Tx, []string) (int, error)) error {
	switch {
	case by.Name == "":
		return ledger.ErrNobody
	case by.Why == "":
		return ledger.ErrNoReason
	case n <= 0:
		return nil
	}
	states := []string{string(ledger.Pending), string(ledger.Failed)}
	if len(filter.States) > 0 {
		states = slices.DeleteFunc(states, func(s string) bool { return !slices.Contains(filter.States, ledger.State(s)) })
	}
	return l.within(ctx, act, pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		choice, err := chooseMatching(ctx, tx, filter, states, before, n, by.Job)
		if err != nil {
			return err
		}
		var ids []string
		for len(ids) < n {
			locked, more, err := choice.lock(ctx, tx, n-len(ids))
			if err != nil {
				return err
			}
			if ids = append(ids, locked...); !more {
				break
			}
		}
		moved, err := move(ctx, tx, ids)
		if err != nil || by.Job == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE dead_letter_jobs SET sent = sent + $2::bigint, reached = CASE WHEN $4::boolean THEN greatest(reached, $3::timestamptz) ELSE reached END
			WHERE job_id = $1::bigint`, by.Job, moved, choice.reached, choice.own)
		return err
	})
}

// choice is a filter and what makes a letter free for it.
type choice struct {
	look    string
	args    []any // of look; the fourth to sixth are of each look
	states  []string
	before  time.Time
	job     int64
	own     bool               // the job's filter and time are these: it continues where it was
	reached pgtype.Timestamptz // the first failure of the latest that was looked at
	taken   []string           // looked at by this transaction
}

// freeSQL is that a letter can be moved: its state, when it moved last, and that the job did not touch it.
const freeSQL = `d.state = ANY($1::text[]::dead_letter_state[]) AND d.changed_at < $2::timestamptz AND ($3::bigint = 0 OR d.job_id IS DISTINCT FROM $3::bigint)`

// takeSQL locks letters in the order of their ids, as everybody does, and gives those that still are free, oldest first.
const takeSQL = `WITH locked AS (
		SELECT d.dead_letter_id, d.first_failed_at FROM dead_letters d WHERE d.dead_letter_id = ANY($4::text[]) AND ` + freeSQL + `
		ORDER BY d.dead_letter_id FOR UPDATE)
	SELECT dead_letter_id FROM locked ORDER BY first_failed_at, dead_letter_id`

// fewLooked is how many letters are looked at where each group and state gives as many as are wanted. Beyond that they are
// read in the order in which they failed, whatever their group.
const fewLooked = 5000

// orderedSQL has the planner read letters in the order of an index and stop, however few it believes that there are.
const orderedSQL = `SELECT set_config('enable_' || name, 'off', true) FROM unnest(ARRAY['bitmapscan', 'seqscan', 'sort']) AS name`

const (
	reachedSQL = `SELECT reached FROM dead_letter_jobs WHERE job_id = $1::bigint AND created_at >= $2::timestamptz AND filter = $3::jsonb`
	// Of each group and state the oldest.
	groupwiseSQL = `SELECT one.dead_letter_id, one.first_failed_at FROM unnest(%s::int[]) g(group_id) CROSS JOIN unnest($1::text[]::dead_letter_state[]) s(state)
		CROSS JOIN LATERAL (SELECT d.dead_letter_id, d.first_failed_at FROM dead_letters d
			WHERE d.group_id = g.group_id AND d.state = s.state AND d.state <> 'RESOLVED' AND d.first_failed_at >= $6::timestamptz
				AND d.dead_letter_id <> ALL($4::text[]) AND ` + freeSQL + ` AND %s
			ORDER BY d.first_failed_at LIMIT $5::int) one
		ORDER BY one.first_failed_at, one.dead_letter_id LIMIT $5::int`
	oldestSQL = `SELECT d.dead_letter_id, d.first_failed_at FROM dead_letters d
		WHERE d.state <> 'RESOLVED' AND d.first_failed_at >= $6::timestamptz AND d.dead_letter_id <> ALL($4::text[]) AND ` + freeSQL + ` AND %s
		ORDER BY d.first_failed_at LIMIT $5::int`
)

// chooseMatching goes by an index from the oldest on, and a job from where it was: nothing that was moved, or was not free, becomes
// free for a job again, as whatever moves a letter moves changed_at beyond the job's time. So a portion reads only
// the letters between the one before and its end, whatever became of those that the job has moved.
func chooseMatching(ctx context.Context, tx pgx.Tx, f ledger.Filter, states []string, before time.Time, n int, job int64) (*choice, error) {
	c := &choice{args: []any{states, before, job, nil, 0, nil}, states: states, before: before, job: job, taken: []string{}}
	c.reached = pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.NegativeInfinity}
	if _, err := tx.Exec(ctx, orderedSQL); err != nil {
		return nil, err
	}
	if job != 0 {
		filter, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		err = tx.QueryRow(ctx, reachedSQL, job, before, string(filter)).Scan(&c.reached)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return nil, err
		}
		c.own = err == nil
	}
	where := innerSQL(f, &c.args)
	if f.Path != "" {
		where += " AND d.path = " + db.Arg(&c.args, pathText(f.Path)) + "::text"
	}
	var args []any
	of := groupSQL(f, &args)
	if of == "" {
		c.look = fmt.Sprintf(oldestSQL, where)
		return c, nil
	}
	groups, err := groupsOf(ctx, tx, of, args)
	if err != nil {
		return nil, err
	}
	if ids := db.Arg(&c.args, groups); len(groups)*len(states)*n <= fewLooked || len(groups) == 1 {
		c.look = fmt.Sprintf(groupwiseSQL, ids, where)
	} else {
		c.look = fmt.Sprintf(oldestSQL, where+" AND d.group_id = ANY("+ids+"::int[])")
	}
	return c, nil
}

func groupsOf(ctx context.Context, tx pgx.Tx, where string, args []any) ([]int32, error) {
	rows, err := tx.Query(ctx, `SELECT group_id FROM dead_letter_groups g WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int32])
}

// lock locks at most n letters that are free. more says that there may be others.
func (c *choice) lock(ctx context.Context, tx pgx.Tx, n int) (ids []string, more bool, err error) {
	c.args[3], c.args[4], c.args[5] = c.taken, n, c.reached
	// Planned for these very arguments each time.
	rows, err := tx.Query(ctx, c.look, append([]any{pgx.QueryExecModeDescribeExec}, c.args...)...)
	if err != nil {
		return nil, false, err
	}
	var found []string
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id, &c.reached}, func() error {
		found = append(found, id)
		return nil
	}); err != nil || len(found) == 0 {
		return nil, false, err
	}
	c.taken = append(c.taken, found...)
	ids, err = textsOf(tx.Query(ctx, takeSQL, c.states, c.before, c.job, found))
	return ids, len(found) == n, err
}
