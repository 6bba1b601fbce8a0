package tree

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/history/lookup"
	"docket/internal/kafka"
	"docket/internal/testkit/readertest"
)

// kafkaOf is a Kafka with some records; committed are all groups at the start of the topics.
type kafkaOf struct {
	records []*kgo.Record
	broken  map[string]error // by topic
}

var _ lookup.Topics = (*kafka.Reader)(nil)

func (k kafkaOf) open() (lookup.Topics, func(), error) { return k, func() {}, nil }

func (k kafkaOf) CommittedNoted(context.Context, string, string) (map[int32]int64, map[int32]string, error) {
	return nil, nil, nil
}

func (k kafkaOf) Identity(_ context.Context, topic string) (string, error) { return topic, nil }

func (k kafkaOf) Ends(_ context.Context, topic string) (map[int32]int64, error) {
	end := map[int32]int64{0: 0}
	for _, r := range k.records {
		if r.Topic == topic {
			end[0] = r.Offset + 1
		}
	}
	return end, k.broken[topic]
}

func (k kafkaOf) Scan(_ context.Context, topic string, from, to map[int32]int64, each func(*kgo.Record) error) (map[int32]int64, error) {
	for _, r := range k.records {
		if r.Topic == topic && r.Offset >= from[0] && r.Offset < to[0] {
			if err := each(r); err != nil {
				return from, err
			}
		}
	}
	return from, nil
}

func parked(offset int64, id string, at time.Time) *kgo.Record {
	value, _ := json.Marshal(map[string]string{"decision_id": id, "timestamp": at.Format(time.RFC3339Nano), "path": "other"})
	h := func(key, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: key, Value: []byte(value)} }
	return &kgo.Record{Topic: "decision-logs-parking", Offset: offset, Value: value, Timestamp: now, Headers: []kgo.RecordHeader{
		h("x-original-topic", "decision-logs"), h("x-original-partition", "2"), h("x-original-offset", "77"), h("x-original-index", "0"),
		h("x-failure-kind", "transient"), h("x-failure-code", "network"), h("x-retry-attempt", "3"), h("x-not-before", "1795292700000")}}
}

// answered is as much of --json as these tests look at.
type answered struct {
	Decisions []struct{}
	Elsewhere []lookup.FoundRecord
	Looked    []string
	NotLooked []string `json:"not_looked"`
}

func (w *world) answered(t *testing.T, code int, args ...string) (a answered) {
	t.Helper()
	r := w.call(append(args, "--json")...)
	if err := json.Unmarshal([]byte(r.out), &a); err != nil || r.code != code {
		t.Fatalf("%v: exit %d, %v, %s%s", args, r.code, err, r.out, r.err)
	}
	return a
}

// TestElsewhere_ParkedOnly: logs and why say where a decision is parked, and what happens next.
func TestElsewhere_ParkedOnly(t *testing.T) {
	t.Parallel()
	w := &world{store: decisions(3), topics: kafkaOf{records: []*kgo.Record{parked(17, "p-1", now)}}.open, environ: []string{"DOCKET_ARCHIVE_TO=" + t.TempDir()}}
	for _, act := range []string{"logs", "why"} {
		r := w.call(act, "p-1")
		for _, want := range []string{"docket: no decision p-1 is stored. It was found elsewhere:\n",
			"  parked at decision-logs-parking/0/17, attempt 3, network (network_failure), decided 2026-11-21 20:15:03.000Z; next try at 2026-11-21T", "\n    docket where-is decision-logs-parking/0/17\n",
			"  looked at: parked records in decision-logs-parking: 1 up to "} {
			if r.code != 1 || !strings.Contains(r.err, want) || r.out != "" {
				t.Errorf("%s: exit %d, no %q in %s%s", act, r.code, want, r.out, r.err)
			}
		}
		a := w.answered(t, 1, act, "p-1")
		if len(a.Elsewhere) != 1 || a.Elsewhere[0].Home != lookup.Parked || a.Elsewhere[0].Attempt != 3 || a.Elsewhere[0].Origin.Offset != 77 || len(a.NotLooked) != 0 {
			t.Errorf("%s: %+v", act, a)
		}
	}
}

// TestElsewhere_ClaimedTwice: a row is shown, and another decision that claims its id in the parking topic is told.
func TestElsewhere_ClaimedTwice(t *testing.T) {
	t.Parallel()
	w := &world{store: decisions(3)}
	id := readertest.Decisions(3, now)[1].ID
	w.topics = kafkaOf{records: []*kgo.Record{parked(4, id, now)}}.open
	for _, act := range []string{"logs", "why"} {
		if r := w.call(act, id); r.code != 0 || !strings.Contains(r.out, "\nOther decisions with this id\n  parked at decision-logs-parking/0/4, attempt 3") {
			t.Errorf("%s: exit %d\n%s%s", act, r.code, r.out, r.err)
		}
		if a := w.answered(t, 0, act, id); len(a.Elsewhere) != 1 || a.Elsewhere[0].Same {
			t.Errorf("%s: %+v", act, a)
		}
	}
	if r := w.call("logs", id, "--lines"); r.code != 0 || !strings.Contains(r.err, "parked at decision-logs-parking/0/4") {
		t.Errorf("--lines: exit %d\n%s", r.code, r.err)
	}
}

// TestElsewhere_NotKnown: an id that is nowhere is not found only where every place was looked at completely.
func TestElsewhere_NotKnown(t *testing.T) {
	t.Parallel()
	w := &world{store: decisions(3), environ: []string{"DOCKET_ARCHIVE_TO=" + t.TempDir()}}
	if r := w.call("logs", "no-such"); r.code != 1 || !strings.Contains(r.err, "no decision no-such is stored. It was not found anywhere\n") || strings.Contains(r.err, "not looked at") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	w.topics = kafkaOf{broken: map[string]error{"decision-logs-parking": errors.New("not allowed")}}.open
	r := w.call("logs", "no-such")
	if r.code != 1 || !strings.Contains(r.err, "If it is elsewhere is not known") || strings.Contains(r.err, "not found anywhere") ||
		!strings.Contains(r.err, "  not looked at completely: parked records in decision-logs-parking: not allowed\n") || strings.Contains(r.err, "  looked at: parked") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	if r := w.call("logs", "no-such", "--within", "0s"); r.code != 2 {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	if r := w.call("logs", "--within", "1s"); r.code != 2 {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
}

// TestElsewhere_OfAnotherTime: where no stored decision of an id has the time that was asked for, another home may have it.
func TestElsewhere_OfAnotherTime(t *testing.T) {
	t.Parallel()
	when := now.Add(-time.Hour)
	id := readertest.Decisions(3, now)[1].ID
	w := &world{store: decisions(3), topics: kafkaOf{records: []*kgo.Record{parked(4, id, when)}, broken: map[string]error{"decision-logs": errors.New("not allowed")}}.open}
	for _, args := range [][]string{{"why", id, "--at"}, {"diff", id, id, "--at-a"}} {
		r := w.call(append(args, when.Format(time.RFC3339))...)
		for _, part := range []string{"1 decision has the id " + id + "; select one with --at", "  parked at decision-logs-parking/0/4, attempt 3", "  not looked at completely: archives: ", "  not looked at completely: records of decision-logs that are not read yet: not allowed"} {
			if r.code != 1 || !strings.Contains(r.err, part) {
				t.Errorf("%q: exit %d, %q is not in\n%s", args, r.code, part, r.err)
			}
		}
	}
}
