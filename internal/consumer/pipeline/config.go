package pipeline

import (
	"time"

	"docket/internal/consumer/lanes"
	"docket/internal/record/envelope"
)

// Config holds the settings that differ between programs and installations.
type Config struct {
	Program string // for logs

	DLQTopic, ParkingTopic, ParkingDLQTopic string

	MaxRecordBytes int64           // of a value after gunzip
	MaxRefused     int             // refused decisions of one record that are forwarded alone; the others share a dead letter; 0 or less: no limit
	BatchBytes     int64           // limit for the records of a batch, gunzipped; a single record may be larger; 0 or less: no limit
	Turns          *lanes.Turns    // for batches that are decoded and written, over all partitions; nil: no limit
	RetryPauses    []time.Duration // before each further try of a batch that failed because of the moment
	ParkBatches    int             // whole batches parked in a row before a hold; 0: park without end
	ProbeInterval  time.Duration   // between two probes of a hold; while the database is away, an election probes more often
	PublishTimeout time.Duration   // for all that a batch forwards; 0 or less: each publish has its own
	Backoff        time.Duration   // before the first replay; doubles with each attempt
	MaxBackoff     time.Duration
	MaxAttempts    int           // tries of a parked record
	Consumer       string        // group/instance, for the x-consumer header
	Keys           envelope.Keys // they sign forwarded records, and prove who uploaded a record

	// LaneOf returns the lane of a topic; nil: all topics are of the default lane.
	LaneOf func(topic string) lanes.Lane
	// ConsumerOf returns Consumer for batches of a topic; nil: Consumer is that of every topic.
	ConsumerOf func(topic string) string

	// Tracer follows batches; nil: no tracing.
	Tracer Tracer

	// Tokens limits the rows of all writes; nil: nothing does. Each write has at most the rows that were granted for it.
	Tokens Tokens

	// Decided is called with the name of each rule, one of [Rules], that is applied to a failed batch; nil: not
	// called.
	Decided func(rule string)

	// Replay says that the records come from the parking topic. Their history is trusted, and an attempt counts only
	// against a database that answers the probe.
	Replay bool
}
