package schema

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	statesReadableSQL = `SELECT coalesce(has_table_privilege(to_regclass('decision_states_mark')::oid, 'SELECT'), false)`
	statesMarkSQL     = `SELECT stored_before, states, clock_timestamp() FROM decision_states_mark`
)

// StatesLate is how far states may be behind. The alert DocketStatesBehind has the same bound.
const StatesLate = 30 * time.Minute

const statesName = "states"

// checkStates looks how far the states of subjects are. It returns nil where no desk ever kept them, and where the role may
// not read their mark.
func checkStates(ctx context.Context, conn *pgx.Conn) (*Check, error) {
	var readable bool
	if err := conn.QueryRow(ctx, statesReadableSQL).Scan(&readable); err != nil || !readable {
		return nil, err
	}
	var mark pgtype.Timestamptz
	var states int64
	var now time.Time
	switch err := conn.QueryRow(ctx, statesMarkSQL).Scan(&mark, &states, &now); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil //nolint:nilnil // there is nothing to say
	case err != nil:
		return nil, err
	case mark.InfinityModifier != pgtype.Finite:
		return nil, nil //nolint:nilnil // there is nothing to say
	}
	c := statesCheck(mark.Time, now, states)
	return &c, nil
}

// statesCheck judges the mark of the states.
func statesCheck(mark, now time.Time, states int64) Check {
	lag := max(now.Sub(mark), 0)
	if lag <= StatesLate {
		return Check{Name: statesName, Detail: fmt.Sprintf("%d states have the decisions up to %s ago", states, lag.Truncate(time.Second))}
	}
	return Check{
		Name: statesName, Level: Warn, Detail: fmt.Sprintf("%d states lack the decisions of the last %s", states, lag.Truncate(time.Minute)),
		Hint: "if it comes no nearer, see DocketStatesBehind in docs/runbook.md; if no desk keeps states any more: SELECT decision_states_restart()",
	}
}
