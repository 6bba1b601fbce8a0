package store_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/internal/testkit/pgmodel"
)

var midday = time.Date(2024, 5, 1, 12, 0, 0, 123456000, time.UTC)

func logAt(id string, at time.Time) *decision.Log {
	return &decision.Log{ID: id, Time: at, Raw: []byte(`{}`)}
}

// inModel runs a test in virtual time against a model of a server, with a store timeout of 3 s.
func inModel(t *testing.T, test func(t *testing.T, server *pgmodel.Server, db *store.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := pgmodel.New(pgmodel.Config{Unknown: func(sql string) { t.Errorf("the model does not know %q", sql) }})
		t.Cleanup(server.Close)
		test(t, server, openModel(t, server))
		synctest.Wait()
		time.Sleep(2 * time.Minute) // until what the driver does in the background is over
	})
}

func openModel(t *testing.T, server *pgmodel.Server) *store.Store {
	t.Helper()
	db, err := store.Open(db.Config{URL: "postgres://u@db/x?sslmode=disable", StoreTimeout: 3 * time.Second, Dialer: server.Dial}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func wantAmbiguous(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || errclass.Classify(err).Code != errclass.CodeAmbiguousCommit {
		t.Errorf("%s: %v, want an ambiguous commit", what, err)
	}
}

// Nothing has a home that the standby does not have, whichever way a write takes.
func TestUnconfirmedCommit_Store(t *testing.T) {
	t.Parallel()
	for name, copies := range map[string]bool{"by COPY": true, "by INSERT": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
				if !copies {
					defer server.RefuseCopy()()
				}
				ctx, rows := context.Background(), []pipeline.Row{{Topic: "t", Log: logAt("a", midday)}}
				back := server.StandbyAway()
				for try := range 4 { // the first hangs and is canceled, the others find the row
					_, err := db.Store(ctx, rows, try > 0)
					wantAmbiguous(t, "store", err)
				}
				wantAmbiguous(t, "probe", db.Probe(ctx, midday))
				back()
				out, err := db.Store(ctx, rows, true)
				if err != nil || out[0] != pipeline.Present {
					t.Errorf("the standby is back: %v %v", out, err)
				}
				if err := db.Probe(ctx, midday); err != nil {
					t.Errorf("the standby is back: probe: %v", err)
				}
			})
		})
	}
}

// The wait of a COMMIT is ended by somebody else: the server says yes, and warns.
func TestUnconfirmedCommit_CanceledBySomebody(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		ctx, rows := context.Background(), []pipeline.Row{{Topic: "t", Log: logAt("a", midday)}}
		back := server.StandbyAway()
		for range 2 {
			done := make(chan error)
			go func() {
				_, err := db.Store(ctx, rows, false)
				done <- err
			}()
			synctest.Wait()
			server.Cancel()
			wantAmbiguous(t, "store", <-done)
		}
		back()
		if out, err := db.Store(ctx, rows, false); err != nil || out[0] != pipeline.Present {
			t.Errorf("the standby is back: %v %v", out, err)
		}
	})
}

// The server warns that it has few transaction ids left. That says nothing of the standby.
func TestUnconfirmedCommit_OtherWarning(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		ctx, rows := context.Background(), []pipeline.Row{{Topic: "t", Log: logAt("a", midday)}}
		server.ShortOfIDs()
		for try, want := range []pipeline.Outcome{pipeline.Stored, pipeline.Present, pipeline.Present} {
			if out, err := db.Store(ctx, rows, false); err != nil || out[0] != want {
				t.Errorf("try %d: %v %v", try, out, err)
			}
		}
		if err := db.Probe(ctx, midday); err != nil {
			t.Errorf("probe: %v", err)
		}
		server.StandbyAway()
		_, err := db.Store(ctx, rows, false)
		wantAmbiguous(t, "the standby is away", err)
	})
}

// A commit that waits for its standby is followed by a failover.
func TestUnconfirmedCommit_Failover(t *testing.T) {
	t.Parallel()
	for name, replay := range map[string]bool{"consumer": false, "replayer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
				var batches [][]*kgo.Record
				for i := range int64(5) {
					batches = append(batches, []*kgo.Record{sourceRecord(i, event(string(rune('a'+i)), midday, nil))})
					if replay {
						batches[i][0] = parkedRecord(i, 4, event(string(rune('a'+i)), midday, nil))
					}
				}
				server.StandbyAway()
				c := carry(t, db, replay, 1, batches...)
				server.Promote(0)
				homed := len(server.Rows())
				for _, r := range c.sent {
					if r.Topic != "parking" {
						t.Errorf("a record went to %s", r.Topic)
					}
					homed++
				}
				if int64(homed) < c.commit {
					t.Errorf("offset %d is committed, and %d of the decisions have a home: %v", c.commit, homed, c.homes)
				}
				if len(c.holds) == 0 {
					t.Errorf("no hold: %v", c.homes)
				}
			})
		})
	}
}

// Cancel requests are lost on their way: each COMMIT still hangs, and keeps its rows locked.
func TestUnconfirmedCommit_LostCancels(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		server.LoseCancels()
		back := server.StandbyAway()
		c := carry(t, db, true, 1, []*kgo.Record{parkedRecord(3, 4, event("p", midday, nil))})
		if len(c.sent) > 0 || c.commit >= 0 || len(c.holds) != 1 {
			t.Errorf("homes %v, commit %d, holds %v", c.homes, c.commit, c.holds)
		}
		var batches [][]*kgo.Record
		for i := range int64(10) {
			batches = append(batches, []*kgo.Record{sourceRecord(i, event(string(rune('a'+i)), midday, nil))})
		}
		c = carry(t, db, false, 1, batches...)
		if len(c.homes) != 3 || c.commit != 3 {
			t.Errorf("homes %v, commit %d, holds %v", c.homes, c.commit, c.holds)
		}
		back()
	})
}

// A promotion loses what waits for the standby, and what somebody let go without it; what was confirmed stays.
func TestUnconfirmedCommit_Promoted(t *testing.T) {
	t.Parallel()
	inModel(t, func(t *testing.T, server *pgmodel.Server, db *store.Store) {
		ctx := context.Background()
		store := func(id string) chan error {
			done := make(chan error, 1)
			go func() {
				_, err := db.Store(ctx, []pipeline.Row{{Topic: "t", Log: logAt(id, midday)}}, true)
				done <- err
			}()
			synctest.Wait()
			return done
		}
		if err := <-store("confirmed"); err != nil {
			t.Fatal(err)
		}
		back := server.StandbyAway()
		canceled := store("canceled")
		if n := server.CancelSync(); n != 1 {
			t.Errorf("%d waits canceled", n)
		}
		wantAmbiguous(t, "canceled", <-canceled)
		if alone := server.Unconfirmed(); len(alone) != 1 || alone[0].DecisionID != "canceled" {
			t.Errorf("unconfirmed: %v", alone)
		}
		waiting := store("waiting")
		server.Promote(0)
		wantAmbiguous(t, "waiting", <-waiting)
		if n := server.CancelSync(); n != 0 {
			t.Errorf("%d waits canceled, and nobody waits", n)
		}
		if rows := server.Rows(); len(rows) != 1 || rows[0].DecisionID != "confirmed" {
			t.Errorf("after the promotion: %v", rows)
		}
		back()
		if err := <-store("canceled"); err != nil || len(server.Rows()) != 2 || len(server.Unconfirmed()) != 0 {
			t.Errorf("the new server has a standby: %v, %d rows", err, len(server.Rows()))
		}
	})
}
