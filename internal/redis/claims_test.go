package redis

import (
	"context"
	"strings"
	"testing"
	"time"

	"docket/internal/history/claims"
	"docket/internal/testkit/claimtest"
)

func newClaims(t testing.TB, url string) *Claims {
	t.Helper()
	c, err := NewClaims(Config{URL: url, Patience: time.Minute}, "docket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestClaims_Suite(t *testing.T) {
	t.Parallel()
	m := serve(t)
	t.Cleanup(m.Close)
	claimtest.Suite(t, func(t testing.TB) claims.Port { return newClaims(t, "redis://"+m.Addr()) })
}

// A clock that is set back, a key that is forgotten and a server that lost its data bring no version twice.
func TestClaims_VersionsRiseOverEachLoss(t *testing.T) {
	t.Parallel()
	m := serve(t)
	defer m.Close()
	c, last := newClaims(t, "redis://"+m.Addr()), int64(0)
	next := func(what string) {
		t.Helper()
		version, err := c.Begin(t.Context(), "k", claims.High, claimtest.Brief)
		if err != nil || version <= last {
			t.Fatalf("%s: version %d after %d, %v", what, version, last, err)
		}
		last = version
	}
	m.SetTime(noon)
	next("at first")
	m.SetTime(noon.Add(time.Millisecond))
	next("after its lease")
	m.SetTime(noon.Add(time.Hour))
	next("an hour later")
	m.SetTime(noon.Add(time.Minute))
	if version, err := c.Begin(t.Context(), "k", claims.High, claimtest.Brief); err != nil || version != 0 {
		t.Fatalf("a claim ended as the clock was set back: %d, %v", version, err)
	}
	m.SetTime(noon.Add(2 * time.Hour))
	next("the clock is right again")
	m.SetTime(noon.Add(26 * time.Hour))
	m.FlushAll()
	next("the data are lost")
}

func TestClaims_KeyExpiresInTheGroupsSlot(t *testing.T) {
	t.Parallel()
	m := serve(t)
	defer m.Close()
	c := newClaims(t, "redis://"+m.Addr())
	if _, err := c.Begin(t.Context(), "2026-08-01-001/x", claims.Low, time.Second); err != nil {
		t.Fatal(err)
	}
	keys := m.Keys()
	if len(keys) != 1 || keys[0] != "{docket:docket}:read:2026-08-01-001/x" || m.TTL(keys[0]) != 24*time.Hour {
		t.Errorf("keys %q", keys)
	}
}

// An error comes within the deadline, and has no secret.
func TestClaims_AwayIsAnError(t *testing.T) {
	t.Parallel()
	m := serve(t)
	c := newClaims(t, "redis://u:hunter2@"+m.Addr())
	m.Close()
	for _, call := range []func(ctx context.Context) error{
		func(ctx context.Context) error { _, err := c.Begin(ctx, "k", claims.Low, time.Second); return err },
		func(ctx context.Context) error { _, err := c.Keep(ctx, "k", 1, time.Second); return err },
		func(ctx context.Context) error { _, err := c.End(ctx, "k", 1); return err },
	} {
		if err := call(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
}
