package pgmodel_test

import (
	"context"
	"fmt"
	"net"
	"slices"
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

// meter counts what a client says.
type meter struct {
	server               *pgmodel.Server
	dials, bytes, begins atomic.Int64
	copied, asked        atomic.Int64 // rows by COPY, and one by one
	goes                 atomic.Int64 // times that it was answered after it spoke
}

type metered struct {
	net.Conn
	m     *meter
	spoke atomic.Bool
}

func (c *metered) Write(b []byte) (int, error) {
	c.spoke.Store(true)
	c.m.bytes.Add(int64(len(b)))
	return c.Conn.Write(b)
}

func (c *metered) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.spoke.Swap(false) {
		c.m.goes.Add(1)
	}
	return n, err
}

func (m *meter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := m.server.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	m.dials.Add(1)
	return &metered{Conn: conn, m: m}, nil
}

func (m *meter) see(e pgmodel.Event) {
	switch {
	case e.Point == pgmodel.Begin:
		m.begins.Add(1)
	case e.Point == pgmodel.Insert && e.Copied:
		m.copied.Add(int64(len(e.Rows)))
	case e.Point == pgmodel.Insert:
		m.asked.Add(int64(len(e.Rows)))
	}
}

// TestRefusals_FewRoundTrips has 300 bad of 10,000 under one CHECK, and what a batch does about them once the
// constraint is known: it looks ahead, writes the others, and asks about the bad ones twice.
func TestRefusals_FewRoundTrips(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &meter{server: pgmodel.New(pgmodel.Config{Unknown: func(sql string) { t.Errorf("the model does not know %q", sql) }})}
		t.Cleanup(m.server.Close)
		m.server.Constrain(pgmodel.Constraint{Name: "odd", Columns: []string{"source_offset"}, Refuses: func(r pgmodel.Row) bool { return r.Offset%33 == 7 && r.Offset < 9900 }})
		m.server.Observe(m.see)
		db, err := store.Open(db.Config{URL: "postgres://docket@db:5432/docket?sslmode=disable", Dialer: m.dial}, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		rows, all := make([]pipeline.Row, 10_000), int64(0)
		for i := range rows {
			raw := fmt.Appendf(nil, `{"decision_id":"d%05d","input":"%0600d"}`, i, i)
			rows[i] = pipeline.Row{Topic: "t", Offset: int64(i), Log: &decision.Log{ID: fmt.Sprintf("d%05d", i), Time: at, Raw: raw}}
			all += int64(len(raw))
		}
		ctx := context.Background()
		places, err := db.Foresee(ctx, rows, "odd")
		if err != nil || len(places) != 300 {
			t.Fatalf("%d foreseen: %v", len(places), err)
		}
		var bad, good []pipeline.Row
		for i := range rows {
			if slices.Contains(places, i) {
				bad = append(bad, rows[i])
			} else {
				good = append(good, rows[i])
			}
		}
		if _, err := db.Store(ctx, good, false); err != nil {
			t.Fatal(err)
		}
		for _, probe := range []time.Time{{}, at} {
			refused, err := db.Refusals(ctx, bad, probe)
			if err != nil || slices.Contains(refused, nil) {
				t.Fatalf("not all are refused: %v", err)
			}
		}
		for _, c := range []struct {
			what      string
			got, most int64
		}{
			{"connections", m.dials.Load(), 2},
			{"transactions", m.begins.Load(), 6},        // foresight, batch, asked, asked again, probe and its commit
			{"rows by COPY", m.copied.Load(), 9700 + 1}, // and the probe
			{"rows one by one", m.asked.Load(), 2*300 + 1},
			{"goes", m.goes.Load(), 26},
			{"bytes in a hundred of the payload", m.bytes.Load() * 100 / all, 130},
		} {
			if c.got > c.most || c.what == "connections" && c.got != c.most {
				t.Errorf("%s: %d, want %d at most", c.what, c.got, c.most)
			}
			t.Logf("%s: %d", c.what, c.got)
		}
	})
}
