package collector

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	room "docket/internal/kafka"
	"docket/internal/record/envelope"
	"docket/internal/testkit/kafkatest"
)

// onKafka is a world that publishes to a cluster in the process.
func onKafka(t testing.TB, c *kafkatest.Cluster, timeout time.Duration, with ...func(*Config)) *world {
	t.Helper()
	p, err := room.NewPublisher(room.Config{Brokers: c.Brokers(), Dialer: c.Dial, DialTimeout: 10 * time.Second, RequestTimeout: 20 * time.Second, MetadataMinAge: 50 * time.Millisecond},
		room.PublisherConfig{Timeout: timeout}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	w := newWorld(t, append(with, func(c *Config) { c.PublishTimeout, c.RetryAfter = timeout, time.Second })...)
	w.publisher = p
	return w
}

func TestUpload_ByteForByteInKafka(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(4, logs), kfake.SeedTopics(1, dlq))
	w := onKafka(t, c, kafkatest.Timeout)
	want := map[string]bool{}
	var parts []string
	for i := range 300 {
		part := good(fmt.Sprint("id-", i))
		want[part] = true
		parts = append(parts, part)
	}
	parts = append(parts, unnamed)
	if a := w.post(t, gz("["+strings.Join(parts, ",\n ")+"]"), "Content-Encoding", "gzip"); a.Code != http.StatusOK {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	partitions := map[int32]bool{}
	for _, r := range c.ReadAll(t, logs) {
		if !want[string(r.Value)] || string(r.Key) != "10.0.0.1:4711" {
			t.Errorf("%q by %q", r.Value, r.Key)
		}
		delete(want, string(r.Value))
		partitions[r.Partition] = true
	}
	dead := c.ReadAll(t, dlq)
	if len(want) != 0 || len(partitions) != 1 || len(dead) != 1 || string(dead[0].Value) != unnamed {
		t.Fatalf("%d are missing, in %d partitions, %d dead", len(want), len(partitions), len(dead))
	}
	if d := envelope.OpenDead(dead[0]); d.Origin.Topic != logs || d.Cause.Code != "missing_field" {
		t.Errorf("%+v", d)
	}
}

func TestBrokerAway_GetsEverythingOnceBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.NewVirtual(t, kfake.SeedTopics(2, logs), kfake.SeedTopics(1, dlq))
		t.Cleanup(c.Close)
		w := onKafka(t, c, 500*time.Millisecond)
		upload := func(n int) int {
			var parts []string
			for i := range 50 {
				parts = append(parts, good(fmt.Sprintf("%d-%d", n, i)))
			}
			return w.post(t, gz("["+strings.Join(parts, ",")+"]")).Code
		}
		until(t, "the first is taken", func() bool { return upload(0) == 200 })
		for what, outage := range map[string]func() func(){
			"it hangs up":          func() func() { return c.HangUp(kmsg.Produce) },
			"it does not answer":   func() func() { return c.Mute(kmsg.Produce) },
			"its answers are lost": func() func() { return c.LoseAnswers(logs) },
		} {
			heal := outage()
			if code := upload(1); code != http.StatusServiceUnavailable || w.State().Ready {
				t.Errorf("%s: %d, %+v", what, code, w.State())
			}
			heal()
			until(t, "it comes again", func() bool { return upload(1) == 200 })
			if !w.State().Ready {
				t.Errorf("%s: not ready again", what)
			}
		}
		c.FailTopic(kmsg.Produce, logs, kerr.TopicAuthorizationFailed, 1)
		if code := upload(2); code != http.StatusServiceUnavailable || w.State().Reason != "kafka_authorization" {
			t.Errorf("refused: %d, %+v", code, w.State())
		}
		until(t, "that one, too", func() bool { return upload(2) == 200 })
		there := map[string]bool{}
		for _, r := range c.ReadAll(t, logs) {
			there[string(r.Value)] = true
		}
		for n := range 3 {
			for i := range 50 {
				if id := fmt.Sprintf("%d-%d", n, i); !there[good(id)] {
					t.Errorf("%s was answered 200 and is not there", id)
				}
			}
		}
		if len(there) != 150 {
			t.Errorf("%d different records of 150", len(there))
		}
	})
}

// BenchmarkUpload takes uploads as OPA sends them, gzipped, a hundred decisions each. With Kafka the broker is in the same
// process, so that its work is in the figures.
func BenchmarkUpload(b *testing.B) {
	const each = 100
	var parts []string
	for i := range each {
		parts = append(parts, strings.Replace(good(fmt.Sprint("decision-", i)), "hush", strings.Repeat("some input ", 40)+fmt.Sprint(i*7919), 1))
	}
	body := gz("[" + strings.Join(parts, ",") + "]")
	run := func(b *testing.B, w *world) {
		b.ReportAllocs()
		for b.Loop() {
			if a := w.post(b, body, "Content-Encoding", "gzip"); a.Code != 200 {
				b.Fatal(a.Code, a.Body)
			}
		}
		b.ReportMetric(float64(b.N)*each/b.Elapsed().Seconds(), "decisions/s")
	}
	b.Run("alone", func(b *testing.B) {
		w := newWorld(b)
		w.publisher = forgetful{}
		run(b, w)
	})
	b.Run("kafka", func(b *testing.B) {
		run(b, onKafka(b, kafkatest.New(b, kfake.SeedTopics(4, logs), kfake.SeedTopics(1, dlq)), 10*time.Second))
	})
}
