package pipeline

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"docket/internal/consumer/lanes"
)

// purse is a Tokens that grants up to a burst at once, and nothing beyond a sum.
type purse struct {
	burst int
	later int           // the burst after the first grant; 0: the same
	sum   int           // that it grants at most; 0: no end
	after time.Duration // before each grant
	hook  func(low bool)

	mu      sync.Mutex
	granted int
	lows    []bool
	pauses  int
}

func (p *purse) Take(ctx, leaving context.Context, low bool, n int, pause, resume func()) int {
	if p.hook != nil {
		p.hook(low)
	}
	p.mu.Lock()
	n = min(n, p.burst)
	if p.sum > 0 {
		n = min(n, p.sum-p.granted)
	}
	p.granted, p.lows = p.granted+n, append(p.lows, low)
	if p.later > 0 {
		p.burst = p.later
	}
	after := p.after
	if n == 0 {
		after = 1000 * time.Hour
	}
	if after > 0 {
		p.pauses++
	}
	p.mu.Unlock()
	if after == 0 {
		return n
	}
	pause()
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case <-t.C:
		resume()
		return n
	case <-ctx.Done():
	case <-leaving.Done():
	}
	return 0
}

func limitedBy(p *purse) func(*world) { return func(w *world) { w.config.Tokens = p } }

// sent returns how many rows all writes had, and the largest of them.
func (t *table) sent() (rows, largest int) {
	for _, ids := range t.writes {
		rows, largest = rows+len(ids), max(largest, len(ids))
	}
	return rows, largest
}

func TestTokens_NoWriteBeyondTheGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		purse := &purse{burst: 3, after: time.Second}
		w, p := newWorld(limitedBy(purse)), newPartition(t, recordsOf(0, good(named(10)...)...))
		if took := w.run(t, p); took != 4*time.Second {
			t.Errorf("took %v, want a wait of 1 s for each of four writes", took)
		}
		if rows, largest := w.db.sent(); rows != 10 || largest != 3 || purse.granted != 10 || p.last() != 10 {
			t.Errorf("%d rows, at most %d, granted %d, committed %d", rows, largest, purse.granted, p.last())
		}
		w.settledAccount(t)
	})
}

// Each write of a retry and of a search takes its rows. Questions, probes and forwarding take none.
func TestTokens_EachWriteTakesItsRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*world)
		dlq   int
	}{
		"one bad record":  {func(w *world) { refuseSome(w, "23514", "d003") }, 1},
		"two bad records": {func(w *world) { refuseSome(w, "22003", "d003", "d007") }, 2},
		"foreseen": {func(w *world) {
			refuseSome(w, "23514", "d003", "d004")
			w.db.foresee = func(id string) bool { return id == "d003" || id == "d004" }
		}, 2},
		"memory": {func(w *world) {
			first := true
			w.db.away = func() error {
				if first {
					first = false
					return sqlstate("53200")
				}
				return nil
			}
		}, 0},
		"replay": {func(w *world) { replayer(w); refuseSome(w, "23514", "d003") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				purse := &purse{burst: 4, after: 10 * time.Millisecond}
				w, p := newWorld(limitedBy(purse), c.spoil), newPartition(t, recordsOf(0, good(named(10)...)...))
				w.run(t, p)
				rows, largest := w.db.sent()
				if rows != purse.granted || largest > 4 || p.last() != 10 || len(w.kafka.sent("dlq")) != c.dlq {
					t.Errorf("%d rows in writes of at most %d, granted %d, committed %d, dead letters %v", rows, largest, purse.granted, p.last(), w.kafka.sent("dlq"))
				}
				w.settledAccount(t)
			})
		})
	}
}

// A search writes parts that are larger than what is granted by then.
func TestTokens_PartsFollowTheGrants(t *testing.T) {
	t.Parallel()
	for name, replay := range map[string]bool{"consumer": false, "replayer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				purse := &purse{burst: 20, later: 3}
				w, p := newWorld(limitedBy(purse), func(w *world) { w.config.Replay = replay; refuseSome(w, "22003", "d015") }), newPartition(t, recordsOf(0, good(named(20)...)...))
				w.run(t, p)
				rows, _ := w.db.sent()
				for i, ids := range w.db.writes {
					if i > 0 && len(ids) > 3 {
						t.Errorf("write %d has %d rows", i, len(ids))
					}
				}
				if rows != purse.granted || len(w.db.rows) != 19 || len(w.kafka.sent("dlq")) != 1 || p.last() != 20 {
					t.Errorf("%d rows were written, %d granted, %d stored, committed %d", rows, purse.granted, len(w.db.rows), p.last())
				}
			})
		})
	}
}

func refuseSome(w *world, code string, ids ...string) {
	w.db.refuse = func(id string) error {
		for _, bad := range ids {
			if id == bad {
				return sqlstate(code)
			}
		}
		return nil
	}
}

// A limit never gives or takes a home: with any burst each decision ends where it ends without a limit.
func TestTokens_ChangeNoHome(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(r, "decisions")
		var values, bad []string
		for i := range n {
			id := fmt.Sprintf("d%03d", rapid.IntRange(0, n-1).Draw(r, "id"))
			value := logOf(id)
			switch rapid.IntRange(0, 5).Draw(r, "kind") {
			case 0:
				bad = append(bad, id)
			case 1:
				value = denied(id)
			case 2:
				value = fmt.Sprint("no decision ", i)
			}
			values = append(values, value)
		}
		code := rapid.SampledFrom([]string{"23514", "22003", "57014"}).Draw(r, "code")
		foreseen := rapid.Bool().Draw(r, "foreseen")
		replay := rapid.Bool().Draw(r, "replay")
		burst := rapid.IntRange(1, 12).Draw(r, "burst")
		carried := func(change ...func(*world)) (out string) {
			synctest.Test(t, func(t *testing.T) {
				w, p := newWorld(append(change, func(w *world) { w.config.Replay = replay; refuseSome(w, code, bad...) })...), newPartition(t, recordsOf(0, values...))
				if foreseen {
					w.db.foresee = func(id string) bool { return w.db.refuse(id) != nil }
				}
				w.run(t, p)
				out = fmt.Sprint(w.told.homes(), w.kafka.sent("dlq"), w.kafka.sent("parking"), w.db.rows, p.last())
				w.settledAccount(t)
			})
			return out
		}
		purse := &purse{burst: burst, after: time.Millisecond}
		if with, without := carried(limitedBy(purse)), carried(); with != without {
			r.Fatalf("with a burst of %d\n%s\nwithout\n%s", burst, with, without)
		}
	})
}

// A wait that ends leaves the batch: rows stay, nothing is committed, and nothing counts as a failure.
func TestTokens_WaitEndsUncommitted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sum   int // granted before the wait without end
		spoil func(*world)
		rows  int
	}{
		"the first write":   {0, nil, 0},
		"the second write":  {4, nil, 4},
		"a retry":           {7, func(w *world) { w.db.away = onceAway("53200") }, 3},
		"the search begins": {4, func(w *world) { refuseSome(w, "22003", "d001") }, 0},
		"a replay searches": {4, func(w *world) { replayer(w); refuseSome(w, "22003", "d001") }, 0},
		"one record alone":  {6, func(w *world) { replayer(w); refuseSome(w, "22003", "d001") }, -1},
		"after the search":  {12, func(w *world) { refuseSome(w, "22003", "d001") }, -1},
	} {
		for _, stop := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", stop ", stop), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					purse := &purse{burst: 4, sum: c.sum}
					if c.sum == 0 {
						purse.burst = 0
					}
					w := newWorld(limitedBy(purse))
					if c.spoil != nil {
						c.spoil(w)
					}
					p := newPartition(t, recordsOf(0, good(named(10)...)...), recordsOf(10, good("later")...))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					end := p.depart
					if stop {
						end = cancel
					}
					const after = 50 * time.Minute
					time.AfterFunc(after-time.Minute, func() {
						if !w.pipe.Idle() || w.pipe.Wedged(time.Second) != nil {
							t.Error("a wait for tokens is not at rest")
						}
					})
					time.AfterFunc(after, end)
					began := time.Now()
					if err := w.pipe.Run(ctx, p); err != nil || time.Since(began) != after {
						t.Errorf("%v after %v", err, time.Since(began))
					}
					if c.spoil == nil && len(w.told.failures) != 0 || c.spoil != nil && len(w.told.failures) < 1 {
						t.Errorf("failures %v", w.told.failures)
					}
					if p.last() != -1 || len(w.kafka.took) != 0 || len(w.told.held) != 0 || c.rows >= 0 && len(w.db.rows) != c.rows {
						t.Errorf("committed %d, published %d, held %v, rows %d", p.last(), len(w.kafka.took), w.told.held, len(w.db.rows))
					}
					if w.told.given != 10 || w.told.retries > 1 {
						t.Errorf("given back %d, retries %d", w.told.given, w.told.retries)
					}
					w.settledAccount(t)
				})
			})
		}
	}
}

func onceAway(code string) func() error {
	first := true
	return func() error {
		if first {
			first = false
			return sqlstate(code)
		}
		return nil
	}
}

// A batch that waits has no turn, so another partition is written meanwhile.
func TestTokens_WaitHasNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		granted := make(chan struct{})
		first := true
		tokens := tokensFunc(func(_, _ context.Context, _ bool, n int, pause, resume func()) int {
			if first {
				first = false
				pause()
				<-granted
			}
			return n
		})
		w := newWorld(func(w *world) { w.config.Turns, w.config.Tokens = lanes.New(lanes.Alone(1)), tokens })
		parts := several(t, 2, 1)
		var all sync.WaitGroup
		for _, p := range parts {
			all.Go(func() {
				if err := w.pipe.Run(t.Context(), p); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if parts[0].last() != -1 || parts[1].last() != 2 {
			t.Errorf("committed %d and %d while the first waits", parts[0].last(), parts[1].last())
		}
		close(granted)
		all.Wait()
		if parts[0].last() != 2 {
			t.Errorf("committed %d", parts[0].last())
		}
	})
}

type tokensFunc func(ctx, leaving context.Context, low bool, n int, pause, resume func()) int

func (f tokensFunc) Take(ctx, leaving context.Context, low bool, n int, pause, resume func()) int {
	return f(ctx, leaving, low, n, pause, resume)
}

func TestTokens_LowUnlessUrgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replay bool
		lane   func(string) lanes.Lane
		low    bool
	}{
		"no lanes":        {false, nil, true},
		"another lane":    {false, func(string) lanes.Lane { return lanes.Bulk }, true},
		"urgent":          {false, func(string) lanes.Lane { return lanes.Urgent }, false},
		"a replay is low": {true, func(string) lanes.Lane { return lanes.Urgent }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				purse := &purse{burst: 5}
				w := newWorld(limitedBy(purse), func(w *world) { w.config.Replay, w.config.LaneOf = c.replay, c.lane })
				w.run(t, newPartition(t, recordsOf(0, good("a")...)))
				if len(purse.lows) != 1 || purse.lows[0] != c.low {
					t.Errorf("low %v, want %v", purse.lows, c.low)
				}
			})
		})
	}
}

// The wait for tokens is not part of the time of a row, so it does not make portions smaller.
func TestTokens_WaitKeepsThePortion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		purse := &purse{burst: 1 << 20}
		w := newWorld(limitedBy(purse))
		w.pipe.portion.most = leastPortion
		w.db.hook = func(context.Context) { time.Sleep(time.Millisecond) }
		purse.hook = func(bool) { // a wait is much longer than the one that set the pace
			if purse.after = 100 * time.Second; w.pipe.portion.pace == 0 {
				purse.after = time.Second
			}
		}
		var batches [][]*kgo.Record
		for i := range 6 {
			batches = append(batches, recordsOf(int64(500*i), good(many(i*500, 500)...)...))
		}
		w.run(t, newPartition(t, batches...))
		if w.pipe.portion.most < 2*leastPortion {
			t.Errorf("portion of %d rows", w.pipe.portion.most)
		}
	})
}

func many(from, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("m%05d", from+i)
	}
	return ids
}
