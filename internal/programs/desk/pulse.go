package desk

import (
	"context"
	"sync"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/record/home"
)

// pulse knows which partitions have a batch in hand, and when there was a sign of progress.
type pulse struct {
	mu      sync.Mutex
	entered time.Time // the ledger answered about dead letters
	hands   map[*hand]struct{}
}

// hand is an assignment that reports each step to the pulse. A hold counts as progress: a restart does not cure it.
type hand struct {
	worker.Assignment
	pulse *pulse
	since time.Time // of the batch; zero: none is in hand
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

// stuck says that a batch has been in hand for so long without a sign of progress.
func (p *pulse) stuck(patience time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for h := range p.hands {
		if !h.since.IsZero() && h.holds == 0 && time.Since(h.since) > patience && time.Since(p.entered) > patience {
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

// beating is a ledger whose every answer is a sign of progress.
type beating struct {
	ledger.Intake
	pulse *pulse
}

func (b beating) Enter(ctx context.Context, letters []ledger.Letter, maxAttempts int, by ledger.Actor) (ledger.EnteredCount, error) {
	count, err := b.Intake.Enter(ctx, letters, maxAttempts, by)
	b.pulse.mu.Lock()
	defer b.pulse.mu.Unlock()
	b.pulse.entered = time.Now()
	return count, err
}
