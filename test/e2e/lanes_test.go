//go:build integration

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/testkit/testenv"
)

// lanes are those of a system, with what was sent to each.
type lanes struct {
	*system
	client *kgo.Client
	sent   map[string]int
}

var laneNames = []string{"", "-urgent", "-bulk"}

func newLanes(t *testing.T, env ...string) *lanes {
	t.Helper()
	k := testenv.Kafka(t)
	s := newSystem(t, k, testenv.Postgres(t), append([]string{"DOCKET_LANES=urgent,bulk"}, env...)...)
	for _, lane := range laneNames[1:] {
		k.CreateTopic(t, s.places.Topic+lane, 6, nil)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1), kgo.AlwaysRetryEOF(), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &lanes{system: s, client: client, sent: map[string]int{}}
}

// send writes n decisions, and one record that nobody can read, into the partitions of a lane in turn.
func (l *lanes) send(lane string, n int) {
	l.t.Helper()
	records := []*kgo.Record{{Topic: l.places.Topic + lane, Value: []byte("{")}}
	for range n {
		l.sent[lane]++
		records = append(records, &kgo.Record{Topic: l.places.Topic + lane, Partition: int32(l.sent[lane] % 6), Value: []byte(logOf(fmt.Sprintf("lane%s-%d", lane, l.sent[lane]), ""))})
	}
	if err := l.client.ProduceSync(l.t.Context(), records...).FirstErr(); err != nil {
		l.t.Fatalf("produce: %v", err)
	}
}

func (l *lanes) stored(lane string) int {
	l.t.Helper()
	return l.rows("source_topic = '" + l.places.Topic + lane + "'")
}

// behind is how many records of a lane are not committed.
func (l *lanes) behind(lane string) (int64, error) {
	lags, err := kadm.NewClient(l.client).Lag(l.t.Context(), l.places.Group+lane)
	if err != nil {
		return 0, err
	}
	lag := lags[l.places.Group+lane]
	if lag.Error() != nil {
		return 0, lag.Error()
	}
	if len(lag.Lag[l.places.Topic+lane]) != 6 {
		return 0, fmt.Errorf("%d partitions are known", len(lag.Lag[l.places.Topic+lane]))
	}
	return lag.Lag.Total(), nil
}

// halved reports whether a process is ready and has three partitions of each lane.
func (l *lanes) halved(p *process) error {
	var ready struct {
		Ready    bool
		Assigned int
		Lanes    []struct {
			Topic, Group string
			Joined       bool
			Assigned     int
		}
	}
	code, body := p.get("/readyz")
	if err := json.Unmarshal([]byte(body), &ready); err != nil || code != 200 || !ready.Ready || ready.Assigned != 9 || len(ready.Lanes) != 3 {
		return fmt.Errorf("/readyz: %d %s, %w", code, body, err)
	}
	for i, lane := range ready.Lanes {
		if lane.Topic != l.places.Topic+laneNames[i] || lane.Group != l.places.Group+laneNames[i] || !lane.Joined || lane.Assigned != 3 {
			return fmt.Errorf("/readyz says %+v", lane)
		}
	}
	return nil
}

// TestLanes_UrgentFirstAndKilled has a backlog in two lanes that cannot be written: all low writers wait for a lock.
// The urgent decisions have their rows meanwhile. Then one of two processes is killed. In the end each lane's account adds up.
func TestLanes_UrgentFirstAndKilled(t *testing.T) {
	t.Parallel()
	l := newLanes(t, "DOCKET_STORE_TIMEOUT=60s", "DOCKET_KAFKA_REBALANCE_TIMEOUT=5m")
	l.exec(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.source_topic NOT LIKE '%-urgent' THEN PERFORM pg_advisory_xact_lock_shared(7); END IF;
		RETURN NEW;
	END $$;
	CREATE TRIGGER slow BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION slow();`)
	gate := l.connect()
	if _, err := gate.Exec(t.Context(), "SELECT pg_advisory_lock(7)"); err != nil {
		t.Fatal(err)
	}
	first, second := l.consumer(), l.consumer()
	for _, p := range []*process{first, second} {
		eventually(t, patience, p.name+" has half of each lane", func() error { return l.halved(p) })
	}
	l.send("", 8000)
	l.send("-bulk", 2000)
	eventually(t, patience, "low batches wait in both processes", func() error {
		for _, p := range []*process{first, second} {
			held := p.metric(`docket_lane_turns{lane="default",state="held"}`) + p.metric(`docket_lane_turns{lane="bulk",state="held"}`)
			if held != 3 {
				return fmt.Errorf("%s has %v turns of the low lanes", p.name, held)
			}
		}
		return nil
	})
	l.send("-urgent", 200)
	eventually(t, patience, "the urgent decisions have their rows", func() error {
		if n := l.stored("-urgent"); n != 200 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	if low := l.stored("") + l.stored("-bulk"); low != 0 {
		t.Errorf("%d rows of the low lanes: nothing was shown", low)
	}
	for _, p := range []*process{first, second} {
		if err := l.halved(p); err != nil {
			t.Error(err)
		}
	}

	first.kill()
	if _, err := gate.Exec(t.Context(), "SELECT pg_advisory_unlock(7)"); err != nil {
		t.Fatal(err)
	}
	l.send("-urgent", 100)
	eventually(t, patience, "all lanes are committed", func() error {
		for _, lane := range laneNames {
			if n, err := l.behind(lane); err != nil || n > 0 {
				return fmt.Errorf("lane %q: %d behind, %w", lane, n, err)
			}
		}
		return nil
	})
	for _, lane := range laneNames {
		if n := l.stored(lane); n != l.sent[lane] {
			t.Errorf("lane %q: %d rows of %d decisions", lane, n, l.sent[lane])
		}
	}
	l.verify(0, "--settled")
	l.letters(map[string]int{"": 1, "-urgent": 2, "-bulk": 1})
	second.sound()
	if n := second.metric(`docket_lane_latency_seconds_count{lane="urgent"}`); n < 100 {
		t.Errorf("the latency of %v urgent decisions is known", n)
	}
	if code := second.stop(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	if strings.Contains(second.out.String(), "panic") {
		t.Error("a panic")
	}
}

// letters compares the places of dead letters by lane: at least so many, as a kill may repeat one. Each names its lane
// and the group of it.
func (l *lanes) letters(want map[string]int) {
	l.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(l.places.Brokers...), kgo.ConsumeTopics(l.places.DLQTopic))
	if err != nil {
		l.t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(l.t.Context(), l.places.DLQTopic)
	if err != nil {
		l.t.Fatal(err)
	}
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	places := map[string]map[string]bool{}
	for left > 0 {
		fetches := client.PollFetches(l.t.Context())
		if err := fetches.Err(); err != nil {
			l.t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			left--
			h := map[string]string{}
			for _, one := range r.Headers {
				h[one.Key] = string(one.Value)
			}
			lane := strings.TrimPrefix(h[envelope.OriginalTopic], l.places.Topic)
			if places[lane] == nil {
				places[lane] = map[string]bool{}
			}
			places[lane][h[envelope.OriginalPartition]+"/"+h[envelope.OriginalOffset]] = true
			if !strings.HasPrefix(h[envelope.Consumer], l.places.Group+lane+"/") {
				l.t.Errorf("a letter of lane %q says it is of %s", lane, h[envelope.Consumer])
			}
		})
	}
	for lane, n := range want {
		if len(places[lane]) != n {
			l.t.Errorf("lane %q has dead letters of %d records, want %d", lane, len(places[lane]), n)
		}
	}
	if len(places) != len(want) {
		l.t.Errorf("dead letters of %v", places)
	}
}
