package pipeline

import (
	"time"

	"docket/internal/record/envelope"
)

// Config is what differs between programs and installations.
type Config struct {
	Program string // for logs

	DLQTopic, ParkingTopic, ParkingDLQTopic string

	MaxRecordBytes int64           // of a value after gunzip
	MaxRefused     int             // refused decisions of one record that are forwarded alone, the others share a dead letter; 0 or less: no limit
	BatchBytes     int64           // what the records of a batch may inflate to, a single one may be larger; 0 or less: no limit
	Turns          int             // batches that are decoded and written at a time, over all partitions; 0 or less: no limit
	RetryPauses    []time.Duration // before each further try of a batch that failed because of the moment
	ParkBatches    int             // whole batches parked in a row before a hold; 0: park for ever
	ProbeInterval  time.Duration   // between two probes of a hold; an election asks more often for a database that is away
	PublishTimeout time.Duration   // for all that a batch forwards; 0 or less: each publish has its own
	Backoff        time.Duration   // before the first replay; doubles with each attempt
	MaxBackoff     time.Duration
	MaxAttempts    int           // tries of a parked record
	Consumer       string        // group/instance, for the x-consumer header
	Keys           envelope.Keys // sign forwarded records, and prove who uploaded a record

	// Tracer follows batches; nil: nobody does.
	Tracer Tracer

	// Decided is told the name of each rule, one of [Rules], by which a batch that fails is treated; nil: nobody listens.
	Decided func(rule string)

	// Replay says that the records come from the parking topic: their history is trusted, and an attempt counts only
	// against a database that answers the probe.
	Replay bool
}
