package kafka

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestTakeFromAPartitionThatIsLostAtThatMomentGivesNothing(t *testing.T) {
	t.Parallel()
	s := &session{source: &Source{sc: SourceConfig{BatchRecords: 10, BatchBytes: 1 << 20, BufferBatches: 4}}}
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			a := newAssignment(s, "decision-logs", 0, "member", t.Context())
			if err := a.append([]*kgo.Record{{Topic: "decision-logs"}}); err != nil {
				t.Fatal(err)
			}
			go func() {
				time.Sleep(time.Second) // until the very moment at which Take has waited long enough
				a.kill()
			}()
			records, err := a.Take(t.Context(), 2, 1<<20, time.Second)
			if len(records) == 0 && !errors.Is(err, ErrLeaving) || len(records) > 0 && err != nil {
				t.Errorf("%d records, %v", len(records), err)
			}
			synctest.Wait()
		})
	}
}
