package kafka

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A batch waits for more from when its first record came, also where that was while the one before was carried.
func TestTheWaitForMoreBeginsWhenTheFirstRecordComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const wait = 200 * time.Millisecond
		s := &session{source: &Source{sc: SourceConfig{}.withDefaults(Config{})}}
		a := newAssignment(t.Context(), s, "logs", 0, "member")
		taken := func(want int, within time.Duration) {
			t.Helper()
			from := time.Now()
			records, err := a.Take(t.Context(), 10, 1<<20, wait)
			if err != nil || len(records) != want || time.Since(from) != within {
				t.Fatalf("%d records after %v, %v; want %d after %v", len(records), time.Since(from), err, want, within)
			}
		}
		came := func(offsets ...int64) {
			t.Helper()
			for _, offset := range offsets {
				if err := a.append([]*kgo.Record{{Offset: offset}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		came(0)
		time.Sleep(150 * time.Millisecond) // the one before is carried
		came(1)
		taken(2, wait-150*time.Millisecond)

		came(2)
		time.Sleep(time.Second)
		taken(1, 0)

		came(3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
		time.Sleep(time.Second)
		taken(10, 0)
		taken(1, wait) // what is left of more than a batch waits anew
	})
}
