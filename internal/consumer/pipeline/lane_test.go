package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/lanes"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// laned is a partition of another topic.
type laned struct {
	*partition
	topic  string
	number int32
}

func (l laned) Topic() string    { return l.topic }
func (l laned) Partition() int32 { return l.number }

// lanedOf makes a partition with so many batches of two records. Partitions are numbered over all topics.
func lanedOf(t *testing.T, topic string, number int32, batches int) laned {
	l := laned{newPartition(t), topic, number}
	l.account = home.NewAccount(topic, number)
	l.batches = make(chan []*kgo.Record, batches)
	for b := range batches {
		rs := recordsOf(int64(2*b), good(fmt.Sprint(topic, number, "b", b), fmt.Sprint(topic, number, "c", b))...)
		for _, r := range rs {
			r.Topic, r.Partition = topic, number
		}
		l.batches <- rs
	}
	close(l.batches)
	return l
}

func laneOf(topic string) lanes.Lane {
	return map[string]lanes.Lane{"urgent": lanes.Urgent, "bulk": lanes.Bulk}[topic]
}

// TestLanes_UrgentBehindNoBacklog has ten partitions of the low lanes that write all the time. An urgent batch has its
// row after one write: its own.
func TestLanes_UrgentBehindNoBacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := lanes.New(lanes.WithLanes())
		var mu sync.Mutex
		low, most := 0, 0
		s := &shelf{write: func(ctx context.Context, partition int32) error {
			if partition >= 10 {
				return pass(ctx, 20*time.Millisecond)
			}
			mu.Lock()
			low++
			most = max(most, low)
			mu.Unlock()
			defer func() { mu.Lock(); low--; mu.Unlock() }()
			return pass(ctx, time.Second)
		}}
		w := newWorld(func(w *world) { w.config.Turns, w.config.LaneOf = turns, laneOf })
		w.pipe.db = s
		var running sync.WaitGroup
		var all []laned
		for n := range int32(10) {
			all = append(all, lanedOf(t, []string{"decision-logs", "bulk"}[n%2], n, 5))
		}
		urgent := lanedOf(t, "urgent", 10, 3)
		late := urgent.batches
		urgent.batches = make(chan []*kgo.Record)
		var waited []time.Duration
		running.Go(func() {
			defer close(urgent.batches)
			for b := range late {
				time.Sleep(700 * time.Millisecond)
				from := time.Now()
				urgent.batches <- b
				for done := urgent.last(); done == urgent.last(); {
					time.Sleep(time.Millisecond)
				}
				waited = append(waited, time.Since(from))
			}
		})
		for _, p := range append(all, urgent) {
			running.Go(func() {
				if err := w.pipe.Run(t.Context(), p); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		w.settledAccount(t)
		for i, took := range waited {
			if took > 25*time.Millisecond {
				t.Errorf("urgent batch %d waited for %v behind the others", i, took)
			}
		}
		if len(waited) != 3 || most != 3 || s.most.Load() > 4 {
			t.Errorf("%d urgent batches; %d low writes at a time, %d in all", len(waited), most, s.most.Load())
		}
		for _, l := range []lanes.Lane{lanes.Default, lanes.Urgent, lanes.Bulk} {
			if held, waiting := turns.Count(l); held != 0 || waiting != 0 {
				t.Errorf("%s: %d turns never given back, %d wait", l.Name(), held, waiting)
			}
		}
	})
}

// TestLanes_LettersNameTheirLane looks at what is forwarded for a record of each lane.
func TestLanes_LettersNameTheirLane(t *testing.T) {
	t.Parallel()
	w := newWorld(func(w *world) {
		w.config.LaneOf, w.config.ParkBatches = laneOf, 0
		w.config.ConsumerOf = func(topic string) string { return "group-of-" + topic + "/me" }
		w.db.away = func() error { return sqlstate("08006") }
		w.config.RetryPauses = nil
	})
	for i, topic := range []string{"decision-logs", "urgent", "bulk"} {
		p := lanedOf(t, topic, int32(i), 1)
		p.batches = make(chan []*kgo.Record, 1)
		rs := recordsOf(7, append(good(topic), "{")...)
		for _, r := range rs {
			r.Topic, r.Partition = topic, int32(i)
		}
		p.batches <- rs
		close(p.batches)
		if err := w.pipe.Run(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		letters := map[string]int{}
		for _, r := range w.kafka.took {
			h := map[string]string{}
			for _, one := range r.Headers {
				h[one.Key] = string(one.Value)
			}
			if h[envelope.OriginalTopic] != topic {
				continue
			}
			letters[r.Topic]++
			if h[envelope.Consumer] != "group-of-"+topic+"/me" || h[envelope.OriginalPartition] != fmt.Sprint(i) {
				t.Errorf("a letter of %s says %v", topic, h)
			}
		}
		if letters["dlq"] != 1 || letters["parking"] != 1 {
			t.Errorf("letters of %s by topic: %v", topic, letters)
		}
	}
}

// TestLanes_BreakerIsShared parks batches of three lanes, one each. The process then holds.
func TestLanes_BreakerIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Bool
		w := newWorld(func(w *world) {
			w.config.LaneOf, w.config.Turns = laneOf, lanes.New(lanes.WithLanes())
			w.config.RetryPauses = nil
			w.db.away = func() error {
				if !back.Load() {
					return sqlstate("08006")
				}
				return nil
			}
		})
		for i, topic := range []string{"decision-logs", "urgent", "bulk"} {
			if err := w.pipe.Run(t.Context(), lanedOf(t, topic, int32(i), 1)); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.told.homes()["parked"]; n != 6 {
			t.Fatalf("%d parked, want those of three batches", n)
		}
		time.AfterFunc(time.Minute, func() { back.Store(true) })
		from := time.Now()
		if err := w.pipe.Run(t.Context(), lanedOf(t, "urgent", 3, 1)); err != nil {
			t.Fatal(err)
		}
		if time.Since(from) < time.Minute || w.told.homes()["row"] != 2 {
			t.Errorf("the fourth batch was not held: %v after %v", w.told.homes(), time.Since(from))
		}
		if !slices.ContainsFunc(w.told.held, func(h string) bool { return strings.HasPrefix(h, ReasonDatabaseAway) }) {
			t.Errorf("held for %v", w.told.held)
		}
	})
}

// TestLanes_LargeRecordsWaitApart has a large record of a low lane that waits for its rows, as while Redis is away. A
// large record of the urgent lane has its rows meanwhile.
func TestLanes_LargeRecordsWaitApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := make(chan struct{})
		tokens := tokensFunc(func(ctx, leaving context.Context, low bool, n int, pause, resume func()) int {
			if low {
				pause()
				select {
				case <-redis:
				case <-ctx.Done():
					return 0
				case <-leaving.Done():
					return 0
				}
			}
			return n
		})
		w := newWorld(func(w *world) {
			w.config.BatchBytes, w.config.LaneOf, w.config.Tokens, w.config.Turns = batchOf320, laneOf, tokens, lanes.New(lanes.WithLanes())
		})
		var running sync.WaitGroup
		ran := map[string]laned{}
		for i, topic := range []string{"bulk", "urgent"} {
			p := lanedOf(t, topic, int32(i), 0)
			p.batches = make(chan []*kgo.Record, 1)
			records := recordsOf(0, strings.ReplaceAll(manyOf(1000), `"decision_id":"`, `"decision_id":"`+topic))
			records[0].Topic, records[0].Partition = topic, int32(i)
			p.batches <- records
			close(p.batches)
			ran[topic] = p
			running.Go(func() {
				if err := w.pipe.Run(t.Context(), p); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the low one has its right first
		}
		if urgent, bulk := ran["urgent"].last(), ran["bulk"].last(); urgent != 1 || bulk != -1 {
			t.Errorf("committed %d of the urgent lane and %d of the low one", urgent, bulk)
		}
		close(redis)
		running.Wait()
		if last := ran["bulk"].last(); last != 1 {
			t.Errorf("committed %d of the low lane", last)
		}
		w.settledAccount(t)
	})
}
