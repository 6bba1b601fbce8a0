package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/record/envelope"
	homes "docket/internal/record/home"
)

// carried is one partition carried through a pipeline with nothing but a table: the other homes always take what they get.
// It is the assignment, the publisher and the observer.
type carried struct {
	account *homes.Account
	batches [][]*kgo.Record
	leaving context.Context
	leave   context.CancelFunc
	holdsAt int // leaves when it holds for the n-th time; 0: never

	mu     sync.Mutex
	homes  []string // "offset home code" of each decision
	sent   []*kgo.Record
	holds  []pipeline.Hold
	commit int64
}

// carry runs batches of one partition through a pipeline until they are done, or until it held so often.
func carry(t testing.TB, db pipeline.Store, replay bool, holds int, batches ...[]*kgo.Record) *carried {
	t.Helper()
	return carryProbing(t, db, replay, holds, 50*time.Millisecond, batches...)
}

// carryProbing is carry with another pause between the probes of a hold.
func carryProbing(t testing.TB, db pipeline.Store, replay bool, holds int, interval time.Duration, batches ...[]*kgo.Record) *carried {
	t.Helper()
	c := &carried{account: homes.NewAccount(batches[0][0].Topic, 0), batches: batches, holdsAt: holds, commit: -1}
	c.leaving, c.leave = context.WithCancel(t.Context())
	defer c.leave()
	pipe := pipeline.New(pipeline.Config{
		Program: "consumer", DLQTopic: "dlq", ParkingTopic: "parking", ParkingDLQTopic: "parking-dlq",
		MaxRecordBytes: 1 << 20, BatchBytes: 8 << 20, RetryPauses: []time.Duration{10 * time.Millisecond, 20 * time.Millisecond},
		ParkBatches: 3, ProbeInterval: interval, Backoff: time.Minute, MaxBackoff: time.Hour, MaxAttempts: 5,
		Consumer: "docket/test", Replay: replay,
	}, db, c, nil, c, zerolog.Nop())
	if err := pipe.Run(t.Context(), c); err != nil {
		t.Fatalf("run: %v", err)
	}
	return c
}

func (c *carried) Topic() string            { return "decision-logs" }
func (c *carried) Partition() int32         { return 0 }
func (c *carried) Leaving() context.Context { return c.leaving }

func (c *carried) Ready(context.Context) error {
	if len(c.batches) == 0 {
		return pipeline.ErrDone
	}
	return nil
}

func (c *carried) Fetch(context.Context) (*homes.Batch, error) {
	if len(c.batches) == 0 {
		return nil, pipeline.ErrDone
	}
	records := c.batches[0]
	c.batches = c.batches[1:]
	c.account.Enter(records...)
	return c.account.Batch(slices.Clone(records)), nil
}

func (c *carried) Commit(_ context.Context, s homes.Settled) error {
	c.commit = s.Offset()
	return nil
}

func (c *carried) Hold() func() { return func() {} }

func (c *carried) Publish(_ context.Context, records []*kgo.Record) []error {
	c.sent = append(c.sent, records...)
	return make([]error, len(records))
}

func (c *carried) Took(int)                            {}
func (c *carried) Gave(int)                            {}
func (c *carried) StoreFailed(errclass.Classification) {}
func (c *carried) Retried()                            {}
func (c *carried) Bisected(int)                        {}
func (c *carried) PublishFailed(string, error)         {}

func (c *carried) Held(_ string, _ int32, h pipeline.Hold) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds = append(c.holds, h); len(c.holds) == c.holdsAt {
		c.leave()
	}
	return func() {}
}

func (c *carried) Homed(r pipeline.HomedBatch) {
	for d := range r.Decisions {
		line := fmt.Sprintf("%d %s", d.Offset, d.Home)
		if d.Cause.Code != "" {
			line += " " + d.Cause.Code
		}
		c.homes = append(c.homes, line)
	}
}

// attempts are what the forwarded records say of theirs.
func (c *carried) attempts() (all []string) {
	for _, r := range c.sent {
		for _, h := range r.Headers {
			if h.Key == envelope.RetryAttempt {
				all = append(all, string(h.Value))
			}
		}
	}
	return all
}

// sourceRecord is a record of the source that was appended a moment ago.
func sourceRecord(offset int64, value string) *kgo.Record {
	return &kgo.Record{Topic: "decision-logs", Offset: offset, Value: []byte(value), Timestamp: time.Now().Add(-2 * time.Second)}
}

// parkedRecord is a parked copy of a record of the source that was tried so often.
func parkedRecord(offset int64, attempt int, value string) *kgo.Record {
	r := sourceRecord(offset, value)
	r.Topic = "decision-logs-parking"
	for key, value := range map[string]string{envelope.OriginalTopic: "decision-logs", envelope.OriginalPartition: "0",
		envelope.OriginalOffset: strconv.FormatInt(offset, 10), envelope.RetryAttempt: strconv.Itoa(attempt)} {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
	}
	return r
}

// event is a decision of that id, at this time, with more members.
func event(id string, at time.Time, more map[string]any) string {
	all := map[string]any{"decision_id": id, "timestamp": at.UTC().Format(time.RFC3339Nano), "path": "shop/allow", "result": true}
	for key, value := range more {
		all[key] = value
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func same(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}
