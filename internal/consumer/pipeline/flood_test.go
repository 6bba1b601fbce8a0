package pipeline

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// TestDecode_ManyBadRecordsKeepNoMemory carries only records that cannot be read.
//
//nolint:paralleltest // it measures what is the whole process's
func TestDecode_ManyBadRecordsKeepNoMemory(t *testing.T) {
	const n, batches = 1000, 60
	bad := make([]string, n)
	for i := range bad {
		bad[i] = fmt.Sprintf(`{"decision_id":"%d","input":%q`, i, strings.Repeat("x", 500))
	}
	kafka, s := &taking{}, streamOf(0, recordsOf(0, bad...))
	p := New(newWorld().config, newCounting(n), kafka, nil, deaf{}, zerolog.Nop())
	flood := func(batches int) (heap int64) {
		s.left = batches
		if err := p.Run(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := flood(5) // pooled memory has grown to the need of a batch
	after := flood(batches)
	if grown := after - before; grown > 4<<20 {
		t.Errorf("%d batches of bad records left %d KiB in memory", batches, grown>>10)
	}
	if all := (5 + batches) * n; kafka.records != all || s.committed != int64(all) {
		t.Errorf("%d letters, committed %d, of %d records", kafka.records, s.committed, all)
	}
}
