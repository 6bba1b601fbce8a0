package app

import (
	"context"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/service/config"
)

// awaitDatabase tells of a database that is away at the start, for as long as it is: without a record to read nobody
// else would notice, and with one there is no need to park batches to find out. Where an outage is never waited out,
// it is none of its business. Anything but being away is for the batches to find out, each at its own time.
func (p *Program) awaitDatabase(ctx context.Context) {
	if p.settings.ParkBatches == 0 && p.name != config.Replayer {
		return
	}
	var release func()
	for {
		err := p.parts.Database.Probe(ctx, time.Now())
		v := errclass.Classify(err)
		away := err != nil && (v.OfTheMoment() || v.Class == errclass.Unknown)
		switch {
		case ctx.Err() != nil || !away:
			if release != nil {
				p.pipe.Away(false)
				release()
			}
			return
		case release == nil:
			p.pipe.Away(true)
			release = p.observer.Held("", 0, pipeline.Hold{Reason: pipeline.ReasonDatabaseAway, Code: v.Code, Hint: db.Hint(err)})
		}
		select {
		case <-ctx.Done():
		case <-time.After(p.settings.ProbeInterval):
		}
	}
}
