package lookup

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/service/config"
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
	notes     map[string]string        // beside it
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

func (w *world) Surplus(_ context.Context, _ bool, _ int64, n int) ([]ledger.Surplus, error) {
	w.moved("surplus")
	return w.left[:min(n, len(w.left))], nil
}

func (w *world) CommittedNoted(_ context.Context, _, topic string) (done map[int32]int64, notes map[int32]string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved("committed " + topic)
	at, there := w.committed[topic]
	if !there {
		return map[int32]int64{}, nil, nil
	}
	return map[int32]int64{0: at}, map[int32]string{0: w.notes[topic]}, nil
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
