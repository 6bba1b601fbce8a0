package pick

import (
	"testing"
	"time"

	"docket/internal/desk/ledger"
)

// TestDescribed_RoundTrip: the printed filter of a job chooses the same dead letters.
func TestDescribed_RoundTrip(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 20, 15, 3, 0, time.UTC)
	p := int32(3)
	f := ledger.Filter{Fingerprint: "156f3d46", Kind: "data", Code: "23514", Path: "it's a path", States: []ledger.State{ledger.Pending}, From: now.Add(-time.Hour), To: now, Topic: "logs", Partition: &p}
	want := `--fingerprint 156f3d46 --kind data --code 23514 --path 'it'\''s a path' --state PENDING --since 2026-11-21T19:15:03Z --until 2026-11-21T20:15:03Z --topic logs --partition 3`
	if got := Described(f); got != want {
		t.Errorf("%s", got)
	}
}
