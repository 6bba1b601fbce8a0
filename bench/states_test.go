//go:build integration

package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/history/reader"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/record/subject"
)

const (
	statesDrain  = "Docket, empty table, beside the states"
	statesName   = "states of all that was stored"
	steadyDrain  = "Docket, steady answers, beside the states"
	steadyStates = "states of steady answers"
)

// states drains a topic, and then keeps the states of what was stored: 50,000 subjects on four paths. Docket's desk does that
// work while rows come; here it does all of it at once. Answers are by chance first, so most decisions change a state. Then
// they are steady.
func (b *bench) states(ctx context.Context) error {
	t, err := b.logs(ctx)
	if err != nil {
		return err
	}
	steady, err := b.steady(ctx)
	if err != nil {
		return err
	}
	kinds := []struct {
		drain, states string
		of            topic
	}{{statesDrain, statesName, t}, {steadyDrain, steadyStates, steady}}
	err = b.rounds(b.Rounds, func() error {
		for _, k := range kinds {
			if _, err := b.measure(ctx, k.drain, func(ctx context.Context) (Run, error) { return b.drained(ctx, load{topic: k.of}) }); err != nil {
				return err
			}
			if _, err := b.measure(ctx, k.states, func(ctx context.Context) (Run, error) { return b.kept(ctx, k.of) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	against := func(states, drain string) Figure {
		all := func(r Run) time.Duration { return r.Worker + r.Postgres }
		return Between(b.runs[states], b.runs[drain], func(a, b Run) float64 { return all(a).Seconds() / all(b).Seconds() })
	}
	b.judge("states, CPU against that of the writer, Postgres included", against(statesName, statesDrain), AtMost(0.05), "%.3f", "worker and Postgres together, of both")
	b.judge("the same, where one answer of a hundred flips", against(steadyStates, steadyDrain), AtMost(0.05), "%.3f", "worker and Postgres together, of both")
	b.judge("states, decisions a second", Over(b.runs[statesName], Run.Rate), nil, "", "what is behind is followed as fast as that")
	return nil
}

// kept follows all rows of the table, and checks that each is in a state.
func (b *bench) kept(ctx context.Context, t topic) (run Run, err error) {
	// Autovacuum of what was written is not work of the states, so it is done before.
	if err := b.sql(ctx, "SELECT decision_states_restart()", "VACUUM (ANALYZE) decision_logs", "CHECKPOINT"); err != nil {
		return run, err
	}
	pool, err := db.Open(db.Config{URL: b.dsn, StoreTimeout: time.Minute}, zerolog.Nop())
	if err != nil {
		return run, err
	}
	defer pool.Close()
	states := historydb.NewStates(pool, historydb.StatesConfig{
		Question: reader.Question{Subject: subject.Spec{Kind: subject.Input, Pointer: "/user"}}, Most: 1_000_000, Slack: time.Microsecond,
	})
	from, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	run.Rows = int64(t.decisions)
	began := time.Now()
	for followed := int64(0); followed < run.Rows; {
		r, err := states.Follow(ctx)
		if err != nil {
			return run, err
		}
		if followed += r.Rows; time.Since(began) > stuck && followed == 0 {
			return run, fmt.Errorf("no decision was followed within %v", stuck)
		}
	}
	run.Took = time.Since(began)
	to, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	run.Worker = to.self - from.self
	run.since(from, to, 0)
	n, err := b.number(ctx, "SELECT sum(decisions) FROM decision_states")
	if err == nil && n != run.Rows {
		err = fmt.Errorf("the account does not add up: %d of %d decisions are in a state", n, run.Rows)
	}
	return run, err
}
