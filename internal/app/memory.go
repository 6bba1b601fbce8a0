package app

import (
	"math"
	"runtime/debug"

	"docket/internal/config"
)

// What a consumer that reads at full speed keeps in memory, besides what is counted in batches: the Go runtime, what
// the Kafka client has fetched, inflates and keeps to inflate with.
const besides = 64 << 20

// SoftMemory is how large the consumer lets its heap grow before it collects more often than Go would, in bytes: the
// queues, a batch for each turn, and what there is besides. It is no limit: what holds keeps its batches beyond it. 0 is
// none; the replayer has none, as its look-ahead is many times what it works on.
func SoftMemory(program config.Program, s config.Settings) int64 {
	if program != config.Consumer {
		return 0
	}
	return besides + (queued+turns)*int64(s.BatchMaxBytes)
}

// KeepMemory sets that for the process, where GOMEMLIMIT says nothing else.
func KeepMemory(program config.Program, s config.Settings) {
	if soft := SoftMemory(program, s); soft > 0 && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(soft)
	}
}
