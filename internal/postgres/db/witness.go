package db

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// oldestWitness is for how long after it was dialled a connection is good for asking a second time: as long as a probe
// vouches for a table.
const oldestWitness = 10 * time.Second

// mostWitnesses is how many of them are kept for the next batches, each for the rest of its time.
const mostWitnesses = 4

// witnesses are connections for asking a second time, beside the pool. Whatever is said on them is taken back. No batch
// is ever written on one, so it meets nothing that a batch left in a session, and no late cancel request. Each is closed
// after a few seconds or at the first error: a pooler, a balancer or a failover can lead to another server soon.
// Its zero value has none. It is safe for concurrent use.
type witnesses struct {
	mu     sync.Mutex
	idle   []*witness
	closed bool
}

type witness struct {
	pg    *pgconn.PgConn
	until time.Time
	age   *time.Timer // hangs up when it is idle and its time is over
}

// take gives one that is idle; nil where there is none.
func (w *witnesses) take(ctx context.Context) *witness {
	for {
		one := w.last()
		if one == nil {
			return nil
		}
		if one.age.Stop() && time.Now().Before(one.until) {
			return one
		}
		HangUp(ctx, one.pg)
	}
}

// last takes out the one that was kept last.
func (w *witnesses) last() *witness {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.idle) == 0 {
		return nil
	}
	one := w.idle[len(w.idle)-1]
	w.idle = w.idle[:len(w.idle)-1]
	return one
}

// keep takes one that is good and idle until the next batch asks, and says whether it did.
func (w *witnesses) keep(one *witness) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := time.Until(one.until)
	if w.closed || left <= 0 || len(w.idle) >= mostWitnesses {
		return false
	}
	one.age = time.AfterFunc(left, func() {
		if w.forget(one) {
			HangUp(context.Background(), one.pg)
		}
	})
	w.idle = append(w.idle, one)
	return true
}

// forget says whether one was idle, and is not any more. The caller hangs up on it.
func (w *witnesses) forget(one *witness) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.Index(w.idle, one)
	if at >= 0 {
		w.idle = slices.Delete(w.idle, at, at+1)
	}
	return at >= 0
}

// close hangs up on all that are idle, and has none kept from then on.
func (w *witnesses) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.reset()
}

// reset hangs up on all that are idle.
func (w *witnesses) reset() {
	w.mu.Lock()
	idle := w.idle
	w.idle = nil
	w.mu.Unlock()
	for _, one := range idle {
		one.age.Stop()
		HangUp(context.Background(), one.pg)
	}
}

// Beside runs do on a witness, within the store timeout. fresh wants one that was just dialled. Where one that was idle
// turns out to be lost, do runs once more on another: nothing of it was kept.
func (db *DB) Beside(ctx context.Context, fresh bool, do func(context.Context, *pgconn.PgConn) error) error {
	ctx, cancel := context.WithTimeout(db.traced(ctx), db.timeout)
	defer cancel()
	for {
		var one *witness
		if !fresh && !db.closed.Load() {
			one = db.witnesses.take(ctx)
		}
		idle := one != nil
		if !idle {
			pg, _, err := db.connect(ctx, true)
			if err != nil {
				return err
			}
			one = &witness{pg: pg, until: time.Now().Add(oldestWitness)}
		}
		err := do(ctx, one.pg)
		if err != nil || one.pg.IsClosed() || one.pg.TxStatus() != 'I' || !db.witnesses.keep(one) {
			HangUp(ctx, one.pg)
		}
		if err == nil || !idle || Stays(err) || ctx.Err() != nil {
			return err
		}
	}
}
