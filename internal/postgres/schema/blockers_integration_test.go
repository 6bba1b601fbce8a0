//go:build integration

package schema_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
)

// TestLookout_OneConnection: a migration may wait for hours, and looks each second for whom it waits. One connection serves all looks, and
// another one only where that was lost. None is left at the end.
func TestLookout_OneConnection(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d := pgtest.NewEmpty(t)
	var dials atomic.Int32
	of, err := db.Open(db.Config{URL: d.URL, ApplicationName: "lookout", Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer of.Close()
	look := schema.NewLookout(of)
	defer look.Close(ctx)
	if dials.Load() != 0 {
		t.Error("it connects before it looks")
	}
	looked := func() {
		t.Helper()
		if err := look.Look(ctx); err != nil {
			t.Fatal(err)
		}
	}
	looked()
	first := dials.Load() // with and without TLS
	for range 3 {
		looked()
	}
	same(t, dials.Load(), first)

	var ended bool
	d.Query(t, `SELECT bool_and(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE application_name = 'lookout' AND datname = current_database()`, &ended)
	if err := look.Look(ctx); err == nil || !ended {
		t.Fatalf("a look on a connection that the server ended: %v", err)
	}
	looked()
	same(t, dials.Load(), 2*first)

	look.Close(ctx)
	for left := 1; left > 0; {
		if d.Query(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lookout' AND datname = current_database()`, &left); ctx.Err() != nil {
			t.Fatalf("%d connections are left", left)
		}
	}
}
