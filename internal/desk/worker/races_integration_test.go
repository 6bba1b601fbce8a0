//go:build integration

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
)

// times is the number of runs of each race.
const times = 100

func operator(name string) ledger.Actor { return ledger.Actor{Name: name, Why: "the race"} }

// race calls both at the same moment for each letter, and counts which moved it.
func race(t *testing.T, ids []string, a, b func(id string) ([]ledger.Outcome, error)) (wins [2]int) {
	t.Helper()
	var mu sync.Mutex
	var together errgroup.Group
	together.SetLimit(6)
	for _, id := range ids {
		together.Go(func() error {
			start, moved := make(chan struct{}), [2]bool{}
			var both errgroup.Group
			for i, act := range []func(string) ([]ledger.Outcome, error){a, b} {
				both.Go(func() error {
					<-start
					outcomes, err := act(id)
					if err != nil {
						return err
					}
					refused := (*ledger.RefusedError)(nil)
					switch err := outcomes[0].Err; {
					case err == nil:
						moved[i] = true
					case !errors.As(err, &refused) || refused.ID != id || refused.By == "":
						t.Errorf("the one who came later reads %v", err)
					}
					return nil
				})
			}
			close(start)
			if err := both.Wait(); err != nil {
				return err
			}
			if moved[0] == moved[1] {
				t.Errorf("of two, both moved letter %.12s or none did: %v", id, moved)
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range moved {
				if moved[i] {
					wins[i]++
				}
			}
			return nil
		})
	}
	if err := together.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("the first was first %d times, the second %d times", wins[0], wins[1])
	return wins
}

func (w *world) retry(by string) func(id string) ([]ledger.Outcome, error) {
	return func(id string) ([]ledger.Outcome, error) {
		return w.book.Retry(w.t.Context(), []string{id}, letterLease, operator(by))
	}
}

func TestRaces_TwoRetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.dead(times)
	w.pg.Calm(t)
	w.goes(w.relay("relay-1", 50, w.book, w.publisher(5*time.Second)).Run)
	race(t, ids, w.retry("ann"), w.retry("bob"))
	w.settled()
	w.effect(times, times, 0)
	w.lives(map[string]int{"entered retried stored": times})
}

func TestRaces_RetryAndResolve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.dead(times)
	w.pg.Calm(t)
	w.goes(w.relay("relay-1", 50, w.book, w.publisher(5*time.Second)).Run)
	wins := race(t, ids, w.retry("ann"), func(id string) ([]ledger.Outcome, error) {
		return w.book.Resolve(t.Context(), []string{id}, operator("bob"))
	})
	w.settled()
	w.effect(times, wins[0], 0)
	w.lives(map[string]int{"entered retried stored": wins[0], "entered closed": wins[1]})
}

func TestRaces_TwoRelays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.dead(times)
	w.pg.Calm(t)
	w.lease = patience // a machine that is slow makes no copies
	w.goes(w.relay("relay-1", 7, w.book, w.publisher(patience)).Run)
	w.goes(w.relay("relay-2", 5, w.book, w.publisher(patience)).Run)
	race(t, ids, w.retry("ann"), w.retry("bob"))
	w.settled()
	w.effect(times, times, 0)
	w.lives(map[string]int{"entered retried stored": times})
	if n := len(w.kafka.ReadAll(t, source)); n != 2*times {
		t.Errorf("%d records were written to retry %d", n-times, times)
	}
}

// The moments at which a relay is killed.
const (
	beforeClaim = iota
	afterClaim
	beforePublish
	afterPublish // the brokers have it, and the ledger does not know
	beforeMark
	afterMark
	moments
)

// mortal is the world of a relay until it is killed. After that the relay reaches nothing.
type mortal struct {
	ledger.Relay
	worker.Publisher
	at   int
	kill context.CancelFunc
	dead atomic.Bool
}

// dies reports whether this is the moment, or it has passed.
func (m *mortal) dies(moment int) bool {
	if moment == m.at {
		m.dead.Store(true)
		m.kill()
	}
	return m.dead.Load()
}

func (m *mortal) Claim(ctx context.Context, holder string, n int, lease time.Duration) ([]ledger.Sending, error) {
	if m.dies(beforeClaim) {
		return nil, ledger.ErrLost
	}
	rows, err := m.Relay.Claim(ctx, holder, n, lease)
	if len(rows) > 0 && m.dies(afterClaim) {
		return nil, ledger.ErrLost
	}
	return rows, err
}

func (m *mortal) Place(ctx context.Context, records []*kgo.Record) ([]worker.Place, []error) {
	places, errs := make([]worker.Place, len(records)), make([]error, len(records))
	for i := range errs {
		errs[i] = context.Canceled
	}
	if m.dies(beforePublish) {
		return places, errs
	}
	placed, told := m.Publisher.Place(ctx, records)
	if m.dies(afterPublish) {
		return places, errs
	}
	return placed, told
}

func (m *mortal) Published(ctx context.Context, holder string, placed []ledger.Placed, extend time.Duration) error {
	if m.dies(beforeMark) {
		return ledger.ErrLost
	}
	err := m.Relay.Published(ctx, holder, placed, extend)
	if m.dies(afterMark) {
		return ledger.ErrLost
	}
	return err
}

func (m *mortal) Unpublished(ctx context.Context, holder string, id int64, code string, pause time.Duration, giveUp bool) error {
	if m.dead.Load() {
		return ledger.ErrLost
	}
	return m.Relay.Unpublished(ctx, holder, id, code, pause, giveUp)
}

// retryAll retries letters. None may be refused.
func (w *world) retryAll(ids []string) {
	w.t.Helper()
	outcomes, err := w.book.Retry(w.t.Context(), ids, letterLease, operator("ann"))
	if err != nil || len(outcomes) != len(ids) {
		w.t.Fatalf("%d outcomes, %v", len(outcomes), err)
	}
	for _, o := range outcomes {
		if o.Err != nil {
			w.t.Fatalf("retry: %v", o.Err)
		}
	}
}

// killRelays retries all letters and kills relay after relay, at each of the moments in turn. Then two others
// continue.
func (w *world) killRelays(ids []string) {
	w.t.Helper()
	w.retryAll(ids)
	p := w.publisher(5 * time.Second)
	// A record that is dead again ends its retry at once, published or not. So it would not be published a second
	// time.
	w.gate.shut.Lock()
	open := sync.OnceFunc(w.gate.shut.Unlock)
	defer open()
	for i := range times {
		ctx, kill := context.WithTimeout(w.t.Context(), patience)
		m := &mortal{Relay: w.book, Publisher: p, at: i % moments, kill: kill}
		if err := w.relay(fmt.Sprint("mortal-", i), 2, m, m).Run(ctx); err != nil {
			w.t.Fatal(err)
		}
		if !m.dead.Load() {
			w.t.Fatalf("the moment %d never came; %s", m.at, w.state())
		}
		kill()
	}
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	var rest errgroup.Group
	for i := range 2 {
		rest.Go(func() error { return w.relay(fmt.Sprint("relay-", i), 50, w.book, p).Run(ctx) })
	}
	w.until("all is published", `SELECT NOT EXISTS (SELECT FROM dead_letter_outbox WHERE ended_at IS NULL AND published_at IS NULL)`)
	open()
	w.settled()
	stop()
	if err := rest.Wait(); err != nil {
		w.t.Error(err)
	}
}

func TestRaces_KilledRelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.dead(times)

	// The table still refuses them. Each is dead again once, for any number of copies.
	w.killRelays(ids)
	w.inOrder(0)
	w.effect(times, 0, 1)
	w.lives(map[string]int{"entered retried died": times})
	if n := len(w.kafka.ReadAll(t, source)); n <= 2*times {
		t.Errorf("%d records were written to retry %d: no copy, so nothing was shown", n-times, times)
	}

	w.pg.Calm(t)
	before := len(w.kafka.ReadAll(t, source))
	var last int64
	w.pg.Query(t, `SELECT max(outbox_id) FROM dead_letter_outbox`, &last)
	w.killRelays(ids)
	w.inOrder(last)
	w.effect(times, times, 1)
	w.lives(map[string]int{"entered retried died retried stored": times})
	if n := len(w.kafka.ReadAll(t, source)) - before; n <= times {
		t.Errorf("%d records were written to retry %d: no copy, so nothing was shown", n, times)
	}
}

func TestRaces_LostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.dead(times)
	w.pg.Calm(t)
	heal := w.kafka.LoseAnswers(source)
	w.goes(w.relay("relay-1", 50, w.book, w.publisher(500*time.Millisecond)).Run)
	race(t, ids, w.retry("ann"), w.retry("bob"))
	w.until("some were tried too often", `SELECT count(*) > 10 FROM dead_letter_outbox WHERE outcome = 'refused'`)
	heal()
	// These retries were given up although the brokers have their records. Their results are still found.
	w.until("all are stored", `SELECT count(*) = $1 FROM dead_letters WHERE state = 'RESOLVED'`, times)
	w.settled()
	w.effect(times, times, 0)
	var refused int
	w.pg.Query(t, `SELECT count(*) FROM dead_letter_outbox WHERE outcome = 'refused'`, &refused)
	w.lives(map[string]int{"entered retried stored": times - refused, "entered retried refused stored": refused})
	if n := len(w.kafka.ReadAll(t, source)); n <= 2*times {
		t.Errorf("%d records were written to retry %d: no copy, so nothing was shown", n-times, times)
	}
}

func TestRaces_DeadRetryWithALostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.dead(times)
	heal := w.kafka.LoseAnswers(source)
	w.goes(w.relay("relay-1", 50, w.book, w.publisher(500*time.Millisecond)).Run)
	w.retryAll(ids)
	w.until("some were tried", `SELECT count(*) > 10 FROM dead_letter_outbox WHERE tries > 0 OR outcome = 'dead'`)
	heal()
	w.settled()
	w.effect(times, 0, 1)
	w.lives(map[string]int{"entered retried died": times})
}
