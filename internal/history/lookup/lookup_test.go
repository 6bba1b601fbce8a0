package lookup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/service/config"
	"docket/internal/testkit/archivetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// world has every place, in memory or in a directory of the test.
type world struct {
	t         *testing.T
	mu        sync.Mutex
	records   map[string][]*kgo.Record // by topic, of partition 0
	remade    map[string]int           // how often a topic was made again
	scanned   int                      // records that scans gave
	committed map[string]int64         // by topic
	broken    map[string]error         // by topic
	hang      string                   // a topic whose scan never ends
	moved     func(asked string)       // called with each request
	rows      []reader.Decision
	letters   []ledger.Entry
	left      []ledger.Surplus
	noLedger  error
	noTable   error
	shelf     string
	spools    []string
	limits    Limits
	keys      string
	lanes     []string
}

func newWorld(t *testing.T) *world {
	return &world{t: t, records: map[string][]*kgo.Record{}, remade: map[string]int{}, committed: map[string]int64{}, broken: map[string]error{}, shelf: t.TempDir(), moved: func(string) {}}
}

func (w *world) look() *Look {
	s := config.Settings{KafkaTopic: "logs", KafkaParkingTopic: "parking", KafkaDLQTopic: "dlq", KafkaParkingDLQTopic: "parking-dlq", KafkaGroup: "g", ParkingGroup: "p", DeskGroup: "d",
		ArchiveTo: w.shelf, HeaderKey: config.Secret(w.keys), LaneNames: w.lanes}
	shelf := func(where string) (archive.Shelf, error) { return archive.Dir(where), nil }
	return &Look{
		Days:     cold.New(cold.Config{Where: w.shelf, Table: "decision_logs", LineBytes: 1 << 20, Shelf: func() (archive.Shelf, error) { return shelf(w.shelf) }}),
		Settings: s, Book: w, Spools: w.spools, Limits: w.limits, Now: func() time.Time { return noon },
		Topics: func() (Topics, func(), error) { return w, func() {}, nil },
		Shelf:  shelf,
		Rows: func(context.Context, string) ([]reader.Decision, error) {
			w.moved("rows")
			return w.rows, w.noTable
		},
	}
}

func (w *world) find() Answer { return w.look().Find(w.t.Context(), "d-1") }

func (w *world) Claims(context.Context, string, int) ([]ledger.Entry, error) {
	w.moved("ledger")
	return slices.Clone(w.letters), w.noLedger
}

func (w *world) Surplus(context.Context, bool, int) ([]ledger.Surplus, error) {
	w.moved("surplus")
	return w.left, nil
}

func (w *world) Committed(_ context.Context, group, topic string) (map[int32]int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved("committed " + topic)
	at, there := w.committed[topic]
	if !there {
		return map[int32]int64{}, nil
	}
	return map[int32]int64{0: at}, nil
}

func (w *world) Ends(_ context.Context, topic string) (map[int32]int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved("end " + topic)
	return map[int32]int64{0: int64(len(w.records[topic]))}, w.broken[topic]
}

func (w *world) Identity(_ context.Context, topic string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%s made %d times", topic, 1+w.remade[topic]), nil
}

func (w *world) Scan(ctx context.Context, topic string, from, to map[int32]int64, each func(*kgo.Record) error) (map[int32]int64, error) {
	w.mu.Lock()
	all := w.records[topic][from[0]:to[0]]
	w.mu.Unlock()
	for i, r := range all {
		if topic == w.hang && i == len(all)-1 {
			<-ctx.Done()
			return from, ctx.Err()
		}
		w.mu.Lock()
		w.scanned++
		w.mu.Unlock()
		if err := each(r); err != nil {
			return from, err
		}
	}
	return from, nil
}

func log(id string, more string) string {
	return fmt.Sprintf(`{"decision_id":%q,"timestamp":"2026-05-01T11:00:00Z"%s}`, id, more)
}

func (w *world) put(topic, value string, headers ...string) {
	r := &kgo.Record{Topic: topic, Offset: int64(len(w.records[topic])), Value: []byte(value), Timestamp: noon}
	for i := 0; i < len(headers); i += 2 {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: headers[i], Value: []byte(headers[i+1])})
	}
	w.records[topic] = append(w.records[topic], r)
}

var first = []string{"x-original-topic", "logs", "x-original-partition", "3", "x-original-offset", "41", "x-original-index", "1"}

func (w *world) spool(name string, content []byte) string {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "spool")
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.spools = append(w.spools, dir)
	return dir
}

func spooled(t *testing.T, topic string, values ...string) []byte {
	t.Helper()
	return spooledWith(t, topic, nil, values...)
}

func spooledWith(t *testing.T, topic string, pairs []string, values ...string) []byte {
	t.Helper()
	headers := []any{}
	for i := 0; i < len(pairs); i += 2 {
		headers = append(headers, map[string]any{"key": pairs[i], "value": pairs[i+1]})
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, v := range values {
		record := map[string]any{"topic": topic, "key": nil, "value": v, "headers": headers, "timestamp": "2026-05-01T12:00:00Z"}
		if !utf8.ValidString(v) {
			record["value"], record["value_encoding"] = []byte(v), "base64"
		}
		line, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// one returns the only record that was found.
func one(t *testing.T, a Answer) Found {
	t.Helper()
	if len(a.Found) != 1 {
		t.Fatalf("found %+v", a.Found)
	}
	return a.Found[0]
}

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

// Refused decisions in a shared dead letter are found each by its id, in the topic and in a spool. Each has its place
// in the upload and its own code.
func TestFind_SharedLetter(t *testing.T) {
	t.Parallel()
	const torn = `{"timestamp":"2026-05-01T11:00:00Z","decision_id":"d-1"`
	array := "[\n\n0,\n\n\n" + log("d-1", `,"labels":7`) + ",1]"
	for name, c := range map[string]struct {
		value string
		count string
		index int
		code  string
	}{
		"array":              {array, "3", 6, "wrong_type"},
		"gzip":               {string(decision.Zip([]byte(array))), "3", 6, "wrong_type"},
		"lines":              {"\n\n\n" + log("x", "") + "\n\n" + torn, "2", 5, "syntax"},
		"lines, none whole":  {"\n\n{\n\n\n" + torn, "2", 5, "syntax"},
		"stored now":         {"[\n" + log("d-1", "") + ",1]", "2", 1, "missing_field"},
		"not as many":        {array, "4", 1, "missing_field"},
		"no count of others": {array, "x", 1, "missing_field"},
	} {
		for _, spool := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", spooled ", spool), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				headers := []string{"x-original-topic", "logs", "x-original-partition", "3", "x-original-offset", "41", "x-failure-kind", "decode", "x-failure-code", "missing_field", "x-refused-decisions", c.count}
				if spool {
					w.spool("1700000000_a_1.jsonl.gz", spooledWith(t, "dlq", headers, c.value))
				} else {
					w.put("dlq", c.value, headers...)
				}
				f := one(t, w.find())
				if want := (envelope.Origin{Topic: "logs", Partition: 3, Offset: 41, Index: c.index}); f.Origin.Topic != want.Topic || f.Origin.Partition != want.Partition || f.Origin.Offset != want.Offset || f.Origin.Index != want.Index || f.Code != c.code {
					t.Errorf("%+v, code %s", f.Origin, f.Code)
				}
			})
		}
	}
}

// Refused decisions that share a dead letter are found each by its id once the letter is archived. Each has its time and its
// place in the upload.
func TestFind_SharedArchivedLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	archiveLines(w,
		`{"dead_letter_id":"l-1","decision_id":null,"origin_topic":"logs","origin_partition":3,"origin_offset":41,"origin_index":4,"value":"\\x5b5d",`+
			`"decisions":{"refused":4,"places":[4,6,9],"ids":["x","d-1","d-2"],"times":[null,"2026-05-01T11:00:00+00:00",null]}}`,
		`{"dead_letter_id":"l-2","decision_id":"d-3","decision_ts":"0001-01-01T00:00:00+00:00 BC","decisions":null}`)
	all := w.look().All(t.Context(), []string{"d-1", "d-2", "d-3"})
	for i, want := range []struct {
		letter string
		index  int
		time   time.Time
	}{{"l-1", 6, noon.Add(-time.Hour)}, {"l-1", 9, time.Time{}}, {"l-2", envelope.NoIndex, time.Time{}}} {
		f := one(t, all[i])
		if f.Where != Archived || f.Letter != want.letter || f.Origin.Index != want.index || !f.Time.Equal(want.time) || f.Same || !all[i].Complete() {
			t.Errorf("%s: %+v, not looked at %v", all[i].ID, f, all[i].NotLooked)
		}
	}
	w.rows = []reader.Decision{{Row: reader.Row{ID: "d-1", Time: noon, Topic: "logs", Partition: 3, Offset: 41, Index: 6}}}
	if f := one(t, w.find()); !f.Same {
		t.Errorf("stored since: %+v", f)
	}
}

// archiveLetters writes an archive with a dead letter for each id.
func archiveLetters(w *world, ids ...string) {
	w.t.Helper()
	var lines []string
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf(`{"dead_letter_id":"l-%s","decision_id":%q,"decision_ts":"2026-05-01T11:00:00+00:00","kind":"data","code":"23514","origin_topic":"logs","origin_partition":3,"origin_offset":41,"origin_index":null,"value":"\\x7b7d"}`, id, id))
	}
	archiveLines(w, lines...)
}

// archiveLines writes an archive of dead letters with these lines.
func archiveLines(w *world, lines ...string) {
	w.t.Helper()
	book := &closedDay{lines: lines}
	c := archive.LettersCarrier{Table: book, Shelf: archive.Dir(w.shelf), By: "mara", Docket: "test", Now: func() time.Time { return noon }}
	day, err := archive.ParseDay("2026-03-01")
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := c.Archive(w.t.Context(), day); err != nil {
		w.t.Fatal(err)
	}
}

// closedDay is a ledger with a day of closed letters.
type closedDay struct {
	lines []string
	noted bool
}

func (d *closedDay) Days(context.Context, archive.Day) ([]archive.LettersHeld, error) {
	return nil, nil
}
func (d *closedDay) Open(context.Context, archive.Day) (archive.LettersSession, error) { return d, nil }
func (d *closedDay) Columns() []archive.Column {
	return []archive.Column{{Name: "dead_letter_id", Type: "text"}}
}
func (d *closedDay) Source(context.Context) (archive.Source, error) {
	return archive.Source{ID: "3f9a2c"}, nil
}
func (d *closedDay) Waiting(context.Context) (int64, error) {
	if d.noted {
		return 0, nil
	}
	return int64(len(d.lines)), nil
}
func (d *closedDay) Read(_ context.Context, each func([]byte) error) error {
	for _, line := range d.lines {
		if err := each([]byte(line)); err != nil {
			return err
		}
	}
	return nil
}
func (d *closedDay) Note(_ context.Context, _, _ string, lines [][]byte) (int64, error) {
	d.noted = true
	return int64(len(lines)), nil
}
func (d *closedDay) Load(context.Context, string, string, []archive.Column, [][]byte) (archive.LettersLoaded, error) {
	return archive.LettersLoaded{}, nil
}
func (d *closedDay) Close() {}

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
		"out of time":      {func(w *world) { many(w, "dlq"); w.hang, w.limits.Within = "dlq", 50*time.Millisecond }, "dead letters in dlq that are not in the ledger yet", "it timed out after 50ms: 5 of up to 6 records were read"},
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
	if a := w.find(); !a.Complete() || !a.Nowhere() || len(a.Looked) != 8 {
		t.Errorf("complete: %v, nowhere: %v, looked at %v", a.Complete(), a.Nowhere(), a.Looked)
	}
}

// A spool of another host is told where nothing is stored, and the answer is complete without it. With a decision that is stored it is not
// told.
func TestFind_SpoolsOfOtherHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.spools = []string{filepath.Join(t.TempDir(), "gone")}
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

// TestShared_OneScan: concurrent requests share a scan, each gets its own answer, and none waits for one that left.
func TestShared_OneScan(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var scans [][]string
	running := 0
	gate := make(chan struct{})
	began := make(chan struct{}, 100)
	s := &Shared{turn: make(chan struct{}, 1), look: func(_ context.Context, ids []string) ([]Answer, int64) {
		mu.Lock()
		running++
		if running > 1 {
			t.Error("two scans at once")
		}
		scans = append(scans, slices.Clone(ids))
		mu.Unlock()
		began <- struct{}{}
		<-gate
		mu.Lock()
		running--
		mu.Unlock()
		var all []Answer
		for _, id := range ids {
			all = append(all, Answer{ID: id})
		}
		return all, 0
	}}
	var wait sync.WaitGroup
	ask := func(ctx context.Context, id string, want error) {
		wait.Go(func() {
			if a, err := s.Find(ctx, id); !errors.Is(err, want) || err == nil && a.ID != id {
				t.Errorf("%s: %+v, %v", id, a, err)
			}
		})
	}
	ask(t.Context(), "0", nil)
	<-began // the first scan is running
	gone, leave := context.WithCancel(t.Context())
	ask(gone, "gone", context.Canceled)
	for i := range 50 {
		ask(t.Context(), fmt.Sprint(i%10), nil)
	}
	for n := 0; n < 51; runtime.Gosched() { // until all wait
		s.mu.Lock()
		n = len(s.wait)
		s.mu.Unlock()
	}
	leave()
	close(gate)
	wait.Wait()
	if len(scans) != 2 || len(scans[1]) != 11 {
		t.Errorf("scans: %v", scans)
	}
}

// TestShared_PausesAfterManyRecords: a scan of a pile, or a long one, is followed by a pause as long as itself.
func TestShared_PausesAfterManyRecords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		read        int64
		scan, pause time.Duration
	}{
		{0, shortScan, 0},
		{fewRecords, shortScan, 0},
		{fewRecords + 1, shortScan, shortScan},
		{0, shortScan + 1, shortScan + 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Shared{turn: make(chan struct{}, 1), look: func(_ context.Context, ids []string) ([]Answer, int64) {
				time.Sleep(c.scan)
				return []Answer{{ID: ids[0]}}, c.read
			}}
			from := time.Now()
			for range 2 {
				if _, err := s.Find(t.Context(), "d-1"); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(from); took != 2*c.scan+c.pause {
				t.Errorf("two scans of %v and %d records took %v, want a pause of %v", c.scan, c.read, took, c.pause)
			}
		})
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
