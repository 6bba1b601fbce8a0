package desk

import (
	"context"
	"sync"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/record/home"
)

// pulse knows which partitions have a batch in hand, and when each gave a sign of progress.
type pulse struct {
	mu    sync.Mutex
	hands map[*hand]struct{}
}

// hand is an assignment that reports each step to the pulse. A hold counts as progress, and so does a commit that the
// brokers do not take yet: a restart does not cure them.
type hand struct {
	worker.Assignment
	pulse *pulse
	since time.Time // of the last sign of progress of the batch; zero: none is in hand
	holds int
}

func (p *pulse) take(a worker.Assignment) (_ *hand, release func()) {
	h := &hand{Assignment: a, pulse: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hands == nil {
		p.hands = map[*hand]struct{}{}
	}
	p.hands[h] = struct{}{}
	return h, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.hands, h)
	}
}

// stuck says that a batch has been in hand for so long without a sign of progress. Each partition is looked at alone. A
// ledger that is slow is none: each of its answers is a sign, and it may not take as long as the patience for one.
func (p *pulse) stuck(patience time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for h := range p.hands {
		if !h.since.IsZero() && h.holds == 0 && time.Since(h.since) > patience {
			return true
		}
	}
	return false
}

func (h *hand) Fetch(ctx context.Context) (*home.Batch, error) {
	h.now(time.Time{})
	b, err := h.Assignment.Fetch(ctx)
	if err == nil {
		h.now(time.Now())
	}
	return b, err
}

func (h *hand) Commit(ctx context.Context, s home.Settled) error {
	h.hold(1)
	defer h.hold(-1)
	return h.Assignment.Commit(ctx, s)
}

func (h *hand) Hold() (release func()) {
	let := h.Assignment.Hold()
	h.hold(1)
	return sync.OnceFunc(func() {
		let()
		h.hold(-1)
	})
}

func (h *hand) now(t time.Time) {
	h.pulse.mu.Lock()
	defer h.pulse.mu.Unlock()
	h.since = t
}

func (h *hand) hold(n int) {
	h.pulse.mu.Lock()
	defer h.pulse.mu.Unlock()
	h.holds += n
	if h.holds == 0 && !h.since.IsZero() {
		h.since = time.Now()
	}
}

// answered notes that the ledger answered about dead letters, which are of one partition.
func (p *pulse) answered(letters []ledger.Letter) {
	if len(letters) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for h := range p.hands {
		if at := letters[0].Found; h.Topic() == at.Topic && h.Partition() == at.Partition && !h.since.IsZero() {
			h.since = time.Now()
		}
	}
}

// beating is a ledger whose every answer is a sign of progress of the partition that asked.
type beating struct {
	ledger.Intake
	pulse *pulse
}

func (b beating) Enter(ctx context.Context, letters []ledger.Letter, maxAttempts int, by ledger.Actor) (ledger.EnteredCount, error) {
	count, err := b.Intake.Enter(ctx, letters, maxAttempts, by)
	b.pulse.answered(letters)
	return count, err
}
