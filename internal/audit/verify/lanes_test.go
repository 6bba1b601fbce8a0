package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"docket/internal/errclass"
	"docket/internal/record/home"
)

const (
	urgentTopic = source + "-urgent"
	bulkTopic   = source + "-bulk"
)

// withLanes is the perfect world with two lanes more. Each has ten decisions of its own at the partitions and offsets
// of the default lane, and its offsets are committed by its own group.
func withLanes() *world {
	w := perfect()
	for _, topic := range []string{urgentTopic, bulkTopic} {
		for o := range int64(10) {
			w.lane(topic, o, fmt.Sprintf("%s-%d", topic, o), fmt.Sprintf(`{"n":%d}`, o))
		}
		w.ev.Committed.Add(topic, map[int32]int64{0: 10})
		w.ev.Ends.Add(topic, map[int32]int64{0: 10})
	}
	w.hist.Reference.Rows = slices.Clone(w.ev.Rows)
	return w
}

// lane adds a decision to partition 0 of a lane, with its row.
func (w *world) lane(topic string, o int64, id, body string) {
	at := Place{topic, 0, o, 0}
	w.value[at] = []byte(body)
	w.truth.Add(Decision{Place: at, ID: id, Time: noon, Key: SumOf([]byte("k")), KeyText: "k", Value: SumOf([]byte(body)), Body: []byte(body)})
	w.ev.Rows = append(w.ev.Rows, Row{Place: at, ID: id, Time: noon, Raw: []byte(body)})
}

func (w *world) dropRowOf(topic string, o int64) {
	w.ev.Rows = slices.DeleteFunc(slices.Clone(w.ev.Rows), func(r Row) bool { return r.Topic == topic && r.Offset == o })
}

func TestLanes_AllHeld(t *testing.T) {
	t.Parallel()
	r := withLanes().decide()
	for _, v := range r.Results {
		if v.State != Held {
			t.Errorf("%v", v)
		}
	}
	if r.Homes[home.Row] != 56 || r.Homes[home.None] != 0 || r.Decisions != 62 {
		t.Errorf("%d decisions, homes %v", r.Decisions, r.Homes)
	}
}

func TestLanes_EachLossIsSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil     func(w *world)
		invariant string
		says      string
	}{
		"a lost row in urgent":          {func(w *world) { w.dropRowOf(urgentTopic, 4) }, "I1", urgentTopic + "/0/4"},
		"a lost row in bulk":            {func(w *world) { w.dropRowOf(bulkTopic, 4) }, "I1", bulkTopic + "/0/4"},
		"urgent is not read to the end": {func(w *world) { w.ev.Committed[Partition{urgentTopic, 0}] = 9 }, "I7", urgentTopic + "/0 is committed up to 9 of 10"},
		"a commit beyond the end of urgent": {func(w *world) {
			w.ev.Committed[Partition{urgentTopic, 0}], w.hist.Commits = 11, nil // 20 in the default lane is right
		}, "I8", urgentTopic + "/0 is committed up to 11, and its log ends at 10"},
		"nobody produced it in urgent": {func(w *world) {
			w.ev.Rows = append(w.ev.Rows, Row{Place: Place{urgentTopic, 0, 15, 0}, ID: "x", Time: noon}) // offset 15 is only in the default lane
		}, "I4", urgentTopic + "/0/15"},
		"a row from beyond urgent's end": {func(w *world) {
			w.ev.AllRows, w.truth.Spans = false, map[Partition]Span{}
			w.ev.Rows = []Row{{Place: Place{urgentTopic, 0, 15, 0}, ID: "x", Time: noon}}
		}, "I4", "the log ends at 10"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withLanes()
			c.spoil(w)
			v := w.decide().Of(c.invariant)
			if v.State != Broken || !strings.Contains(v.String(), c.says) {
				t.Errorf("%v, want %q", v, c.says)
			}
		})
	}
}

// A decision that has no row counts as lost only if the group of its own lane has passed it.
func TestLanes_CommittedByItsOwnGroup(t *testing.T) {
	t.Parallel()
	w := withLanes()
	w.ev.Settled, w.ev.Committed[Partition{urgentTopic, 0}] = false, 4
	w.dropRowOf(urgentTopic, 4)
	if v := w.decide().Of("I1"); v.State != Held {
		t.Errorf("not read yet: %v", v)
	}
	w.ev.Committed[Partition{urgentTopic, 0}] = 5
	if v := w.decide().Of("I1"); v.State != Broken {
		t.Errorf("read: %v", v)
	}
}

// One decision that came in two lanes is one row and a duplicate. With another payload it is a conflict.
func TestLanes_OneIdentityInTwo(t *testing.T) {
	t.Parallel()
	w := withLanes()
	w.lane(urgentTopic, 10, "d-0-1", `{"n":1,"decision_id":"d-0-1"}`)
	w.dropRowOf(urgentTopic, 10)
	w.ev.Committed[Partition{urgentTopic, 0}], w.ev.Ends[Partition{urgentTopic, 0}] = 11, 11
	r := w.decide()
	if err := r.Err(); err != nil || r.Homes[home.Duplicate] != 2 {
		t.Errorf("equal: homes %v, %v", r.Homes, err)
	}

	w = withLanes()
	w.lane(urgentTopic, 10, "d-0-1", `{"decision_id":"d-0-1","n":7}`)
	w.dropRowOf(urgentTopic, 10)
	w.ev.Committed[Partition{urgentTopic, 0}], w.ev.Ends[Partition{urgentTopic, 0}] = 11, 11
	if v := w.decide().Of("I1"); v.State != Broken {
		t.Errorf("another payload, in no home: %v", v)
	}
	w.forward(Place{urgentTopic, 0, 10, 0}, home.DeadLetter, dlq, errclass.CodeIDConflict)
	w.hist.Reference = nil
	if err := w.decide().Err(); err != nil {
		t.Errorf("another payload, dead-lettered: %v", err)
	}
}

// A letter names its lane. So a letter of the same offset in another lane does not count as a home.
func TestLanes_LettersOfTheirLane(t *testing.T) {
	t.Parallel()
	w := withLanes()
	w.dropRowOf(urgentTopic, 1)
	w.forward(Place{bulkTopic, 0, 1, 0}, home.DeadLetter, dlq, "23514")
	if v := w.decide().Of("I1"); v.State != Broken || !strings.Contains(v.String(), urgentTopic+"/0/1") {
		t.Errorf("%v", v)
	}
}

func TestTruth_CoversByLane(t *testing.T) {
	t.Parallel()
	truth := NewTruth()
	truth.Spans = map[Partition]Span{{urgentTopic, 0}: {3, 5}}
	for at, want := range map[Place]bool{{urgentTopic, 0, 3, 0}: true, {urgentTopic, 0, 5, 0}: false, {source, 0, 3, 0}: false, {urgentTopic, 1, 3, 0}: false} {
		if truth.Covers(at) != want {
			t.Errorf("%v: %v", at, !want)
		}
	}
}
