package lookup

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

// arrives appends a record to a topic.
func (w *world) arrives(topic, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records[topic] = append(w.records[topic], &kgo.Record{Topic: topic, Offset: int64(len(w.records[topic])), Value: []byte(value), Timestamp: noon})
}

// remembering returns a lookup as a desk has it.
func (w *world) remembering() *Look {
	l := w.look()
	NewShared(l)
	return l
}

// reads returns how many records a lookup of an id read, and how often it was found.
func (w *world) reads(l *Look, id string) (read, found int) {
	before := w.scanned
	answers, counted := l.all(w.t.Context(), []string{id})
	read, found = w.scanned-before, len(answers[0].Found)
	if int64(read) != counted {
		w.t.Errorf("it read %d records and counted %d", read, counted)
	}
	return read, found
}

func TestSeen_ReadsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 50 {
		w.arrives("logs", log(fmt.Sprint("d-", n), ""))
	}
	l := w.remembering()
	if read, found := w.reads(l, "d-7"); read != 50 || found != 1 {
		t.Fatalf("the first look read %d records and found %d", read, found)
	}
	w.arrives("logs", log("d-50", ""))
	if read, found := w.reads(l, "d-50"); read != 1 || found != 1 {
		t.Errorf("a look after one more record read %d records and found %d", read, found)
	}
	if read, found := w.reads(l, "d-7"); read != 1 || found != 1 {
		t.Errorf("a look for a record that was met read %d records and found %d", read, found)
	}
	if a := l.Find(t.Context(), "d-x"); !slices.Contains(SearchedIn(a.Looked), "records of logs that are not read yet: 51 up to 2026-05-01T12:00:00Z") {
		t.Errorf("looked: %v", SearchedIn(a.Looked))
	}
	w.committed["logs"] = 8
	if read, found := w.reads(l, "d-7"); read != 0 || found != 0 {
		t.Errorf("a look for a record that was consumed read %d records and found %d", read, found)
	}
}

func TestSeen_TopicMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 5 {
		w.arrives("logs", log(fmt.Sprint("old-", n), ""))
	}
	l := w.remembering()
	w.reads(l, "old-1")
	w.records["logs"], w.remade["logs"] = nil, 1
	for n := range 5 {
		w.arrives("logs", log(fmt.Sprint("new-", n), ""))
	}
	if read, found := w.reads(l, "new-1"); read != 5 || found != 1 {
		t.Errorf("read %d, found %d", read, found)
	}
}

// TestSeen_TopicMadeAgainMeanwhile: the topic is made again while a look asks for its end.
func TestSeen_TopicMadeAgainMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 5 {
		w.arrives("logs", log(fmt.Sprint("old-", n), ""))
	}
	l := w.remembering()
	again := func(asked string) {
		if asked == "end logs" {
			w.remade["logs"] = 1
		}
	}
	w.moved = again
	w.reads(l, "old-1")
	w.moved = func(string) {}
	w.records["logs"] = nil
	for n := range 6 {
		w.arrives("logs", log(fmt.Sprint("new-", n), ""))
	}
	if read, found := w.reads(l, "new-1"); read != 6 || found != 1 {
		t.Errorf("read %d, found %d", read, found)
	}
}

// TestSeen_BoundComesFurther: each look may read three records, and continues behind those of the one before.
func TestSeen_BoundComesFurther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits.Records = 3
	for n := range 7 {
		w.arrives("logs", log(fmt.Sprint("d-", n), ""))
	}
	l := w.remembering()
	for look, want := range []string{"only the first 3 of up to 7 records were read", "only the first 6 of up to 7 records were read", ""} {
		a := l.Find(t.Context(), "d-6")
		got := ""
		for _, g := range a.NotLooked {
			if g.Name == "records of logs that are not read yet" {
				got = g.Why
			}
		}
		if got != want || (len(a.Found) == 1) != (want == "") {
			t.Errorf("look %d: %q, found %v", look, got, a.Found)
		}
	}
}

// TestSeen_SameAnswers compares a lookup that remembers with one that does not, over any history of two topics.
func TestSeen_SameAnswers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		l, plain := w.remembering(), w.look()
		topic := rapid.SampledFrom([]string{"logs", "parking"})
		id := rapid.Map(rapid.IntRange(0, 4), func(n int) string { return fmt.Sprint("d-", n) })
		r.Repeat(map[string]func(*rapid.T){
			"record": func(r *rapid.T) { w.arrives(topic.Draw(r, "topic"), log(id.Draw(r, "id"), "")) },
			"upload": func(r *rapid.T) {
				w.arrives(topic.Draw(r, "topic"), "["+log(id.Draw(r, "first"), "")+","+log(id.Draw(r, "second"), "")+"]")
			},
			"not readable": func(r *rapid.T) { w.arrives(topic.Draw(r, "topic"), "{") },
			"commit": func(r *rapid.T) {
				at := topic.Draw(r, "topic")
				w.committed[at] = rapid.Int64Range(0, int64(len(w.records[at]))).Draw(r, "offset")
			},
			"made again": func(r *rapid.T) {
				at := topic.Draw(r, "topic")
				w.records[at], w.remade[at] = nil, w.remade[at]+1
				delete(w.committed, at)
			},
			"look": func(r *rapid.T) {
				of := id.Draw(r, "id")
				got, want := l.Find(t.Context(), of), plain.Find(t.Context(), of)
				if !reflect.DeepEqual(placesOf(got), placesOf(want)) || !reflect.DeepEqual(got.Looked, want.Looked) || !reflect.DeepEqual(got.NotLooked, want.NotLooked) {
					r.Fatalf("%s:\n%v %v %v\nwithout memory:\n%v %v %v", of, placesOf(got), got.Looked, got.NotLooked, placesOf(want), want.Looked, want.NotLooked)
				}
			},
		})
	})
}

func placesOf(a Answer) []string {
	var all []string
	for _, f := range a.Found {
		all = append(all, f.Place())
	}
	slices.Sort(all)
	return all
}
