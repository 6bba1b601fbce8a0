package app

import (
	"math"
	"runtime/debug"
	"slices"
	"strings"

	"docket/internal/service/config"
)

// What a consumer that reads at full speed keeps in memory, besides what is counted in batches: the Go runtime, what
// the Kafka client has fetched, and what it keeps to inflate into.
const besides = 68 << 20

// SoftMemory is how large the consumer lets its heap grow before it collects more often than Go would, in bytes: the
// queues, a batch for each turn or records that inflate to more, two of the largest at once, and what there is besides.
// It is no limit: what holds keeps its batches beyond it. 0 is none; the replayer has none, as its look-ahead is many
// times what it works on.
//
// Of the collector it is what there is besides, the uploads, and as much again for records, redacted copies and what the
// client compresses.
func SoftMemory(program config.Program, s config.Settings) int64 {
	switch program {
	case config.Consumer:
	case config.Collector:
		return besides + 2*int64(s.CollectorMemory)
	default:
		return 0
	}
	return besides + queued*int64(s.BatchMaxBytes) + turns*max(int64(s.BatchMaxBytes), int64(s.MaxRecordBytes)/2)
}

// setBytes is what one set of records may take in memory: four batches, and a record of the largest size twice.
func setBytes(s config.Settings) int {
	return int(min(max(32<<20, 4*int64(s.BatchMaxBytes), 2*int64(s.MaxRecordBytes)), math.MaxInt32))
}

// KeepMemory sets that for the process, unless GOMEMLIMIT in environ, which is as [os.Environ] has it, says anything:
// "off" too.
func KeepMemory(program config.Program, s config.Settings, environ []string) {
	told := slices.ContainsFunc(environ, func(v string) bool {
		value, ok := strings.CutPrefix(v, "GOMEMLIMIT=")
		return ok && value != ""
	})
	if soft := SoftMemory(program, s); soft > 0 && !told {
		debug.SetMemoryLimit(soft)
	}
}
