package worker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
)

// outbox is a ledger.Relay in memory for one relay. A row is claimed until its lease ends, and postponed after a
// failure.
type outbox struct {
	mu     sync.Mutex
	rows   []*outboxRow
	claims []time.Time
	mark   func() error // before anything is written; nil: all is well
	claim  func() error
}

type outboxRow struct {
	ledger.Sending
	claimed, next time.Time
	published     int
	placed        ledger.Placed
	refused       string
	pauses        []time.Duration
}

func (o *outbox) add(key string, n int) {
	for range n {
		id := int64(len(o.rows) + 1)
		s := ledger.Sending{ID: id, LetterID: fmt.Sprint("letter-", id), Mark: fmt.Sprint("mark-", id), Topic: "source", Value: fmt.Append(nil, id)}
		if key != "" {
			s.Key = []byte(key)
		}
		o.rows = append(o.rows, &outboxRow{Sending: s})
	}
}

func (o *outbox) open(r *outboxRow) bool { return r.published == 0 && r.refused == "" }

func (o *outbox) Claim(ctx context.Context, _ string, n int, lease time.Duration) (out []ledger.Sending, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	now := time.Now()
	o.claims = append(o.claims, now)
	if o.claim != nil {
		if err := o.claim(); err != nil {
			return nil, err
		}
	}
	waits := map[string]bool{}
	for _, r := range o.rows {
		if !o.open(r) || len(out) == n {
			continue
		}
		if now.Before(r.claimed) || now.Before(r.next) || waits[string(r.Key)] {
			waits[string(r.Key)] = r.Key != nil
			continue
		}
		r.claimed = now.Add(lease)
		out = append(out, r.Sending)
	}
	return out, nil
}

func (o *outbox) Published(ctx context.Context, _ string, placed []ledger.Placed, _ time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mark != nil {
		if err := o.mark(); err != nil {
			return err
		}
	}
	for _, p := range placed {
		r := o.rows[p.SendingID-1]
		r.published++
		r.placed = p
	}
	return ctx.Err()
}

func (o *outbox) Unpublished(ctx context.Context, _ string, id int64, code string, pause time.Duration, giveUp bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mark != nil {
		if err := o.mark(); err != nil {
			return err
		}
	}
	r := o.rows[id-1]
	r.Tries++
	r.claimed, r.next = time.Time{}, time.Now().Add(pause)
	r.pauses = append(r.pauses, pause)
	if giveUp {
		r.refused = code
	}
	return ctx.Err()
}

// topic is a Publisher in memory.
type topic struct {
	mu    sync.Mutex
	calls [][]*kgo.Record
	took  []*kgo.Record
	fail  func(r *kgo.Record) error
	hook  func()
}

func (p *topic) Place(_ context.Context, records []*kgo.Record) ([]Place, []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, records)
	if p.hook != nil {
		p.hook()
	}
	places, errs := make([]Place, len(records)), make([]error, len(records))
	for i, r := range records {
		if p.fail != nil {
			errs[i] = p.fail(r)
		}
		if errs[i] == nil {
			places[i] = Place{Partition: 4, Offset: int64(len(p.took))}
			p.took = append(p.took, r)
		}
	}
	return places, errs
}

func relayOf(o *outbox, p *topic) *Relay {
	return NewRelay(RelayConfig{Holder: "me", Topics: []string{"source"}, Interval: time.Second, Batch: 50, Tries: 5, Lease: time.Minute, Extend: time.Hour}, o, p, zerolog.Nop())
}

// running runs a relay for this long.
func running(t *testing.T, r *Relay, d time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	if err := r.Run(ctx); err != nil {
		t.Errorf("Run = %v", err)
	}
}
