package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"docket/internal/kafka"
	"docket/internal/record/home"
	"docket/internal/testkit/kafkatest"
)

// loadOf names the variable that makes the process a reader whose memory is measured.
const loadOf = "DOCKET_TEST_LOAD"

// reader is that reader, where memory can be measured.
var reader = func(string) {}

func TestMain(m *testing.M) {
	if load := os.Getenv(loadOf); load != "" {
		reader(load)
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	topic = "decision-logs"
	group = "docket"
)

// fast is a config with waits for tests in real time. The group waits one session timeout for a member that died, so
// that is short. A busy machine that delays heartbeats for so long would end the member too.
func fast(c *kafkatest.Cluster) kafka.Config {
	return kafka.Config{
		Brokers: c.Brokers(), Dialer: c.Dial,
		SessionTimeout: 6 * time.Second, RebalanceTimeout: 12 * time.Second, HeartbeatInterval: 30 * time.Millisecond,
		DialTimeout: 10 * time.Second, RequestTimeout: 20 * time.Second, MetadataMinAge: 50 * time.Millisecond,
	}
}

func small() kafka.SourceConfig {
	return kafka.SourceConfig{Topic: topic, Group: group, BatchRecords: 10, BatchWait: time.Millisecond,
		FetchWait: 50 * time.Millisecond, Drain: 8 * time.Second, WatchInterval: time.Second}
}

// member is a running Source.
type member struct {
	*kafka.Source
	stop func()
	done chan struct{}
	err  error
}

func run(t testing.TB, cfg kafka.Config, sc kafka.SourceConfig, handle kafka.Handler) *member {
	t.Helper()
	source, err := kafka.NewSource(cfg, sc, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{Source: source, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		m.err = source.Run(ctx, handle)
	}()
	t.Cleanup(func() { m.end() })
	return m
}

// end stops the member and returns what Run returned.
func (m *member) end() error {
	m.stop()
	<-m.done
	return m.err
}

// settle gives every record of a batch a home.
func settle(b *home.Batch) home.Settled {
	for i := range b.Records() {
		b.Carries(i, 1)[0].Give(home.Row)
	}
	s, err := b.Settle()
	if err != nil {
		panic(err)
	}
	return s
}

// storing handles batch after batch. It calls seen for each record and then commits the batch.
func storing(seen func(partition int32, offset int64)) kafka.Handler {
	return func(ctx context.Context, a *kafka.Assignment) error {
		for {
			b, err := a.Fetch(ctx)
			if err != nil {
				return err
			}
			for _, r := range b.Records() {
				seen(r.Partition, r.Offset)
			}
			if err := a.Commit(ctx, settle(b)); err != nil {
				return err
			}
		}
	}
}

// book notes the handled records.
type book struct {
	mu   sync.Mutex
	seen map[int32]map[int64]int
}

func (b *book) note(partition int32, offset int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = make(map[int32]map[int64]int)
	}
	if b.seen[partition] == nil {
		b.seen[partition] = make(map[int64]int)
	}
	b.seen[partition][offset]++
}

func (b *book) len() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, offsets := range b.seen {
		n += len(offsets)
	}
	return n
}

// missing lists the records below the committed offsets that were not handled.
func (b *book) missing(committed map[int32]int64) (lost []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for p, next := range committed {
		for o := int64(0); o < next; o++ {
			if b.seen[p][o] == 0 {
				lost = append(lost, fmt.Sprintf("%d/%d", p, o))
			}
		}
	}
	return lost
}

func values(n int) []string {
	v := make([]string, n)
	for i := range v {
		v[i] = fmt.Sprintf(`{"decision_id":"%d"}`, i)
	}
	return v
}

func reason(err error) kafka.Reason {
	if f := (*kafka.FaultError)(nil); errors.As(err, &f) {
		return f.Reason
	}
	return ""
}
