//go:build synctests

package desk

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/kafka"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/testkit/completetest"
	"docket/internal/testkit/kafkatest"
)

// late is a connection whose every answer comes later.
type late struct {
	net.Conn
	by time.Duration
}

func (l late) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n >= 4 { // the length of an answer comes alone or first; what follows is there
		time.Sleep(l.by / 2) // it is read in two parts
	}
	return n, err
}

// watching has a Kafka with all topics, and a watch that reaches it by a dialer.
type watching struct {
	t       *testing.T
	s       config.Settings
	cluster *kafkatest.Cluster
	log     *kafka.Reader
	watch   *complete.Watch
	books   completetest.Books
}

func newWatching(t *testing.T, by time.Duration, lanes string) *watching {
	t.Helper()
	g := &watching{t: t, s: settings(t, nowhere("DOCKET_LANES="+lanes))}
	topics := append(g.s.SourceTopics(), g.s.KafkaParkingTopic, g.s.KafkaDLQTopic, g.s.KafkaParkingDLQTopic)
	g.cluster = kafkatest.NewVirtual(t, kfake.SeedTopics(2, topics...))
	g.s.KafkaBrokers = g.cluster.Brokers()
	brokers, err := app.Kafka(g.s, "test")
	if err != nil {
		t.Fatal(err)
	}
	brokers.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := g.cluster.Dial(ctx, network, address)
		return late{c, by}, err
	}
	if g.log, err = kafka.NewReader(brokers); err != nil {
		t.Fatal(err)
	}
	g.watch = NewWatch(g.s, g.log)
	return g
}

func (g *watching) close() {
	g.log.Close()
	g.cluster.Close()
	time.Sleep(time.Minute) // connections of the fake end
}

func (g *watching) commit(group, topic string, partition int32, offset int64) {
	g.t.Helper()
	client := g.cluster.Client(g.t)
	defer client.Close()
	var done kadm.Offsets
	done.AddOffset(topic, partition, offset, -1)
	if err := kadm.NewClient(client).CommitAllOffsets(g.t.Context(), group, done); err != nil {
		g.t.Fatal(err)
	}
}

func (g *watching) say() reader.Completeness {
	a := &complete.Answers{Status: func(context.Context) complete.Status { return g.watch.Status() }, Books: g.books}
	return a.Begin(g.t.Context(), complete.Range{}).End(complete.Facts{Found: true})
}

// TestWatch_KafkaASecondLate asks while each answer of Kafka comes a second late. No answer waits, and each look still
// ends in its time.
func TestWatch_KafkaASecondLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newWatching(t, time.Second, "urgent,bulk")
		defer g.close()
		g.cluster.Values(t, g.s.KafkaTopic, 0, "a", "b")
		g.commit(g.s.KafkaGroup, g.s.KafkaTopic, 0, 2)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.watch.Run(ctx) }()
		var took []time.Duration
		known := 0
		for range 1200 {
			began := time.Now()
			c := g.say()
			took = append(took, time.Since(began))
			if c.Freshness == reader.Fresh && c.CompleteUntil != nil && c.Behind != nil {
				known++
			}
			time.Sleep(100 * time.Millisecond)
		}
		stop()
		<-ended
		slices.Sort(took)
		if p95 := took[len(took)*95/100]; p95 > 100*time.Millisecond {
			t.Errorf("p95 of an answer is %v", p95)
		}
		if known < len(took)*3/4 {
			t.Errorf("only %d of %d answers knew how complete they are", known, len(took))
		}
	})
}

// A command and a desk say the same where no consumer runs.
func TestWatch_NobodyReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newWatching(t, 0, "")
		defer g.close()
		g.cluster.Values(t, g.s.KafkaTopic, 0, "a", "b")
		g.commit(g.s.KafkaGroup, g.s.KafkaTopic, 0, 1)
		if err := g.watch.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c := g.say(); c.Freshness != reader.Holding || *c.Behind != 1 {
			t.Errorf("a group without members: %+v", c)
		}
		g.commit(g.s.KafkaGroup, g.s.KafkaTopic, 0, 2)
		if err := g.watch.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c := g.say(); c.Freshness != reader.Fresh {
			t.Errorf("nothing waits: %+v", c)
		}
	})
}

func TestWatch_AllLanes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newWatching(t, 0, "urgent,bulk")
		defer g.close()
		look := func() reader.Completeness {
			t.Helper()
			time.Sleep(5 * time.Second)
			if err := g.watch.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			return g.say()
		}
		if c := look(); c.Freshness != reader.Fresh || *c.Behind != 0 || *c.Parked != 0 || *c.DeadLettered != 0 {
			t.Errorf("groups that do not exist, and empty topics: %+v", c)
		}
		for _, l := range g.s.Lanes() {
			was := look()
			g.cluster.Values(t, l.Topic, 1, "a", "b", "c")
			late := look()
			if *late.Behind != 3 || !late.CompleteUntil.Equal(*was.CompleteUntil) {
				t.Errorf("lane %s: %d wait, complete until %v, was %v", l.Topic, *late.Behind, late.CompleteUntil, was.CompleteUntil)
			}
			g.commit(l.Group, l.Topic, 1, 3)
			if c := look(); *c.Behind != 0 || c.Freshness != reader.Fresh || !c.CompleteUntil.After(*late.CompleteUntil) {
				t.Errorf("lane %s: %+v", l.Topic, c)
			}
		}
		g.cluster.Values(t, g.s.KafkaParkingTopic, 0, completetest.Decision(time.Now(), "a"), "{")
		if c := look(); *c.Parked != 2 {
			t.Errorf("%d are parked", *c.Parked)
		}
		g.commit(g.s.ParkingGroup, g.s.KafkaParkingTopic, 0, 1)
		if c := look(); *c.Parked != 1 {
			t.Errorf("%d are parked after a replay", *c.Parked)
		}
		g.cluster.Values(t, g.s.KafkaParkingDLQTopic, 1, "{")
		if c := look(); c.DeadLettered != nil {
			t.Errorf("%d dead letters, and one is not in the ledger", *c.DeadLettered)
		}
		g.commit(g.s.DeskGroup, g.s.KafkaParkingDLQTopic, 1, 1)
		if c := look(); c.DeadLettered == nil {
			t.Error("all dead letters are in the ledger")
		}
	})
}

// TestWatch_OpenTransaction commits a transaction after a look. Its records were in the log before.
func TestWatch_OpenTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newWatching(t, 0, "")
		defer g.close()
		sender := g.cluster.Client(t, kgo.TransactionalID("sender"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		defer sender.Close()
		if err := sender.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := sender.ProduceSync(t.Context(), &kgo.Record{Topic: g.s.KafkaTopic, Value: []byte("{}")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		g.cluster.Values(t, g.s.KafkaTopic, 0, "behind the transaction")
		if err := g.watch.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c := g.say(); c.CompleteUntil != nil || *c.Behind != 2 {
			t.Errorf("a transaction is open: %+v", c)
		}
		if err := sender.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		g.commit(g.s.KafkaGroup, g.s.KafkaTopic, 0, 3)
		if err := g.watch.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c := g.say(); c.CompleteUntil == nil || *c.Behind != 0 {
			t.Errorf("it was committed and read: %+v", c)
		}
	})
}

func TestCompleteOnce_KafkaAway(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := CompleteOnce(settings(t, nowhere()), completetest.Books{}).Begin(t.Context(), complete.Range{}).End(complete.Facts{Found: true})
	if c.Freshness != reader.Partial || c.CompleteUntil != nil || c.Behind != nil {
		t.Errorf("%+v", c)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it takes %v", took)
	}
}
