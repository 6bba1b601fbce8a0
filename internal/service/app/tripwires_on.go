//go:build failpoints

package app

import (
	"context"
	"os"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/fallback"
	"docket/internal/service/config"
	"docket/internal/service/failpoint"
)

// tripwires puts the failpoints that the environment arms around everything that a program is joined from: the ways out
// before the parts are opened, the parts when they are.
func tripwires(name config.Program, s config.Settings, o Options) (Options, func(*Parts), error) {
	set, err := failpoint.New(os.Getenv(failpoint.Variable), failpoint.Topics{
		DLQ: s.KafkaDLQTopic, Parking: s.KafkaParkingTopic, ParkingDLQ: s.KafkaParkingDLQTopic,
	}, name == config.Replayer)
	if err != nil {
		return o, nil, err
	}
	o.DialKafka, o.DialDatabase = set.Kafka(o.DialKafka), set.Postgres(o.DialDatabase)
	if o.Disk == nil {
		o.Disk = fallback.OS(s.SpoolDir)
	}
	disk := set.Disk(o.Disk)
	o.Disk = disk
	return o, func(p *Parts) {
		for i, src := range p.Sources {
			p.Sources[i] = &trippedSource{src, set}
		}
		p.Database = &trippedDatabase{p.Database, set.Store(p.Database)}
		p.Publisher = set.Publisher(p.Publisher)
		if p.Spool != nil {
			p.Spool = &trippedSpool{p.Spool, disk}
		}
	}, nil
}

type trippedSource struct {
	Source
	set *failpoint.Set
}

func (s *trippedSource) Run(stopping context.Context, carry func(context.Context, Assignment) error) error {
	return s.Source.Run(stopping, func(ctx context.Context, a Assignment) error {
		ctx, a, done := s.set.Assignment(ctx, stopping, a)
		defer done()
		return carry(ctx, a)
	})
}

type trippedDatabase struct {
	Database
	tripped pipeline.Store
}

func (d *trippedDatabase) Store(ctx context.Context, rows []pipeline.Row, fresh bool) ([]pipeline.Outcome, error) {
	return d.tripped.Store(ctx, rows, fresh)
}

func (d *trippedDatabase) Probe(ctx context.Context, at time.Time) error {
	return d.tripped.Probe(ctx, at)
}

func (d *trippedDatabase) Foresee(ctx context.Context, rows []pipeline.Row, constraint string) ([]int, error) {
	return d.tripped.Foresee(ctx, rows, constraint)
}

func (d *trippedDatabase) Refusals(ctx context.Context, rows []pipeline.Row, probe time.Time) ([]error, error) {
	return d.tripped.Refusals(ctx, rows, probe)
}

type trippedSpool struct {
	Spool
	disk *failpoint.Disk
}

func (s *trippedSpool) Run(ctx context.Context, idle func() bool, p pipeline.Publisher) error {
	return s.Spool.Run(ctx, idle, s.disk.Recovery(p))
}
