package verify

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

const (
	source  = "logs"
	parking = "parking"
	dlq     = "dlq"
	pdlq    = "parking-dlq"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// world is a source, the evidence of a perfect Docket, and a watched run.
type world struct {
	truth *Truth
	ev    *Evidence
	hist  *History
	value map[Place][]byte
}

// in is a partition of the source.
func in(p int32) Partition { return Partition{source, p} }

// perfect is a settled world. It has good decisions, a parked one, one that was rightly exhausted, a duplicate and a
// conflict. It has one that the decoder refuses, one that the table refuses, and a record of three.
func perfect() *world {
	w := &world{truth: NewTruth(), value: make(map[Place][]byte), ev: &Evidence{
		At: noon.Add(time.Hour), Settled: true, AllRows: true,
		Committed: Offsets{in(0): 20, in(1): 20}, Ends: Offsets{in(0): 20, in(1): 20}, Replayed: map[int32]int64{0: 10},
		Spool:   []SpoolDir{{Dir: "spool", Mode: 0o700, Files: []SpoolFile{{Name: "1_a_1.meta.json", Mode: 0o600}}}},
		Metrics: map[string]Metrics{"consumer": {unaccounted: 0, `docket_records_total{home="row"}`: 30}},
	}}
	w.truth.KnowsTable = true
	for p := range int32(2) {
		for o := range int64(20) {
			w.one(p, o)
		}
	}
	w.ev.Forwarded = append(w.ev.Forwarded[:0:0], w.ev.Forwarded...)
	slices.SortStableFunc(w.ev.Forwarded, func(a, b Forwarded) int { return rank[a.Home] - rank[b.Home] })
	w.watch()
	w.entered()
	return w
}

// one makes the record at a place, and its evidence.
func (w *world) one(p int32, o int64) {
	at := Place{source, p, o, 0}
	id, code := fmt.Sprintf("d-%d-%d", p, o), ""
	body := fmt.Sprintf(`{"decision_id":%q,"n":%d}`, id, o)
	switch {
	case p == 0 && o == 3:
		id, code, body = "", "syntax", "{"
	case p == 0 && o == 4:
		code = "23514"
	case p == 0 && o == 5: // repeats 0/0 in another notation
		id, body = "d-0-0", `{"n":0.0, "decision_id":"d-0-0"}`
	case p == 0 && o == 6: // contradicts 0/1
		id, body = "d-0-1", `{"decision_id":"d-0-1","n":99}`
	case p == 1 && o == 7:
		code = "40001"
	case p == 1 && o == 9:
		w.three(at)
		return
	}
	key := []byte(fmt.Sprintf("key-%d", o%3))
	w.value[at] = []byte(body)
	w.truth.Add(Decision{Place: at, ID: id, Time: noon, Key: SumOf(key), KeyText: string(key), Value: SumOf([]byte(body)), Body: []byte(body), Code: code})
	switch {
	case p == 0 && o == 5:
	case p == 0 && o == 6:
		w.forward(at, home.DeadLetter, dlq, "id_conflict")
	case code == "40001":
		w.forward(at, home.Parked, parking, code)
		w.forward(at, home.Exhausted, pdlq, code)
	case code != "":
		w.forward(at, home.DeadLetter, dlq, code)
	default:
		if p == 1 && o > 10 && o < 15 {
			w.forward(at, home.Parked, parking, "network")
		}
		w.ev.Rows = append(w.ev.Rows, Row{Place: at, ID: id, Time: noon, Raw: []byte(body)})
	}
}

// three is a record of three decisions. The middle one has no timestamp.
func (w *world) three(at Place) {
	var ds []Decision
	for i := range 3 {
		at.Index = i
		body := []byte(fmt.Sprintf(`{"decision_id":"three-%d"}`, i))
		d := Decision{Place: at, ID: fmt.Sprintf("three-%d", i), Time: noon, Key: SumOf(nil), Value: SumOf(body), Body: body}
		if i == 1 {
			d.ID, d.Code = "", "missing_field"
		} else {
			w.ev.Rows = append(w.ev.Rows, Row{Place: at, ID: d.ID, Time: noon, Raw: body})
		}
		w.value[at] = body
		ds = append(ds, d)
	}
	w.truth.Add(ds...)
	at.Index = 1
	w.forward(at, home.DeadLetter, dlq, "missing_field")
}

// forward adds a copy to a topic, as Docket seals it.
func (w *world) forward(at Place, h home.Home, topic, code string) *Forwarded {
	d := w.truth.At(at)
	var key []byte
	if d.KeyText != "" {
		key = []byte(d.KeyText)
	}
	index := at.Index
	if d.Code == "syntax" {
		index = envelope.NoIndex
	}
	r := envelope.Open(&kgo.Record{Topic: at.Topic, Partition: at.Partition, Offset: at.Offset, Key: key}).
		Seal(envelope.Cause{Kind: envelope.Data, Code: code, Message: "words of ours"}, envelope.Sealed{
			Topic: topic, Index: index, Value: w.value[at], At: noon.Add(time.Minute),
		})
	r.Offset = int64(len(w.ev.Forwarded))
	f := ForwardedOf(r, h, topic)
	f.Settled = h == home.Parked
	w.ev.Forwarded = append(w.ev.Forwarded, f)
	return &w.ev.Forwarded[len(w.ev.Forwarded)-1]
}

// watch writes a matching history.
func (w *world) watch() {
	at := func(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }
	w.hist = &History{
		Seed: "7", Build: "abc", RebalanceTimeout: 90 * time.Second, Heals: []time.Time{at(100)}, Settled: at(130), Backlog: 100, Rate: 10,
		Attempts: []Attempt{
			{Process: "a", Batch: "1", Begun: at(1), Ended: at(2), Outcome: Failed},
			{Process: "a", Batch: "1", Begun: at(3), Ended: at(4), Outcome: Failed},
			{Process: "a", Batch: "1", Begun: at(6.2), Ended: at(7), Outcome: Failed},
			{Process: "a", Batch: "2", Begun: at(8), Ended: at(9), Outcome: Failed},
		},
		Cancels: []Cancel{{At: at(9.5), Process: "a", Batch: "2"}},
		Carries: []Carry{{Process: "a", Polled: at(1), Released: at(40)}},
		Faults:  []Fault{{From: at(50), To: at(100), Kind: "database", Name: "full disk", Systemic: true, Code: "53100", Signals: []string{"docket_hold"}, Raised: []string{"docket_hold"}}},
		Publishes: []Publish{
			{At: at(10), Process: "a", Batch: "1", Home: home.Parked, Outcome: Succeeded},
			{At: at(50.1), Process: "a", Batch: "3", Begun: at(49), Home: home.DeadLetter, ID: w.ev.Forwarded[0].ID, Outcome: Succeeded},
		},
		Kills:     []Kill{{At: at(20), Process: "b", Point: "K5"}},
		Processes: []Process{{Name: "a", Began: at(0), Before: Facts{Goroutines: 20, RSS: 50 << 20}, After: Facts{Goroutines: 21, RSS: 60 << 20}}, {Name: "b", Began: at(0), Ended: at(20), Exit: -1}},
		Texts:     []Text{{Name: "log of a", Body: "one\ntwo\n"}}, Markers: []string{"hunter2"},
		Claims: []Claim{{By: "the desk", At: at(140), Until: at(130)}},
	}
	for i, offset := range []int64{5, 5, 12, 20} {
		w.hist.Commits = append(w.hist.Commits, Commit{At: at(float64(10 * i)), Process: "a", Group: "docket", Topic: source, Offset: offset, End: 20, Lowest: 20, Outcome: Succeeded})
	}
	reference := *w.ev
	reference.Rows, reference.Forwarded = slices.Clone(w.ev.Rows), slices.Clone(w.ev.Forwarded)
	w.hist.Reference = &reference
}

func (w *world) decide() *Summary { return Decide(w.ev, w.truth, w.hist) }

// row returns the index of the row of a place.
func (w *world) row(p int32, o int64) int {
	return slices.IndexFunc(w.ev.Rows, func(r Row) bool { return r.Partition == p && r.Offset == o })
}

func (w *world) dropRow(p int32, o int64) {
	i := w.row(p, o)
	w.ev.Rows = slices.Delete(slices.Clone(w.ev.Rows), i, i+1)
}

// in returns the first record in a home that was read at a place.
func (w *world) in(h home.Home, p int32, o int64) *Forwarded {
	w.ev.Forwarded = slices.Clone(w.ev.Forwarded)
	i := slices.IndexFunc(w.ev.Forwarded, func(f Forwarded) bool { return f.Home == h && f.Partition == p && f.Offset == o })
	return &w.ev.Forwarded[i]
}

func (w *world) drop(h home.Home, p int32, o int64) {
	w.ev.Forwarded = slices.DeleteFunc(slices.Clone(w.ev.Forwarded), func(f Forwarded) bool {
		return f.Home == h && f.Partition == p && f.Offset == o
	})
}

func TestDecide_PerfectWorld(t *testing.T) {
	t.Parallel()
	r := perfect().decide()
	for _, v := range r.Results {
		if v.State != Held || v.Checked == 0 {
			t.Errorf("%v", v)
		}
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	if r.Homes[home.Row] != 36 || r.Homes[home.Duplicate] != 1 || r.Homes[home.DeadLetter] != 4 || r.Homes[home.Exhausted] != 1 || r.Homes[home.None] != 0 || r.Decisions != 42 {
		t.Errorf("%d decisions, homes %v", r.Decisions, r.Homes)
	}
}
