package app

import (
	"context"
	"time"

	"docket/internal/errclass"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
)

// How often the consumer looks whether the days ahead have their partitions, and how soon again after a failure. A
// day without one goes into the default partition, so nothing depends on it for hours.
const (
	partitionsEvery = time.Hour
	partitionsAgain = 5 * time.Minute
)

// keepPartitions has the partitions of the days ahead made, beside everything else: it holds nothing up, and a failure is
// a line in the log and another try. It begins when migrated is closed. The replayer leaves it to the consumer.
func (p *Program) keepPartitions(ctx context.Context, migrated <-chan struct{}) {
	if p.settings.PartitionsAhead == 0 || p.name == config.Replayer {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-migrated:
	}
	for {
		made, err := p.parts.Database.MakePartitions(ctx, p.settings.PartitionsAhead)
		next := partitionsEvery
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			next = partitionsAgain
			p.log.Warn().Err(err).Str(telemetry.KeyCode, errclass.Classify(err).Code).
				Str(telemetry.KeyHint, "run consumer check; until this succeeds, decisions of the missing days go into the default partition").
				Msg("table partitions not created")
		case made > 0:
			p.log.Info().Int(telemetry.KeyMade, made).Msg("table partitions created")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}
