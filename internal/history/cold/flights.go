package cold

import (
	"context"
	"strconv"
	"sync"

	"docket/internal/history/claims"
)

// flights lets questions that need the same reading at the same time share it. A call of singleflight would end with
// the question that began it. A flight ends with the last question that waits for it.
type flights[T any] struct {
	mu  sync.Mutex
	all map[string]*flight[T]
}

type flight[T any] struct {
	done    chan struct{}
	value   T
	err     error
	waiting int
	cancel  context.CancelFunc
}

// do returns the result of read, or that of a call with the same key that is in progress. The error is that of read, or
// of ctx. Nobody may change the value.
func (f *flights[T]) do(ctx context.Context, key string, read func(ctx context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	one := f.join(ctx, key, read)
	select {
	case <-one.done:
		return one.value, one.err
	case <-ctx.Done():
	}
	if f.leave(key, one) {
		<-one.done // no reading outlives its questions
	}
	return none, ctx.Err()
}

func (f *flights[T]) join(ctx context.Context, key string, read func(ctx context.Context) (T, error)) *flight[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.all[key]
	if one == nil {
		reading, cancel := context.WithCancel(claims.Sharing(context.WithoutCancel(ctx), ctx))
		one = &flight[T]{done: make(chan struct{}), cancel: cancel}
		if f.all == nil {
			f.all = map[string]*flight[T]{}
		}
		f.all[key] = one
		go func() {
			defer close(one.done)
			defer cancel()
			one.value, one.err = read(reading)
			f.drop(key, one)
		}()
	}
	one.waiting++
	return one
}

// leave gives up waiting. It reports whether nobody waits any more. Then the reading is told to end.
func (f *flights[T]) leave(key string, one *flight[T]) (last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.waiting--
	if one.waiting > 0 {
		return false
	}
	if f.all[key] == one { // a later question begins its own
		delete(f.all, key)
	}
	one.cancel()
	return true
}

func (f *flights[T]) drop(key string, one *flight[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[key] == one {
		delete(f.all, key)
	}
}

// latest shares readings of what changes. A question gets a reading that began after the question did. There is one
// reading at a time, so questions that come during one share the next.
type latest[T any] struct {
	flights flights[T]
	turn    chan struct{} // its holder reads
	mu      sync.Mutex
	n       int // readings that began
}

func newLatest[T any]() *latest[T] { return &latest[T]{turn: make(chan struct{}, 1)} }

func (l *latest[T]) get(ctx context.Context, read func(ctx context.Context) (T, error)) (T, error) {
	return l.flights.do(ctx, l.key(0), func(ctx context.Context) (T, error) {
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
		defer func() { <-l.turn }()
		l.key(1)
		return read(ctx)
	})
}

// key names the next reading, and counts one that begins.
func (l *latest[T]) key(begun int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n += begun
	return strconv.Itoa(l.n)
}
