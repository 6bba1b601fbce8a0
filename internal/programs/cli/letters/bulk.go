package letters

import (
	"context"
	"fmt"
	"strings"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/jobs"
	"docket/internal/programs/cli/pick"
	"docket/internal/programs/cli/term"
)

// unasked is how many dead letters may be moved at once without a question and without --yes.
const unasked = 100

// movable is a filter that chooses only dead letters that can be retried or resolved.
func movable(f ledger.Filter) (ledger.Filter, error) {
	if len(f.States) == 0 {
		f.States = []ledger.State{ledger.Pending, ledger.Failed}
	}
	for _, state := range f.States {
		if state != ledger.Pending && state != ledger.Failed {
			return f, frame.Misuse("%s dead letters cannot be changed by hand: only PENDING and FAILED ones", state)
		}
	}
	return f, nil
}

// job creates a job and watches it.
func (m *mover) job(act ledger.Act) (frame.Work, error) {
	filter, err := m.choose.Filter(m.Now())
	if err != nil {
		return nil, err
	}
	if filter, err = movable(filter); err != nil {
		return nil, err
	}
	by, err := m.Actor(m.Signature, "")
	return func(ctx context.Context) error { return m.makeJob(ctx, act, filter, by) }, err
}

func (m *mover) makeJob(ctx context.Context, act ledger.Act, filter ledger.Filter, by ledger.Actor) error {
	counts, err := m.Sys.Book.Counts(ctx, filter)
	if err != nil {
		return fmt.Errorf("count the dead letters that match: %w", err)
	}
	n := counts[ledger.Pending] + counts[ledger.Failed]
	if agreed, err := m.agreed(ctx, act, filter, counts, n); err != nil || !agreed {
		return err
	}
	limit := n // dead letters that came after the question were not agreed to
	if m.limit > 0 {
		limit = min(n, m.limit)
	}
	job, err := m.Sys.Book.CreateJob(ctx, ledger.Job{Act: act, Filter: filter, Rate: m.rate, Limit: limit, Operator: by.Name, Reason: by.Why})
	if err != nil {
		return fmt.Errorf("create the job: %w", err)
	}
	if !m.AsJSON {
		m.Say("job %d: %s %s\n", job.ID, jobs.Verbs[act].Doing, pick.Which(filter))
	}
	if job.State == ledger.JobProposed {
		m.Tell("it waits for a second person: docket jobs approve %d\n", job.ID)
		if !m.wait { // nobody approves it while this command looks on
			if err := (jobs.Follower{Call: m.Call}).Watch(ctx, job, false, true); err != nil || m.detach {
				return err
			}
			return frame.Exit(cli.Failed)
		}
	}
	return jobs.Follower{Call: m.Call}.Watch(ctx, job, m.wait, m.detach)
}

// agreed prints how many dead letters match, and asks whether to move them.
func (m *mover) agreed(ctx context.Context, act ledger.Act, filter ledger.Filter, counts map[ledger.State]int64, n int64) (bool, error) {
	if n == 0 {
		m.Tell("no PENDING or FAILED dead letters match; nothing was changed\n")
		l := beside(ctx, m.Call)(true)
		if m.AsJSON {
			m.Print(struct {
				Matched int64      `json:"matched"`
				Job     *jobs.View `json:"job"`
				Ledger  jsonLedger `json:"ledger"`
			}{Ledger: l})
		}
		noteLedger(m.Call, l)
		return false, nil
	}
	m.Tell("%s (%s) %s %s\n", term.Counted(n, "dead letter"), states(counts), map[bool]string{true: "matches", false: "match"}[n == 1], pick.Which(filter))
	moves := n
	if m.limit > 0 {
		moves = min(n, m.limit)
	}
	switch {
	case m.yes:
		return true, nil
	case m.Asks():
		ok, err := m.Confirm(ctx, jobs.Verbs[act].Ask+" "+term.Grouped(moves)+jobs.Paced(m.rate)+"?", false)
		if err == nil && !ok {
			m.Tell("nothing was changed\n")
			return false, frame.Exit(cli.Failed)
		}
		return ok, err
	case moves > unasked:
		return false, frame.Misuse("this would change %s dead letters, and without a terminal nobody can confirm: give --yes, or --limit %d", term.Grouped(moves), unasked)
	}
	return true, nil
}

// states are counts by state, in the order of a dead letter's life.
func states(counts map[ledger.State]int64) string {
	var parts []string
	for _, state := range ledger.States() {
		if n := counts[state]; n > 0 {
			parts = append(parts, string(state)+" "+term.Grouped(n))
		}
	}
	return strings.Join(parts, ", ")
}
