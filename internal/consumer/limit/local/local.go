// Package local limits the rows of a process without shared state: the process takes its share of the limits.
//
// # Which sum holds
//
// Kafka gives each partition to one member at a time. A member that is told to give a partition up no longer counts it.
// The next member counts it after that. So the shares of all processes add up to at most one, also while a rebalance
// moves partitions, and with them the limits. Buckets start empty, and a larger share brings no tokens with it. So in no
// second are more granted than the limit and the burst, whatever starts, stops and moves.
//
// Two owners of a partition at once are possible in one case: a member that was cut off from Kafka does not know yet that
// the group gave its partitions away. Kafka refuses its commits, but not its writes. It learns that within the time of a
// session. Until then it grants its share, so the sum can pass the limit by that much. Redis counts such a member too.
package local

import (
	"context"
	"sync"
	"time"

	"docket/internal/consumer/limit"
)

// Limit grants rows by the share of a process. It is safe for concurrent use.
type Limit struct {
	rates func(now time.Time) limit.Rates

	mu   sync.Mutex
	pair *limit.Pair
	set  limit.Rates
}

// New returns a limit. rates is called at each question and says what the process may use then.
func New(rates func(now time.Time) limit.Rates) *Limit {
	now := time.Now()
	r := rates(now)
	return &Limit{rates: rates, pair: limit.NewPair(now, r), set: r}
}

// Ask grants from least to n rows, or none. If it grants none, wait is the time until it can, at most a second. The
// error is always nil.
func (l *Limit) Ask(_ context.Context, low bool, n, least int) (granted int, wait time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if r := l.rates(now); r != l.set {
		l.pair.Set(now, r)
		l.set = r
	}
	granted, wait = l.pair.Take(now, low, n, least)
	return granted, wait, nil
}

// Rates returns the limits that are in force now.
func (l *Limit) Rates() limit.Rates { return l.rates(time.Now()) }
