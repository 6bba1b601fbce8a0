package failpoint

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/consumer/replay"
	"docket/internal/errclass"
	"docket/internal/record/home"
)

// Assignment puts the points of a partition's life around a. The context that it returns has to be the one with which
// the partition is carried; stopping is done when the program stops.
func (s *Set) Assignment(ctx, stopping context.Context, a replay.Assigned) (carrying context.Context, wrapped replay.Assigned, done func()) {
	j := &journey{}
	undo := context.AfterFunc(a.Leaving(), func() {
		switch {
		case ctx.Err() != nil:
			s.pass(Losing)
		case stopping.Err() != nil:
			s.pass(Draining)
		default:
			s.pass(Revoking)
		}
	})
	return context.WithValue(ctx, journeyKey{}, j), &assigned{a, s, j}, func() { undo() }
}

type assigned struct {
	replay.Assigned
	set     *Set
	journey *journey
}

func (a *assigned) Fetch(ctx context.Context) (*home.Batch, error) {
	b, err := a.Assigned.Fetch(ctx)
	if err == nil {
		a.journey.begin()
		a.set.pass(Polled)
	}
	return b, err
}

func (a *assigned) Take(ctx context.Context, records int, bytes int64, wait time.Duration) ([]*kgo.Record, error) {
	rs, err := a.Assigned.Take(ctx, records, bytes, wait)
	if err == nil {
		a.set.pass(Polled)
	}
	return rs, err
}

func (a *assigned) Commit(ctx context.Context, s home.Settled) error {
	a.journey.begin() // of the next one, which may be the rest of the same fetch
	if err := a.set.reach(Settled, broken); err != nil {
		return err
	}
	return a.Assigned.Commit(ctx, s)
}

func (a *assigned) Hold() (release func()) {
	release = a.Assigned.Hold()
	a.journey.note(nil)
	a.set.pass(Holding)
	return release
}

// Store puts the points of a batch's writes and probes around db.
func (s *Set) Store(db pipeline.Store) pipeline.Store { return &store{db, s} }

type store struct {
	db  pipeline.Store
	set *Set
}

// inPause is how long after a failed write nothing else was called, so that this is the pause before the next. It must
// be well below the pauses that are set.
const inPause = 30 * time.Millisecond

func (d *store) Store(ctx context.Context, rows []pipeline.Row, fresh bool) ([]pipeline.Outcome, error) {
	j := journeyOf(ctx)
	if j.note(func(j *journey) { j.tries++ }).tries == 1 {
		if err := d.set.reach(Parsed, broken); err != nil {
			return nil, err
		}
	}
	outcomes, err := d.db.Store(ctx, rows, fresh)
	if err != nil {
		d.failed(ctx, j, len(rows), err)
		return nil, err
	}
	after := Stored
	if d.set.replayer {
		after = ReplayStored
	}
	if err := d.set.reach(after, broken); err != nil {
		return nil, err
	}
	if j.note(nil).failed > len(rows) {
		if err := d.set.reach(HalfStored, broken); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// failed looks after a moment whether the batch keeps its pause.
func (d *store) failed(ctx context.Context, j *journey, rows int, err error) {
	v := j.note(func(j *journey) { j.failed = max(j.failed, rows) })
	if j == nil || v.probes > 0 || v.tries > 2 || ctx.Err() != nil || errclass.Classify(err).Class == errclass.Data {
		return
	}
	pause := FirstPause
	if v.tries == 2 {
		pause = SecondPause
	}
	time.AfterFunc(inPause, func() {
		if j.still(v) {
			d.set.pass(pause)
		}
	})
}

func (d *store) Probe(ctx context.Context, at time.Time) error {
	j := journeyOf(ctx)
	if j == nil {
		return d.db.Probe(context.WithValue(ctx, purposeKey{}, forUpkeep), at)
	}
	if j.note(func(j *journey) { j.probes++ }).probes == 1 {
		if err := d.set.reach(Classified, broken); err != nil {
			return err
		}
	}
	return d.db.Probe(context.WithValue(ctx, purposeKey{}, forProbe), at)
}

func (d *store) Foresee(ctx context.Context, rows []pipeline.Row, constraint string) ([]int, error) {
	journeyOf(ctx).note(nil)
	return d.db.Foresee(ctx, rows, constraint)
}

func (d *store) Refusals(ctx context.Context, rows []pipeline.Row, probe time.Time) ([]error, error) {
	journeyOf(ctx).note(nil)
	if !probe.IsZero() {
		ctx = context.WithValue(ctx, purposeKey{}, forProbe)
	}
	return d.db.Refusals(ctx, rows, probe)
}

// Publisher puts the points of publishing around p.
func (s *Set) Publisher(p pipeline.Publisher) pipeline.Publisher { return &publisher{p, s} }

type publisher struct {
	pipeline.Publisher
	set *Set
}

func (p *publisher) Publish(ctx context.Context, records []*kgo.Record) []error {
	journeyOf(ctx).note(nil)
	k := 0
	if p.set.armed(ParkingPartlyAcked) {
		k = half(records, p.set.topics.Parking)
	}
	if k == 0 {
		return p.Publisher.Publish(ctx, records)
	}
	// The records of one request are answered at once. Two requests have a moment between their answers.
	errs := p.Publisher.Publish(ctx, records[:k])
	if errors.Join(errs...) == nil {
		if err := p.set.reach(ParkingPartlyAcked, broken); err != nil {
			for range records[k:] {
				errs = append(errs, err)
			}
			return errs
		}
	}
	return append(errs, p.Publisher.Publish(ctx, records[k:])...)
}

// half is where the first half of the records for a topic ends; 0 where there are not two of them.
func half(records []*kgo.Record, topic string) int {
	var of []int
	for i, r := range records {
		if r.Topic == topic {
			of = append(of, i)
		}
	}
	if len(of) < 2 {
		return 0
	}
	return of[len(of)/2]
}
