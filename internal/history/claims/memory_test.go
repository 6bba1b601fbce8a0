package claims_test

import (
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"docket/internal/history/claims"
	"docket/internal/testkit/claimtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ticking is a clock that moves with each look at it.
func ticking() func() time.Time {
	var looks atomic.Int64
	return func() time.Time { return time.UnixMilli(1_800_000_000_000 + looks.Add(1)) }
}

func TestMemory_Suite(t *testing.T) {
	t.Parallel()
	m := &claims.Memory{Now: ticking()}
	claimtest.Suite(t, func(testing.TB) claims.Port { return m })
}

func TestMemory_VersionsRiseOverAClockSetBack(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000)
	m := &claims.Memory{Now: func() time.Time { return now }}
	first, _ := m.Begin(t.Context(), "k", claims.High, 0) // it never fails
	now = now.Add(-time.Hour)
	if second, _ := m.Begin(t.Context(), "k", claims.Low, 0); second != 0 {
		t.Fatalf("the claim ended as the clock was set back: %d", second)
	}
	now = now.Add(2 * time.Hour)
	if second, _ := m.Begin(t.Context(), "k", claims.Low, 0); second <= first {
		t.Fatalf("version %d after %d", second, first)
	}
}
