package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/history/reader"
	"docket/internal/testkit/readertest"
)

// editedStore is a store in which a person edited two decisions: of one the original is JSON, of the other it is not even text.
func editedStore(t *testing.T) *readertest.Store {
	t.Helper()
	s := asked(t)
	at := now.Add(-time.Hour)
	s.Edited("w-3", reader.Edit{AuditID: 7, DeadLetter: deadLetters()[0].ID, By: "mara\x1b[31m", At: &at, Why: "the user was \u202ewrong", Diff: "-bob\n+alice", Approved: &reader.Approval{By: "oleg\x1b[2J", At: at.Add(-time.Second), Why: "proposal 3: \u202elooked at it"}, Bytes: []byte(`{"decision_id":"w-3","input":{"user":"planted-original"}}`)})
	s.Edited("w-4", reader.Edit{AuditID: 9, DeadLetter: deadLetters()[1].ID, By: "otto", At: &at, Why: "it was broken", Diff: "-\x1b[2Jbroken\n+whole", Bytes: []byte("\xff\x00planted-original")})
	s.Edited("w-5", reader.Edit{AuditID: 11})
	return s
}

func TestEdits_AreTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args     []string
		original bool
	}{
		"logs": {[]string{"logs"}, false}, "logs_one": {[]string{"logs", "w-3"}, false}, "logs_json": {[]string{"logs", "w-3", "--json"}, false},
		"logs_full": {[]string{"logs", "w-3", "--full"}, true}, "logs_full_json": {[]string{"logs", "w-3", "--full", "--json"}, true}, "logs_lines": {[]string{"logs", "-n", "5", "--lines"}, false},
		"why": {[]string{"why", "w-4"}, false}, "why_full": {[]string{"why", "w-3", "--full"}, true}, "unknown": {[]string{"logs", "w-5"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := (&world{store: editedStore(t), terminal: person(120)}).call(c.args...)
			if r.code != 0 || strings.Contains(r.out, "planted-original") != c.original {
				t.Errorf("exit %d, %s%s", r.code, r.out, r.err)
			}
			quiet(t, r.out+r.err)
			golden(t, "edited_"+name+".txt", r.out+"---\n"+r.err)
		})
	}
}

// TestEdits_Unknown: a person without rights on the ledger is told once that edits may be missing.
func TestEdits_Unknown(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"logs"}, {"logs", "w-3"}, {"why", "w-3"}, {"logs", "--lines"}} {
		s := asked(t)
		s.FailEdits(fmt.Errorf("%w (42501)", reader.ErrEdits))
		if r := (&world{store: s}).call(args...); r.code != 0 || strings.Count(r.err, reader.ErrEdits.Error()) != 1 {
			t.Errorf("%v: exit %d, %s", args, r.code, r.err)
		}
		if args[len(args)-1] == "--lines" {
			continue
		}
		r := (&world{store: s}).call(append(args, "--json")...)
		var said struct {
			Unknown string `json:"edits_unknown"`
		}
		if err := json.Unmarshal([]byte(r.out), &said); err != nil || said.Unknown != reader.ErrEdits.Error() || strings.Contains(r.err, "ledger") {
			t.Errorf("%v: %v %q %s", args, err, said.Unknown, r.err)
		}
	}
	s := asked(t)
	s.FailEdits(errors.New("away"))
	if r := (&world{store: s}).call("why", "w-3"); r.code != 0 || !strings.Contains(r.err, "edits were not searched: away") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
}
