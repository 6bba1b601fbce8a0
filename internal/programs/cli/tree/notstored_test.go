package tree

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNotStored_SaysWhereItWasLookedFor: also where not, with the names of the manifests of archived days.
func TestNotStored_SaysWhereItWasLookedFor(t *testing.T) {
	t.Parallel()
	shelf := t.TempDir()
	file := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(shelf, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{store: decisions(3), days: young{}, environ: []string{"DOCKET_ARCHIVE_TO=" + shelf}}
	ask := func(args ...string) (result, string) {
		t.Helper()
		r := w.call(args...)
		if r.code != 1 {
			t.Errorf("%v: exit %d", args, r.code)
		}
		return r, r.err
	}
	if _, said := ask("why", "no-such-id"); !strings.Contains(said, "  looked at: archived days in "+shelf+": there are none\n") ||
		!strings.Contains(said, "  looked at: the rows of decision_logs\n") || !strings.Contains(said, "  looked at: the ledger of dead letters\n") || strings.Contains(said, "not looked at") {
		t.Error(said)
	}
	file("decision_logs-2026-03-04-001-3f9a2c-4f397d52.0001.jsonl.gz") // of a killed run: no archive
	broken := "dead_letters-2026-03-01-001-3f9a2c-4f397d52.manifest.json"
	file(broken)
	file("decision_logs-2026-08-01-001-3f9a2c-4f397d52.manifest.json")
	if _, said := ask("logs", "no-such-id"); !strings.Contains(said, "  not looked at completely: archived day 2026-08-01 in "+shelf+": archive decision_logs-2026-08-01-001-3f9a2c-4f397d52 is broken") ||
		!strings.Contains(said, "  not looked at completely: archived dead letters in "+shelf+": archive dead_letters-2026-03-01-001-3f9a2c-4f397d52 is broken") {
		t.Error(said)
	}
	if err := os.Remove(filepath.Join(shelf, broken)); err != nil {
		t.Fatal(err)
	}
	file("decision_logs-2026-08-01-002-3f9a2c-4f397d53.manifest.json")
	file("decision_logs-2026-08-03-001-3f9a2c-4f397d54.manifest.json")
	r, said := ask("logs", "no-such-id", "--json")
	var answer struct {
		Looked    []string
		NotLooked []string `json:"not_looked"`
	}
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil || len(answer.Looked) != 8 || len(answer.NotLooked) != 2 || !strings.Contains(answer.NotLooked[0], "archived day 2026-08-03 in ") || strings.Count(answer.NotLooked[1], "is broken") != 2 {
		t.Errorf("%v, %+v, %s", err, answer, said)
	}
	w.environ = nil
	if _, said := ask("logs", "no-such-id"); !strings.Contains(said, "not looked at completely: archives: DOCKET_ARCHIVE_TO is not set\n") {
		t.Error(said)
	}
	w.environ = []string{"DOCKET_ARCHIVE_TO=" + filepath.Join(shelf, "decision_logs-2026-08-01-001-3f9a2c-4f397d52.manifest.json")} // no directory
	if _, said := ask("logs", "no-such-id"); !strings.Contains(said, "not looked at completely: archived days in ") {
		t.Error(said)
	}
	w.book = newBook(deadLetters()...)
	w.book.fails = errors.New("away")
	if _, said := ask("logs", "no-such-id"); strings.Contains(said, "  looked at: the ledger of dead letters\n") || !strings.Contains(said, "not looked at completely: the ledger of dead letters: away") {
		t.Error(said)
	}
}
