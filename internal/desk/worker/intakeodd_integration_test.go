//go:build integration

package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

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
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/pgtest"
)

// strange are odd records that a dead-letter topic can contain, by any writer.
func strange() (records []*kgo.Record) {
	add := func(r kgo.Record) {
		r.Topic = dlq
		records = append(records, &r)
	}
	header := func(key, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: key, Value: []byte(value)} }
	add(kgo.Record{})
	add(kgo.Record{Key: []byte{}, Value: []byte{}})
	add(kgo.Record{Key: []byte("\x00\xff\xfe"), Value: []byte("\x00\xff\xfe")})
	add(kgo.Record{Value: []byte("1"), Headers: []kgo.RecordHeader{header("\x00", "\x00"), header("\xff\xfe", "\xff"), header("", ""), {Key: "nil"}, header("nil", "twice")}})
	add(kgo.Record{Value: []byte("2"), Headers: []kgo.RecordHeader{header(strings.Repeat("k", 100_000), strings.Repeat("v", 500_000))}})
	for _, ms := range []int64{-1, 0, 1, -62135596800001, 253402300800000, 1e15, math.MaxInt64 / 2, math.MinInt64 / 2} {
		add(kgo.Record{Value: fmt.Append(nil, ms), Timestamp: time.UnixMilli(ms)})
	}
	ours := []string{envelope.DeadLetterID, envelope.FailureKind, envelope.FailureCode, envelope.FailureMessage, envelope.FailureTable,
		envelope.FailureColumn, envelope.FailureConstraint, envelope.FailedAt, envelope.FirstFailedAt, envelope.RetryOf, envelope.OriginalTopic,
		envelope.OriginalPartition, envelope.OriginalOffset, envelope.OriginalIndex, envelope.OriginalTimestamp}
	for i, text := range []string{"\x00", "\xff\xfe", strings.Repeat("é", 50_000), "-1", "9223372036854775807", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999-12:00",
		"decision-logs", "data", strings.Repeat("AB", 32), "0f8fad5b-d9cb-469f-a165-70867728950e"} {
		all := kgo.Record{Value: fmt.Append(nil, "all ", i)}
		for _, name := range ours {
			add(kgo.Record{Value: fmt.Append(nil, name, i), Headers: []kgo.RecordHeader{header(name, text)}})
			if name != envelope.DeadLetterID {
				all.Headers = append(all.Headers, header(name, text))
			}
		}
		add(all)
	}
	for _, path := range []string{strings.Repeat("/x", 50_000), strings.Repeat("😀", 3000), `\ud83d\ude00`, `a\u0000b`, `\udc00`} {
		add(kgo.Record{Value: []byte(`{"decision_id":"` + path + `","timestamp":"0000-01-01T00:00:00+14:00","path":"` + path + `"}`)})
	}
	add(kgo.Record{Value: []byte(`{"decision_id":"d","timestamp":"9999-12-31T23:59:59-14:00","path":""}`)})
	return records
}

// Any record of a topic can enter the ledger, whole, and be retried from it.
func TestIntake_OddRecordsOnPostgres(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	k := kafkatest.New(t, kfake.SeedTopics(1, source, dlq))
	db, err := store.Open(db.Config{URL: pg.URL, StoreTimeout: 20 * time.Second}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := &world{t: t, kafka: k, pg: pg, book: ledgerdb.New(db.DB)}
	records := strange()
	k.Produce(t, records...)

	var log bytes.Buffer
	in := worker.NewIntake(worker.IntakeConfig{MaxRecordBytes: 1 << 20, MaxAttempts: 3, Actor: ledger.Actor{Name: "desk"}}, w.book, nil, zerolog.New(&log))
	from, err := kafka.NewSource(kafka.Config{Brokers: k.Brokers()}, kafka.SourceConfig{Topic: dlq, Group: "docket-desk"}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- from.Run(ctx, func(ctx context.Context, a *kafka.Assignment) error { return in.Carry(ctx, a) })
	}()
	end := time.Now().Add(patience)
	for k.Committed(t, "docket-desk", dlq)[0] != int64(len(records)) && time.Now().Before(end) {
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if at := k.Committed(t, "docket-desk", dlq)[0]; at != int64(len(records)) || strings.Count(log.String(), "\n") != strings.Count(log.String(), `"message":"dead letters name ids of others"}`) {
		t.Fatalf("committed %d of %d; the log: %.2000s", at, len(records), log.String())
	}
	var letters int
	pg.Query(t, `SELECT count(*) FROM dead_letters`, &letters)
	if letters < len(records)-5 { // some are the same dead letter by their headers
		t.Errorf("%d letters of %d records", letters, len(records))
	}

	// Out again, to where they came from; those that claim another topic stay, as nobody has that.
	pg.Exec(t, `UPDATE dead_letters SET origin_topic = 'decision-logs'`)
	var ids []string
	pg.Query(t, `SELECT array_agg(dead_letter_id ORDER BY found_offset) FROM dead_letters`, &ids)
	w.retryAll(ids)
	w.goes(w.relay("relay-1", 50, w.book, w.publisher(5*time.Second)).Run)
	w.until("all are published", `SELECT NOT EXISTS (SELECT FROM dead_letter_outbox WHERE published_at IS NULL)`)
	retried := map[string]*kgo.Record{}
	for _, r := range k.ReadAll(t, source) {
		mark := r.Headers[len(r.Headers)-1]
		if mark.Key != envelope.RetryOf {
			t.Fatalf("the last header of a retried record is %q", mark.Key)
		}
		retried[string(mark.Value)] = r
	}
	if len(retried) != letters {
		t.Errorf("%d retried records of %d letters", len(retried), letters)
	}
	found := map[int64]*kgo.Record{}
	for _, r := range k.ReadAll(t, dlq) {
		found[r.Offset] = r
	}
	for mark, r := range retried {
		var offset int64
		pg.Query(t, `SELECT found_offset FROM dead_letters JOIN dead_letter_outbox USING (dead_letter_id) WHERE mark = '`+mark+`'`, &offset)
		was := found[offset]
		if !same(r.Key, was.Key) || !same(r.Value, was.Value) {
			t.Errorf("record %d: key %.50q and value %.50q came back as %.50q and %.50q", offset, was.Key, was.Value, r.Key, r.Value)
		}
		var theirs []kgo.RecordHeader
		for _, h := range was.Headers {
			if !strings.HasPrefix(h.Key, "x-") && (h.Key != envelope.RetryOf || string(h.Value) != "0f8fad5b-d9cb-469f-a165-70867728950e") {
				theirs = append(theirs, h)
			}
		}
		back := r.Headers[:len(r.Headers)-1]
		if len(back) != len(theirs) {
			t.Errorf("record %d: %d headers of others, %d came back", offset, len(theirs), len(back))
			continue
		}
		for i := range back {
			if back[i].Key != theirs[i].Key || !same(back[i].Value, theirs[i].Value) {
				t.Errorf("record %d: header %.50q=%.50q came back as %.50q=%.50q", offset, theirs[i].Key, theirs[i].Value, back[i].Key, back[i].Value)
			}
		}
	}
}

// same compares bytes; nothing is not the same as none.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
