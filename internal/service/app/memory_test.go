package app

import (
	"math"
	"runtime/debug"
	"testing"

	"docket/internal/service/config"
)

func TestSoftMemory_FollowsSettings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		program config.Program
		batch   config.Size
		record  config.Size
		want    int64
	}{
		{config.Consumer, 8 << 20, 16 << 20, 140 << 20},
		{config.Consumer, 16 << 20, 16 << 20, 212 << 20},
		{config.Consumer, 8 << 20, 256 << 20, 620 << 20}, // two of the largest at once
		{config.Consumer, 1 << 30, 256 << 20, 68<<20 + 9<<30},
		{config.Replayer, 8 << 20, 16 << 20, 0},
	} {
		if got := SoftMemory(tc.program, config.Settings{BatchMaxBytes: tc.batch, MaxRecordBytes: tc.record}); got != tc.want {
			t.Errorf("%s with batches of %v, records of %v: %d, want %d", tc.program, tc.batch, tc.record, got, tc.want)
		}
	}
}

//nolint:paralleltest // it measures what is the whole process's
func TestSoftMemory_KeepsGOMEMLIMIT(t *testing.T) { // not in parallel: it is the process's
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	s := config.Settings{BatchMaxBytes: 8 << 20}
	for _, tc := range []struct {
		environ []string
		set     int64 // by the runtime, which reads the variable at the start
		want    int64
	}{
		{nil, math.MaxInt64, 140 << 20},
		{[]string{"GOMEMLIMIT="}, math.MaxInt64, 140 << 20},
		{[]string{"GOMEMLIMIT=1GiB"}, 1 << 30, 1 << 30},
		{[]string{"A=b", "GOMEMLIMIT=off"}, math.MaxInt64, math.MaxInt64},
	} {
		debug.SetMemoryLimit(tc.set)
		KeepMemory(config.Consumer, s, tc.environ)
		if got := debug.SetMemoryLimit(-1); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.environ, got, tc.want)
		}
	}
}
