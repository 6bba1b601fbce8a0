//go:build integration

package worker_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/kafka"
	"docket/internal/postgres/db"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/store"
	"docket/internal/record/envelope"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/pgtest"
)

const (
	source      = "decision-logs"
	dlq         = "decision-logs-dlq"
	maxAttempts = 3
	letterLease = time.Hour       // long, so that what ends here ends for its own reasons
	patience    = 3 * time.Minute // for what has to come; no promise of how soon
)

// brokers is a kafka.Publisher for the desk.
type brokers struct{ *kafka.Publisher }

func (b brokers) Place(ctx context.Context, records []*kgo.Record) ([]worker.Place, []error) {
	placed, errs := b.Publisher.Place(ctx, records)
	out := make([]worker.Place, len(placed))
	for i, p := range placed {
		out[i] = worker.Place(p)
	}
	return out, errs
}

// table is decision_logs for the desk.
type table struct{ *store.Store }

func (t table) Lookup(ctx context.Context, sought []worker.Sought) ([]worker.Found, error) {
	of := make([]store.Sought, len(sought))
	for i, s := range sought {
		of[i] = store.Sought{ID: s.ID, Time: s.Time, Raw: s.Raw, Came: true}
	}
	found, err := t.Store.Lookup(ctx, of)
	out := make([]worker.Found, len(found))
	for i, f := range found {
		out[i] = worker.Found{N: f.N, Topic: f.Topic, Partition: f.Partition, Offset: f.Offset, Equal: f.Equal}
	}
	return out, err
}

// book is the part of the ledger that is used here.
type book interface {
	ledger.Intake
	ledger.Decider
	ledger.Proposals
	ledger.Reader
	ledger.Relay
	ledger.Watch
	ledger.Marker
	ledger.Upkeep
}

// world is a Kafka and a table with the real consumer between them, and a desk without its relay.
type world struct {
	t     *testing.T
	kafka *kafkatest.Cluster
	pg    *pgtest.DB
	book  book
	group string // of the consumer
	gate  *gate
	lease time.Duration // of a relay's claim; 0: a second
}

// gate is a ledger.Intake that can be shut. Then dead records wait in their topic.
type gate struct {
	ledger.Intake
	shut sync.RWMutex
}

func (g *gate) Enter(ctx context.Context, letters []ledger.Letter, maxAttempts int, by ledger.Actor) (ledger.EnteredCount, error) {
	g.shut.RLock()
	defer g.shut.RUnlock()
	return g.Intake.Enter(ctx, letters, maxAttempts, by)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, pg: pgtest.New(t)}
	w.kafka = kafkatest.New(t, kfake.SeedTopics(2, source, dlq, "decision-logs-parking", "decision-logs-parking-dlq"))
	db, err := store.Open(db.Config{URL: w.pg.URL, StoreTimeout: 20 * time.Second, MaxConns: 16}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w.book = ledgerdb.New(db.DB)
	w.gate = &gate{Intake: w.book}
	w.consume()

	actor := ledger.Actor{Name: "desk"}
	in := worker.NewIntake(worker.IntakeConfig{MaxRecordBytes: 1 << 20, MaxAttempts: maxAttempts, Actor: actor}, w.gate, nil, zerolog.Nop())
	from, err := kafka.NewSource(kafka.Config{Brokers: w.kafka.Brokers()}, kafka.SourceConfig{Topic: dlq, Group: "docket-desk", FetchWait: 50 * time.Millisecond}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.goes(func(ctx context.Context) error {
		return from.Run(ctx, func(ctx context.Context, a *kafka.Assignment) error { return in.Carry(ctx, a) })
	})
	w.goes(worker.NewWatcher(worker.WatchConfig{Interval: 100 * time.Millisecond, MaxPause: time.Second, MaxRecordBytes: 1 << 20}, w.book, table{db}, actor, zerolog.Nop()).Run)
	w.goes(worker.NewMarking(worker.MarkConfig{Interval: 50 * time.Millisecond, MaxRecordBytes: 1 << 20}, w.book, zerolog.Nop()).Run)
	w.goes(worker.NewUpkeep(worker.UpkeepConfig{Holder: "desk-1", KeepResolved: time.Hour}, w.book, actor, zerolog.Nop()).Run)
	return w
}

// consume starts the consumer as in production.
func (w *world) consume() {
	w.t.Helper()
	s, _, err := config.Load(config.Consumer, []string{
		"DOCKET_DATABASE_URL=" + w.pg.URL, "DOCKET_KAFKA_BROKERS=" + strings.Join(w.kafka.Brokers(), ","), "DOCKET_HTTP_ADDR=127.0.0.1:0",
		"DOCKET_SPOOL_DIR=" + w.t.TempDir() + "/spool", "DOCKET_AUTO_MIGRATE=false", "DOCKET_RETRY_PAUSES=10ms", "DOCKET_PROBE_INTERVAL=50ms",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.group = s.KafkaGroup
	p, err := app.New(config.Consumer, s, zerolog.Nop(), prometheus.NewRegistry(), app.Options{Instance: "consumer-1"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(p.Close)
	w.goes(p.Run)
}

// goes runs a func until the test ends.
func (w *world) goes(run func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Errorf("it ended with %v", err)
		}
	})
}

func (w *world) publisher(timeout time.Duration) worker.Publisher {
	w.t.Helper()
	p, err := kafka.NewPublisher(kafka.Config{Brokers: w.kafka.Brokers()}, kafka.PublisherConfig{Timeout: timeout}, zerolog.Nop(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(p.Close)
	return brokers{p}
}

// relay makes a relay with short times. It does not start it.
func (w *world) relay(holder string, batch int, l ledger.Relay, p worker.Publisher) *worker.Relay {
	return worker.NewRelay(worker.RelayConfig{
		Holder: holder, Topics: []string{source}, Interval: 20 * time.Millisecond, Batch: batch, Tries: 5, Lease: cmp.Or(w.lease, time.Second), Extend: letterLease,
		Backoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond,
	}, l, p, zerolog.Nop())
}

// dead makes n dead letters, with a table that refuses their decisions until [pgtest.DB.Calm]. It returns their ids.
func (w *world) dead(n int) []string {
	w.t.Helper()
	w.pg.RaiseMarked(w.t)
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: source, Partition: int32(i % 2), Key: fmt.Append(nil, "key-", i%60), Value: fmt.Appendf(nil,
			`{"decision_id":"d%d","timestamp":%q,"path":"races/allow","raise":"23514","raise_constraint":"only_new"}`, i, time.Now().UTC().Format(time.RFC3339Nano))}
	}
	w.kafka.Produce(w.t, records...)
	w.until(fmt.Sprintf("%d dead letters are in the ledger", n), `SELECT count(*) = $1 FROM dead_letters`, n)
	var ids []string
	w.pg.Query(w.t, `SELECT array_agg(dead_letter_id ORDER BY origin_partition, origin_offset) FROM dead_letters`, &ids)
	return ids
}

// until waits until the SQL returns true.
func (w *world) until(what, sql string, args ...any) {
	w.t.Helper()
	for _, a := range args {
		sql = strings.Replace(sql, "$1", fmt.Sprint(a), 1)
	}
	end := time.Now().Add(patience)
	for ok := false; ; time.Sleep(20 * time.Millisecond) {
		if w.pg.Query(w.t, sql, &ok); ok {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("never: %s; %s", what, w.state())
		}
	}
}

// state describes the world for the message of a failure.
func (w *world) state() (state string) {
	w.t.Helper()
	w.pg.Query(w.t, `SELECT format('letters %s; outbox %s; %s rows',
		(SELECT json_object_agg(s, n) FROM (SELECT state || ' ' || attempts AS s, count(*) AS n FROM dead_letters GROUP BY 1) x),
		(SELECT json_object_agg(s, n) FROM (SELECT coalesce(outcome, 'open') || CASE WHEN published_at IS NULL THEN ' unpublished' ELSE '' END || ' tries ' || tries AS s, count(*) AS n
			FROM dead_letter_outbox GROUP BY 1) x),
		(SELECT count(*) FROM decision_logs))`, &state)
	return state
}

// quiet waits until the consumer and the desk have read everything, so that every copy of every record had its
// effect.
func (w *world) quiet() {
	w.t.Helper()
	kafkatest.Eventually(w.t, "everything is read", func() bool {
		for topic, group := range map[string]string{source: w.group, dlq: "docket-desk"} {
			ends := map[int32]int64{}
			for _, r := range w.kafka.ReadAll(w.t, topic) {
				ends[r.Partition] = max(ends[r.Partition], r.Offset+1)
			}
			at := w.kafka.Committed(w.t, group, topic)
			for partition, end := range ends {
				if at[partition] != end {
					return false
				}
			}
		}
		return true
	})
}

// settled waits until every retry has ended and every copy was read.
func (w *world) settled() {
	w.t.Helper()
	w.until("every retry has ended", `SELECT NOT EXISTS (SELECT FROM dead_letter_outbox WHERE ended_at IS NULL) AND NOT EXISTS (SELECT FROM dead_letters WHERE state = 'PROCESSING')`)
	w.quiet()
}

// inOrder checks that the retries of one key came into their topic in the order of the outbox. Copies may come later,
// but no later retry is there before an earlier one. from is the number of earlier records.
func (w *world) inOrder(from int64) {
	w.t.Helper()
	var marks []string
	w.pg.Query(w.t, fmt.Sprintf(`SELECT array_agg(mark::text ORDER BY outbox_id) FROM dead_letter_outbox WHERE outbox_id > %d`, from), &marks)
	place := map[string]int{}
	for i, mark := range marks {
		place[mark] = i
	}
	pairs, seen, last := 0, map[string]bool{}, map[string]int{}
	for _, r := range w.kafka.ReadAll(w.t, source) {
		mark := ""
		for _, h := range r.Headers {
			if h.Key == envelope.RetryOf {
				mark = string(h.Value)
			}
		}
		i, ours := place[mark]
		if !ours || seen[mark] {
			continue
		}
		seen[mark] = true
		if before, ok := last[string(r.Key)]; ok {
			if pairs++; i < before {
				w.t.Errorf("of key %s retry %d came after retry %d", r.Key, i, before)
			}
		}
		last[string(r.Key)] = i
	}
	if len(seen) != len(marks) || pairs == 0 {
		w.t.Errorf("%d of %d retries are in the topic, %d behind another of their key", len(seen), len(marks), pairs)
	}
}

// lives checks how many letters have which history, by the acts of their audit.
func (w *world) lives(want map[string]int) {
	w.t.Helper()
	for life, n := range want {
		var got int
		w.pg.Query(w.t, `SELECT count(*) FROM (SELECT string_agg(act, ' ' ORDER BY audit_id) AS life FROM dead_letter_audit GROUP BY dead_letter_id) l
			WHERE life = '`+life+`'`, &got)
		if got != n {
			var lives string
			w.pg.Query(w.t, `SELECT json_object_agg(life, n) FROM (SELECT life, count(*) AS n FROM
				(SELECT string_agg(act, ' ' ORDER BY audit_id) AS life FROM dead_letter_audit GROUP BY dead_letter_id) l GROUP BY 1) x`, &lives)
			w.t.Errorf("%d letters went %q, want %d; all: %s", got, life, n, lives)
		}
	}
}

// effect checks that all retries together had one effect: a row for each stored decision, and nothing else.
func (w *world) effect(letters, stored, attempts int) {
	w.t.Helper()
	for what, check := range map[string]struct {
		sql  string
		want int
	}{
		"letters":                     {`SELECT count(*) FROM dead_letters`, letters},
		"rows of decision_logs":       {`SELECT count(*) FROM decision_logs`, stored},
		"decisions with a row":        {`SELECT count(DISTINCT decision_id) FROM decision_logs`, stored},
		"letters that were stored":    {`SELECT count(*) FROM dead_letters WHERE state = 'RESOLVED' AND changed_act = 'stored'`, stored},
		"letters with other attempts": {fmt.Sprintf(`SELECT count(*) FROM dead_letters WHERE attempts <> %d`, attempts), 0},
		"retries that are open":       {`SELECT count(*) FROM dead_letter_outbox WHERE ended_at IS NULL`, 0},
		// A retry that was given up as unanswered was refused, whatever was found later.
		"letters with a stored or refused retry":       {`SELECT count(DISTINCT dead_letter_id) FROM dead_letter_outbox WHERE outcome IN ('stored', 'refused')`, stored},
		"retries that are told of as stored too often": {`SELECT count(*) - count(DISTINCT dead_letter_id) FROM dead_letter_outbox WHERE outcome = 'stored'`, 0},
		"counters that do not say what is":             {`SELECT count(*) FROM (SELECT state, count(*)::numeric AS n FROM dead_letters GROUP BY 1 EXCEPT SELECT state, sum(n) FROM dead_letter_counts GROUP BY 1) x`, 0},
		"moves in the audit that are not legal": {`SELECT count(*) FROM dead_letter_audit a WHERE from_state IS DISTINCT FROM to_state AND NOT EXISTS (SELECT FROM dead_letter_moves m
			WHERE m.from_state IS NOT DISTINCT FROM a.from_state AND m.to_state IS NOT DISTINCT FROM a.to_state AND m.act = a.act)`, 0},
	} {
		var got int
		w.pg.Query(w.t, check.sql, &got)
		if got != check.want {
			w.t.Errorf("%s: %d, want %d", what, got, check.want)
		}
	}
	if w.t.Failed() {
		w.t.Log(w.state())
	}
}
