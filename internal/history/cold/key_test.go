package cold

import (
	"testing"
	"time"

	"docket/internal/history/reader"
)

// TestKey_NoneForOddTimes: two questions whose times JSON does not have are not taken for one.
func TestKey_NoneForOddTimes(t *testing.T) {
	t.Parallel()
	for _, year := range []int{-1, 10_000} {
		if k, ok := key("id", run{after: reader.Spot{Time: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), ID: "d"}}, 10); ok {
			t.Errorf("the year %d has the key %s", year, k)
		}
	}
	one, ok := key("id", run{of: "a"}, 10)
	other, also := key("id", run{of: "b"}, 10)
	if !ok || !also || one == other {
		t.Errorf("keys %s and %s", one, other)
	}
}
