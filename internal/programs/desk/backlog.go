package desk

import (
	"context"
	"errors"

	"docket/internal/desk/worker"
	"docket/internal/kafka"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// Backlog counts the records of both dead-letter topics that no desk has entered. After an error it counts those of the other topic.
func Backlog(ctx context.Context, s config.Settings) (worker.Backlog, error) {
	brokers, err := app.Kafka(s, "backlog")
	if err != nil {
		return worker.Backlog{}, err
	}
	reader, err := kafka.NewReader(brokers)
	if err != nil {
		return worker.Backlog{}, err
	}
	defer reader.Close()
	var all worker.Backlog
	var failed error
	for _, topic := range []string{s.KafkaDLQTopic, s.KafkaParkingDLQTopic} {
		u, err := reader.Behind(ctx, topic, s.DeskGroup)
		all.Records += u.Records
		all.Gone += u.Gone
		failed = errors.Join(failed, err)
	}
	return all, failed
}
