package desk

import (
	"context"
	"strings"

	"docket/internal/desk/worker"
	"docket/internal/kafka"
)

// logs makes [worker.Logs] of Kafka's reader.
type logs struct{ reader *kafka.Reader }

func (l logs) Retention(ctx context.Context, topic string) (worker.Retention, error) {
	t := l.reader.Topic(ctx, topic)
	switch {
	case t.Err != nil:
		return worker.Retention{}, t.Err
	case t.ConfigErr != nil:
		return worker.Retention{}, nil //nolint:nilerr // whoever may not see the settings knows no more, and the rest works
	case t.CleanupPolicy != "" && !strings.Contains(t.CleanupPolicy, "delete"):
		return worker.Retention{Known: true, Time: -1}, nil
	}
	return worker.Retention{Known: t.RetentionKnown, Time: t.Retention, Bytes: t.RetentionBytes}, nil
}

func (l logs) Unread(ctx context.Context, topic, group string) (worker.Unread, error) {
	u, err := l.reader.Unread(ctx, topic, group)
	return worker.Unread{Oldest: u.Oldest, Records: u.Records, Gone: u.Gone}, err
}

// surplusTopics makes [worker.SurplusTopics] of Kafka's reader.
type surplusTopics struct {
	*kafka.Reader
	logs
}

// SurplusTopics reads the dead-letter topics for the worker that follows dead letters left in Kafka.
func SurplusTopics(r *kafka.Reader) worker.SurplusTopics { return surplusTopics{r, logs{r}} }

var _ worker.Logs = logs{}
