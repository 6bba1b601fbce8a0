package desk

import (
	"slices"
	"testing"
)

func TestRetryTopics_AllLanes(t *testing.T) {
	t.Parallel()
	for env, want := range map[string][]string{
		"DOCKET_LANES=":            {"decision-logs"},
		"DOCKET_LANES=urgent":      {"decision-logs", "decision-logs-urgent"},
		"DOCKET_LANES=urgent,bulk": {"decision-logs", "decision-logs-urgent", "decision-logs-bulk"},
	} {
		if got := RetryTopics(settings(t, nowhere(env))); !slices.Equal(got, want) {
			t.Errorf("%s: %q", env, got)
		}
	}
	if got := RetryTopics(settings(t, nowhere("DOCKET_LANES=urgent", "DOCKET_DESK_RETRY_TOPICS=decision-logs"))); !slices.Equal(got, []string{"decision-logs"}) {
		t.Errorf("those that are set: %q", got)
	}
}
