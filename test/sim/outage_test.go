//go:build synctests

package sim

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/conservation"
)

// TestOutage_DayWithoutTheDatabase takes the database away for 24 hours of virtual time while records keep coming.
// The consumer and the replayer have default settings.
func TestOutage_DayWithoutTheDatabase(t *testing.T) { //nolint:paralleltest // it reads the heap of the process
	synctest.Test(t, func(t *testing.T) {
		w := open(t, &schedule{
			Brokers: 1, Partitions: 2, Forwards: 1, Consumers: 1, Replayers: 1,
			Settings: []string{"DOCKET_KAFKA_BROKERS=localhost:9092", "DOCKET_DATABASE_URL=postgres://docket@db:5432/docket?sslmode=disable", "DOCKET_PARTITIONS_AHEAD=0"},
			NoSpool:  make([]bool, 2), Starts: make([]time.Duration, 2),
		}, newHistory(), nil)
		defer w.close()
		for _, s := range w.slots {
			w.running.Go(s.run)
		}
		feed := feed{w: w}
		feed.some(100)
		time.Sleep(10 * time.Second)
		if n := len(w.db.Rows()); n != feed.made {
			t.Fatalf("%d rows of %d before the outage", n, feed.made)
		}

		back := w.net.refuse(toDatabase)
		w.cut(toDatabase)
		gone := time.Now()
		feed.until(gone.Add(time.Hour))
		early := live()
		feed.until(gone.Add(24 * time.Hour))
		late := live()
		t.Logf("live heap %.1f MiB after an hour, %.1f MiB after a day, with %d records more in the fake Kafka", early, late, feed.made)
		if late > 1.5*early+float64(feed.made)*kept/(1<<20) {
			t.Errorf("the live heap grew from %.1f MiB to %.1f MiB", early, late)
		}
		before := len(w.db.Rows())

		back()
		returned := time.Now()
		for len(w.db.Rows()) == before && time.Since(returned) < time.Minute {
			time.Sleep(time.Millisecond)
		}
		first := time.Since(returned)
		for w.unsettled() != "" && time.Since(returned) < time.Hour {
			time.Sleep(10 * time.Millisecond)
		}
		drained := time.Since(returned)
		t.Logf("first row %v after its return, all %d after %v", first, feed.made, drained)
		if first > time.Second {
			t.Errorf("the first row came %v after the return of the database", first)
		}
		if drained > 5*time.Second {
			t.Errorf("the backlog took %v", drained)
		}
		if n := len(w.kafka.ReadAll(t, exhausted)); n > 0 {
			t.Errorf("%d good records in the parking dead-letter topic", n)
		}
		w.healed, w.settled = returned, time.Now()
		w.calm()
		w.judge()
		for _, what := range w.broken() {
			t.Error(what)
		}
	})
}

// kept is an upper estimate of the fake Kafka's memory for each record, in bytes.
const kept = 2 << 10

// live returns the heap in MiB after a garbage collection.
func live() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// feed produces small good records.
type feed struct {
	w    *world
	made int
}

func (f *feed) some(n int) {
	f.w.unheard.Add(n)
	for range n {
		f.made++
		id, at := fmt.Sprintf("d%06d", f.made), time.Now().UTC().Truncate(time.Microsecond)
		body := fmt.Appendf(nil, `{"decision_id":%q,"timestamp":%q}`, id, at.Format(time.RFC3339Nano))
		r := conservation.Record{Key: []byte(id), Value: body, Decisions: []conservation.Decision{{ID: id, Time: at, Body: body}}}
		record := &kgo.Record{Topic: source, Partition: int32(f.made % 2), Key: r.Key, Value: r.Value}
		f.w.feeder.Produce(context.Background(), record, func(sent *kgo.Record, err error) {
			defer f.w.unheard.Done()
			if err != nil {
				f.w.found("the harness could not produce: " + err.Error())
				return
			}
			f.w.ledger.Acknowledged(source, sent.Partition, sent.Offset, r)
		})
	}
	f.w.unheard.Wait()
}

// until produces a few records every minute until end.
func (f *feed) until(end time.Time) {
	for time.Now().Before(end) {
		f.some(3)
		time.Sleep(time.Minute)
	}
}
