package app

import (
	"context"
	"math"
	"runtime/debug"
	"slices"
	"strings"

	"docket/internal/consumer/lanes"
	"docket/internal/service/config"
)

// besides is the memory of a consumer at full speed that is not counted in batches: the Go runtime, the fetches of the
// Kafka client, and the memory that it inflates into. In bytes.
const besides = 68 << 20

// answers is the memory of the client of one more lane, in bytes: the brokers' answers that it has not opened.
const answers = 4 << 20

// buffer is how many bytes the queues of a lane may have. All lanes share what one would have alone: [queued] batches.
// The urgent and the bulk lane have one batch each.
func buffer(l lanes.Lane, of int, s config.Settings) int64 {
	batch := int64(s.BatchMaxBytes)
	if l != lanes.Default {
		return batch
	}
	return (queued - int64(of) + 1) * batch
}

// SoftMemory is the heap, in bytes, from which a program collects garbage more often than Go would. For the consumer it
// is the sum of the queues, a batch for each turn, two of the largest records, and [besides]. It is not a limit:
// partitions that hold keep their batches beyond it. Lanes share the queues and the turns, and each further one adds
// [answers]. 0 means none. The replayer has none, as its look-ahead is many times
// its batches.
//
// For the collector it is [besides], the uploads, and as much again for records, redacted copies and compression.
func SoftMemory(program config.Program, s config.Settings) int64 {
	switch program {
	case config.Consumer:
	case config.Collector:
		return besides + 2*int64(s.CollectorMemory)
	default:
		return 0
	}
	return besides + answers*int64(len(s.LaneNames)) + queued*int64(s.BatchMaxBytes) + turns*max(int64(s.BatchMaxBytes), int64(s.MaxRecordBytes)/2)
}

// setBytes is what one set of records may take in memory: four batches, and a record of the largest size twice.
func setBytes(s config.Settings) int {
	return int(min(max(32<<20, 4*int64(s.BatchMaxBytes), 2*int64(s.MaxRecordBytes)), math.MaxInt32))
}

// KeepMemory sets that for the process, unless GOMEMLIMIT in environ, which is as [os.Environ] has it, says anything:
// "off" too. The function that it returns raises what was set while it is too little, until ctx ends: see [easing].
func KeepMemory(program config.Program, s config.Settings, environ []string) (ease func(ctx context.Context)) {
	told := slices.ContainsFunc(environ, func(v string) bool {
		value, ok := strings.CutPrefix(v, "GOMEMLIMIT=")
		return ok && value != ""
	})
	soft := SoftMemory(program, s)
	if soft == 0 || told {
		return func(context.Context) {}
	}
	debug.SetMemoryLimit(soft)
	return newEasing(soft).run
}
