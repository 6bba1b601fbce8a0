package pgtest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
)

// Open opens the store at url, and closes it when the test ends. A timeout of 0 is the store's default.
func Open(t testing.TB, url string, timeout time.Duration) *store.Store {
	t.Helper()
	st, err := store.Open(db.Config{URL: url, StoreTimeout: timeout}, zerolog.Nop())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(st.Close)
	return st
}

// Store stores rows, and fails the test on an error.
func Store(t testing.TB, st *store.Store, rows ...pipeline.Row) []pipeline.Outcome {
	t.Helper()
	out, err := st.Store(context.Background(), rows, false)
	if err != nil {
		t.Fatalf("store: %v", err)
	}
	return out
}

// Day returns noon UTC, n days from today.
func Day(n int) time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, n).Add(12 * time.Hour)
}

// Row makes a decision with only the required fields.
func Row(id string, at time.Time, raw string) pipeline.Row {
	return pipeline.Row{Topic: "decision-logs", Partition: 3, Offset: 42, Index: 1,
		Log: &decision.Log{ID: id, Time: at, Raw: []byte(raw)}}
}

// Full makes a decision with a value in every column. padding is a number of bytes of its payload.
func Full(id string, at time.Time, padding int) pipeline.Row {
	r := Row(id, at, "")
	r.UploadedBy = "spiffe://shop/opa-1"
	r.Log.Path, r.Log.Service = given("shop/orders/allow"), given("shop")
	r.Log.RequestedBy, r.Log.OPAID, r.Log.OPAVersion = given("10.0.0.1:5000"), given("opa-1"), given("1.4.2")
	r.Log.Allowed, r.Log.ReqID = given(true), given(int64(77))
	r.Log.Labels, r.Log.Bundles = []byte(`{"id":"opa-1","version":"1.4.2"}`), []byte(`{"shop":{"revision":"r7"}}`)
	r.Log.Raw = fmt.Appendf(nil, `{"decision_id":%q,"timestamp":%q,"labels":%s,"bundles":%s,"path":"shop/orders/allow","result":true,"req_id":77,"input":{"pad":%q}}`,
		id, at.Format(time.RFC3339Nano), r.Log.Labels, r.Log.Bundles, strings.Repeat("x", padding))
	return r
}

func given[T any](v T) sql.Null[T] { return sql.Null[T]{V: v, Valid: true} }

// Writers store through one pool until stop is called. Each stores its own decisions, some of them twice, and a few
// far ahead. A refused decision is retried, as by the replayer. Function stop returns the number of ids that must be
// there. It also returns how many writes a partition refused for the moment.
func Writers(t testing.TB, d *DB, n int) (stop func() (ids int, parked int64)) {
	st := Open(t, d.URL, 0)
	var all sync.WaitGroup
	var parked, stored atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); all.Wait() }) // a test that gave up does not call stop
	for w := range n {
		all.Go(func() {
			var waiting []pipeline.Row
			for i := 0; ctx.Err() == nil || len(waiting) > 0; i++ {
				rows := waiting
				if waiting = nil; ctx.Err() == nil {
					for k := range 20 {
						rows = append(rows, Full(fmt.Sprintf("w%d-%d-%d", w, i, k), Day(-1).Add(time.Duration(i)*time.Minute), 100))
					}
					stored.Add(20)
					if i%5 == 0 {
						rows = append(rows, Full(fmt.Sprintf("w%d-%d-far", w, i), Day(40+i%3), 100))
						stored.Add(1)
					}
				}
				for again := 0; again <= i%2; again++ {
					waiting = nil
					_, err := st.Store(context.Background(), rows, false)
					if err == nil {
						continue
					}
					v := errclass.Classify(err)
					if v.Rule != errclass.Await {
						if v.Class != errclass.Transient {
							t.Errorf("a failure that is not the moment's: %v", err)
						}
						waiting = rows
						continue
					}
					parked.Add(1)
					waiting = rows[len(rows)-1:]
					for _, r := range rows {
						if out, err := st.Store(context.Background(), []pipeline.Row{r}, false); err != nil {
							if errclass.Classify(err).Rule != errclass.Await {
								t.Errorf("alone: %v", err)
							}
							waiting = append(waiting, r)
						} else if out[0] == pipeline.Conflicting {
							t.Errorf("a conflict with itself: %s", r.Log.ID)
						}
					}
				}
			}
		})
	}
	return func() (int, int64) {
		cancel()
		all.Wait()
		return int(stored.Load()), parked.Load()
	}
}
