package worker

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// sqlError fails as a database server does, told by its behaviour alone.
type sqlError string

func (e sqlError) Error() string    { return "SQLSTATE " + string(e) }
func (e sqlError) SQLState() string { return string(e) }

// shelf is a ledger.Intake in memory.
type shelf struct {
	mu      sync.Mutex
	letters map[string]ledger.Letter
	calls   int
	refuse  func(calls int, l ledger.Letter) error // nil: takes it
	groups  []ledger.Group
}

func (s *shelf) Enter(ctx context.Context, letters []ledger.Letter, _ int, _ ledger.Actor) (n ledger.EnteredCount, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if ctx.Err() != nil {
		return n, ctx.Err()
	}
	for _, l := range letters {
		if s.refuse != nil {
			if err := s.refuse(s.calls, l); err != nil {
				return n, err
			}
		}
	}
	if s.letters == nil {
		s.letters = map[string]ledger.Letter{}
	}
	for _, l := range letters {
		if _, known := s.letters[l.ID]; known {
			n.Known++
			continue
		}
		s.letters[l.ID] = l
		n.New++
	}
	n.Groups, s.groups = s.groups, nil
	return n, nil
}

func (s *shelf) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *shelf) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.letters[id]
	return ok
}

// partition is an Assignment in memory; each batch is fetched once.
type partition struct {
	t       *testing.T
	account *home.Account
	batches chan []*kgo.Record
	leaving context.Context
	leave   func()
	shelf   *shelf

	mu      sync.Mutex
	offset  int64 // committed
	holds   int
	holding int
	commits error // the result of a commit
}

func newPartition(t *testing.T, s *shelf, batches ...[]*kgo.Record) *partition {
	p := &partition{t: t, account: home.NewAccount("dlq", 3), batches: make(chan []*kgo.Record, 100), shelf: s, offset: -1}
	p.leaving, p.leave = context.WithCancel(context.Background())
	for _, b := range batches {
		p.batches <- b
	}
	return p
}

func (p *partition) Topic() string            { return "dlq" }
func (p *partition) Partition() int32         { return 3 }
func (p *partition) Leaving() context.Context { return p.leaving }

func (p *partition) Fetch(ctx context.Context) (*home.Batch, error) {
	select {
	case records := <-p.batches:
		p.account.Enter(records...)
		return p.account.Batch(records), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// At a commit every record before the offset is in the ledger.
func (p *partition) Commit(_ context.Context, s home.Settled) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for offset := range s.Offset() {
		if !p.shelf.has(deadID(offset)) {
			p.t.Errorf("offset %d is committed, and the record at %d is not in the ledger", s.Offset(), offset)
		}
	}
	if p.commits != nil {
		return p.commits
	}
	p.offset = s.Offset()
	return nil
}

func (p *partition) Hold() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds++
	p.holding++
	return func() { p.mu.Lock(); p.holding--; p.mu.Unlock() }
}

func (p *partition) committed() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.offset
}

func (p *partition) standing() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holding
}

func deadID(offset int64) string { return deadIDOf(offset, someDecision) }

// deadIDOf is the id of the record there whose value that is: it names no origin.
func deadIDOf(offset int64, value string) string {
	return envelope.ID(envelope.Origin{Topic: "dlq", Partition: 3, Offset: offset, Index: envelope.NoIndex}, []byte(value))
}

const someDecision = `{"decision_id":"d","timestamp":"2026-01-02T03:04:05Z","path":"a/b"}`

func deadRecord(offset int64, value string, headers ...kgo.RecordHeader) *kgo.Record {
	return &kgo.Record{Topic: "dlq", Partition: 3, Offset: offset, Key: []byte("k"), Value: []byte(value), Timestamp: time.Unix(1e9, 0),
		Headers: append([]kgo.RecordHeader{
			{Key: envelope.DeadLetterID, Value: []byte(deadIDOf(offset, value))},
			{Key: envelope.FailureKind, Value: []byte("data")},
			{Key: envelope.FailureCode, Value: []byte("23514")},
			{Key: envelope.FailureMessage, Value: []byte("refused")},
		}, headers...)}
}

func deadRecords(from, n int64) (records []*kgo.Record) {
	for i := range n {
		records = append(records, deadRecord(from+i, someDecision))
	}
	return records
}

func intake(s *shelf, log *bytes.Buffer, news func([]ledger.Group)) *Intake {
	return NewIntake(IntakeConfig{MaxRecordBytes: 1 << 20, MaxAttempts: 3, Actor: ledger.Actor{Name: "desk"}}, s, news, zerolog.New(log))
}
