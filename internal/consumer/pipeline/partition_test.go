package pipeline

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/home"
)

// partition is an Assignment that delivers the records it was given.
type partition struct {
	account *home.Account
	batches chan []*kgo.Record
	next    []*kgo.Record // the records that Ready waited for
	leave   context.Context
	depart  context.CancelFunc

	mu        sync.Mutex
	committed []int64
	holds     int
	refuse    error
	waiting   chan struct{} // a commit waits until it is closed; nil: it does not
}

func newPartition(t *testing.T, batches ...[]*kgo.Record) *partition {
	t.Helper()
	leave, depart := context.WithCancel(t.Context())
	p := &partition{account: home.NewAccount("decision-logs", 0), batches: make(chan []*kgo.Record, len(batches)), leave: leave, depart: depart}
	for _, b := range batches {
		p.batches <- b
	}
	close(p.batches)
	return p
}

func (p *partition) Topic() string            { return "decision-logs" }
func (p *partition) Partition() int32         { return 0 }
func (p *partition) Leaving() context.Context { return p.leave }

func (p *partition) Ready(ctx context.Context) error {
	if ctx.Err() != nil || p.next != nil {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case rs, ok := <-p.batches:
		if !ok {
			return ErrDone
		}
		p.next = rs
		return nil
	}
}

func (p *partition) Fetch(ctx context.Context) (*home.Batch, error) {
	if err := p.Ready(ctx); err != nil {
		return nil, err
	}
	rs := p.next
	p.next = nil
	p.account.Enter(rs...)
	return p.account.Batch(rs), nil
}

func (p *partition) Commit(_ context.Context, s home.Settled) error {
	if p.waiting != nil {
		<-p.waiting
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.Of(p.account) {
		return errors.New("not settled here")
	}
	if p.refuse != nil {
		return p.refuse
	}
	p.committed = append(p.committed, s.Offset())
	return nil
}

func (p *partition) Hold() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.holds--
	}
}

func (p *partition) last() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.committed) == 0 {
		return -1
	}
	return p.committed[len(p.committed)-1]
}
