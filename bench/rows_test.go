//go:build integration

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// plain is a decision as somebody would decode it who writes such a worker in an afternoon.
type plain struct {
	DecisionID  string          `json:"decision_id"`
	Timestamp   time.Time       `json:"timestamp"`
	Path        string          `json:"path"`
	RequestedBy string          `json:"requested_by"`
	ReqID       int64           `json:"req_id"`
	Labels      json.RawMessage `json:"labels"`
	Result      any             `json:"result"`
}

const insertRow = `INSERT INTO decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service,
	labels, raw, source_topic, source_partition, source_offset, source_index)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0) ON CONFLICT DO NOTHING`

// values are what insertRow wants.
func values(r *kgo.Record) ([]any, error) {
	var d plain
	if err := json.Unmarshal(r.Value, &d); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	var labels struct{ ID, Version string }
	if err := json.Unmarshal(d.Labels, &labels); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	var allowed *bool
	switch result := d.Result.(type) {
	case bool:
		allowed = &result
	case map[string]any:
		if v, ok := result["allow"].(bool); ok {
			allowed = &v
		}
	}
	service, _, _ := strings.Cut(d.Path, "/")
	return []any{d.DecisionID, d.Timestamp, d.Path, allowed, d.RequestedBy, d.ReqID, labels.ID, labels.Version, service,
		d.Labels, json.RawMessage(r.Value), r.Topic, r.Partition, r.Offset}, nil
}

// plainRecords is how many the plain worker gets, as it would take many minutes for all.
func plainRecords(n int) int { return max(min(n, 1000), n/100) }

// rowByRow measures the worker that everybody writes first: one insert a record, each its own transaction, offsets after.
func (b *bench) rowByRow(ctx context.Context, t topic) error {
	_, err := b.measure(ctx, plainName, func(ctx context.Context) (Run, error) { return b.plainWorker(ctx, t, plainRecords(t.decisions)) })
	return err
}

func (b *bench) plainWorker(ctx context.Context, t topic, n int) (run Run, err error) {
	if err := b.emptied(ctx); err != nil {
		return run, err
	}
	conn, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		return run, fmt.Errorf("connect to Postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka.Brokers()...), kgo.ConsumerGroup(b.group()), kgo.ConsumeTopics(t.name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return run, fmt.Errorf("make a consumer: %w", err)
	}
	defer client.Close()
	from, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	fetches := client.PollRecords(ctx, 500) // the clock starts with records in hand: joining is not writing
	began := time.Now()
	for done := 0; done < n; fetches = client.PollRecords(ctx, 500) {
		if err := fetches.Err(); err != nil {
			return run, fmt.Errorf("fetch: %w", err)
		}
		for _, r := range fetches.Records() {
			row, err := values(r)
			if err != nil {
				return run, err
			}
			if _, err := conn.Exec(ctx, insertRow, row...); err != nil {
				return run, fmt.Errorf("insert: %w", err)
			}
			done++
		}
		if err := client.CommitRecords(ctx, fetches.Records()...); err != nil {
			return run, fmt.Errorf("commit offsets: %w", err)
		}
		if run.Rows = int64(done); done >= n {
			break
		}
	}
	run.Took = time.Since(began)
	to, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	run.since(from, to, 0)
	run.Worker = to.self - from.self // the worker is a part of this process
	return run, b.counted(ctx, run.Rows)
}

// insertedOneByOne writes a batch row by row on one connection, each in its own transaction. It returns the time that took
// and the number of rows that the table refused. Decoding is done before.
func (b *bench) insertedOneByOne(ctx context.Context, t topic) (took time.Duration, refused int, err error) {
	var rows [][]any
	err = b.each(ctx, t.name, t.decisions, func(r *kgo.Record) error {
		row, err := values(r)
		rows = append(rows, row)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	conn, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		return 0, 0, fmt.Errorf("connect to Postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	began := time.Now()
	for _, row := range rows {
		_, err := conn.Exec(ctx, insertRow, row...)
		if refusal := (*pgconn.PgError)(nil); errors.As(err, &refusal) && strings.HasPrefix(refusal.Code, "23") {
			refused++
		} else if err != nil {
			return 0, 0, fmt.Errorf("insert: %w", err)
		}
	}
	return time.Since(began), refused, nil
}

// ends are the ends of a topic's partitions.
func (b *bench) ends(ctx context.Context, name string) (map[int32]int64, error) {
	found, err := kadm.NewClient(b.client).ListEndOffsets(ctx, name)
	if err == nil {
		err = found.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the ends of %s: %w", name, err)
	}
	ends := map[int32]int64{}
	found.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends, nil
}
