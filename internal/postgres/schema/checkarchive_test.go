package schema

import (
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive/nightly"
)

func TestArchiveCheck_Levels(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 10, 12, 0, 0, 0, time.UTC)
	note := func(change func(*nightly.Note)) *nightly.Note {
		n := &nightly.Note{State: nightly.Idle, After: 90, Wrote: now.Add(-10 * time.Minute)}
		change(n)
		return n
	}
	for name, c := range map[string]struct {
		note  *nightly.Note
		level Level
		says  string
	}{
		"all is archived": {note(func(*nightly.Note) {}), OK, "archives days after 90 days; 0 wait"},
		"a day that waits": {note(func(n *nightly.Note) {
			n.Due, n.Oldest = 1, "2026-03-11"
			n.Add(nightly.Result{Day: "2026-03-11", Why: "it is not counted", Waits: true})
		}), OK, "1 wait"},
		"a failure":        {note(func(n *nightly.Note) { n.Add(nightly.Result{Day: "2026-03-11", Why: "no key"}) }), Warn, "1 of the last archives failed"},
		"it cannot look":   {note(func(n *nightly.Note) { n.State, n.Why = nightly.Failed, "no rights" }), Warn, "cannot archive: no rights"},
		"it is behind":     {note(func(n *nightly.Note) { n.Due, n.Oldest = 3, "2026-03-01" }), Warn, "3 days wait for the archive, the oldest is 2026-03-01"},
		"it has stopped":   {note(func(n *nightly.Note) { n.Wrote = now.Add(-26 * time.Hour) }), Warn, "no desk has archived or looked for 26h0m0s"},
		"it was late once": {note(func(n *nightly.Note) { n.Wrote = now.Add(-50 * time.Minute) }), OK, "0 wait"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := archiveCheck(c.note, now); got.Level != c.level || !strings.Contains(got.Detail, c.says) || got.Level == Warn && got.Hint == "" {
				t.Errorf("%+v", got)
			}
		})
	}
}
