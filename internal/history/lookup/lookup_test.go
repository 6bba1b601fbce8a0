package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/record/commitnote"
	"docket/internal/record/envelope"
	"docket/internal/testkit/archivetest"
)

func TestFind_EachPlace(t *testing.T) {
	t.Parallel()
	const file = "1700000000_a_1.jsonl.gz"
	for name, c := range map[string]struct {
		put  func(w *world)
		want Where
		says string
	}{
		"not read":              {func(w *world) { w.put("logs", log("x", "")); w.put("logs", log("d-1", "")); w.committed["logs"] = 1 }, Unread, "not read yet, at logs/0/1, decided"},
		"not read, one of many": {func(w *world) { w.put("logs", "["+log("x", "")+","+log("d-1", "")+"]") }, Unread, "not read yet, at logs/0/0"},
		"parked": {func(w *world) {
			w.put("parking", log("d-1", ""), append([]string{"x-retry-attempt", "3", "x-not-before", "1777640400000", "x-failure-code", "network"}, first...)...)
		}, Parked, "parked at parking/0/0, attempt 3, network (network_failure), decided 2026-05-01 11:00:00.000Z; next try at 2026-05-01T13:00:00Z by the replayer"},
		"parked, due":   {func(w *world) { w.put("parking", log("d-1", ""), first...) }, Parked, "attempt 0, decided 2026-05-01 11:00:00.000Z; it is due: the replayer tries it next"},
		"parked whole":  {func(w *world) { w.put("parking", log("x", "")+"\n"+log("d-1", "")) }, Parked, "parked at parking/0/0"},
		"dead":          {func(w *world) { w.put("dlq", log("d-1", ""), "x-failure-code", "23514") }, Dead, "dead letter at dlq/0/0, 23514 (check_violation)"},
		"dead, refused": {func(w *world) { w.put("dlq", `{"timestamp":"2026-05-01T11:00:00Z","decision_id":"d-1","labels":7`) }, Dead, "decided 2026-05-01 11:00:00.000Z; no desk has entered it"},
		"exhausted":     {func(w *world) { w.put("parking-dlq", log("d-1", "")) }, Exhausted, "dead letter of the replayer at parking-dlq/0/0"},
		"spooled":       {func(w *world) { w.spool(file, spooled(w.t, "parking", log("x", ""), log("d-1", ""))) }, Spooled, file + ", for parking, decided"},
		"spooled, second file": {func(w *world) {
			dir := w.spool(file, spooled(w.t, "parking", log("x", "")))
			if err := os.WriteFile(filepath.Join(dir, "1700000001_a_2.jsonl.gz"), spooled(w.t, "logs", log("d-1", "")), 0o600); err != nil {
				w.t.Fatal(err)
			}
		}, Spooled, "1700000001_a_2.jsonl.gz, for logs, decided"},
		"in a broken spool":                   {func(w *world) { w.spool(file, spooled(w.t, "dlq", log("d-1", ""))[:60]) }, "", ""},
		"archived letter, in an archived day": {func(w *world) { archiveLetters(w, "d-1", "x"); archiveDay(w, "x") }, Archived, "; docket restore"},
		"archived letter":                     {func(w *world) { archiveLetters(w, "d-1", "x") }, Archived, "; docket restore --dead-letters --day 2026-03-01"},
		"without any record":                  {func(w *world) { w.put("parking", log("d-10", "")) }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.put(w)
			a := w.find()
			if c.want == "" {
				if !a.Nowhere() || a.Complete() != (name == "without any record") {
					t.Errorf("%+v", a)
				}
				return
			}
			f := one(t, a)
			if f.Where != c.want || f.Same || !strings.Contains(f.Text(noon), c.says) || !f.Time.Equal(noon.Add(-time.Hour)) {
				t.Errorf("%s: %s", f.Where, f.Text(noon))
			}
			if !a.Complete() || a.Nowhere() {
				t.Errorf("not looked at: %v, nowhere: %v", a.NotLooked, a.Nowhere())
			}
		})
	}
}

// TestFind_NotLooked: a place that was not searched completely is named, and is not among the searched ones. It makes
// "not found" impossible.
func TestFind_NotLooked(t *testing.T) {
	t.Parallel()
	day := func(w *world, names ...string) {
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(w.shelf, name), []byte("{"), 0o600); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	const file = "1700000000_a_1.jsonl.gz"
	many := func(w *world, topic string) {
		for range 5 {
			w.put(topic, log("x", ""))
		}
		w.put(topic, log("d-1", ""))
	}
	for name, c := range map[string]struct {
		put  func(w *world)
		name string // of the gap
		why  string
	}{
		"too many records": {func(w *world) { many(w, "parking"); w.limits.Records = 5 }, "parked records in parking", "only the first 5 of up to 6 records were read"},
		"too many bytes":   {func(w *world) { many(w, "logs"); w.limits.Bytes = 200 }, "records of logs that are not read yet", "only the first 3 of up to 6 records were read"},
		"out of time":      {func(w *world) { many(w, "dlq"); w.hang, w.limits.Within = "dlq", 2*time.Second }, "dead letters in dlq that are not in the ledger yet", "it timed out after 2s: 5 of up to 6 records were read"},
		"not allowed":      {func(w *world) { w.broken["parking-dlq"] = errors.New("no right") }, "dead letters in parking-dlq that are not in the ledger yet", "no right"},
		"no ledger":        {func(w *world) { w.noLedger = errors.New("away") }, "the ledger of dead letters", "away"},
		"no table":         {func(w *world) { w.noTable = errors.New("away") }, "the rows of decision_logs", "away"},
		"a broken file":    {func(w *world) { w.spool(file, []byte("no gzip")) }, "the spool ", "1 of 1 files cannot be read whole, the first is " + file},
		"a set aside file": {func(w *world) { w.spool("corrupt/"+file, spooled(w.t, "dlq", log("x", ""))) }, "the spool ", "the first is corrupt/" + file},
		"no directory": {func(w *world) {
			file := filepath.Join(w.t.TempDir(), "spool")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				w.t.Fatal(err)
			}
			w.spools = []string{file, filepath.Join(w.t.TempDir(), "gone")}
		}, "the spool ", "it cannot be opened"},
		"too large a spool":  {func(w *world) { w.spool(file, spooled(w.t, "dlq", strings.Repeat("x", 900))); w.limits.Bytes = 500 }, "the spool ", "it holds more than 500 bytes"},
		"an archived day":    {func(w *world) { day(w, "decision_logs-2026-03-01-001-3f9a2c-4f397d52.manifest.json") }, "archived day 2026-03-01 in ", "its manifest is not valid JSON"},
		"a broken archive":   {func(w *world) { day(w, "dead_letters-2026-03-01-001-3f9a2c-4f397d52.manifest.json") }, "archived dead letters in ", "is broken"},
		"unreadable letters": {func(w *world) { archiveLines(w, `{"decision_id":7}`, `{}`, "no JSON") }, "archived dead letters in ", "2 of its lines are not dead letters"},
		"uneven letters":     {func(w *world) { archiveLines(w, `{"decisions":{"places":[1],"ids":["x","y"],"times":[null,null]}}`) }, "archived dead letters in ", "1 of its lines are not dead letters"},
		"too large archives": {func(w *world) { archiveLetters(w, "x"); w.limits.Bytes = 50 }, "archived dead letters in ", "only the newest 0 of 1 archives were read"},
		"no shelf":           {func(w *world) { w.shelf = "" }, "archives", "DOCKET_ARCHIVE_TO is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.put(w)
			a := w.find()
			if len(a.NotLooked) != 1 || !strings.HasPrefix(a.NotLooked[0].Name, c.name) || !strings.Contains(a.NotLooked[0].Why, c.why) {
				t.Errorf("not looked at: %v", a.NotLooked)
			}
			if slices.ContainsFunc(a.Looked, func(p Searched) bool { return strings.HasPrefix(p.Name, c.name) }) {
				t.Errorf("and looked at: %v", a.Looked)
			}
			if a.Complete() || !a.Nowhere() {
				t.Errorf("%+v", a)
			}
		})
	}
	w := newWorld(t)
	if a := w.find(); !a.Complete() || !a.Nowhere() || len(a.Looked) != 9 {
		t.Errorf("complete: %v, nowhere: %v, looked at %v", a.Complete(), a.Nowhere(), a.Looked)
	}
}

// A spool of another host is told where nothing is stored, and the answer is complete without it. With a decision that is stored it is not
// told.
func TestFind_SpoolsOfOtherHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.spools = []string{filepath.Join(t.TempDir(), "gone")}
	w.put("logs", "stored")
	w.committed["logs"] = 1 // without a note
	a := w.find()
	if len(a.NotLooked) != 1 || !a.NotLooked[0].Far || !strings.Contains(a.NotLooked[0].Why, "on this host") || !a.Complete() || !a.Nowhere() {
		t.Errorf("%+v", a)
	}
	look := w.look()
	look.Rows = func(context.Context, string) ([]reader.Decision, error) {
		return []reader.Decision{{Row: reader.Row{ID: "d-1"}}}, nil
	}
	if a := look.Find(t.Context(), "d-1"); len(a.NotLooked) != 0 || len(a.Rows) != 1 {
		t.Errorf("stored: %+v", a)
	}
	sharded := Look{Shards: []ShardLook{{"eu", look}, {"us", w.look()}}, Limits: w.limits}
	if a := sharded.Find(t.Context(), "d-1"); len(a.NotLooked) != 0 || len(a.Rows) != 1 {
		t.Errorf("stored in a shard: %+v", a)
	}
	sharded.Shards = sharded.Shards[1:]
	if a := sharded.Find(t.Context(), "d-1"); len(a.NotLooked) != 1 || !a.Complete() || !a.Nowhere() {
		t.Errorf("of no shard: %+v", a)
	}
}

// TestFind_SpoolsNoted: programs note beside their offsets whether their spools may have records. A spool that may have some is a
// gap, unless it is on this host.
func TestFind_SpoolsNoted(t *testing.T) {
	t.Parallel()
	const here, there = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"
	for name, c := range map[string]struct {
		logs, parking string
		spools        []string
		gap           string
		far           bool
	}{
		"none":                       {logs: "docket1 " + here + ".7.0", parking: "docket1"},
		"on this host":               {logs: "docket1 " + here + ".7.1", parking: "docket1"},
		"elsewhere":                  {"docket1 " + here + ".7.1 " + there + ".9.1", "docket1", nil, "on other hosts: 1 may have records: `consumer where-is ID --spool DIR`", false},
		"elsewhere, until later":     {logs: "docket1 " + there + ".9.1", parking: "docket1 " + there + ".10.0"},
		"the replayer's":             {"docket1", "docket1 " + there + ".9.1", nil, "on other hosts: 1 may have records", false},
		"more than are named":        {"docket1 +", "docket1", nil, "more than 0 may have records", false},
		"of an earlier release":      {"docket1 ?1777629600", "docket1", nil, "wrote no notes until 2026-05-01T10:00:00Z: no program says", true},
		"not noted":                  {"", "docket1", nil, "on other hosts: it is not known whether they have records", true},
		"not even an empty one here": {logs: "docket1", parking: "docket1", spools: []string{"gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("logs", "stored")
			w.put("parking", "stored")
			w.committed, w.notes = map[string]int64{"logs": 1, "parking": 1}, map[string]string{"logs": c.logs, "parking": c.parking}
			if w.spools = c.spools; c.spools == nil {
				w.spool(".lock", []byte(here+" 1\n"))
			}
			l := w.look()
			a := l.Find(t.Context(), "d-1")
			if c.gap == "" {
				if len(a.NotLooked) != 0 || !slices.ContainsFunc(a.Looked, func(p Searched) bool { return strings.HasPrefix(p.Name, "spools of consumers") }) {
					t.Errorf("not looked at %v, looked at %v", a.NotLooked, a.Looked)
				}
			} else if len(a.NotLooked) != 1 || !strings.Contains(a.NotLooked[0].String(), c.gap) || a.NotLooked[0].Far != c.far || a.Complete() != c.far {
				t.Errorf("not looked at %+v, complete: %v", a.NotLooked, a.Complete())
			}
			// A stored decision is answered without them.
			w.rows = []reader.Decision{{Row: reader.Row{ID: "d-1", Time: noon, Topic: "logs"}}}
			l.Quiet = func() Quiet {
				var of commitnote.Beside
				of.See(1, c.logs)
				of.See(1, c.parking)
				note, known := of.Note()
				return Quiet{Until: noon, Nothing: true, Spools: Noted{note, known}}
			}
			if q, ok := l.Around(t.Context(), "d-1"); !ok || len(q.NotLooked) != 0 {
				t.Errorf("around a row: %v, not looked at %+v", ok, q.NotLooked)
			}
		})
	}
}

// TestFind_LedgerAndTopic: the ledger has the records that the desk has read. Without a ledger the dead-letter topics
// are read from their start.
func TestFind_LedgerAndTopic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("dlq", log("d-1", ""), first...)
	w.committed["dlq"] = 1
	if a := w.find(); !a.Nowhere() {
		t.Errorf("found %+v", a.Found)
	}
	w.noLedger = errors.New("away")
	if f := one(t, w.find()); f.Where != Dead {
		t.Errorf("%+v", f)
	}
	w.noLedger, w.committed = nil, map[string]int64{}
	id := envelope.ID(envelope.Origin{Topic: "logs", Partition: 3, Offset: 41, Index: 1}, w.records["dlq"][0].Value)
	w.letters = []ledger.Entry{{Letter: ledger.Letter{ID: id, DecisionID: "d-1", Origin: envelope.Origin{Topic: "logs", Partition: 3, Offset: 41, Index: 1}}}}
	if a := w.find(); len(a.Found) != 0 || len(a.Letters) != 1 { // entered, and not committed yet
		t.Errorf("%+v", a)
	}
	w.committed["dlq"] = 99 // of an earlier topic
	w.letters = nil
	one(t, w.find())
}

// TestFind_Left: letters that a desk left in Kafka are found there until they are in the ledger. A range that is too
// long is reported.
func TestFind_Left(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"x", "d-1", "x", "x", "x"} {
		w.put("dlq", log(id, ""), first...)
	}
	w.committed["dlq"] = 5
	if a := w.find(); !a.Nowhere() {
		t.Errorf("found %+v", a.Found)
	}
	w.left = []ledger.Surplus{{Topic: "dlq", First: 0, Next: 1, Last: 1, Letters: 1, State: ledger.SurplusOpen}, {Topic: "dlq", First: 3, Next: 3, Last: 3, Letters: 1, State: ledger.SurplusOpen}}
	a := w.find()
	f := one(t, a)
	if f.Where != Dead || f.Offset != 1 || !f.Left || !strings.Contains(f.Text(noon), "docket dlq surplus") {
		t.Errorf("%+v: %s", f, f.Text(noon))
	}
	if name := "dead letters in dlq that a desk has read and not entered"; !slices.ContainsFunc(a.Looked, func(p Searched) bool { return p.Name == name && strings.HasPrefix(p.Note, "3 up to") }) {
		t.Errorf("looked at %v", a.Looked)
	}
	w.limits.Records = 2
	if a := w.find(); len(a.NotLooked) != 1 || !strings.Contains(a.NotLooked[0].String(), "dead letters in dlq that a desk has read and not entered: only the first 2 of up to 3") {
		t.Errorf("not looked at %v", a.NotLooked)
	}
	w.left[0].Next = 2 // the desk has entered it
	if a := w.find(); len(a.Found) != 0 {
		t.Errorf("found %+v", a.Found)
	}
	w.left = []ledger.Surplus{{Topic: "dlq", Next: 1, Last: 1, Letters: 1, Entered: 1, State: ledger.SurplusEntered}}
	if a := w.find(); len(a.Found) != 0 {
		t.Errorf("found %+v", a.Found)
	}
}

// TestFind_LeftInTooManyRanges: a letter in a range beyond the limit may be missed, and the answer says so.
func TestFind_LeftInTooManyRanges(t *testing.T) {
	t.Parallel()
	const gap = "dead letters that a desk left in Kafka: only the oldest 20000 ranges were read, and there are more"
	w := newWorld(t)
	w.put("dlq", log("x", ""), first...)
	w.put("parking-dlq", log("x", ""), first...)
	w.put("parking-dlq", log("d-1", ""), first...)
	w.committed["dlq"], w.committed["parking-dlq"] = 1, 2
	w.left = slices.Repeat([]ledger.Surplus{{Topic: "dlq", Letters: 1, State: ledger.SurplusOpen}}, mostRanges)
	if a := w.find(); !a.Nowhere() || !a.Complete() {
		t.Errorf("as many as are read: found %v, not looked at %v", a.Found, a.NotLooked)
	}
	for _, topic := range []string{"parking-dlq", "dlq"} { // the letter is in the range that is not read, or there is none
		w.left = append(w.left[:mostRanges:mostRanges], ledger.Surplus{Topic: topic, First: 1, Next: 1, Last: 1, Letters: 1, State: ledger.SurplusOpen})
		a := w.find()
		if !a.Nowhere() || a.Complete() || len(a.NotLooked) != 1 || a.NotLooked[0].String() != gap {
			t.Errorf("%s: found %v, not looked at %v", topic, a.Found, a.NotLooked)
		}
		if slices.ContainsFunc(a.Looked, func(p Searched) bool { return strings.HasSuffix(p.Name, "that a desk has read and not entered") }) {
			t.Errorf("%s: not all ranges of it are known: looked at %v", topic, a.Looked)
		}
	}
}

// TestFind_LeftEntersMeanwhile: a letter that enters during the lookup is found in the ledger or in Kafka, at any
// time.
func TestFind_LeftEntersMeanwhile(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"committed dlq", "surplus", "ledger", "end dlq", "rows"} {
		w := newWorld(t)
		w.put("dlq", log("d-1", ""), first...)
		w.committed["dlq"] = 1
		w.left = []ledger.Surplus{{Topic: "dlq", Last: 0, Letters: 1, State: ledger.SurplusOpen}}
		w.moved = func(asked string) {
			if asked == at {
				w.left = nil
				w.letters = []ledger.Entry{{Letter: ledger.Letter{ID: "entered", DecisionID: "d-1", Origin: envelope.Origin{Topic: "logs", Partition: 3, Offset: 41, Index: 1}}}}
			}
		}
		if a := w.find(); len(a.Found)+len(a.Letters) == 0 {
			t.Errorf("enters at %q: found nowhere", at)
		}
	}
}

// TestFind_Claims tells the decision of a row from another one with its id.
func TestFind_Claims(t *testing.T) {
	t.Parallel()
	stored := reader.Decision{Row: reader.Row{ID: "d-1", Time: noon.Add(-time.Hour), Topic: "logs", Partition: 3, Offset: 41, Index: 1}, Raw: json.RawMessage(log("d-1", `, "input": 1.0`))}
	elsewhere := slices.Concat(first[:5], []string{"99"}, first[6:])
	for name, c := range map[string]struct {
		value   string
		headers []string
		keys    string
		row     func(*reader.Decision)
		same    bool
	}{
		"same place, same payload":       {value: log("d-1", `,"input":1`), headers: first, same: true},
		"another place, same payload":    {value: log("d-1", `,"input":1`), headers: elsewhere, same: true},
		"another place, another payload": {value: log("d-1", `,"input":2`), headers: elsewhere},
		"a forged place":                 {value: log("d-1", `,"input":2`), headers: first},
		"a forged place, with a key":     {value: log("d-1", `,"input":2`), headers: first, keys: strings.Repeat("k", 32)},
		"another time":                   {value: strings.Replace(log("d-1", `,"input":1`), "11:00", "11:01", 1), headers: elsewhere},
		"a row with a twin":              {value: log("d-1", `,"input":2`), headers: elsewhere, row: func(d *reader.Decision) { d.Unfaithful = []string{"/input"} }},
		"its own place, with a twin":     {value: log("d-1", `,"input":2`), headers: first, row: func(d *reader.Decision) { d.Unfaithful = []string{"/input"} }, same: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.keys = c.keys
			row := stored
			if c.row != nil {
				c.row(&row)
			}
			w.rows = []reader.Decision{row}
			w.put("parking", c.value, c.headers...)
			a := w.find()
			if f := one(t, a); f.Same != c.same || f.Unproven != (c.keys != "") || len(a.Elsewhere()) != map[bool]int{true: 0, false: 1}[c.same] {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestFind_OnTheMove: a record that moves during the lookup is found, at whichever step it moves.
func TestFind_OnTheMove(t *testing.T) {
	t.Parallel()
	steps := []string{"committed logs", "committed parking", "committed dlq", "committed parking-dlq", "ledger", "rows"}
	for _, at := range steps {
		for _, way := range []string{"row", "parked", "parked, then a row", "a row, parked before", "dead, then in the ledger"} {
			t.Run(way+" at "+at, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.put("logs", log("d-1", ""))
				w.committed["logs"] = 0
				if way == "a row, parked before" {
					w.put("parking", log("d-1", ""), first...)
					w.committed["logs"] = 1
				}
				var once sync.Once
				w.moved = func(asked string) {
					if asked != at {
						return
					}
					once.Do(func() { // it has its next home, then the source is committed
						switch way {
						case "row":
							w.rows = []reader.Decision{{Row: reader.Row{ID: "d-1"}}}
						case "parked":
							w.put("parking", log("d-1", ""), first...)
						case "parked, then a row":
							w.put("parking", log("d-1", ""), first...)
							w.rows = []reader.Decision{{Row: reader.Row{ID: "d-1"}}}
							w.committed["parking"] = 1
						case "a row, parked before":
							w.rows = []reader.Decision{{Row: reader.Row{ID: "d-1"}}}
							w.committed["parking"] = 1
						default:
							w.put("dlq", log("d-1", ""), first...)
							w.letters = []ledger.Entry{{Letter: ledger.Letter{ID: "l", DecisionID: "d-1"}}}
							w.committed["dlq"] = 1
						}
						w.committed["logs"] = 1
					})
				}
				if a := w.find(); a.Nowhere() {
					t.Errorf("%+v", a)
				}
			})
		}
	}
}

// TestFind_Many: results and memory are limited, and the answer says that there are more.
func TestFind_Many(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range mostFound + 5 {
		w.put("parking", log("d-1", ""))
	}
	a := w.find()
	if len(a.Found) != mostFound || !a.More {
		t.Errorf("%d found, more %v", len(a.Found), a.More)
	}
}

// TestFind_Hostile: no value ends a lookup, and the id of a part of a record matches no other id.
func TestFind_Hostile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, v := range []string{"", "null", "[", "\x1f\x8b", strings.Repeat("[", 20_000), `{"decision_id":7}`, `{"x":{"decision_id":"d-1"}}`, `{"decision_id":"\ud800"}`} {
		w.put("logs", v)
		w.put("parking", v)
		w.put("dlq", v)
	}
	if a := w.find(); !a.Nowhere() || !a.Complete() {
		t.Errorf("%+v", a)
	}
}

// archiveDay archives decisions with these ids.
func archiveDay(w *world, ids ...string) {
	var all []reader.Decision
	for i, id := range ids {
		d := reader.Decision{Row: reader.Row{ID: id, Time: noon.Add(-time.Hour), Topic: "logs", Offset: int64(i)}, Raw: json.RawMessage(log(id, ""))}
		all = append(all, d)
	}
	if _, err := archivetest.Write(w.t.Context(), archive.Dir(w.shelf), 0, all...); err != nil {
		w.t.Fatal(err)
	}
}

// TestFind_ArchivedDays: a decision of an archived day is found without a restore, and once if the table has it, too.
func TestFind_ArchivedDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	archiveDay(w, "d-1", "x")
	a := w.find()
	if len(a.Archived) != 1 || a.Archived[0].ID != "d-1" || a.Archived[0].Archived.Day != "2026-05-01" || !a.Complete() || a.Nowhere() || len(a.Found) != 0 {
		t.Fatalf("%+v", a)
	}
	if i := slices.IndexFunc(a.Looked, func(p Searched) bool { return p.String() == "archived days in "+w.shelf+": 1 day" }); i < 0 {
		t.Errorf("looked at %v", a.Looked)
	}
	row := a.Archived[0]
	row.Archived = nil
	if a.Shown(); len(a.Found) != 1 || a.Found[0].Where != InArchive || a.Found[0].Day != "2026-05-01" {
		t.Errorf("%+v", a.Found)
	}
	w.rows = []reader.Decision{row}
	a = w.find()
	if len(a.Archived) != 0 || len(a.Stored()) != 1 || len(a.Copies()) != 1 || !strings.Contains(a.Found[0].Text(noon), "the same decision as the row") {
		t.Errorf("%+v", a)
	}
	w.rows[0].Raw = json.RawMessage(log("d-1", `,"other":1`))
	if a = w.find(); len(a.Elsewhere()) != 1 || a.Elsewhere()[0].Where != InArchive {
		t.Errorf("another payload under the identity is not told: %+v", a.Found)
	}
	w.rows[0].Time = w.rows[0].Time.Add(time.Second)
	if a = w.find(); len(a.Archived) != 1 || len(a.Stored()) != 2 {
		t.Errorf("another time: %+v", a)
	}
}

// TestFind_DayLeavesTheTable: a day that is archived during the look is seen in the table or in its archive.
func TestFind_DayLeavesTheTable(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"ledger", "surplus", "rows"} {
		w := newWorld(t)
		w.rows = []reader.Decision{{Row: reader.Row{ID: "d-1", Time: noon.Add(-time.Hour)}, Raw: json.RawMessage(log("d-1", ""))}}
		w.moved = func(at string) {
			if at == step && len(w.rows) > 0 {
				archiveDay(w, "d-1")
				w.rows = nil
			}
		}
		if a := w.find(); a.Nowhere() {
			t.Errorf("%s: it is nowhere", step)
		}
	}
}
