//go:build integration

package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestConsole plays everything that needs a prepared desk, which no part of it changes for another.
func TestConsole(t *testing.T) {
	t.Parallel()
	w, b := prepare(t), chromium(t)
	check(t, w, b)
	// These parts change nothing, so they run together. The two below add to the world.
	t.Run("looks", func(t *testing.T) {
		for name, part := range map[string]func(*testing.T, *world, *chrome){"faultless": faultless, "fitting": fitting, "still": still, "plain": plain, "pictures": pictures, "full": full} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				part(t, w, b)
			})
		}
	})
	t.Run("keyboard", func(t *testing.T) { keyboard(t, w, b) }) //nolint:paralleltest // it adds to the world
	t.Run("enemies", func(t *testing.T) { enemies(t, w, b) })   //nolint:paralleltest // it adds to the world
}

// check has an operator run the check, whose result everybody sees.
func check(t *testing.T, w *world, b *chrome) {
	t.Helper()
	p := open(t, b, w.url, wide).login("operator")
	p.visit("/check")
	p.press("Check now")
	p.awaits("asked for by")
	p.follow(func() { p.click(".me button") })
}

// full: no screen of an installation in use says that something is off, unknown or not there. Where one did, the tests
// of its looks would look at next to nothing.
func full(t *testing.T, w *world, b *chrome) {
	p := open(t, b, w.url, wide).login("operator")
	first, gone := w.day(archivedFrom).Format(time.DateOnly), "forgotten"
	for _, screen := range []struct { // a month can be asked for twice
		path       string
		has, lacks []string
	}{
		{"/", []string{"FRESH", "1 collector is seen", "received since", "members", w.topic + "-urgent", "missing_field", "parking-replayer", "collector"}, []string{"not seen", "not known", "DOCKET_DESK_PEERS"}},
		{"/lanes", []string{w.topic + "-urgent", w.topic + "-bulk", "17,600", "9,600", "at work"}, []string{"not seen", "Lanes are off", "DOCKET_DESK_PEERS", "has a limit"}},
		{"/check", []string{"asked for by olga", w.topic + "-bulk", "collector"}, []string{"Not checked yet", "DOCKET_DESK_PEERS"}},
		{"/archive?month=" + first[:7], []string{"archived", "mara", first, "parquet"}, []string{"DOCKET_ARCHIVE_TO", "Not known", "Several days in one"}},
		{"/archive?month=" + w.day(oldestDay).Format("2006-01"), []string{gone, "a week is over"}, nil},
		{"/archive?month=" + w.day(1).Format("2006-01"), []string{"hot"}, nil},
		{"/decisions?since=" + first + "&until=" + w.day(archivedFrom-1).Format(time.DateOnly), []string{"archived", fmt.Sprint(earlier) + " decisions"}, []string{"No decision fits"}},
		{"/flips?since=7d&path=shop/refund/decision", []string{"checkout-"}, []string{"DOCKET_STATES", "No verdict"}},
		{"/dead-letters", []string{"no_billing", "known_tenant", "Edits that wait", "retry", "Next page"}, []string{"No job was made"}},
		{"/audit?act=all", []string{"olga", "retried", "proposed"}, nil},
	} {
		eventually(t, screen.path+" is full", func() error { // the desk looks at others in its own time
			p.visit(screen.path)
			text := p.text()
			for _, word := range screen.has {
				if !strings.Contains(text, word) {
					return fmt.Errorf("it lacks %q: %.3000s", word, text)
				}
			}
			for _, word := range screen.lacks {
				if strings.Contains(text, word) {
					return fmt.Errorf("it has %q: %.3000s", word, text)
				}
			}
			return nil
		})
	}
	for _, lane := range []string{"", "-urgent", "-bulk"} {
		if n := ask[int](w.stack, "SELECT count(*) FROM decision_logs WHERE source_topic = $1", w.topic+lane); n == 0 {
			t.Errorf("no decision that is still in the table came by %s", w.topic+lane)
		}
	}
}
