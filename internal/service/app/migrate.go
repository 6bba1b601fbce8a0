package app

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/service/telemetry"
)

// migrating is how long reading waits for the first attempt to migrate: on an empty database it would only find that
// there is no table. After that the program reads while it migrates, as the schema may be good enough.
const migrating = 10 * time.Second

// Migrator brings a schema up to date.
type Migrator interface {
	Migrate(ctx context.Context) (applied int, err error)
}

func (p *Program) migrate(ctx context.Context, tried func()) {
	Migrate(ctx, p.parts.Database, p.observer.Holding, p.settings.ProbeInterval, p.log, tried)
}

// Migrate brings the schema up to date, however long that takes, with this pause between two attempts. tried is called after
// the first one.
func Migrate(ctx context.Context, d Migrator, holds *telemetry.Holding, every time.Duration, log zerolog.Logger, tried func()) {
	defer tried()
	var last pipeline.Hold
	release := func() {}
	defer func() { release() }()
	for {
		applied, err := d.Migrate(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if applied > 0 {
				log.Info().Int(telemetry.KeyApplied, applied).Msg("schema migrated")
			}
			return
		}
		h := pipeline.Hold{Reason: ReasonMigration, Code: errclass.Classify(err).Code, Hint: db.Hint(err)}
		if h.Hint == "" {
			h.Hint = "run `consumer migrate` with a role that may change the schema, and read its output"
		}
		if h != last {
			release()
			last, release = h, holds.Held("", 0, h)
		}
		tried()
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}
