package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"docket/internal/service/config"
)

// lines are those of a program's log, each of which must be JSON.
func (w *world) lines() []map[string]any {
	w.t.Helper()
	var all []map[string]any
	for line := range strings.Lines(w.log.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			w.t.Fatalf("%q is no line of JSON: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}

func TestLines_NoneForGoodRecords(t *testing.T) {
	t.Parallel()
	const n = 10_000
	s := newStage(t)
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf(`{"decision_id":"d%d","timestamp":"2026-11-21T03:00:00Z"}`, i)
	}
	s.kafka.Values(t, "decision-logs", 0, values...)
	w := s.start(config.Consumer, nil, "DOCKET_BATCH_MAX_RECORDS=500")
	w.until("all are committed", func() bool { return s.kafka.Committed(t, "docket", "decision-logs")[0] == n })
	w.halt()
	var said []string
	for _, l := range w.lines() {
		if l["level"] != "debug" {
			said = append(said, l["level"].(string)+" "+l["message"].(string))
		}
	}
	if got, want := strings.Join(said, ", "), "info program started, info partitions assigned, info stop requested, info partitions given up, info program ended"; got != want {
		t.Errorf("said %s, want %s", got, want)
	}
}

func TestLines_StormCountsLinesLeftOut(t *testing.T) {
	t.Parallel()
	const n, batch = 10_000, 100
	s := newStage(t)
	values := make([]string, n)
	for i := range values {
		values[i] = "{\r\n\x1b[31m" + payloadMarker
	}
	s.kafka.Values(t, "decision-logs", 0, values...)
	w := s.start(config.Consumer, nil, fmt.Sprintf("DOCKET_BATCH_MAX_RECORDS=%d", batch))
	w.until("all are committed", func() bool { return s.kafka.Committed(t, "docket", "decision-logs")[0] == n })
	w.halt()
	dead, leftOut := 0, 0
	for _, l := range w.lines() {
		if l["message"] == "records dead-lettered" {
			dead++
			first, last := l["first_offset"].(float64), l["last_offset"].(float64)
			if ids := l["dead_letter_ids"].([]any); l["topic"] != "decision-logs" || last-first+1 != l["records"].(float64) || len(ids) != 3 {
				t.Errorf("the line does not name its batch: %v", l)
			}
		}
		if left, ok := l["lines_left_out"].(float64); ok {
			leftOut += int(left)
		}
	}
	if dead < 10 || dead > 30 || dead+leftOut < n/batch {
		t.Errorf("%d lines and %d said to be left out of at least %d", dead, leftOut, n/batch)
	}
	if strings.Contains(w.log.String(), payloadMarker) {
		t.Error("a payload is in the log")
	}
}
