//go:build synctests

package sim

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/conservation"
	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/ledgermodel"
	"docket/internal/testkit/pgmodel"
)

// The topics and groups of the default settings.
const (
	source    = "decision-logs"
	parked    = "decision-logs-parking"
	dead      = "decision-logs-dlq"
	exhausted = "decision-logs-parking-dlq"

	consumers = "docket"
	replayers = "docket-parking"
)

// world is one schedule while it is played.
type world struct {
	t       testing.TB
	plan    *schedule
	history *history
	logs    io.Writer // additional log of the programs; nil: none
	net     *weather
	books   *ledgerWeather
	book    *ledgermodel.Book // of the desk
	wires   *network
	kafka   *kafkatest.Cluster
	db      *pgmodel.Server
	ledger  *conservation.Produced
	clerk   *clerk
	asks    *asks
	witness *witness

	lanes   []lane // the default one first
	slots   []*slot
	feeder  *kgo.Client
	unheard sync.WaitGroup // records without an acknowledgement
	running sync.WaitGroup // slots and processes
	closing chan struct{}

	unrest map[string]unrest // rebalances that were seen, by group

	mu       sync.Mutex
	findings []string
	feeding  bool
	lives    []*process // all that there were
	metrics  map[string]verify.Metrics

	tightened       time.Time      // a CHECK was added then; zero: none
	repaired        time.Time      // the first CHECK was dropped then
	repair          func()         // drops it
	retriedBy       map[string]int // accepted retries, by operator
	snoozes         []snoozed
	ordered         []ordered                 // jobs that were made
	edited          map[string][]edited       // values that letters got, by their ids
	returned        map[string][]verify.Place // places where the desk put records back, by the mark of the retry
	putBack         []putBack                 // the same, with the time since which each was a dead letter
	healed, settled time.Time                 // end of the last fault; time when everything had its last home
}

// enter notes one more life.
func (w *world) enter(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lives = append(w.lives, p)
}

// processes are all that there were.
func (w *world) processes() []*process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lives)
}

// found notes something that is not as it has to be.
func (w *world) found(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.findings = append(w.findings, what)
	w.history.add("BROKEN", "", what)
}

func (w *world) broken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.findings
}

// later does f after d, without anybody waiting for it.
func (w *world) later(d time.Duration, f func()) { time.AfterFunc(d, f) }

// every does f again and again, until it is over.
func (w *world) every(d time.Duration, f func()) (over func()) {
	end := make(chan struct{})
	w.running.Go(func() {
		for tick := time.NewTicker(d); ; {
			select {
			case <-tick.C:
				f()
			case <-end:
				tick.Stop()
				return
			}
		}
	})
	return func() { close(end) }
}

// open makes everything but the processes.
func open(t testing.TB, s *schedule, h *history, logs io.Writer) *world {
	w := &world{
		t: t, plan: s, lanes: lanesOf(s.Lanes), history: h, logs: logs, net: newWeather(), books: &ledgerWeather{}, book: ledgermodel.New(), wires: newNetwork(), ledger: conservation.NewProduced(),
		closing: make(chan struct{}),
		unrest:  map[string]unrest{}, retriedBy: map[string]int{}, edited: map[string][]edited{}, metrics: map[string]verify.Metrics{},
	}
	if len(s.Edits)%2 == 0 {
		w.book.FourEyes()
	}
	w.book.Bounded(s.MaxEntered, func() time.Time { return time.Now().Truncate(simHour) })
	w.book.Rows = func(_ ledger.Sending, _ int64, rows []ledger.RowName) (marked, missing int) { return len(rows), 0 } // the model of Postgres has no marks
	ports := []int{9092, 9093, 9094}[:s.Brokers]
	cluster, err := kfake.NewCluster(kfake.NumBrokers(s.Brokers), kfake.Ports(ports...), kfake.ListenFn(w.wires.Listen),
		kfake.SeedTopics(s.Partitions, w.sources()...), kfake.SeedTopics(s.Forwards, parked, dead, exhausted))
	if err != nil {
		t.Fatalf("start the fake Kafka: %v", err)
	}
	w.kafka = &kafkatest.Cluster{Cluster: cluster, Dial: w.wires.Dial}
	w.placeLeaders()
	w.db = newDatabase(func(what string) { w.found("the model of Postgres does not know: " + what) })
	w.repair = s.Table.addTo(w.db)
	w.witness = newWitness(w.db)
	for i := range s.Consumers + s.Replayers + s.Desks {
		w.slots = append(w.slots, newSlot(w, i))
	}
	w.feeder = w.kafka.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(w.compression()), kgo.DisableIdempotentWrite())
	w.clerk = newClerk(w)
	w.asks = &asks{w: w}
	return w
}

// compression is that of what is read: memory for what is inflated is used again, and what came plain is its own.
func (w *world) compression() kgo.CompressionCodec {
	if w.plan.Seed%2 == 0 {
		return kgo.NoCompression()
	}
	return kgo.Lz4Compression()
}

// placeLeaders spreads the partitions over the brokers; the fake would toss a coin that is not the seed's.
func (w *world) placeLeaders() {
	if w.plan.Brokers == 1 {
		return
	}
	n := int32(w.plan.Seed % 3)
	for _, topic := range append([]string{source, parked, dead, exhausted}, w.sources()[1:]...) {
		count := w.plan.Forwards
		if w.groupOf(topic) != "" {
			count = w.plan.Partitions
		}
		for p := range count {
			_ = w.kafka.MoveTopicPartition(topic, p, n%int32(w.plan.Brokers)) // both exist
			n++
		}
	}
}

// configure reads the settings of a slot.
func (w *world) configure(p config.Program, slot int) config.Settings {
	env := append([]string{"DOCKET_SPOOL_DIR=spool"}, w.plan.Settings...)
	if w.plan.NoSpool[slot] {
		env[0] = "DOCKET_SPOOL_DIR="
	}
	if len(w.plan.Rests) > 0 {
		env = append(env, "DOCKET_PARKING_BACKOFF="+w.plan.Rests[slot])
	}
	s, _, err := config.LoadWith(p, env, config.Judges{"DOCKET_DATABASE_URL": db.Complaint})
	if err != nil {
		w.t.Fatalf("the schedule's settings: %v", err)
	}
	return s
}

// feed produces what arrives at its times.
func (w *world) feed() {
	for _, a := range w.plan.Arrivals {
		w.until(a.At)
		r := twisted(a)
		w.unheard.Add(1)
		w.produce(r, w.lanes[a.Lane].topic, a.Partition)
	}
	w.unheard.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feeding = false
}

// produce writes one record, again where the broker hung up before it read anything of it.
func (w *world) produce(r conservation.Record, topic string, partition int32) {
	record := &kgo.Record{Topic: topic, Partition: partition, Key: r.Key, Value: r.Value, Headers: r.Headers}
	w.feeder.Produce(context.Background(), record, func(sent *kgo.Record, err error) {
		if unread := (*kgo.ErrFirstReadEOF)(nil); errors.As(err, &unread) {
			w.later(glance, func() { w.produce(r, topic, partition) })
			return
		}
		defer w.unheard.Done()
		if err != nil {
			w.found("the harness could not produce: " + err.Error())
			return
		}
		w.ledger.Acknowledged(topic, sent.Partition, sent.Offset, r)
	})
}

// until waits for a time of the schedule.
func (w *world) until(at time.Duration) { time.Sleep(at - w.history.since()) }

// close ends all processes and then the servers. Afterwards nothing of the schedule is left.
func (w *world) close() {
	close(w.closing)
	w.running.Wait()
	w.feeder.Close()
	w.db.Close()
	w.kafka.Close()
}
