package pgmodel_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/pgmodel"
	"docket/internal/pipeline"
	"docket/internal/postgres"
)

// A client whose host dies between the insert and COMMIT says nothing, and its server hears nothing. What it locked must
// be free again before long: another process is about to store the same rows.
func TestWhatAVanishedClientLockedIsFreeAgainSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var mute atomic.Bool
		s.Observe(func(e pgmodel.Event) {
			if e.Point == pgmodel.Insert && e.Session == 101 {
				mute.Store(true)
			}
		})
		gone, err := postgres.Open(postgres.Config{URL: "postgres://docket@db:5432/docket?sslmode=disable", StoreTimeout: 20 * time.Second,
			Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
				if mute.Load() {
					<-ctx.Done() // no cancel request either
					return nil, ctx.Err()
				}
				conn, err := s.Dial(ctx, network, address)
				return &muted{conn, &mute}, err
			}}, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(gone.Close)
		if _, err := gone.Store(t.Context(), []pipeline.Row{row("a", `{}`)}, false); err == nil {
			t.Fatal("stored without a COMMIT that anybody heard")
		}
		same(t, len(s.Rows()), 0)
		time.Sleep(time.Second)
		same(t, store(t, open(t, s), row("a", `{}`)), []pipeline.Outcome{stored})
	})
}

// muted is a connection on which nothing is heard any more, the end of it included.
type muted struct {
	net.Conn
	mute *atomic.Bool
}

func (m *muted) Write(b []byte) (int, error) {
	if m.mute.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

func (m *muted) Close() error {
	if m.mute.Load() {
		return m.Conn.SetDeadline(time.Unix(1, 0))
	}
	return m.Conn.Close()
}
