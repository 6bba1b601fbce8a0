package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/record/decision"
)

// The decisions of refused batches take bounded memory, however long they are and however many partitions there are.
func TestOffers_BoundedMemory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ partitions, long, kept int }{
		"many partitions": {1000, 100, mostOffers},
		"long decisions":  {100, 1 << 20, mostBytes / (2 << 20)},
		"longer than all": {3, mostBytes, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l lastTaken
			for p := range c.partitions {
				raw := fmt.Appendf(nil, `{"decision_id":"p%d","timestamp":"2026-03-01T12:00:00Z","input":%q}`, p, strings.Repeat("x", c.long))
				r := pipeline.Row{Topic: "t", Partition: int32(p), Log: &decision.Log{ID: "p", Time: time.Now(), Raw: raw}}
				l.offer([]pipeline.Row{r, r})
			}
			bytes := 0
			for _, o := range l.offers {
				bytes += o.bytes
			}
			if n := len(l.offers); n > c.kept || n < max(1, c.kept-1) || n > 1 && bytes > mostBytes {
				t.Errorf("%d offers of %d bytes, want %d offers", n, bytes, c.kept)
			}
			if newest := l.offers[len(l.offers)-1]; newest.from.partition != int32(c.partitions-1) || len(newest.some) == 0 {
				t.Errorf("the newest offer is of partition %d", newest.from.partition)
			}
		})
	}
}
