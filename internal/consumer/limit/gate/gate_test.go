package gate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"docket/internal/consumer/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bucket is a Limit in memory.
type bucket struct {
	mu   sync.Mutex
	pair *limit.Pair
	away error
	asks []ask
}

type ask struct {
	low      bool
	n, least int
}

func newBucket(all, low float64, burst int) *bucket {
	return &bucket{pair: limit.NewPair(time.Now(), limit.Rates{All: all, Low: low, Burst: burst})}
}

func (b *bucket) Ask(_ context.Context, low bool, n, least int) (int, time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asks = append(b.asks, ask{low, n, least})
	if b.away != nil {
		return 0, 0, b.away
	}
	granted, wait := b.pair.Take(time.Now(), low, n, least)
	return granted, wait, nil
}

func (b *bucket) set(away error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
}

// told is an Observer that remembers.
type told struct {
	mu           sync.Mutex
	rows, alone  int
	longestOfLow time.Duration
}

func (o *told) Granted(low bool, rows int, waited time.Duration, alone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rows += rows
	if alone {
		o.alone += rows
	}
	if low {
		o.longestOfLow = max(o.longestOfLow, waited)
	}
}

var errAway = errors.New("away")

func never() {}

func TestGate_GrantsAtMostTheBurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, o := newBucket(100, 50, 10), &told{}
		g := New(Config{Limit: b, Burst: 10, Observer: o})
		time.Sleep(time.Minute)
		if n := g.Take(t.Context(), t.Context(), true, 1000, func() { t.Error("it waited for tokens that are there") }, never); n != 10 || o.rows != 10 || o.longestOfLow != 0 {
			t.Errorf("granted %d, observed %d after %v", n, o.rows, o.longestOfLow)
		}
		began, paused := time.Now(), 0
		if n := g.Take(t.Context(), t.Context(), true, 1000, func() { paused++ }, never); n != 5 || paused != 1 || time.Since(began) != 100*time.Millisecond {
			t.Errorf("granted %d after %v, paused %d times; want half a burst at once", n, time.Since(began), paused)
		}
		if o.longestOfLow != 100*time.Millisecond {
			t.Errorf("observed a wait of %v", o.longestOfLow)
		}
	})
}

// Another class that takes row by row cannot starve a write that asks for many: it asks for fewer each time.
func TestGate_AsksForLessEachTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBucket(100, 50, 64)
		g := New(Config{Limit: b, Burst: 64})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			for ctx.Err() == nil {
				g.Take(ctx, ctx, false, 1, never, never) // all that comes
			}
		})
		began := time.Now()
		if n := g.Take(t.Context(), t.Context(), true, 500, never, never); n < 1 || time.Since(began) > 4*time.Second {
			t.Errorf("granted %d after %v", n, time.Since(began))
		}
		cancel()
		all.Wait()
		if first := b.asks[0].least + b.asks[1].least; first != 33 && first != 2 {
			t.Errorf("first questions %+v", b.asks[:2])
		}
	})
}

// The queue of each class is in the order of asking, and neither waits for the other.
func TestGate_QueuesByClass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Limit: newBucket(1000, 1, 1), Burst: 1})
		var (
			mu    sync.Mutex
			order []int
			all   sync.WaitGroup
		)
		began := time.Now()
		for i := range 5 {
			all.Go(func() {
				g.Take(t.Context(), t.Context(), true, 1, never, never)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait()
		}
		if w := g.Waits(); w.Low != 1 {
			t.Errorf("at once: waits %+v", w)
		}
		time.Sleep(moment)
		synctest.Wait()
		if w := g.Waits(); w.Low != 5 || w.Urgent != 0 || !w.Since.Equal(began) || !w.Away.IsZero() {
			t.Errorf("waits %+v", w)
		}
		time.Sleep(10 * time.Millisecond)
		g.Take(t.Context(), t.Context(), false, 1, func() { t.Error("the urgent lane waited for the low ones") }, never)
		all.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("order %v", order)
			}
		}
		time.Sleep(lasting)
		if w := g.Waits(); w != (Waits{}) {
			t.Errorf("waits %+v after all were granted", w)
		}
	})
}

func TestGate_AwayStopsLowAndNotUrgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, alone, o := newBucket(100, 50, 10), newBucket(20, 20, 2), &told{}
		g := New(Config{Limit: b, Alone: alone, Burst: 10, Observer: o})
		b.set(errAway)
		time.Sleep(time.Minute)
		done := make(chan int, 1)
		began := time.Now()
		go func() { done <- g.Take(t.Context(), t.Context(), true, 7, never, never) }()
		sum := 0
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			sum += g.Take(t.Context(), t.Context(), false, 7, never, never)
		}
		if sum < 195 || sum > 203 || o.alone != sum || o.rows != sum {
			t.Errorf("%d urgent rows in 10 s, observed %d and %d, want the 200 of its share", sum, o.alone, o.rows)
		}
		if w := g.Waits(); w.Low != 1 || !w.Away.Equal(began) {
			t.Errorf("waits %+v", w)
		}
		select {
		case n := <-done:
			t.Fatalf("%d rows of a low lane were granted", n)
		default:
		}
		b.set(nil)
		if n := <-done; n < 1 || time.Since(began) > 11*time.Second {
			t.Errorf("granted %d after %v", n, time.Since(began))
		}
	})
}

// Without another limit the urgent lane waits, too.
func TestGate_AwayWithoutAnotherLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBucket(100, 50, 10)
		b.set(errAway)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if n := New(Config{Limit: b, Burst: 10}).Take(ctx, t.Context(), false, 1, never, never); n != 0 {
			t.Errorf("granted %d", n)
		}
	})
}

func TestGate_EndsWithItsContexts(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bool{"first": true, "in the queue": false} {
		for which := range 2 {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					g := New(Config{Limit: newBucket(1, 0, 1), Burst: 1})
					other, end := context.WithCancel(t.Context())
					var all sync.WaitGroup
					if !first {
						all.Go(func() { g.Take(other, other, true, 1, never, never) })
						synctest.Wait()
					}
					both := [2]context.Context{t.Context(), t.Context()}
					ended, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
					defer cancel()
					both[which] = ended
					began := time.Now()
					if n := g.Take(both[0], both[1], true, 1, never, never); n != 0 || time.Since(began) != 1500*time.Millisecond {
						t.Errorf("granted %d, ended after %v", n, time.Since(began))
					}
					end()
					all.Wait()
					if w := g.Waits(); w.Low+w.Urgent != 0 {
						t.Errorf("waits %+v", w)
					}
				})
			})
		}
	}
}

// A partition that is being given up gets what is there, without a wait.
func TestGate_AsksOnceWhileLeaving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBucket(100, 50, 10)
		g := New(Config{Limit: b, Burst: 10})
		left, leave := context.WithCancel(t.Context())
		leave()
		began := time.Now()
		if n := g.Take(t.Context(), left, true, 5, never, never); n != 0 || len(b.asks) != 1 {
			t.Errorf("granted %d after %d questions", n, len(b.asks))
		}
		time.Sleep(time.Second)
		if n := g.Take(t.Context(), left, true, 5, never, never); n != 5 || time.Since(began) != time.Second {
			t.Errorf("granted %d of the tokens that are there", n)
		}
	})
}

// Writes that each wait for a moment show as limited. A write that does not wait ends that, and so does silence.
func TestGate_LimitedWhileEachWriteWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Limit: newBucket(10, 5, 1), Burst: 1})
		take := func(low bool) { g.Take(t.Context(), t.Context(), low, 1, never, never) }
		time.Sleep(time.Minute)
		take(true)
		if w := g.Waits(); !w.Since.IsZero() {
			t.Errorf("limited since %v although the first write did not wait", w.Since)
		}
		began := time.Now()
		for range 50 {
			take(true)
		}
		if w := g.Waits(); !w.Since.Equal(began) {
			t.Errorf("limited since %v, want %v", w.Since, began)
		}
		time.Sleep(700 * time.Millisecond)
		take(false) // does not wait, and is of the other class
		if w := g.Waits(); !w.Since.Equal(began) {
			t.Errorf("limited since %v, want %v", w.Since, began)
		}
		time.Sleep(200 * time.Millisecond)
		take(true) // does not wait
		if w := g.Waits(); !w.Since.IsZero() {
			t.Errorf("limited since %v", w.Since)
		}
		take(true)
		time.Sleep(2 * time.Second)
		if w := g.Waits(); !w.Since.IsZero() {
			t.Errorf("limited since %v after silence", w.Since)
		}
	})
}

// TestGate_LimitedIsOfItsOwnClass has a low write wait long after the one before, while an urgent one waits too.
func TestGate_LimitedIsOfItsOwnClass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBucket(10, 5, 1)
		g := New(Config{Limit: b, Burst: 1})
		take := func(low bool) { g.Take(t.Context(), t.Context(), low, 1, never, never) }
		take(true)
		take(true) // waits
		time.Sleep(time.Minute)
		b.set(errAway)
		var all sync.WaitGroup
		all.Go(func() { take(false) })
		synctest.Wait()
		began := time.Now()
		all.Go(func() { take(true) })
		synctest.Wait()
		if w := g.Waits(); w.Low != 1 || w.Urgent != 1 || !w.Since.Equal(began) {
			t.Errorf("%d low and %d urgent writes wait, limited since %v, want %v", w.Low, w.Urgent, w.Since, began)
		}
		b.set(nil)
		all.Wait()
	})
}

// TestGate_NextWaitsForTheTurn has a database that takes no rows for a while. A write that was granted rows
// waits for its turn. The others are granted none before it has the turn.
func TestGate_NextWaitsForTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Limit: newBucket(1000, 900, 10), Burst: 10})
		turn, all := make(chan struct{}), sync.WaitGroup{}
		var mu sync.Mutex
		granted := 0
		for range 5 {
			all.Go(func() {
				g.Take(t.Context(), t.Context(), true, 10, never, func() {
					mu.Lock()
					granted++
					mu.Unlock()
					<-turn
				})
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		if granted != 1 {
			t.Errorf("%d were granted rows before the first had its turn", granted)
		}
		mu.Unlock()
		close(turn)
		all.Wait()
		if granted != 5 {
			t.Errorf("%d of 5 were granted rows", granted)
		}
	})
}

// asking is a limit that has rows, and whose answer takes a while.
type asking time.Duration

func (a asking) Ask(_ context.Context, _ bool, n, _ int) (granted int, wait time.Duration, err error) {
	time.Sleep(time.Duration(a))
	return n, 0, nil
}

// A write that comes while another asks the limit does not pause, unless the answer takes long.
func TestGate_ShortQuestionsDoNotPause(t *testing.T) {
	t.Parallel()
	for takes, want := range map[time.Duration]int{3 * time.Millisecond: 0, 30 * time.Millisecond: 3} {
		synctest.Test(t, func(t *testing.T) {
			g := New(Config{Limit: asking(takes), Burst: 10})
			var paused atomic.Int32
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if g.Take(t.Context(), t.Context(), true, 1, func() { paused.Add(1) }, func() {}) != 1 {
						t.Error("nothing granted")
					}
				})
			}
			all.Wait()
			if got := int(paused.Load()); got != want {
				t.Errorf("answers take %v: %d paused, want %d", takes, got, want)
			}
		})
	}
}

// A write that gives up its place while it becomes the first leaves the queue to the next one.
func TestGate_FirstThatGaveUp(t *testing.T) {
	t.Parallel()
	q := queue{taken: true}
	first := make(chan struct{})
	q.waits = append(q.waits, first)
	q.leave()
	q.quit(first)
	if q.taken {
		t.Error("nobody is the first, and the queue is taken")
	}
}

// A write that gives up its place in the queue leaves it to the next one.
func TestGate_PlacesThatAreGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Limit: asking(time.Second), Burst: 10})
		ending, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var granted atomic.Int32
		take := func(ctx context.Context) {
			all.Go(func() { granted.Add(int32(g.Take(ctx, t.Context(), true, 1, never, never))) })
			synctest.Wait()
		}
		take(t.Context())
		take(ending)
		take(t.Context())
		end()
		all.Wait()
		if got := granted.Load(); got != 2 {
			t.Errorf("granted %d", got)
		}
		if g.Take(t.Context(), t.Context(), true, 1, never, never) != 1 {
			t.Error("the queue is taken for ever")
		}
	})
}
