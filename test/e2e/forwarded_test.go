//go:build integration

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/testenv"
)

// read returns what a topic holds.
func (s *system) read(topic string, n int) []*kgo.Record {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.ConsumeTopics(topic))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	var all []*kgo.Record
	eventually(s.t, patience, fmt.Sprintf("%s holds %d records", topic, n), func() error {
		ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second) // without records a poll has no end
		defer cancel()
		all = append(all, cl.PollFetches(ctx).Records()...)
		if len(all) < n {
			return fmt.Errorf("%d records", len(all))
		}
		return nil
	})
	if len(all) > n {
		s.t.Errorf("%s holds %d records, want %d", topic, len(all), n)
	}
	return all
}

// put writes records as they are into the source topic.
func (s *system) put(rs ...*kgo.Record) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1), kgo.DefaultProduceTopic(s.places.Topic))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(s.t.Context(), rs...).FirstErr(); err != nil {
		s.t.Fatalf("produce: %v", err)
	}
}

func headersOf(r *kgo.Record) map[string]string {
	m := map[string]string{}
	for _, h := range r.Headers {
		m[h.Key] = string(h.Value)
	}
	return m
}

// noise is text of n bytes that lz4 does not make shorter; another n is another text.
func noise(n int) string {
	b := make([]byte, n)
	src := rand.NewChaCha8([32]byte{1, byte(n)})
	_, _ = src.Read(b)
	return base64.StdEncoding.EncodeToString(b)[:n]
}

func TestForwarded_MemberAloneByteForByte(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	bad := `{"decision_id":"bad" ,  "timestamp":"yesterday"}`
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte("[" + logOf("one", "") + " ,\n " + bad + "\t," + logOf("three", "") + "]"))
	_ = w.Close()
	s.put(&kgo.Record{Key: []byte("tenant"), Value: z.Bytes(), Headers: []kgo.RecordHeader{
		{Key: "traceparent", Value: []byte("00-ab")}, {Key: "x-team", Value: []byte("red")}, {Key: "nothing"},
		{Key: "x-retry-attempt", Value: []byte("99")}, {Key: "x-original-topic", Value: []byte("forged")}, {Key: "x-not-before", Value: []byte("1")},
	}}, &kgo.Record{Value: nil}, &kgo.Record{Key: []byte("k"), Value: []byte{0x1f, 0x8b, 0xff, 0x00}})
	c := s.consumer()
	got := map[string]*kgo.Record{}
	for _, r := range s.read(s.places.DLQTopic, 3) {
		got[headersOf(r)["x-failure-code"]] = r
	}
	s.drained(patience)

	r := got["wrong_type"]
	if r == nil || got["empty"] == nil || got["syntax"] == nil {
		t.Fatalf("dead letters %v", got)
	}
	if string(r.Value) != bad || string(r.Key) != "tenant" {
		t.Errorf("forwarded %q under %q", r.Value, r.Key)
	}
	if r := got["empty"]; r.Value != nil || r.Key != nil {
		t.Errorf("null became %q under %q", r.Value, r.Key)
	}
	if r := got["syntax"]; !bytes.Equal(r.Value, []byte{0x1f, 0x8b, 0xff, 0x00}) {
		t.Errorf("broken gzip became %x", r.Value)
	}
	h := headersOf(r)
	for name, want := range map[string]string{
		"traceparent": "00-ab", "x-team": "red", "nothing": "", "x-original-topic": s.places.Topic, "x-original-index": "1",
		"x-failure-kind": "decode", "x-retry-attempt": "0",
	} {
		if h[name] != want {
			t.Errorf("%s is %q, want %q", name, h[name], want)
		}
	}
	for _, name := range []string{"x-original-partition", "x-original-offset", "x-original-timestamp", "x-failure-message", "x-first-failed-at",
		"x-failed-at", "x-dead-letter-id", "x-consumer"} {
		if h[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	if _, there := h["x-not-before"]; there || len(r.Headers) != len(h) {
		t.Errorf("x-not-before on a dead letter, or a header twice: %v", r.Headers)
	}
	if _, there := headersOf(got["empty"])["x-original-index"]; there {
		t.Error("a record that was not decoded has an index")
	}
	if s.rows("true") != 2 || s.rows("source_index = 2 AND decision_id = 'three'") != 1 {
		t.Errorf("%d rows", s.rows("true"))
	}
	c.sound()
}

func TestForwarded_TooLargeGoesBareOrOversize(t *testing.T) {
	t.Parallel()
	s := bareSystem(t, testenv.Kafka(t), testenv.Postgres(t).Database(t))
	for _, topic := range []string{s.places.Topic, s.places.ParkingTopic, s.places.ParkingDLQ} {
		s.kafka.CreateTopic(t, topic, 1, nil)
	}
	s.kafka.CreateTopic(t, s.places.DLQTopic, 1, map[string]string{"max.message.bytes": "4000"})
	s.migrate()
	wide, huge := "wide "+noise(2500), "huge "+noise(9000)
	s.put(&kgo.Record{Value: []byte(wide), Headers: []kgo.RecordHeader{{Key: "mine", Value: []byte(noise(2501))}}},
		&kgo.Record{Value: []byte(huge)}, &kgo.Record{Value: []byte("small")}, &kgo.Record{Value: []byte(logOf("good", ""))})
	c := s.consumer()
	eventually(t, patience, "every record has its home", func() error {
		homes := []float64{c.metric(`docket_records_total{home="row"}`), c.metric(`docket_records_total{home="dead_letter"}`), c.metric(`docket_records_total{home="spooled"}`)}
		if homes[0] != 1 || homes[1] != 2 || homes[2] != 1 || c.metric("docket_spool_oversize_records") != 1 {
			return fmt.Errorf("row, dead_letter, spooled: %v; oversize %v", homes, c.metric("docket_spool_oversize_records"))
		}
		return nil
	})
	for _, r := range s.read(s.places.DLQTopic, 2) {
		h := headersOf(r)
		if string(r.Value) == wide && (h["mine"] != "" || h["x-failure-message"] != "" || h["x-failure-code"] != "syntax" || h["x-original-offset"] != "0" || h["x-dead-letter-id"] == "") {
			t.Errorf("what was too large with its headers came with %v", h)
		}
	}
	eventually(t, patience, "the records behind it are committed", func() error {
		if lag, _, err := s.places.Lag(t.Context()); err != nil || lag != 0 {
			return fmt.Errorf("lag %d, %v", lag, err)
		}
		return nil
	})
	c.sound()
	c.stop()

	spool := s.places.SpoolDirs[0]
	files, _ := filepath.Glob(filepath.Join(spool, "*.jsonl.gz"))
	if len(files) != 1 {
		t.Fatalf("spool holds %v", files)
	}
	text, err := exec.Command("zcat", files[0]).Output()
	if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), `"oversize":true`) || !strings.Contains(string(text), huge) {
		t.Fatalf("%v: %.200s", err, text)
	}

	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	limit := "100000"
	if _, err := kadm.NewClient(cl).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &limit}}, s.places.DLQTopic); err != nil {
		t.Fatal(err)
	}
	again := s.consumer("DOCKET_SPOOL_DIR=" + spool)
	for _, r := range s.read(s.places.DLQTopic, 3) {
		id := headersOf(r)["x-dead-letter-id"]
		if string(r.Value) == huge && (id == "" || !strings.Contains(string(text), id)) {
			t.Errorf("recovered under another id: %q", id)
		}
	}
	eventually(t, patience, "the spool is empty", func() error {
		if n := again.metric("docket_spool_files"); n != 0 {
			return fmt.Errorf("%v files", n)
		}
		return nil
	})
	if n, m := again.metric("docket_spool_oversize_records"), again.metric("docket_spool_recovered_records_total"); n != 0 || m != 1 {
		t.Errorf("oversize %v, recovered %v", n, m)
	}
	again.sound()
}
