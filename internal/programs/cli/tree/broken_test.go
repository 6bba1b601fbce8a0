package tree

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"docket/internal/history/reader"
	"docket/internal/programs/cli"
)

// TestPages_BreakHalfWay: a list that breaks after its first page says so, stays JSON, and says how to continue.
func TestPages_BreakHalfWay(t *testing.T) {
	t.Parallel()
	w := &world{store: decisions(1200)}
	w.store.FailsAfter = errAway
	var found struct {
		Decisions []toldDecision
		Next      string
		Freshness string
	}
	r := w.call("logs", "-n", "1100", "--json")
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != cli.Failed || len(found.Decisions) != 1000 || found.Next == "" || found.Freshness != string(reader.Partial) || !strings.Contains(r.err, errAway.Error()) {
		t.Errorf("exit %d, %v, %d, %q %q\n%s", r.code, err, len(found.Decisions), found.Next, found.Freshness, r.err)
	}
	for _, how := range []string{"--lines", "--wide"} {
		if r := w.call("logs", "-n", "1100", how); r.code != cli.Failed || !strings.Contains(r.err, "1,000 shown; next page: --after "+found.Next+"\n") || !strings.Contains(r.err, errAway.Error()) {
			t.Errorf("%s: exit %d\n%s", how, r.code, r.err)
		}
	}
	w = &world{book: newBook(many(1200)...)}
	w.book.broken, w.book.desks = errAway, nil
	var list struct {
		Entries []struct{ ID string }
		Next    string
		Ledger  toldLedger
	}
	r = w.call("dlq", "list", "--all", "--json")
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || r.code != cli.Failed || len(list.Entries) != 1000 || list.Next == "" || list.Ledger.Note == "" || !strings.Contains(r.err, errAway.Error()) {
		t.Errorf("exit %d, %v, %d, %q %+v\n%s", r.code, err, len(list.Entries), list.Next, list.Ledger, r.err)
	}
	r = w.call("dlq", "list", "--all")
	for _, want := range []string{"1,000 shown; next page: --after " + list.Next + "\n", "no desk is running", errAway.Error()} {
		if r.code != cli.Failed || !strings.Contains(r.err, want) {
			t.Errorf("exit %d, no %q in %s", r.code, want, r.err)
		}
	}
}

// TestPages_BreakBehindAnEmptyOne: a page ends without a decision where none of those it read matches.
func TestPages_BreakBehindAnEmptyOne(t *testing.T) {
	t.Parallel()
	w := &world{store: decisions(300)}
	w.store.Part, w.store.FailsAfter = 100, errAway
	var found struct{ Next, Freshness string }
	r := w.call("logs", "--path", "no/such", "--json")
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != cli.Failed || found.Next == "" || found.Freshness != string(reader.Partial) || !strings.Contains(r.err, errAway.Error()) {
		t.Errorf("exit %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	for _, how := range []string{"--lines", "--wide"} {
		if r := w.call("logs", "--path", "no/such", how); r.code != cli.Failed || !strings.Contains(r.err, "0 shown; next page: --after "+found.Next+"\n") || !strings.Contains(r.err, errAway.Error()) {
			t.Errorf("%s: exit %d\n%s%s", how, r.code, r.out, r.err)
		}
	}
}

// TestLogs_IDSaysWhatItLacks: in every format, an answer of one id names the places that were not searched completely.
func TestLogs_IDSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	broken := func(t *testing.T) (*world, string) {
		t.Helper()
		w, old := archivedWorld(t)
		w.store.FailEdits(errors.New("the edits are away"))
		dir := strings.TrimPrefix(w.environ[0], "DOCKET_ARCHIVE_TO=")
		if err := os.WriteFile(filepath.Join(dir, "decision_logs-2026-08-03-001-3f9a2c-4f397d54.manifest.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		return w, old[2].ID
	}
	for _, how := range []string{"--lines", "--output=jsonl", "--output=csv", "--output=id"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w, id := broken(t)
			r := w.call("logs", id, how)
			for _, want := range []string{"not looked at completely: ", "2026-08-03", "edit"} {
				if r.code != cli.Done || !strings.Contains(r.err, want) {
					t.Errorf("exit %d, no %q in\n%s%s", r.code, want, r.out, r.err)
				}
			}
		})
	}
}
