//go:build integration

package sqlstates

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/consumer/replay"
	"docket/internal/errclass"
	"docket/internal/kafka"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/pgtest"
)

// patience limits every wait; a good run never needs it.
const patience = 3 * time.Minute

// maxAttempts is DOCKET_PARKING_MAX_ATTEMPTS.
const maxAttempts = 5

// world is a set of topics and a real table, with a consumer and a replayer on them.
type world struct {
	t        *testing.T
	kafka    *kafkatest.Cluster
	pg       *pgtest.DB
	prefix   string
	url      string        // the login of the programs
	timeout  time.Duration // of a store
	pauses   []time.Duration
	consumer *program
	replayer *program
}

// topics returns the topics of a world with this prefix.
func topics(prefix string) []string {
	return []string{prefix + "logs", prefix + "parking", prefix + "dlq", prefix + "parking-dlq"}
}

func newWorld(t *testing.T, k *kafkatest.Cluster, pg *pgtest.DB, as, prefix string) *world {
	return &world{t: t, kafka: k, pg: pg, prefix: prefix, url: as, timeout: 20 * time.Second,
		pauses: []time.Duration{time.Millisecond, time.Millisecond}}
}

// role makes a role with the rights of the programs, and returns its URL. Its password is cheap to check, which saves
// half of the run's time, because every fresh connection checks it. No server is killed here, so commits need not
// wait for a disk.
func role(t *testing.T, pg *pgtest.DB) string {
	t.Helper()
	at := pg.Role(t, "SELECT, INSERT")
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	pg.Exec(t, `SET scram_iterations = 1; ALTER ROLE `+u.User.Username()+` PASSWORD 'role';
		ALTER DATABASE `+pg.Name+` SET synchronous_commit = off`)
	return at
}

// cluster is a Kafka with the topics of these prefixes.
func cluster(t *testing.T, prefixes ...string) *kafkatest.Cluster {
	t.Helper()
	var all []string
	for _, p := range prefixes {
		all = append(all, topics(p)...)
	}
	return kafkatest.New(t, kfake.SeedTopics(1, all...))
}

// realStore has another name than its method Store, so that it can be embedded.
type realStore = store.Store

// table is the real table. It counts probes.
type table struct {
	*realStore
	asked func(error)
}

func (c *table) Probe(ctx context.Context, at time.Time) error {
	err := c.realStore.Probe(ctx, at)
	if ctx.Err() == nil {
		c.asked(err)
	}
	return err
}

// program is one running pipeline.
type program struct {
	w         *world
	name      string
	db        *store.Store
	source    *kafka.Source
	publisher *kafka.Publisher
	cancel    context.CancelFunc
	ended     chan error

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	homes   map[home.Home]int
	batches map[home.Home]int // by the home of its first decision
	retries int
	refused int // probes in a row
	holds   []pipeline.Hold
	holding int
	seen    []errclass.Classification
}

// start makes the consumer with batches of this size.
func (w *world) start(batch int) *program {
	w.consumer = w.program("consumer", w.prefix+"logs", batch, pipeline.Config{})
	return w.consumer
}

// replay makes the replayer.
func (w *world) replay() *program {
	w.replayer = w.program("replayer", w.prefix+"parking", 100, pipeline.Config{Replay: true})
	return w.replayer
}

func (w *world) program(name, topic string, batch int, cfg pipeline.Config) *program {
	w.t.Helper()
	p := &program{w: w, name: name, ended: make(chan error, 1), changed: make(chan struct{}), homes: map[home.Home]int{}, batches: map[home.Home]int{}}
	must := func(err error) {
		if err != nil {
			w.t.Fatalf("%s: %v", name, err)
		}
	}
	var err error
	p.db, err = store.Open(db.Config{URL: w.url, StoreTimeout: w.timeout}, zerolog.Nop())
	must(err)
	brokers := kafka.Config{Brokers: w.kafka.Brokers(), MetadataMinAge: 20 * time.Millisecond, InstanceLabel: name}
	p.publisher, err = kafka.NewPublisher(brokers, kafka.PublisherConfig{}, zerolog.Nop(), nil)
	must(err)
	p.source, err = kafka.NewSource(brokers, kafka.SourceConfig{
		Topic: topic, Group: topic + "-group", BatchRecords: batch, BatchWait: patience, FetchWait: 20 * time.Millisecond,
	}, zerolog.Nop(), nil)
	must(err)
	cfg.DLQTopic, cfg.ParkingTopic, cfg.ParkingDLQTopic = w.prefix+"dlq", w.prefix+"parking", w.prefix+"parking-dlq"
	cfg.MaxRecordBytes, cfg.RetryPauses, cfg.ParkBatches, cfg.ProbeInterval = 1<<20, w.pauses, wholeBatches, 20*time.Millisecond
	cfg.Backoff, cfg.MaxBackoff, cfg.MaxAttempts, cfg.Consumer = time.Millisecond, time.Millisecond, maxAttempts, "test/"+name
	pipe := pipeline.New(cfg, &table{p.db, p.probed}, p.publisher, nil, p, zerolog.Nop())
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		p.ended <- p.source.Run(ctx, func(ctx context.Context, a *kafka.Assignment) error {
			if !cfg.Replay {
				return pipe.Run(ctx, a)
			}
			return pipe.Run(ctx, replay.New(replay.Config{
				Lookahead: 1000, Weigh: kafka.RecordBytes, MaxBackoff: cfg.MaxBackoff, BatchRecords: batch, BatchBytes: 1 << 20,
			}, a))
		})
	}()
	w.t.Cleanup(p.stop)
	return p
}

// stop ends the program as SIGTERM does.
func (p *program) stop() {
	if p.cancel == nil {
		return
	}
	p.cancel()
	p.cancel = nil
	select {
	case err := <-p.ended:
		if err != nil {
			p.w.t.Errorf("the %s ended with %v", p.name, err)
		}
	case <-time.After(patience):
		p.w.t.Errorf("the %s does not end", p.name)
	}
	p.source.Close()
	p.publisher.Close()
	p.db.Close()
}

// await waits until ok, which is called under the lock after every change.
func (p *program) await(what string, ok func() bool) bool {
	p.w.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		p.mu.Lock()
		done, changed := ok(), p.changed
		state := fmt.Sprintf("homes %v, holds %v, holding %d, probes refused %d, retries %d", p.homes, p.holds, p.holding, p.refused, p.retries)
		p.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-limit.C:
			p.w.t.Errorf("the %s never came to this: %s; %s", p.name, what, state)
			return false
		}
	}
}

func (p *program) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *program) probed(err error) {
	p.change(func() {
		if p.refused++; err == nil {
			p.refused = 0
		}
	})
}

// housed waits until n decisions have homes of these kinds.
func (p *program) housed(n int, homes ...home.Home) bool {
	p.w.t.Helper()
	return p.await(fmt.Sprintf("%d decisions have a home of %v", n, homes), func() bool {
		sum := 0
		for _, h := range homes {
			sum += p.homes[h]
		}
		return sum >= n
	})
}

// held waits until the program holds and n probes in a row were refused. It returns the hold.
func (p *program) held(n int) (pipeline.Hold, bool) {
	p.w.t.Helper()
	ok := p.await("a hold", func() bool { return p.holding > 0 && p.refused >= n })
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok {
		return pipeline.Hold{}, false
	}
	return p.holds[len(p.holds)-1], true
}

func (p *program) count() (homes map[home.Home]int, retries int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	homes = map[home.Home]int{}
	for h, n := range p.homes {
		homes[h] = n
	}
	return homes, p.retries
}

// The other methods of pipeline.Observer.

func (p *program) Took(int)                    {}
func (p *program) Gave(int)                    {}
func (p *program) Bisected(int)                {}
func (p *program) PublishFailed(string, error) {}
func (p *program) Retried()                    { p.change(func() { p.retries++ }) }

func (p *program) StoreFailed(v errclass.Classification) {
	p.change(func() {
		if !slices.Contains(p.seen, v) {
			p.seen = append(p.seen, v)
		}
	})
}

func (p *program) Held(_ string, _ int32, h pipeline.Hold) (release func()) {
	p.change(func() { p.holds = append(p.holds, h); p.holding++ })
	return func() { p.change(func() { p.holding-- }) }
}

func (p *program) Homed(r pipeline.HomedBatch) {
	p.change(func() {
		batch := home.None
		for d := range r.Decisions {
			p.homes[d.Home]++
			batch = cmp.Or(batch, d.Home)
		}
		p.batches[batch]++
	})
}

// logOf is a decision log with more members, as in `"a":1`.
func logOf(id string, at time.Time, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"decision_id":%q,"timestamp":%q,"path":"sqlstates/allow","requested_by":"10.0.0.1","result":true%s}`,
		id, at.Format(time.RFC3339Nano), more)
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func (w *world) send(values ...string) { w.kafka.Values(w.t, w.prefix+"logs", 0, values...) }

// rows returns the ids of this prefix in the table.
func (w *world) rows() []string {
	w.t.Helper()
	var ids []string
	w.pg.Query(w.t, `SELECT coalesce(array_agg(decision_id ORDER BY source_offset), '{}') FROM decision_logs WHERE source_topic = `+
		"'"+w.prefix+"logs'", &ids)
	return ids
}

// forwarded returns the records of one of the topics.
func (w *world) forwarded(topic string) []*kgo.Record { return w.kafka.ReadAll(w.t, w.prefix+topic) }

// committed returns the committed offset of the consumer, -1 if there is none.
func (w *world) committed() int64 {
	topic := w.prefix + "logs"
	if at, ok := w.kafka.Committed(w.t, topic+"-group", topic)[0]; ok {
		return at
	}
	return -1
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// origins returns the offsets at which records were first read.
func origins(rs []*kgo.Record) []string {
	var at []string
	for _, r := range rs {
		at = append(at, header(r, envelope.OriginalOffset))
	}
	return at
}
