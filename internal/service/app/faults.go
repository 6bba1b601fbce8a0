package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/kafka"
	"docket/internal/service/telemetry"
)

// Reasons for a hold of a program, beside those of the pipeline.
const (
	// ReasonMigration: the schema could not be brought up to date at the start.
	ReasonMigration = "migration"
	// ReasonKafka begins the reasons why Kafka cannot be read, like kafka_topic_missing.
	ReasonKafka = "kafka_"
	// ReasonSetTooLarge: a set of records takes too much memory once it is opened.
	ReasonSetTooLarge = "set_too_large"
)

// kafkaReason is the reason of a hold for a fault of Kafka's.
func kafkaReason(r kafka.Reason) string {
	if r == kafka.ReasonSetTooLarge {
		return ReasonSetTooLarge
	}
	return ReasonKafka + string(r)
}

// HoldReasons are all values of docket_hold's label.
func HoldReasons() []string { return append(pipeline.Reasons(), reasons()...) }

// reasons are those that the pipeline does not know.
func reasons() []string {
	all := []string{ReasonMigration}
	for _, r := range []kafka.Reason{
		kafka.ReasonUnreachable, kafka.ReasonTLS, kafka.ReasonAuthentication, kafka.ReasonAuthorization, kafka.ReasonTopicMissing,
		kafka.ReasonTopicRecreated, kafka.ReasonOutOfRange, kafka.ReasonTruncated, kafka.ReasonUnreadable, kafka.ReasonSetTooLarge, kafka.ReasonGroup, kafka.ReasonUnowned, kafka.ReasonOther,
	} {
		all = append(all, kafkaReason(r))
	}
	return all
}

// Faults turns each fault of a source into a hold for as long as it lasts. The source writes the log lines.
type Faults struct {
	source interface{ Fault() error }
	holds  *telemetry.Holding

	mu      sync.Mutex
	current map[faulty]func() // releases the hold
}

// faulty is a hold and its partition. The topic is empty if it concerns no partition.
type faulty struct {
	pipeline.Hold
	topic     string
	partition int32
}

// NewFaults looks after a source, whose standing reason why something cannot be read is its Fault. A source with a method
// Faults has several.
func NewFaults(source interface{ Fault() error }, holds *telemetry.Holding) *Faults {
	return &Faults{source: source, holds: holds, current: map[faulty]func(){}}
}

const faultsEvery = time.Second

// Run looks every second until ctx ends.
func (f *Faults) Run(ctx context.Context) {
	tick := time.NewTicker(faultsEvery)
	defer tick.Stop()
	defer f.change(nil)
	for {
		f.Look()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Look brings the holds up to date; whoever is asked about holds looks first.
func (f *Faults) Look() {
	if several, ok := f.source.(interface{ Faults() []error }); ok {
		f.change(several.Faults())
		return
	}
	f.change([]error{f.source.Fault()})
}

func (f *Faults) change(errs []error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := map[faulty]bool{}
	for _, err := range errs {
		topic, partition, h := explain(err)
		if h == (pipeline.Hold{}) {
			continue
		}
		one := faulty{h, topic, partition}
		now[one] = true
		if f.current[one] == nil {
			f.current[one] = f.holds.Marked(topic, partition, h)
		}
	}
	for one, release := range f.current {
		if !now[one] {
			release()
			delete(f.current, one)
		}
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
	h = pipeline.Hold{Reason: kafkaReason(fault.Reason), Code: fault.Code, Hint: fault.Hint}
	if fault.Topic == "" || fault.Partition < 0 {
		return "", 0, h
	}
	return fault.Topic, fault.Partition, h
}
