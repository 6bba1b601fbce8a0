package lookup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"docket/internal/desk/ledger"
)

var urgentFirst = []string{"x-original-topic", "logs-urgent", "x-original-partition", "3", "x-original-offset", "41", "x-original-index", "1"}

func TestFind_InEachLane(t *testing.T) {
	t.Parallel()
	const file = "1700000000_a_1.jsonl.gz"
	for name, c := range map[string]struct {
		put  func(w *world)
		lane string
		says string
	}{
		"not read in urgent": {func(w *world) {
			w.put("logs-urgent", log("d-1", ""))
			w.put("logs-urgent", log("d-1", ""))
			w.committed["logs-urgent"], w.committed["logs"] = 1, 7
		}, "urgent", "not read yet, at logs-urgent/0/1, lane urgent, decided"},
		"not read in bulk":     {func(w *world) { w.put("logs-bulk", log("d-1", "")) }, "bulk", "not read yet, at logs-bulk/0/0, lane bulk"},
		"not read in default":  {func(w *world) { w.put("logs", log("d-1", "")) }, "default", "at logs/0/0, lane default"},
		"a stranger's headers": {func(w *world) { w.put("logs-bulk", log("d-1", ""), urgentFirst...) }, "bulk", "at logs-bulk/0/0, lane bulk"},
		"parked from urgent":   {func(w *world) { w.put("parking", log("d-1", ""), urgentFirst...) }, "urgent", "parked at parking/0/0, attempt 0, lane urgent"},
		"dead from urgent": {func(w *world) {
			w.put("dlq", log("d-1", ""), append([]string{"x-failure-code", "23514"}, urgentFirst...)...)
		}, "urgent", "lane urgent"},
		"spooled for urgent": {func(w *world) { w.spool(file, spooled(w.t, "logs-urgent", log("d-1", ""))) }, "urgent", file + ", for logs-urgent, lane urgent"},
		"of a removed lane":  {func(w *world) { w.put("parking", log("d-1", ""), "x-original-topic", "other") }, "", "parked at parking/0/0, attempt 0, decided"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.lanes = []string{"urgent", "bulk"}
			c.put(w)
			a := w.find()
			f := one(t, a)
			if f.Lane != c.lane || Views(a.Found, noon)[0].Lane != c.lane || !strings.Contains(f.Text(noon), c.says) || !a.Complete() {
				t.Errorf("lane %q: %s; not looked at %v", f.Lane, f.Text(noon), a.NotLooked)
			}
		})
	}
}

// Each lane is a place of its own, which is named whether it could be searched or not.
func TestFind_NamesEachLane(t *testing.T) {
	t.Parallel()
	for _, lanes := range [][]string{nil, {"urgent"}, {"urgent", "bulk"}} {
		w := newWorld(t)
		w.lanes = lanes
		w.broken["logs-urgent"] = errors.New("no right")
		a := w.find()
		unread := slices.DeleteFunc(SearchedIn(a.Looked), func(p string) bool { return !strings.Contains(p, "that are not read yet") })
		if want := 1 + max(0, len(lanes)-1); len(unread) != want {
			t.Errorf("lanes %v: looked at %q", lanes, unread)
		}
		if gaps := Gaps(a.NotLooked); len(gaps) != min(1, len(lanes)) || len(gaps) == 1 && !strings.HasPrefix(gaps[0], "records of logs-urgent that are not read yet: ") {
			t.Errorf("lanes %v: not looked at %q", lanes, gaps)
		}
	}
}

// A record of a lane that the consumer takes during the search is seen in its topic or in its row.
func TestFind_LanesBeforeTheHomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lanes = []string{"urgent"}
	var asked []string
	w.moved = func(what string) { asked = append(asked, what) }
	w.find()
	urgent, rows := slices.Index(asked, "committed logs-urgent"), slices.Index(asked, "rows")
	ends := slices.IndexFunc(asked, func(what string) bool { return strings.HasPrefix(what, "end ") })
	if urgent < 0 || urgent > ends || urgent > rows || slices.Index(asked, "end logs-urgent") > rows {
		t.Errorf("asked %q", asked)
	}
}

// Letters that a desk left in Kafka are searched with lanes, too.
func TestFind_LeftBesideLanes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lanes = []string{"urgent", "bulk"}
	w.put("dlq", log("d-1", ""), urgentFirst...)
	w.committed["dlq"] = 1
	w.left = []ledger.Surplus{{Topic: "dlq", Letters: 1, State: ledger.SurplusOpen}}
	if f := one(t, w.find()); f.Where != Dead || !f.Left {
		t.Errorf("%+v", f)
	}
}
