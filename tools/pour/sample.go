package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/conservation"
	"docket/sample"
)

// carried is how long the consumer may take for the sample.
const carried = time.Minute

// pourSample pours the sample and a few bad lines, waits until all is committed and prints what became of it.
func pourSample(ctx context.Context, p project, copies int, say func(string, ...any), out io.Writer) error {
	records, err := sampleRecords(copies)
	if err != nil {
		return err
	}
	say("sending the sample %d times (%d decision logs) and %d planted lines", copies, len(sample.DecisionLogs()), len(records)-copies*len(sample.DecisionLogs()))
	ledger := conservation.NewProduced()
	if err := produceAll(ctx, p, records, ledger); err != nil {
		return err
	}
	say("sent %d Kafka records; waiting until the consumer has committed them", ledger.Records())
	if err := committed(ctx, p); err != nil {
		return err
	}
	say("committed")
	evidence, err := conservation.Gather(ctx, p.places, ledger)
	if err != nil {
		return err
	}
	account := conservation.Reconcile(ledger, evidence)
	account.Invented = nil // records that others sent are in the same places
	fmt.Fprintf(out, "\n%s\nLook at it:\n%s", accountTable(account), whereToLook)
	return account.Err()
}

const whereToLook = `  build/compose exec -T postgres psql -U docket -c "SELECT service, allowed, count(*) FROM decision_logs GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 10"
  build/compose exec -T kafka /opt/kafka/bin/kafka-console-consumer.sh --bootstrap-server kafka:19092 --topic decision-logs-dlq --from-beginning --timeout-ms 5000 --formatter-property print.headers=true
  build/compose exec -T desk docket dlq groups
  curl http://127.0.0.1:8080/metrics
`

// committed waits until the consumer's group has committed everything.
func committed(ctx context.Context, p project) error {
	deadline := time.Now().Add(carried)
	for {
		left, _, err := p.places.Lag(ctx)
		if err != nil {
			return err
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			ready, err := p.get(ctx, "consumer", "/readyz")
			return errors.Join(fmt.Errorf("%d Kafka records are not committed after %v; they stay in the topic. The consumer says: %s", left, carried, ready), err)
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// produceAll writes the records, and into the ledger what the broker acknowledged.
func produceAll(ctx context.Context, p project, records []conservation.Record, ledger *conservation.Produced) error {
	client, err := newProducer(p)
	if err != nil {
		return err
	}
	defer client.Close()
	failed := make(chan error, len(records))
	for _, record := range records {
		client.Produce(ctx, &kgo.Record{Key: record.Key, Value: record.Value}, func(r *kgo.Record, err error) {
			if err != nil {
				failed <- fmt.Errorf("pour into %s: %w", p.places.Topic, err)
				return
			}
			ledger.Acknowledged(r.Topic, r.Partition, r.Offset, record)
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	close(failed)
	return <-failed
}

func newProducer(p project) (*kgo.Client, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(p.places.Brokers...), kgo.DefaultProduceTopic(p.places.Topic),
		kgo.RecordDeliveryTimeout(30*time.Second))
	if err != nil {
		return nil, fmt.Errorf("make a producer: %w", err)
	}
	return client, nil
}

// sampleRecords are the decision logs of the sample, with fresh ids in each copy, and the planted lines behind them.
func sampleRecords(copies int) ([]conservation.Record, error) {
	var records []conservation.Record
	for range copies {
		for i, line := range sample.DecisionLogs() {
			r, err := fresh(line)
			if err != nil {
				return nil, fmt.Errorf("line %d of the sample: %w", i+1, err)
			}
			records = append(records, r)
		}
	}
	if len(records) == 0 {
		return nil, errors.New("nothing to pour: -copies has to be 1 or more")
	}
	return append(records, planted(records[0])...), nil
}

// fresh is a decision log of the sample with an id that no other has.
func fresh(line []byte) (conservation.Record, error) {
	var log struct {
		ID   string    `json:"decision_id"`
		Time time.Time `json:"timestamp"`
	}
	if err := json.Unmarshal(line, &log); err != nil {
		return conservation.Record{}, err
	}
	id := newID()
	// The id is nowhere else in the line: it is OPA's own random one.
	body := bytes.Replace(line, []byte(`"`+log.ID+`"`), []byte(`"`+id+`"`), 1)
	return record(conservation.Decision{ID: id, Time: log.Time.UTC().Truncate(time.Microsecond), Body: body}), nil
}

func record(d conservation.Decision) conservation.Record {
	return conservation.Record{Key: []byte(d.ID), Value: d.Body, Decisions: []conservation.Decision{d}}
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// planted are a few lines that have to go elsewhere than into a row of their own. The first two repeat and contradict
// a good one.
func planted(good conservation.Record) []conservation.Record {
	d := good.Decisions[0]
	other := d
	other.Body = append([]byte(`{"note":"another payload",`), d.Body[1:]...)
	lines := []conservation.Record{good, record(other)}
	for _, bad := range []struct{ code, format string }{
		{"syntax", `{"decision_id":%q,"timestamp":%q`},
		{"missing_field", `{"was":%q,"timestamp":%q}`},
		{"duplicate_key", `{"decision_id":"twice","decision_id":%q,"timestamp":%q}`},
		{"wrong_type", `{"decision_id":%q,"timestamp":"yesterday","was":%q}`},
		{"out_of_range", `{"decision_id":"\u0000","was":%q,"timestamp":%q}`},
		{"empty", ``},
	} {
		id := newID()
		body := []byte{}
		if bad.format != "" {
			body = fmt.Appendf(nil, bad.format, id, d.Time.Format(time.RFC3339Nano))
		}
		lines = append(lines, record(conservation.Decision{ID: id, Time: d.Time, Body: body, Code: bad.code}))
	}
	return lines
}
