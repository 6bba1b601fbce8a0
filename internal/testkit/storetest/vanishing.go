package storetest

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
)

func vanishing() []Case {
	return []Case{{"what a vanished client locked is free again soon", vanished}}
}

// A client whose host dies between the insert and COMMIT sends nothing, and its server gets nothing. Another process
// is about to store the same rows.
func vanished(t *testing.T, s Server) {
	var gone atomic.Bool
	db := open(t, s, within(5*time.Second), func(c *db.Config) {
		dial := c.Dialer
		if dial == nil {
			dial = new(net.Dialer).DialContext
		}
		c.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			if gone.Load() { // no cancel request either
				<-ctx.Done()
				return nil, ctx.Err()
			}
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { _ = conn.Close() })
			return &mutable{conn, &gone}, nil
		}
	})
	// At the common deadline, the server's last message may still arrive or not.
	if _, err := db.Store(context.Background(), []pipeline.Row{row("a", noon, `{}`)}, false); err == nil || !gone.Load() {
		t.Fatalf("no COMMIT was lost: %v", err)
	}
	same(t, s.Count(t), 0)
	same(t, save(t, open(t, s), row("a", noon, `{}`)), []pipeline.Outcome{stored})
}

// mutable is a connection that goes silent from COMMIT on, even at its end.
type mutable struct {
	net.Conn
	gone *atomic.Bool
}

func (m *mutable) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("COMMIT\x00")) {
		m.gone.Store(true)
	}
	if m.gone.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

func (m *mutable) Close() error {
	if m.gone.Load() {
		return m.SetDeadline(time.Unix(1, 0))
	}
	return m.Conn.Close()
}
