package app

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/fallback"
	"docket/internal/record/commitnote"
	"docket/internal/service/config"
)

// notingPublisher takes everything and notes when the records say that they were made.
type notingPublisher struct{ stamps chan time.Time }

func (n notingPublisher) Publish(_ context.Context, records []*kgo.Record) []error {
	for _, r := range records {
		n.stamps <- r.Timestamp
	}
	return make([]error, len(records))
}

// TestSpool_TakesTheLargestRecord: a value of any size that the settings allow finds room in a line, also if each byte of it is
// escaped.
func TestSpool_TakesTheLargestRecord(t *testing.T) {
	t.Parallel()
	field, _ := reflect.TypeFor[config.Settings]().FieldByName("MaxRecordBytes")
	most, err := config.ParseSize(field.Tag.Get("max"))
	if err != nil {
		t.Fatal(err)
	}
	if room := fallback.MaxLine - 2*int64(most); room < 100<<20 { // for key and headers, in a read of the client
		t.Errorf("a line may have %d bytes, and a value %d", fallback.MaxLine, most)
	}
}

func TestSpool_TimestampOfRecovery(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := openSpool(settings(t, config.Consumer, "DOCKET_SPOOL_DIR="+dir), Options{Instance: "test"}, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		defer s.spool.Close()
		old := &kgo.Record{Topic: "decision-logs-dlq", Value: []byte("v"), Timestamp: time.Now()}
		if err := s.Append(t.Context(), []*kgo.Record{old}, false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * 24 * time.Hour) // longer than a topic keeps its records
		ctx, cancel := context.WithCancel(t.Context())
		p := notingPublisher{make(chan time.Time, 1)}
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, func() bool { return true }, p) }()
		if at := <-p.stamps; time.Since(at) > time.Minute {
			t.Errorf("published as of %v ago: its topic deletes it at once", time.Since(at))
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A commit says that the spool may have records from the moment on at which one has its home there.
func TestSpool_Noted(t *testing.T) {
	t.Parallel()
	s, err := openSpool(settings(t, config.Consumer), Options{Instance: "test"}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.spool.Close()
	notes := commitnote.NewKeeper(s.held, nil)
	before, ok := commitnote.Parse(notes.Text())
	if !ok || before.Holds() {
		t.Errorf("before: %q", before)
	}
	if err := s.Append(t.Context(), []*kgo.Record{{Topic: "decision-logs-dlq", Value: []byte("v")}}, false); err != nil {
		t.Fatal(err)
	}
	after, ok := commitnote.Parse(notes.Text())
	if !ok || !after.Holds() || !before.Join(after).Holds() {
		t.Errorf("after: %q", after)
	}
}

func TestSpool_Oversize(t *testing.T) {
	t.Parallel()
	s, err := openSpool(settings(t, config.Consumer), Options{Instance: "test"}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.spool.Close()
	for _, oversize := range []bool{false, true} {
		if err := s.Append(t.Context(), []*kgo.Record{{Topic: "decision-logs-dlq", Value: []byte("v")}}, oversize); err != nil {
			t.Fatal(err)
		}
	}
	if st := s.Stats(); st.Files != 2 || st.Oversize != 1 || st.MaxBytes != 1<<30 {
		t.Errorf("%+v", st)
	}
}

// A broken file is counted, as nobody reads the log of a disk that begins to fail.
func TestSpool_BrokenFileCounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := openSpool(settings(t, config.Consumer, "DOCKET_SPOOL_DIR="+dir), Options{Instance: "test"}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.spool.Close()
	if err := s.Append(t.Context(), []*kgo.Record{{Topic: "decision-logs-dlq", Value: []byte("v")}}, false); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := os.Truncate(files[0], 20); err != nil {
		t.Fatal(err)
	}
	if _, err := s.spool.Recover(t.Context(), notingPublisher{make(chan time.Time, 1)}); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Corrupt != 1 || st.Files != 0 {
		t.Errorf("%+v", st)
	}
}

// topicsPublisher takes everything and notes where it went.
type topicsPublisher struct{ topics chan string }

func (p topicsPublisher) Publish(_ context.Context, records []*kgo.Record) []error {
	for _, r := range records {
		p.topics <- r.Topic
	}
	return make([]error, len(records))
}

// No program with other settings reads the topic that a record was spooled for, so the record stays where look-ups find it.
func TestSpool_FormerTopicStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		open := func(more ...string) *spool {
			s, err := openSpool(settings(t, config.Consumer, append(more, "DOCKET_SPOOL_DIR="+dir)...), Options{Instance: "test"}, zerolog.New(&log))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		run := func(s *spool) (topics []string) {
			ctx, cancel := context.WithCancel(t.Context())
			p := topicsPublisher{make(chan string, 10)}
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx, func() bool { return true }, p) }()
			time.Sleep(3 * time.Hour)
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			close(p.topics)
			for one := range p.topics {
				topics = append(topics, one)
			}
			return topics
		}
		s := open()
		for _, oversize := range []bool{false, true} {
			if err := s.Append(t.Context(), []*kgo.Record{{Topic: "decision-logs-parking", Value: []byte("v")}, {Topic: "decision-logs-dlq", Value: []byte("v")}}, oversize); err != nil {
				t.Fatal(err)
			}
		}
		s.spool.Close()
		s = open("DOCKET_KAFKA_PARKING_TOPIC=parked-elsewhere")
		if got := run(s); !slices.Equal(got, []string{"decision-logs-dlq", "decision-logs-dlq"}) || s.Stats().Files != 2 {
			t.Errorf("published to %q, %+v", got, s.Stats())
		}
		if n := strings.Count(log.String(), "spooled records for other topic kept"); n != 1 || !strings.Contains(log.String(), `"topic":"decision-logs-parking"`) {
			t.Errorf("%d lines: %s", n, log.String())
		}
		s.spool.Close()
		s = open()
		if got := run(s); !slices.Equal(got, []string{"decision-logs-parking", "decision-logs-dlq", "decision-logs-parking", "decision-logs-dlq"}) || s.Stats().Files != 0 {
			t.Errorf("with the former settings: published to %q, %+v", got, s.Stats())
		}
		s.spool.Close()
	})
}
