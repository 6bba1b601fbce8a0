package deskcli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"docket/internal/archive"
)

// young is a table with some days, of which none can be opened.
type young struct {
	archive.Table
	held []archive.Held
	err  error // of opening one
}

func (y young) Name() string { return "decision_logs" }

func (y young) Days(context.Context, archive.Day) ([]archive.Held, error) { return y.held, nil }

func (y young) Open(context.Context, archive.Day) (archive.Session, error) { return nil, y.err }

// TestWhereNothingIsThatOldTheAnswerIsEmptyAndValid: who reads it by a program finds no days, and not the end of the file.
func TestWhereNothingIsThatOldTheAnswerIsEmptyAndValid(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]string{"for real": nil, "a dry run": {"--dry-run"}, "kept": {"--keep"}} {
		for _, where := range []Terminal{{}, person(80)} {
			w := &world{days: young{}, shelf: archive.Dir(t.TempDir()), terminal: where}
			r := w.call(append([]string{"archive", "--older-than", "90d", "--to", "x", "--operator", "mara", "--json"}, more...)...)
			var answer struct {
				Entries *[]any `json:"entries"`
			}
			if err := json.Unmarshal([]byte(r.out), &answer); err != nil || r.code != 0 || answer.Entries == nil || len(*answer.Entries) != 0 {
				t.Errorf("%s: exit %d, %v, %q", name, r.code, err, r.out)
			}
		}
	}
}

// TestADayThatCannotBeTakenOutJustNowSaysWhatToDo, and does not keep the others from being archived.
func TestADayThatCannotBeTakenOutJustNowSaysWhatToDo(t *testing.T) {
	t.Parallel()
	day, _ := archive.ParseDay("2026-03-04")
	w := &world{
		days:  young{held: []archive.Held{{Day: day, Place: archive.Attached}}, err: &archive.UncountedError{Why: "it is not counted", Do: "end session 4711"}},
		shelf: archive.Dir(t.TempDir()),
	}
	r := w.call("archive", "--older-than", "90d", "--to", "x", "--operator", "mara", "--json")
	if r.code != 1 || !strings.Contains(r.err, "2026-03-04: it is not counted") || !strings.Contains(r.err, "end session 4711") || !json.Valid([]byte(r.out)) {
		t.Errorf("exit %d, %q, %q", r.code, r.out, r.err)
	}
}
