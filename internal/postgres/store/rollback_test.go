package store_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/internal/testkit/pgmodel"
)

// slowly takes its time for every write, as a congested network does.
type slowly struct{ net.Conn }

func (c slowly) Write(p []byte) (int, error) {
	time.Sleep(100 * time.Millisecond)
	return c.Conn.Write(p)
}

// The driver takes its leave of the server in the background when a connection fails in the middle of a statement. A
// rollback on it would write at the same time, and the driver panics then, in a goroutine that nobody can guard.
func TestRollback_SlowNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := pgmodel.New(pgmodel.Config{})
		defer server.Close()
		server.Inject(pgmodel.Fault{Point: pgmodel.Insert, Cut: true, Count: -1})
		var dials atomic.Int32
		db, err := store.Open(db.Config{
			URL: "postgres://u@db/x?sslmode=disable", StoreTimeout: 2 * time.Second,
			Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := server.Dial(ctx, network, address)
				if err != nil || dials.Add(1)%2 == 0 { // every second one is for a cancel request
					return conn, err
				}
				return slowly{conn}, nil
			},
		}, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		row := pipeline.Row{Topic: "t", Log: &decision.Log{ID: "a", Time: time.Unix(1, 0), Raw: []byte(`{}`)}}
		for i := range 40 { // either side may write first
			if _, err := db.Store(t.Context(), []pipeline.Row{row}, i%2 == 1); err == nil {
				t.Error("stored on a connection that was cut")
			}
		}
		time.Sleep(2 * time.Minute) // until what the driver does in the background is over
	})
}

// A batch that is searched for bad records is refused many times: a new connection for each would be a storm.
func TestRollback_KeepsTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := pgmodel.New(pgmodel.Config{})
		defer server.Close()
		var dials atomic.Int32
		db, err := store.Open(db.Config{
			URL: "postgres://u@db/x?sslmode=disable", MaxConns: 1,
			Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
				dials.Add(1)
				return server.Dial(ctx, network, address)
			},
		}, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		row := pipeline.Row{Topic: "t", Log: &decision.Log{ID: "a", Time: time.Unix(1, 0), Raw: []byte(`{}`)}}
		for range 3 {
			server.Inject(pgmodel.Fault{Point: pgmodel.Insert, Count: 1, SQLSTATE: "23514"})
			if _, err := db.Store(t.Context(), []pipeline.Row{row}, false); err == nil {
				t.Error("stored although it was refused")
			}
		}
		if _, err := db.Store(t.Context(), []pipeline.Row{row}, false); err != nil {
			t.Error(err)
		}
		if n := dials.Load(); n != 1 {
			t.Errorf("%d connections were made", n)
		}
	})
}

// After a failover the node that was written to may still be there, and be read-only.
func TestConnection_HostThatTakesWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		standby, primary := pgmodel.New(pgmodel.Config{}), pgmodel.New(pgmodel.Config{})
		defer standby.Close()
		defer primary.Close()
		standby.ReadOnly()
		db, err := store.Open(db.Config{
			URL: "postgres://u@standby:5432,primary:5432/x?sslmode=disable",
			Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
				if address == "standby:5432" {
					return standby.Dial(ctx, network, address)
				}
				return primary.Dial(ctx, network, address)
			},
		}, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		row := pipeline.Row{Topic: "t", Log: &decision.Log{ID: "a", Time: time.Unix(1, 0), Raw: []byte(`{}`)}}
		for _, fresh := range []bool{false, true} {
			if _, err := db.Store(t.Context(), []pipeline.Row{row}, fresh); err != nil {
				t.Errorf("fresh %v: %v", fresh, err)
			}
		}
		if n := len(primary.Rows()); n != 1 {
			t.Errorf("%d rows", n)
		}
	})
}
