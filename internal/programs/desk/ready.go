package desk

import (
	"fmt"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
)

// Health says whether the process works: it does unless a batch is stuck. A hold does not count, as a restart does not
// cure it.
func (p *Program) Health() app.Health {
	h := app.Health{Healthy: true, Reasons: []app.Reason{}}
	if p.pulse.stuck(p.patience) {
		h.Healthy = false
		h.Reasons = append(h.Reasons, app.Reason{Reason: "wedged", Hint: fmt.Sprintf("a batch made no progress for %v; restart the process, or wait: it ends by itself after %v", p.patience, 2*p.patience)})
	}
	return h
}

// Readiness says whether the desk works: it reads both dead-letter topics, or waits for its turn, and makes progress.
func (p *Program) Readiness() app.Readiness {
	r := app.Readiness{Program: string(config.Desk), Joined: true}
	for _, f := range p.faults {
		f.Look()
	}
	r.Reasons = app.Grouped(p.holds.Holds())
	for _, s := range p.parts.sources {
		r.Joined = r.Joined && s.Joined()
		r.Assigned += s.Assigned()
	}
	if reason, code, hint, since := p.intake.Fault(); reason != "" && !stands(r.Reasons, reason) {
		at := since.UTC()
		r.Reasons = append(r.Reasons, app.Reason{Reason: reason, Code: code, Hint: hint, Since: &at})
	}
	switch {
	case p.stopping.Load():
		r.Reasons = append(r.Reasons, app.Reason{Reason: "stopping", Hint: "the program stops: it finishes the current batch and fetches no more"})
	case !r.Joined:
		r.Reasons = append(r.Reasons, app.Reason{Reason: "joining", Hint: "wait: the group has not assigned partitions to this member yet"})
	case r.Assigned == 0:
		r.Note = "this desk has no partition, because there are more desks than partitions; it still publishes retries"
	}
	r.Ready = len(r.Reasons) == 0
	return r
}

// Lag tells how many dead letters each partition has that are not entered yet.
func (p *Program) Lag() []telemetry.Lag { return p.parts.lag() }

func stands(reasons []app.Reason, reason string) bool {
	for _, r := range reasons {
		if r.Reason == reason || r.Reason == app.ReasonMigration && reason == pipeline.ReasonDatabaseRefuses {
			return true
		}
	}
	return false
}

// watch ends the program when a batch is stuck.
func (p *Program) watch(done <-chan struct{}) error {
	tick := time.NewTicker(max(time.Millisecond, p.patience/8))
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-tick.C:
		}
		if p.pulse.stuck(2 * p.patience) {
			p.log.Error().Dur("took", 2*p.patience).
				Str("hint", "check the database; the program ends so that another desk takes over").Msg("batch stalled")
			return app.ErrWedged
		}
	}
}
