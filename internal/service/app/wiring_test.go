package app

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/output"
)

func TestReplayer_AloneBelievesHistory(t *testing.T) {
	t.Parallel()
	spent := func() *kgo.Record {
		return decisionLog(0, kgo.RecordHeader{Key: envelope.RetryAttempt, Value: []byte("5")})
	}
	for name, want := range map[config.Program]int{config.Consumer: 1, config.Replayer: 0} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			w := setup(t, name, Options{})
			p := newPartition("decision-logs", spent())
			w.source.assignments = []Assignment{p}
			w.run()
			w.until("the record is committed", func() bool { return p.offset() == 1 })
			if n := w.db.rows(); n != want {
				t.Errorf("%d rows of a record whose attempts are spent, want %d", n, want)
			}
			w.stop()
			p.leave()
			if err := w.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDue_OfTheReplayerAlone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		program config.Program
		once    bool
		asks    bool
	}{
		"consumer":      {config.Consumer, false, false},
		"replayer":      {config.Replayer, false, true},
		"replayer once": {config.Replayer, true, false},
	} {
		due := dueOf(tc.program, settings(t, tc.program), tc.once)
		if (due != nil) != tc.asks {
			t.Errorf("%s asks when a record is due: %t", name, due != nil)
		}
		if due == nil {
			continue
		}
		if in := time.Until(due(decisionLog(0, notBefore(30*time.Minute)))); in < 20*time.Minute || in > 30*time.Minute {
			t.Errorf("%s: due in %v, want half an hour", name, in)
		}
	}
}

// The database takes a connection and never answers. The batch in hand gets no home, and stopping takes its whole limit
// and no longer.
func TestStop_BoundedWaitForTheDatabase(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	asked := make(chan net.Conn, 100)
	go func() {
		for {
			conn, err := mute.Accept()
			if err != nil {
				close(asked)
				return
			}
			asked <- conn
		}
	}()
	c := kafkatest.New(t, kfake.SeedTopics(1, "decision-logs", "decision-logs-dlq", "decision-logs-parking"))
	c.Values(t, "decision-logs", 0, string(decisionLog(0).Value))
	s := settings(t, config.Consumer, "DOCKET_DATABASE_URL=postgres://u:p@"+mute.Addr().String()+"/x?sslmode=disable",
		"DOCKET_KAFKA_BROKERS="+c.Brokers()[0], "DOCKET_SHUTDOWN_TIMEOUT=1s", "DOCKET_AUTO_MIGRATE=false")
	var log output.Buffer
	p, err := New(config.Consumer, s, zerolog.New(&log), prometheus.NewRegistry(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, program: p, log: &log, ended: make(chan error, 1)}
	w.run()
	select {
	case conn := <-asked:
		defer conn.Close()
	case <-time.After(kafkatest.Timeout):
		t.Fatal("nobody asked the database")
	}
	from := time.Now()
	w.stop()
	if err := w.end(); err != nil {
		t.Errorf("Run = %v after %v", err, time.Since(from))
	}
	if at := c.Committed(t, s.KafkaGroup, "decision-logs"); len(at) != 0 {
		t.Errorf("committed %v without a home", at)
	}
	mute.Close()
	for conn := range asked {
		conn.Close()
	}
}

func TestMissingTopic_HoldsAtTheStart(t *testing.T) {
	t.Parallel()
	for name, missing := range map[config.Program][]string{
		config.Consumer: {"decision-logs-dlq", "decision-logs-parking"},
		config.Replayer: {"decision-logs-dlq", "decision-logs-parking-dlq"},
	} {
		for _, topic := range missing {
			t.Run(string(name)+"/"+topic, func(t *testing.T) {
				t.Parallel()
				there := []string{"decision-logs", "decision-logs-parking", "decision-logs-dlq", "decision-logs-parking-dlq"}
				there = slices.DeleteFunc(there, func(other string) bool { return other == topic })
				c := kafkatest.New(t, kfake.SeedTopics(1, there...))
				s := settings(t, name, "DOCKET_DATABASE_URL=postgres://u:p@127.0.0.1:1/x?sslmode=disable",
					"DOCKET_KAFKA_BROKERS="+c.Brokers()[0], "DOCKET_SHUTDOWN_TIMEOUT=1s", "DOCKET_AUTO_MIGRATE=false")
				var log output.Buffer
				p, err := New(name, s, zerolog.New(&log), prometheus.NewRegistry(), Options{})
				if err != nil {
					t.Fatal(err)
				}
				w := &world{t: t, program: p, log: &log, ended: make(chan error, 1)}
				w.run()
				waits := func() bool {
					status, r := w.ready()
					return status == 503 && slices.ContainsFunc(r.Reasons, func(r Reason) bool {
						return r.Reason == "kafka_topic_missing" && strings.Contains(r.Hint, topic+";")
					})
				}
				w.until("the hold names the topic", waits)
				if err := c.CreateTopic(topic, 1, nil); err != nil {
					t.Fatal(err)
				}
				w.until("the program reads", func() bool { return !waits() && p.source.Joined() })
				w.stop()
				if err := w.end(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
