package schema

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestStatesCheck_Levels(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		lag   time.Duration
		level Level
		says  string
	}{
		"near":            {90 * time.Second, OK, "7 states have the decisions up to 1m30s ago"},
		"a clock is back": {-time.Second, OK, "up to 0s ago"},
		"at the bound":    {StatesLate, OK, "up to 30m0s ago"},
		"behind":          {StatesLate + time.Minute, Warn, "7 states lack the decisions of the last 31m0s"},
	} {
		if got := statesCheck(now.Add(-c.lag), now, 7); got.Level != c.level || !strings.Contains(got.Detail, c.says) || (got.Level == Warn) != (got.Hint != "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The check and the alert have one bound.
func TestStatesCheck_BoundOfTheAlert(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../../../deploy/prometheus/docket.rules.yml")
	if want := fmt.Sprintf("docket_state_lag_seconds) > %d\n", int(StatesLate.Seconds())); err != nil || !strings.Contains(string(rules), want) {
		t.Errorf("the alert has not the bound %q, %v", want, err)
	}
}
