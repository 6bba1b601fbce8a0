//go:build integration

package load

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/bench"
)

// offer is a stream of decisions into a lane at an even rate.
type offer struct {
	y    *system
	lane string
	rate float64
	stop chan struct{}
	over chan struct{}

	mu      sync.Mutex
	sent    map[string]time.Time     // by id, not yet seen in the table
	delays  map[string]time.Duration // from the call of the producer to the row
	from    time.Time                // nothing is measured that was sent before
	count   int
	failure error
}

// seeds give each offer decisions of its own.
var seeds uint64 = 100

// offering starts to send into a lane until ended.
func (y *system) offering(lane string, rate float64) *offer {
	seeds++
	o := &offer{y: y, lane: lane, rate: rate, stop: make(chan struct{}), over: make(chan struct{}), sent: map[string]time.Time{}, delays: map[string]time.Duration{}}
	decisions := bench.NewDecisions(seeds, time.Now())
	go func() {
		defer close(o.over)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		began := time.Now()
		for n := 0; ; {
			for due := int(math.Ceil(time.Since(began).Seconds() * rate)); n < due; n++ {
				o.send(decisions.Next())
			}
			select {
			case <-o.stop:
				return
			case <-y.t.Context().Done():
				return
			case <-tick.C:
			}
		}
	}()
	y.t.Cleanup(o.end)
	return o
}

func (o *offer) send(d bench.Decision) {
	o.mu.Lock()
	o.sent[d.ID] = time.Now()
	o.count++
	o.mu.Unlock()
	o.y.client.Produce(context.Background(), &kgo.Record{Topic: o.y.topic + o.lane, Key: d.Key, Value: d.Value}, func(_ *kgo.Record, err error) {
		if err != nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.failure = err
		}
	})
}

// end stops the stream. It may be called again.
func (o *offer) end() {
	select {
	case <-o.stop:
	default:
		close(o.stop)
	}
	<-o.over
}

// closely is how often an offer is watched where the figure is a ratio of times. Elsewhere roughly is enough, and takes less of
// the machine.
const (
	closely = 2 * time.Millisecond
	roughly = 10 * time.Millisecond
)

// watched asks for the rows of the offer again and again until it is told to stop. It returns how to do that.
func (o *offer) watched(every time.Duration) (stop func()) {
	conn := o.y.connect()
	ctx, cancel := context.WithCancel(o.y.t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for o.look(ctx, conn) == nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(every):
			}
		}
	}()
	return func() {
		cancel()
		<-over
	}
}

// look asks once for the rows that were not seen yet.
func (o *offer) look(ctx context.Context, conn *pgx.Conn) error {
	o.mu.Lock()
	ids := make([]string, 0, len(o.sent))
	for id := range o.sent {
		ids = append(ids, id)
	}
	o.mu.Unlock()
	rows, err := conn.Query(ctx, "SELECT decision_id FROM decision_logs WHERE decision_id = ANY($1)", ids)
	if err != nil {
		return fmt.Errorf("look for rows: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for rows: %w", err)
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range found {
		if sent := o.sent[id]; !sent.Before(o.from) {
			o.delays[id] = now.Sub(sent)
		}
		delete(o.sent, id)
	}
	return nil
}

// state returns the delays so far, and how many decisions were sent and have not been seen.
func (o *offer) state() (delays []time.Duration, unseen int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.delays {
		delays = append(delays, d)
	}
	return delays, len(o.sent)
}

// forget leaves out what was sent so far.
func (o *offer) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.delays)
	o.from = time.Now()
}

// all returns the ids that were sent.
func (o *offer) all() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.y.must(o.failure)
	return o.count
}

// awaitSeen waits until each row was seen.
func (o *offer) awaitSeen() {
	o.y.t.Helper()
	o.y.until("each decision of the offer has its row", func() bool { _, unseen := o.state(); return unseen == 0 })
}

// pour sends n decisions into a lane as fast as Kafka takes them, and waits until it has them.
func (y *system) pour(lane string, n int) {
	y.t.Helper()
	seeds++
	decisions := bench.NewDecisions(seeds, time.Now().Add(-time.Hour))
	var mu sync.Mutex
	var failure error
	for range n {
		d := decisions.Next()
		y.client.Produce(y.t.Context(), &kgo.Record{Topic: y.topic + lane, Key: d.Key, Value: d.Value}, func(_ *kgo.Record, err error) {
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failure = err
			}
		})
	}
	y.must(y.client.Flush(y.t.Context()))
	mu.Lock()
	defer mu.Unlock()
	y.must(failure)
}

// lane returns the rows that came from a lane.
func (y *system) lane(lane string) int64 {
	return y.number("SELECT count(*) FROM decision_logs WHERE source_topic = $1", y.topic+lane)
}

// committed returns the sum of the offsets that the group of a lane has committed.
func (y *system) committed(lane string) (sum int64) {
	y.t.Helper()
	offsets, err := kadm.NewClient(y.client).FetchOffsets(y.t.Context(), y.group+lane)
	y.must(err)
	offsets.Each(func(o kadm.OffsetResponse) { sum += max(0, o.At) })
	return sum
}

// allCommitted reports whether the groups of all lanes have committed all that is in their topics.
func (y *system) allCommitted() bool {
	y.t.Helper()
	for _, lane := range []string{urgent, byDefault, bulk} {
		ends, err := kadm.NewClient(y.client).ListEndOffsets(y.t.Context(), y.topic+lane)
		if err != nil || ends.Error() != nil {
			return false
		}
		var sum int64
		ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
		if y.committed(lane) < sum {
			return false
		}
	}
	return true
}

// sampled reads a counter again and again until it is told to stop, and then returns the samples.
func (y *system) sampled(read func() float64) (stop func() []Sample) {
	end, over := make(chan struct{}), make(chan struct{})
	var samples []Sample
	go func() {
		defer close(over)
		for {
			asked := time.Now()
			value := read()
			samples = append(samples, Sample{asked, time.Now(), value})
			select {
			case <-end:
				return
			case <-y.t.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() []Sample {
		close(end)
		<-over
		return samples
	}
}
