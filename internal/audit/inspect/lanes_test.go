package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/audit/verify"
	"docket/internal/history/lookup"
	"docket/internal/kafka"
	"docket/internal/record/envelope"
	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
)

// laneWorld is a System with three lanes of one partition each, and no database.
func laneWorld(t *testing.T, lanes ...string) (*System, *kafkatest.Cluster) {
	t.Helper()
	c := kafkatest.New(t, kfake.SeedTopics(1, "logs", "logs-urgent", "logs-bulk", "parking", "dlq", "parking-dlq"))
	brokers := kafka.Config{Brokers: c.Brokers(), ClientID: "t", InstanceLabel: "t"}
	reader, err := kafka.NewReader(brokers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	return &System{kafka: reader, brokers: brokers, say: func(string) {}, settings: config.Settings{
		KafkaTopic: "logs", KafkaParkingTopic: "parking", KafkaDLQTopic: "dlq", KafkaParkingDLQTopic: "parking-dlq",
		KafkaGroup: "docket", ParkingGroup: "docket-parking", LaneNames: lanes, MaxRecordBytes: 1 << 20,
	},
		elsewhere: func(context.Context, string) (lookup.Answer, error) { return lookup.Answer{}, nil },
	}, c
}

func produce(t *testing.T, c *kafkatest.Cluster, topic string, ids ...string) {
	t.Helper()
	values := make([]string, len(ids))
	for i, id := range ids {
		values[i] = fmt.Sprintf(`{"decision_id":%q,"timestamp":"2026-05-01T11:00:00Z"}`, id)
	}
	c.Values(t, topic, 0, values...)
}

func commit(t *testing.T, c *kafkatest.Cluster, group, topic string, offset int64) {
	t.Helper()
	offsets := make(kadm.Offsets)
	offsets.AddOffset(topic, 0, offset, -1)
	client := c.Client(t)
	defer client.Close()
	if err := kadm.NewClient(client).CommitAllOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(err)
	}
}

func TestLanes_EvidenceOfEach(t *testing.T) {
	t.Parallel()
	s, c := laneWorld(t, "urgent", "bulk")
	for i, topic := range []string{"logs", "logs-urgent", "logs-bulk"} {
		produce(t, c, topic, slices.Repeat([]string{"d"}, 3+i)...)
	}
	commit(t, c, "docket", "logs", 3)
	commit(t, c, "docket-urgent", "logs-urgent", 1)
	ev, err := s.look(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for topic, want := range map[string]struct {
		end, committed int64
		found          bool
	}{"logs": {3, 3, true}, "logs-urgent": {4, 1, true}, "logs-bulk": {5, 0, false}} {
		at := verify.Partition{Topic: topic}
		if done, found := ev.Committed[at]; done != want.committed || found != want.found || ev.Ends[at] != want.end {
			t.Errorf("%s is committed up to %d of %d", topic, done, ev.Ends[at])
		}
	}
}

// A decision that only a lane's topic has is found there, and nothing else is missed.
func TestLanes_ScansEachTopic(t *testing.T) {
	t.Parallel()
	s, c := laneWorld(t, "urgent", "bulk")
	for _, topic := range []string{"logs", "logs-urgent", "logs-bulk"} {
		produce(t, c, topic, "other", "in-"+topic, "in-all")
	}
	for id, want := range map[string][]string{"in-logs": {"logs/0/1/0"}, "in-logs-urgent": {"logs-urgent/0/1/0"}, "in-logs-bulk": {"logs-bulk/0/1/0"}, "in-all": {"logs/0/2/0", "logs-urgent/0/2/0", "logs-bulk/0/2/0"}, "none": nil} {
		w := &Whereabouts{}
		places, _, err := s.byID(t.Context(), w, id, time.Now().Add(-time.Hour))
		var got []string
		for _, p := range places {
			got = append(got, p.String())
		}
		if err != nil || !slices.Equal(got, want) || len(w.Looked) != 3 {
			t.Errorf("%s is at %q, looked at %q, %v", id, got, w.Looked, err)
		}
	}
}

func TestLanes_PlacesOfEach(t *testing.T) {
	t.Parallel()
	s, _ := laneWorld(t, "urgent")
	for topic, want := range map[string]bool{"logs": true, "logs-urgent": true, "logs-bulk": false} {
		q := Query{Place: verify.Place{Topic: topic, Offset: 7, Index: envelope.NoIndex}}
		if got := s.ours(topic); got != want {
			t.Errorf("%s: %v", topic, got)
		}
		if places, _, err := s.places(t.Context(), &Whereabouts{}, q, time.Time{}); err != nil || len(places) != 1 || places[0].Topic != topic {
			t.Errorf("%s: %v, %v", topic, places, err)
		}
	}
}

// An id may look like a place. It is one if its topic is not of the settings and something has it.
func TestFind_IDLikeAPlace(t *testing.T) {
	t.Parallel()
	s, _ := laneWorld(t, "urgent")
	var asked []string
	s.elsewhere = func(_ context.Context, id string) (lookup.Answer, error) {
		asked = append(asked, id)
		if id != "tenant/1/042" {
			return lookup.Answer{}, nil
		}
		return lookup.Answer{Found: []lookup.Found{{Where: lookup.Parked, Name: "parking", Partition: 2, Offset: 9}}}, nil
	}
	w, err := s.Find(t.Context(), ParseQuery("tenant/1/042"), time.Time{})
	if err != nil || len(w.Found) != 1 || len(w.Records) != 0 {
		t.Errorf("%+v, %v", w, err)
	}
	_, err = s.Find(t.Context(), ParseQuery("tenant/1/43"), time.Time{})
	if err == nil || !strings.HasPrefix(err.Error(), "tenant is not a topic of the settings") || !slices.Equal(asked, []string{"tenant/1/042", "tenant/1/43"}) {
		t.Errorf("%v, asked for %q", err, asked)
	}
}

// TestFind_WholeID: an id that a topic alone has is whole, so nothing would need a longer one.
func TestFind_WholeID(t *testing.T) {
	t.Parallel()
	s, c := laneWorld(t)
	produce(t, c, "logs", "in-the-topic")
	s.elsewhere = func(_ context.Context, id string) (lookup.Answer, error) {
		return lookup.Answer{ID: id, NotLooked: []lookup.Gap{{Name: "archived days", Why: "give the whole id", Shortened: true}}}, nil
	}
	for id, lacks := range map[string]int{"in-the-topic": 0, "in-the": 1} {
		w := &Whereabouts{}
		places, _, err := s.byID(t.Context(), w, id, time.Now().Add(-time.Hour))
		for _, p := range places {
			w.Records = append(w.Records, Record{Place: p})
		}
		w.settle()
		if err != nil || len(w.Records) == lacks || len(w.Lacks()) != lacks {
			t.Errorf("%s: %+v %v", id, w, err)
		}
	}
}

// The record of a lane is compared with the offsets and the members of its own group.
func TestLanes_FindInItsGroup(t *testing.T) {
	t.Parallel()
	s, c := laneWorld(t, "urgent")
	produce(t, c, "logs", "a", "b", "c")
	produce(t, c, "logs-urgent", "d", "e", "")
	commit(t, c, "docket", "logs", 3)
	commit(t, c, "docket-urgent", "logs-urgent", 2)
	// No database answers, so only a record without a readable identity can be looked for.
	r, err := s.find(t.Context(), &Whereabouts{At: time.Now()}, verify.Place{Topic: "logs-urgent", Offset: 2}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Committed != 2 || r.Gone || r.Ahead || r.End != 3 || len(r.Decisions) != 1 || r.Decisions[0].Refused != "missing_field" {
		t.Errorf("%+v", r)
	}
}

func TestLanes_VerifyBeginsInEach(t *testing.T) {
	t.Parallel()
	s, c := laneWorld(t, "urgent")
	produce(t, c, "logs", "a", "b")
	produce(t, c, "logs-urgent", "c")
	ends := func() *verify.Evidence {
		return &verify.Evidence{Ends: verify.Offsets{{Topic: "logs"}: 2, {Topic: "logs-urgent"}: 1}}
	}
	from, err := s.from(t.Context(), Scope{Since: time.Now().Add(-time.Hour)}, ends())
	if err != nil || len(from) != 2 || len(from["logs"]) != 1 || len(from["logs-urgent"]) != 1 {
		t.Errorf("since a time: %v, %v", from, err)
	}
	ev := ends()
	from, err = s.from(t.Context(), Scope{From: verify.Offsets{{Topic: "logs-urgent"}: 1}}, ev)
	if err != nil || len(from["logs"]) != 0 || from["logs-urgent"][0] != 1 || len(ev.Ends) != 1 {
		t.Errorf("of urgent alone: %v, ends %v, %v", from, ev.Ends, err)
	}
	if _, err = s.from(t.Context(), Scope{From: verify.Offsets{{Topic: "logs-urgent", Number: 3}: 1}}, ends()); err == nil || !strings.Contains(err.Error(), "logs-urgent has no partition 3") {
		t.Errorf("%v", err)
	}
}

// TestVerify_NothingChecked: a lane of which nothing is committed is not answered as if all were well, nor is a place that does not
// exist yet.
func TestVerify_NothingChecked(t *testing.T) {
	t.Parallel()
	s, c := laneWorld(t, "urgent")
	produce(t, c, "logs", "a", "b", "c")
	produce(t, c, "logs-urgent", "d", "e")
	commit(t, c, "docket", "logs", 2)
	look := func(from verify.Offsets) (*Result, error) {
		ev, err := s.look(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		scope := Scope{From: from, Since: time.Now().Add(-time.Hour)}
		begin, err := s.from(t.Context(), scope, ev)
		if err != nil {
			return nil, err
		}
		a := s.audit(ev, scope)
		for _, l := range s.settings.Lanes() {
			if from == nil && l.Topic == "logs" {
				continue // its decisions need a table
			}
			if err := a.lane(t.Context(), l, begin[l.Topic]); err != nil {
				t.Fatal(err)
			}
		}
		return a.result, nil
	}
	logs := verify.Partition{Topic: "logs"}
	for from, want := range map[int64]string{2: "logs: nothing was checked: all 1 records are above the committed offsets of group docket", 3: ""} {
		r, err := look(verify.Offsets{logs: from})
		if err != nil {
			t.Fatal(from, err)
		}
		if strings.Join(r.Elsewhere, "\n") != want || r.Blind() != (want != "") {
			t.Errorf("from %d: %v, %q", from, r.Blind(), r.Elsewhere)
		}
	}
	r, err := look(nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "logs-urgent: nothing was checked: all 2 records are above the committed offsets of group docket-urgent"; !slices.Contains(r.Elsewhere, want) {
		t.Errorf("%q", r.Elsewhere)
	}
	var beyond *BeyondEndError
	if _, err := look(verify.Offsets{logs: 4}); !errors.As(err, &beyond) || beyond.End != 3 || !strings.Contains(err.Error(), "nothing would be checked") {
		t.Errorf("beyond the end: %v", err)
	}
}
