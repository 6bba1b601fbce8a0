// Package completetest has a Kafka of a few offsets, and a ledger of one number, for tests of how complete answers are.
package completetest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/history/complete"
)

// Noted is a log that keeps the ends which it gave last, by topic. It may be asked by many at once.
type Noted struct {
	kafkaLog
	mu   sync.Mutex
	ends map[string]map[int32]int64
}

type kafkaLog interface {
	complete.Log
	complete.Groups
}

// Note returns a log that keeps the ends which of gives.
func Note(of kafkaLog) *Noted { return &Noted{kafkaLog: of, ends: map[string]map[int32]int64{}} }

// Ends asks, and keeps the answer.
func (n *Noted) Ends(ctx context.Context, topic string) (map[int32]int64, error) {
	found, err := n.kafkaLog.Ends(ctx, topic)
	if err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ends[topic] = maps.Clone(found)
	}
	return found, err
}

// Last returns the ends that were given last.
func (n *Noted) Last() map[string]map[int32]int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.ends)
}

// The topics and groups of [Watch].
const (
	Source  = "decision-logs"
	Parking = "decision-logs-parking"
	Dead    = "decision-logs-dlq"
)

// Log is a Kafka whose topics have one partition. Topics that are not in it are empty.
type Log struct {
	Ends, Done map[string]int64  // ends of topics, and what is committed of them
	Notes      map[string]string // beside what is committed; without one it is not known what spools have
	Values     []string          // of the parking topic
	Err        error             // of every request; nil: none
	Alone      bool              // no group has members

	mu   sync.Mutex
	wait chan struct{}
}

// Hang lets every request wait until free is called, or for its context.
func (l *Log) Hang() (free func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := make(chan struct{})
	l.wait = wait
	return func() { close(wait) }
}

// Set replaces the offsets.
func (l *Log) Set(ends, done map[string]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Ends, l.Done = ends, done
}

func (l *Log) asked(ctx context.Context) error {
	l.mu.Lock()
	wait := l.wait
	l.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return l.Err
}

// Committed returns what is committed of a topic.
func (l *Log) Committed(ctx context.Context, group, topic string) (map[int32]int64, error) {
	done, _, err := l.CommittedNoted(ctx, group, topic)
	return done, err
}

// CommittedNoted implements [complete.Log].
func (l *Log) CommittedNoted(ctx context.Context, _, topic string) (done map[int32]int64, notes map[int32]string, err error) {
	l.mu.Lock()
	at, there := l.Done[topic]
	note := l.Notes[topic]
	l.mu.Unlock()
	if there {
		return map[int32]int64{0: at}, map[int32]string{0: note}, l.asked(ctx)
	}
	return map[int32]int64{}, nil, l.asked(ctx)
}

// Idle implements [complete.Groups].
func (l *Log) Idle(ctx context.Context, _ string) (bool, error) { return l.Alone, l.asked(ctx) }

// Starts implements [complete.Log].
func (l *Log) Starts(ctx context.Context, _ string) (map[int32]int64, error) {
	return map[int32]int64{0: 0}, l.asked(ctx)
}

func (l *Log) endsOf(topic string) map[int32]int64 {
	if topic == Parking {
		return map[int32]int64{0: int64(len(l.Values))}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return map[int32]int64{0: l.Ends[topic]}
}

// Scan implements [complete.Log].
func (l *Log) Scan(ctx context.Context, topic string, from, to map[int32]int64, each func(*kgo.Record) error) (map[int32]int64, error) {
	for at := from[0]; at < to[0]; at++ {
		if err := each(&kgo.Record{Topic: topic, Offset: at, Value: []byte(l.Values[at])}); err != nil {
			return from, err
		}
	}
	return from, l.asked(ctx)
}

// kafka is the log as [complete.Log].
type kafka struct{ *Log }

func (k kafka) Ends(ctx context.Context, topic string) (map[int32]int64, error) {
	return k.endsOf(topic), k.asked(ctx)
}

// Watch makes a watch of the log that takes its time from now, with a margin of 5 s.
func Watch(l *Log, now func() time.Time) *complete.Watch {
	return complete.NewWatch(complete.Config{
		Sources: []complete.Source{{Topic: Source, Group: "docket"}}, Parking: complete.Source{Topic: Parking, Group: "docket-parking"},
		Dead: []complete.Source{{Topic: Dead, Group: "docket-desk"}}, Now: now,
	}, kafka{l})
}

// Decision is the value of a parked decision.
func Decision(at time.Time, path string) string {
	return fmt.Sprintf(`{"decision_id":"parked","timestamp":%q,"path":%q}`, at.Format(time.RFC3339Nano), path)
}

// Books is a ledger that answers with its fields.
type Books struct {
	N       int64
	Unknown bool // the ledger lacks some
	Standby bool
	Err     error
	Asked   func(complete.Range) // called with each question; nil: not called
}

// Waiting implements [complete.Books].
func (b Books) Waiting(_ context.Context, r complete.Range) (n int64, known, primary bool, err error) {
	if b.Asked != nil {
		b.Asked(r)
	}
	return b.N, !b.Unknown, !b.Standby, b.Err
}
