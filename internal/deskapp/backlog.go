package deskapp

import (
	"context"
	"errors"

	"docket/internal/app"
	"docket/internal/config"
	"docket/internal/desk"
	"docket/internal/kafka"
)

// Backlog counts what both dead-letter topics hold that no desk has entered. After an error it is what the other topic holds.
func Backlog(ctx context.Context, s config.Settings) (desk.Backlog, error) {
	brokers, err := app.Kafka(s, "backlog")
	if err != nil {
		return desk.Backlog{}, err
	}
	reader, err := kafka.NewReader(brokers)
	if err != nil {
		return desk.Backlog{}, err
	}
	defer reader.Close()
	var all desk.Backlog
	var failed error
	for _, topic := range []string{s.KafkaDLQTopic, s.KafkaParkingDLQTopic} {
		u, err := reader.Behind(ctx, topic, s.DeskGroup)
		all.Records += u.Records
		all.Gone += u.Gone
		failed = errors.Join(failed, err)
	}
	return all, failed
}
