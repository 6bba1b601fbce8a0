package desk

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/worker"
	"docket/internal/kafka"
	"docket/internal/postgres/store"
)

type publisher struct{ kafka *kafka.Publisher }

// Publisher makes a [worker.Publisher] of Kafka's.
func Publisher(p *kafka.Publisher) worker.Publisher { return publisher{p} }

func (p publisher) Place(ctx context.Context, records []*kgo.Record) ([]worker.Place, []error) {
	placed, errs := p.kafka.Place(ctx, records)
	places := make([]worker.Place, len(placed))
	for i, at := range placed {
		places[i] = worker.Place{Partition: at.Partition, Offset: at.Offset}
	}
	for i, err := range errs {
		if errors.Is(err, kafka.ErrUnanswered) {
			errs[i] = fmt.Errorf("%w: %w", worker.ErrUnanswered, err)
		}
	}
	return places, errs
}

// table makes a [worker.Table] of Postgres's.
type table struct{ db *store.Store }

func (t table) Lookup(ctx context.Context, sought []worker.Sought) ([]worker.Found, error) {
	rows, err := t.db.Lookup(ctx, soughtOf(sought))
	found := make([]worker.Found, len(rows))
	for i, r := range rows {
		found[i] = worker.Found{N: r.N, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Equal: r.Equal}
	}
	return found, err
}

// soughtOf describes rows as the consumer knows them: by their raw bytes, or by their JSON.
func soughtOf(sought []worker.Sought) []store.Sought {
	asked := make([]store.Sought, len(sought))
	for i, s := range sought {
		asked[i] = store.Sought{ID: s.ID, Time: s.Time, Raw: s.Raw, Came: true}
	}
	return asked
}

var (
	_ worker.Publisher = publisher{}
	_ worker.Table     = table{}
)
