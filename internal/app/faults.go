package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"docket/internal/kafka"
	"docket/internal/pipeline"
	"docket/internal/telemetry"
)

// Reasons for which a program stands still, beside those of the pipeline.
const (
	// ReasonMigration: the schema could not be brought up to date at the start.
	ReasonMigration = "migration"
	// ReasonKafka begins the reasons why Kafka cannot be read, like kafka_topic_missing.
	ReasonKafka = "kafka_"
)

// reasons are all values of docket_hold's label that the pipeline does not know.
func reasons() []string {
	all := []string{ReasonMigration}
	for _, r := range []kafka.Reason{
		kafka.ReasonUnreachable, kafka.ReasonTLS, kafka.ReasonAuthentication, kafka.ReasonAuthorization, kafka.ReasonTopicMissing,
		kafka.ReasonTopicRecreated, kafka.ReasonOutOfRange, kafka.ReasonTruncated, kafka.ReasonUnreadable, kafka.ReasonGroup, kafka.ReasonOther,
	} {
		all = append(all, ReasonKafka+string(r))
	}
	return all
}

// faults turns the source's fault into a hold for as long as it lasts. The source writes the log lines.
type faults struct {
	source   Source
	observer *telemetry.Observer

	mu      sync.Mutex
	current pipeline.Hold
	release func()
}

const faultsEvery = time.Second

func (f *faults) run(ctx context.Context) {
	tick := time.NewTicker(faultsEvery)
	defer tick.Stop()
	defer f.change(nil)
	for {
		f.look()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look brings the hold up to date; whoever is asked about holds looks first.
func (f *faults) look() { f.change(f.source.Fault()) }

func (f *faults) change(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	topic, partition, now := explain(err)
	if now == f.current {
		return
	}
	if f.release != nil {
		f.release()
		f.release = nil
	}
	if f.current = now; now != (pipeline.Hold{}) {
		f.release = f.observer.Marked(topic, partition, now)
	}
}

func explain(err error) (topic string, partition int32, h pipeline.Hold) {
	if err == nil {
		return "", 0, pipeline.Hold{}
	}
	var fault *kafka.FaultError
	if !errors.As(err, &fault) {
		return "", 0, pipeline.Hold{Reason: ReasonKafka + string(kafka.ReasonOther), Hint: "see the log"}
	}
	h = pipeline.Hold{Reason: ReasonKafka + string(fault.Reason), Code: fault.Code, Hint: fault.Hint}
	if fault.Topic == "" || fault.Partition < 0 {
		return "", 0, h
	}
	return fault.Topic, fault.Partition, h
}
