package chaos

import (
	"strings"
	"testing"
	"time"
)

func TestTable_FindingNeverPasses(t *testing.T) {
	t.Parallel()
	table := Table{
		Seed: 7, Duration: 20 * time.Minute, Commit: "abc", Rows: []Row{{"lost", "1"}},
		Faults: map[string]int{"broker killed": 2, "read-only": 1}, Kills: map[string]int{"at random": 3, "at stored": 9},
		Findings: []string{"a record is lost"},
	}
	var text, page strings.Builder
	table.Text(&text)
	table.Markdown(&page)
	for _, want := range []string{"7", "20m0s", "abc", "3 of 2 kinds", "at stored 9, at random 3", "FAILED: 1 findings", "broker killed"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(page.String(), want) {
			t.Errorf("%q is missing in\n%s\n%s", want, text.String(), page.String())
		}
	}
	if !strings.Contains(text.String(), "FOUND a record is lost") || strings.Contains(text.String(), "passed") {
		t.Errorf("the finding does not show:\n%s", text.String())
	}
	table.Findings = nil
	text.Reset()
	if table.Text(&text); !strings.Contains(text.String(), "passed") {
		t.Errorf("nothing was found, and it did not pass:\n%s", text.String())
	}
}
