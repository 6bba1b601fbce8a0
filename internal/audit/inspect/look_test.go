package inspect

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/record/home"
	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
)

// Records move from left to right meanwhile: committed offsets, spool, the replayer's committed offsets, the topics.
// If they are read in another order, a moving record is seen nowhere, and counts as lost.
func TestLook_Order(t *testing.T) {
	t.Parallel()
	for lanes, want := range map[string][]string{
		"":            {"group docket", "group docket-parking", "topic parking", "topic dlq", "topic parking-dlq", "topic logs"},
		"urgent,bulk": {"group docket", "group docket-urgent", "group docket-bulk", "group docket-parking", "topic parking", "topic dlq", "topic parking-dlq", "topic logs", "topic logs-urgent", "topic logs-bulk"},
	} {
		t.Run("lanes "+lanes, func(t *testing.T) {
			t.Parallel()
			lookInOrder(t, strings.FieldsFunc(lanes, func(r rune) bool { return r == ',' }), want)
		})
	}
}

func lookInOrder(t *testing.T, lanes, want []string) {
	t.Helper()
	c := kafkatest.New(t, kfake.SeedTopics(1, "logs", "logs-urgent", "logs-bulk", "parking", "dlq", "parking-dlq"))
	reader, err := kafka.NewReader(kafka.Config{Brokers: c.Brokers(), ClientID: "t", InstanceLabel: "t"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	spool := t.TempDir()
	file := filepath.Join(spool, "1700000000_a_1.jsonl.gz")
	var mu sync.Mutex
	var asked []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if slices.Contains(asked, what) {
			return
		}
		asked = append(asked, what)
		switch what {
		case want[len(lanes)]: // spooled just now, and committed after the request
			if err := os.WriteFile(file, spooledRecord(t), 0o600); err != nil {
				t.Error(err)
			}
		case "group docket-parking": // published just now
			if err := os.Remove(file); err != nil {
				t.Error(err)
			}
		}
	}
	c.Watch(kmsg.OffsetFetch, func(r kmsg.Request) {
		for _, g := range r.(*kmsg.OffsetFetchRequest).Groups {
			note("group " + g.Group)
		}
	})
	c.Watch(kmsg.ListOffsets, func(r kmsg.Request) {
		for _, topic := range r.(*kmsg.ListOffsetsRequest).Topics {
			note("topic " + topic.Topic)
		}
	})
	s := &System{kafka: reader, spools: []string{spool}, say: func(string) {}, settings: config.Settings{
		KafkaTopic: "logs", KafkaParkingTopic: "parking", KafkaDLQTopic: "dlq", KafkaParkingDLQTopic: "parking-dlq",
		KafkaGroup: "docket", ParkingGroup: "docket-parking", LaneNames: lanes,
	}}
	ev, err := s.look(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(asked, want) {
		t.Errorf("looked in the order %q, want %q", asked, want)
	}
	if len(ev.Forwarded) != 1 || ev.Forwarded[0].Home != home.Spooled {
		t.Errorf("a record that was spooled and published meanwhile was found as %+v", ev.Forwarded)
	}
}

func spooledRecord(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(`{"topic":"dlq","key":null,"value":"v","headers":[],"timestamp":"2026-05-01T12:00:00Z"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
