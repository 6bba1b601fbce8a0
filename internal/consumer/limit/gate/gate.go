// Package gate makes writes wait for the rows that a limit grants, in the order of asking.
package gate

import (
	"context"
	"sync"
	"time"
)

// Limit grants rows. [docket/internal/consumer/limit/local] and the shared limit are such.
type Limit interface {
	// Ask grants from least to n rows, or none. If it grants none, wait is the time until it can. An error says that
	// the limit cannot be asked now. It comes within a time that a batch can wait with its turn.
	Ask(ctx context.Context, low bool, n, least int) (granted int, wait time.Duration, err error)
}

// Observer is told of each grant. It never blocks and is safe for concurrent use.
type Observer interface {
	// Granted reports rows that were granted after a wait. alone says that the shared limit was away.
	Granted(low bool, rows int, waited time.Duration, alone bool)
}

// Config has the settings of a gate.
type Config struct {
	// Limit is asked.
	Limit Limit
	// Alone is asked for the urgent lane while Limit cannot be asked; nil: it waits as the low lanes do.
	Alone Limit
	// Burst is the most rows that are granted at once, at least 1.
	Burst int
	// Observer may be nil.
	Observer Observer
}

// Gate grants rows. The low lanes and the urgent lane have a queue each, and the first of a queue alone asks the limit.
// It is safe for concurrent use.
type Gate struct {
	cfg    Config
	queues [2]queue // of the urgent lane, of the low lanes

	mu      sync.Mutex
	waits   map[*wait]struct{}
	limited [2]stretch // of the urgent lane, of the low lanes
}

// stretch is a time in which each write waited.
type stretch struct {
	since time.Time // zero: the last write did not wait
	last  time.Time // the last grant
}

// lasting is how long after a grant a stretch still counts, if nobody waits.
const lasting = time.Second

// wait is one write that waits.
type wait struct {
	low   bool
	since time.Time
	away  bool
}

// New returns a gate.
func New(cfg Config) *Gate {
	return &Gate{cfg: cfg, waits: map[*wait]struct{}{}}
}

const (
	// longest is the longest pause between two questions. The limit may change meanwhile.
	longest = time.Second
	// whileAway is the pause before the next question after one that failed.
	whileAway = 250 * time.Millisecond
)

// Take returns how many of n rows may be written now, at least 1 and at most the burst. Before it waits for the first
// time it calls pause. After a wait it calls resume before the next of the queue is granted rows. It returns 0 when ctx
// or leaving ends before a row was granted. After leaving ended it asks once and does not wait.
func (g *Gate) Take(ctx, leaving context.Context, low bool, n int, pause, resume func()) (granted int) {
	w := &wait{low: low, since: time.Now()}
	waiting := false
	rest := func() {
		if !waiting {
			waiting = true
			g.note(w)
			pause()
		}
	}
	defer func() { g.forget(w) }()
	queue := &g.queues[index(low)]
	if !queue.enter(ctx, leaving, rest) {
		return 0
	}
	defer queue.leave()

	n = min(n, g.cfg.Burst)
	// Transactions of a single row would cost the database more than the limit saves. So the first question asks for
	// half a burst, and each further one for half as much: others that take row by row cannot starve it.
	least := max(1, min(n, g.cfg.Burst/2))
	for {
		granted, pause, alone := g.ask(ctx, w, n, least)
		if granted > 0 {
			g.grant(w, waiting, granted, alone)
			if waiting {
				resume()
			}
			return granted
		}
		rest()
		if !sleep(ctx, leaving, min(pause, longest)) {
			return 0
		}
		least = max(1, least/2)
	}
}

// ask asks the limit, or the other one for the urgent lane while the limit is away.
func (g *Gate) ask(ctx context.Context, w *wait, n, least int) (granted int, pause time.Duration, alone bool) {
	granted, pause, err := g.cfg.Limit.Ask(ctx, w.low, n, least)
	g.mu.Lock()
	w.away = err != nil
	g.mu.Unlock()
	if err == nil {
		return granted, pause, false
	}
	if w.low || g.cfg.Alone == nil {
		return 0, whileAway, true // fail closed
	}
	granted, pause, err = g.cfg.Alone.Ask(ctx, w.low, n, least)
	if err != nil {
		return 0, whileAway, true
	}
	return granted, min(pause, whileAway), true
}

// sleep waits and reports whether neither context ended.
func sleep(ctx, leaving context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-leaving.Done():
	}
	return false
}

// grant notes a grant.
func (g *Gate) grant(w *wait, waited bool, rows int, alone bool) {
	now := time.Now()
	g.mu.Lock()
	s := &g.limited[index(w.low)]
	s.last = now
	if !waited {
		s.since = time.Time{}
	}
	g.mu.Unlock()
	if g.cfg.Observer == nil {
		return
	}
	var took time.Duration
	if waited {
		took = now.Sub(w.since)
	}
	g.cfg.Observer.Granted(w.low, rows, took, alone)
}

func index(low bool) int {
	if low {
		return 1
	}
	return 0
}

func (g *Gate) note(w *wait) {
	g.mu.Lock()
	defer g.mu.Unlock()
	alone := true // in its class
	for other := range g.waits {
		alone = alone && other.low != w.low
	}
	g.waits[w] = struct{}{}
	s := &g.limited[index(w.low)]
	if s.since.IsZero() || w.since.Sub(s.last) > lasting && alone {
		s.since = w.since
	}
}

func (g *Gate) forget(w *wait) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.waits, w)
}

// Waits describes the writes that wait.
type Waits struct {
	Low, Urgent int // how many
	// Since is since when each write of the low lanes, or of the urgent lane, had to wait; zero: some did not.
	Since time.Time
	// Away is when the first of the low lanes began to wait that found the limit away at its last question; zero: none.
	Away time.Time
}

// Waits returns what waits now.
func (g *Gate) Waits() (all Waits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for w := range g.waits {
		if w.low {
			all.Low++
		} else {
			all.Urgent++
		}
		if w.low && w.away {
			all.Away = earlier(all.Away, w.since)
		}
	}
	for class, waiting := range [2]int{all.Urgent, all.Low} {
		if s := g.limited[class]; !s.since.IsZero() && (waiting > 0 || time.Since(s.last) < lasting) {
			all.Since = earlier(all.Since, s.since)
		}
	}
	return all
}

// earlier returns the earlier time; zero counts as none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
