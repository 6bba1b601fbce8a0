package sample

import (
	"encoding/json"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSample_OneObjectALine(t *testing.T) {
	t.Parallel()
	logs := DecisionLogs()
	if len(logs) != 1023 {
		t.Errorf("the README says 1,023 decision logs, the file has %d", len(logs))
	}
	seen := map[string]bool{}
	for i, line := range logs {
		var log struct {
			ID string `json:"decision_id"`
		}
		if err := json.Unmarshal(line, &log); err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		if log.ID == "" || seen[log.ID] {
			t.Errorf("line %d: decision_id %q is empty or there twice", i, log.ID)
		}
		seen[log.ID] = true
	}
}
