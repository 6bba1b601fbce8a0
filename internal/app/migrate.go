package app

import (
	"context"
	"time"

	"docket/internal/errclass"
	"docket/internal/pipeline"
	"docket/internal/postgres"
	"docket/internal/telemetry"
)

// migrating is how long reading waits for the first attempt to migrate: on an empty database it would only find that
// there is no table. After that it goes on beside it, as the schema may be good enough.
const migrating = 10 * time.Second

// migrate brings the schema up to date, however long that takes. tried is called after the first attempt.
func (p *Program) migrate(ctx context.Context, tried func()) {
	defer tried()
	var last pipeline.Hold
	release := func() {}
	defer func() { release() }()
	for {
		applied, err := p.parts.Database.Migrate(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if applied > 0 {
				p.log.Info().Int(telemetry.KeyApplied, applied).Msg("schema brought up to date")
			}
			return
		}
		h := pipeline.Hold{Reason: ReasonMigration, Code: errclass.Classify(err).Code, Hint: postgres.Hint(err)}
		if h.Hint == "" {
			h.Hint = "run `consumer migrate` with a role that may change the schema, and see what it says"
		}
		if h != last {
			release()
			last, release = h, p.observer.Held("", 0, h)
		}
		tried()
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.settings.ProbeInterval):
		}
	}
}
