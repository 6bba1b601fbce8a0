//go:build integration

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/testkit/testenv"
)

// TestStranger_TopicsOfDocket: with a key of headers, a writer to a dead-letter topic gets nothing stored and nothing
// published. A writer to the parking topic can do the same as a writer to the source: have a decision of its own stored.
func TestStranger_TopicsOfDocket(t *testing.T) {
	t.Parallel()
	file, keys := headerKey(t)
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), append(deskEnv(t), "DOCKET_HEADER_KEY_FILE="+file,
		"DOCKET_DESK_RETRY_KINDS=transient", "DOCKET_DESK_RETRY_FIRST=1s", "DOCKET_DESK_RETRY_INTERVAL=1s")...)
	s.exec(broken)
	s.send(decisions("billing/refund", 1)...)
	says := func(topic, id, kind string) *kgo.Record {
		r := &kgo.Record{Topic: topic, Partition: 0, Key: []byte(id), Value: []byte(logOf(id, ""))}
		for _, h := range [][2]string{
			{envelope.OriginalTopic, s.places.Topic}, {envelope.OriginalPartition, "0"}, {envelope.OriginalOffset, "0"}, {envelope.OriginalIndex, "0"},
			{envelope.FailureKind, kind}, {envelope.FailureCode, "08006"}, {envelope.RetryAttempt, "99"}, {envelope.FirstFailedAt, "2020-01-01T00:00:00Z"},
		} {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h[0], Value: []byte(h[1])})
		}
		return r
	}
	forged, proven, parked := says(s.places.DLQTopic, "forged", "transient"), says(s.places.DLQTopic, "proven", "transient"), says(s.places.ParkingTopic, "parked", "transient")
	keys.Sign(proven)
	s.put(forged, proven, parked)
	s.consumer()
	r, d := s.replayer(), s.desk()

	eventually(t, patience, "the schedule stores the proven one, the replayer the parked one", func() error {
		if n := s.rows("decision_id IN ('proven', 'parked')"); n != 2 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	if n := s.rows(fmt.Sprintf("decision_id = 'parked' AND source_topic = '%s' AND source_offset = %d", s.places.ParkingTopic, parked.Offset)); n != 1 {
		t.Errorf("%d rows of the parked record have its place in the parking topic", n)
	}
	if n := s.rows("decision_id = 'forged'"); n != 0 {
		t.Error("the forged dead letter was stored")
	}
	s.groups(2) // that of the refused decision, and the forged one
	foreign := s.letters("--kind", "foreign")
	if len(foreign) != 1 || foreign[0].DecisionID != "forged" || foreign[0].State != "PENDING" || foreign[0].Code != envelope.Unproven {
		t.Fatalf("foreign are %+v", foreign)
	}
	if shown := s.docket(nil, 0, "dlq", "show", foreign[0].ID); !strings.Contains(shown, "docket-mac") || strings.Contains(shown, "dlq retry "+foreign[0].ID[:12]+" --operator") {
		t.Errorf("it is shown as\n%s", shown)
	}
	for _, l := range s.letters() {
		if l.DecisionID != "forged" && l.Kind == "foreign" {
			t.Errorf("a dead letter of ours is foreign: %+v", l)
		}
	}
	s.docket(nil, 1, "dlq", "retry", foreign[0].ID, "--operator", "ada")
	if now := s.letters("--kind", "foreign"); now[0].State != "FAILED" || s.rows("decision_id = 'forged'") != 0 {
		t.Errorf("retried by hand it is %+v", now)
	}
	if line := lineOf(s.verify(1), "I4"); !strings.Contains(line, "broken") {
		t.Errorf("verify says of a forged record: %s", line)
	}
	for p, want := range map[*process]string{r: `"records":1,"topic":"` + s.places.ParkingTopic, d: "retry refused, not a source topic"} {
		if out := p.out.String(); !strings.Contains(out, want) || strings.Contains(out, "key of this test") {
			t.Errorf("%s does not log %s, or logs the key:\n%s", p.name, want, tail(out, 30))
		}
	}
	s.exec(mended)
	s.docket(nil, 0, "dlq", "retry", "--code", "23514", "--operator", "ada", "--reason", "the check is dropped", "--yes")
	s.once("billing/refund", 1)
	retried := s.read(s.places.Topic, 3)
	if last := retried[len(retried)-1]; !keys.Prove(last) || time.Since(last.Timestamp) > time.Hour {
		t.Errorf("put back without proof: %v", last.Headers)
	}
}

// headerKey writes a key of headers to a file of its own.
func headerKey(t *testing.T) (file string, keys envelope.Keys) {
	t.Helper()
	text := strings.Repeat("key of this test ", 3)
	file = filepath.Join(t.TempDir(), "header.key")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := envelope.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return file, keys
}
