//go:build integration

package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/audit/verify"
	"docket/internal/history/complete"
	"docket/internal/kafka"
	"docket/internal/testkit/completetest"
)

// asks is a reader that asks all the time until when its answers are complete, with the watch of the desk.
type asks struct {
	mu     sync.Mutex
	claims []verify.Claim
}

// asksEvery is between two questions.
const asksEvery = time.Second

// ask asks until the context ends. Without an answer of Kafka or Postgres it claims nothing.
func (c *campaign) ask(ctx context.Context) {
	client, err := kafka.NewReader(kafka.Config{Brokers: c.cluster.Direct(), ClientID: "asks"})
	if err != nil {
		c.broken("the campaign", "the reader that asks: %v", err)
		return
	}
	defer client.Close()
	log := completetest.Note(client)
	of := complete.Config{Parking: complete.Source{Topic: c.places.ParkingTopic, Group: c.places.ParkingGroup},
		Dead: []complete.Source{{Topic: c.places.DLQTopic, Group: deskGroup}, {Topic: c.places.ParkingDLQ, Group: deskGroup}}}
	for _, l := range c.sources() {
		of.Sources = append(of.Sources, complete.Source{Topic: l.Topic, Group: l.Group})
	}
	watch := complete.NewWatch(of, log)
	answers := &complete.Answers{Status: func(context.Context) complete.Status { return watch.Status() }, Books: openLetters{c}, Within: sqlLimit}
	var ends map[string]map[int32]int64 // that the last look found
	for wait(ctx, asksEvery) {
		if err := watch.Look(ctx); err == nil { // else the status is of the last look
			ends = log.Last()
		}
		said := answers.Begin(ctx, complete.Range{}).End(complete.Facts{Found: true})
		if said.CompleteUntil == nil {
			continue
		}
		c.asks.mu.Lock()
		c.asks.claims = append(c.asks.claims, verify.Claim{By: "a reader", At: time.Now(), Until: *said.CompleteUntil, Parked: said.Parked, DeadLettered: said.DeadLettered, Spooled: said.Spooled, Ends: ends})
		c.asks.mu.Unlock()
	}
}

// openLetters counts the dead letters of the ledger that are open, or whose retry is on its way.
type openLetters struct{ c *campaign }

func (o openLetters) Waiting(ctx context.Context, _ complete.Range) (n int64, known, primary bool, err error) {
	err = o.c.database.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT (SELECT coalesce(sum(greatest(1, x.refused)), 0)::bigint FROM dead_letters d LEFT JOIN dead_letter_decisions x USING (dead_letter_id) WHERE d.state <> 'RESOLVED'
				OR EXISTS (SELECT FROM dead_letter_outbox o WHERE o.dead_letter_id = d.dead_letter_id AND o.published_at IS NOT NULL AND o.ended_at IS NULL)),
			NOT EXISTS (SELECT FROM dead_letter_surplus WHERE state = 'open'), NOT pg_is_in_recovery()`).Scan(&n, &known, &primary)
	})
	return n, known, primary, err
}

// stored returns when each row was stored, by its place.
func (c *campaign) stored(ctx context.Context) (map[verify.Place]time.Time, error) {
	all := map[verify.Place]time.Time{}
	err := c.database.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT source_topic, source_partition, source_offset, source_index, stored_at FROM decision_logs`)
		if err != nil {
			return err
		}
		var at verify.Place
		var when time.Time
		_, err = pgx.ForEachRow(rows, []any{&at.Topic, &at.Partition, &at.Offset, &at.Index, &when}, func() error {
			all[at] = when
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("when rows were stored: %w", err)
	}
	return all, nil
}
