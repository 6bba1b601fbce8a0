//go:build integration

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docket/internal/testkit/testenv"
)

// TestRights_DeadLetterUntilRetried: a decision that its client may not upload becomes a dead letter, not a row. It is found
// by the decision's id, and becomes a row once a person retries it.
func TestRights_DeadLetterUntilRetried(t *testing.T) {
	t.Parallel()
	rights := filepath.Join(t.TempDir(), "rights.json")
	if err := os.WriteFile(rights, []byte(`{"opa":{"paths":["billing/*"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), append(deskEnv(t), "DOCKET_COLLECTOR_CLIENTS_FILE="+rights)...)
	uploads := freeAddr(t)
	awaitReady(t, s.collector(uploads))
	s.consumer()
	s.desk()
	both := append(decisions("billing/refund", 1), decisions("hr/pay", 1)...)
	if status, body := upload(t, uploads, "["+strings.Join(both, ",")+"]", true); status/100 != 2 {
		t.Fatalf("the upload was answered %d %s", status, body)
	}
	s.read(s.places.DLQTopic, 1)
	s.groups(1)
	letters := s.letters("--code", "not_allowed")
	if len(letters) != 1 || letters[0].DecisionID != "hr/pay-0" || letters[0].Kind != "decode" {
		t.Fatalf("the letters are %+v", letters)
	}
	if said := s.docket(nil, 1, "logs", "hr/pay-0"); !strings.Contains(said, letters[0].ID[:8]) {
		t.Errorf("docket logs does not name the dead letter:\n%s", said)
	}
	s.docket(nil, 0, "dlq", "retry", letters[0].ID, "--operator", "ada", "--reason", "the file was wrong", "--yes")
	eventually(t, patience, "both are stored", func() error {
		if n := s.rows("path IN ('billing/refund', 'hr/pay')"); n != 2 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	if line := lineOf(s.verify(0), "I4"); strings.Contains(line, "broken") {
		t.Errorf("verify says %s", line)
	}
}
