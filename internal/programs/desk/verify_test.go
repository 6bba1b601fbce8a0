package desk

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/audit/inspect"
	"docket/internal/audit/verify"
	"docket/internal/desk/api"
)

// TestScopeOf_Places: places are those of source topics alone, and without a time it is the last hour.
func TestScopeOf_Places(t *testing.T) {
	t.Parallel()
	s := settings(t, nowhere())
	topic := s.SourceTopics()[0]
	what, err := scopeOf(s, api.VerifyScope{From: []string{topic + "/0/7", topic + "/3/8"}, Settled: true})
	if ago := time.Since(what.Since); err != nil || ago < time.Hour || ago > 2*time.Hour || !what.Settled || what.MostForwarded == 0 || what.TryDeadLetters || what.Metrics != nil || len(what.From) != 2 || what.From[verify.Partition{Topic: topic, Number: 3}] != 8 {
		t.Errorf("%v, %+v", err, what)
	}
	var none *api.PlaceError
	if err := unplaced(fmt.Errorf("verify: %w", &inspect.NoPartitionError{Topic: topic, Partition: 99})); !errors.As(err, &none) || strings.Contains(none.Expected, "99") {
		t.Errorf("%v", err)
	}
	for _, place := range []string{"", "x", topic, topic + "/0", topic + "/0/7/1", "other/0/7", topic + "/a/7", s.KafkaDLQTopic + "/0/7"} {
		var wrong *api.PlaceError
		if _, err := scopeOf(s, api.VerifyScope{From: []string{place}}); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", place, err)
		}
	}
}
