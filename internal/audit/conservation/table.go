package conservation

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/record/decision"
)

// ReadRows reads the identity and the place of every row of the table.
func ReadRows(ctx context.Context, conn *pgx.Conn) ([]Row, error) {
	rows, err := conn.Query(ctx, `SELECT decision_id, ts, source_topic, source_partition, source_offset, source_index FROM decision_logs`)
	if err != nil {
		return nil, fmt.Errorf("read decision_logs: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (Row, error) {
		var row Row
		err := r.Scan(&row.ID, &row.Time, &row.Topic, &row.Partition, &row.Offset, &row.Index)
		return row, err
	})
	if err != nil {
		return nil, fmt.Errorf("read decision_logs: %w", err)
	}
	return found, nil
}

// ReadChanged compares these rows with the produced payloads: as JSON, or byte for byte if jsonb cannot hold them. It
// returns the places that differ.
func ReadChanged(ctx context.Context, conn *pgx.Conn, l *Produced, rows []Row) ([]Place, error) {
	const chunk = 1000
	var changed []Place
	for len(rows) > 0 {
		n := min(chunk, len(rows))
		places, err := readChanged(ctx, conn, l, rows[:n])
		if err != nil {
			return nil, fmt.Errorf("compare payloads with decision_logs: %w", err)
		}
		changed, rows = append(changed, places...), rows[n:]
	}
	return changed, nil
}

func readChanged(ctx context.Context, conn *pgx.Conn, l *Produced, rows []Row) ([]Place, error) {
	ids, times, places := make([]string, 0, len(rows)), make([]time.Time, 0, len(rows)), make([]Place, 0, len(rows))
	bodies, came := make([]*string, 0, len(rows)), make([][]byte, 0, len(rows))
	l.mu.Lock()
	for _, row := range rows {
		at, ok := l.canonical(row.Place)
		if !ok {
			continue // it was never produced, which the account reports
		}
		d := l.records[Place{Topic: at.Topic, Partition: at.Partition, Offset: at.Offset}].Decisions[at.Index]
		if d.Code != "" {
			continue // it does not belong in the table, which the account reports
		}
		ids, times, places, came = append(ids, row.ID), append(times, row.Time), append(places, at), append(came, d.Body)
		body := string(d.Body)
		if bodies = append(bodies, &body); !decision.Holds(d.Body) {
			bodies[len(bodies)-1] = nil
		}
	}
	l.mu.Unlock()
	found, err := conn.Query(ctx, `
		SELECT t.n FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::bytea[]) WITH ORDINALITY AS t(id, ts, body, came, n)
		JOIN decision_logs d ON d.decision_id = t.id AND d.ts = t.ts
		WHERE CASE WHEN d.unfaithful IS NULL THEN d.raw IS DISTINCT FROM t.body::jsonb ELSE d.raw_bytes IS DISTINCT FROM t.came END`, ids, times, bodies, came)
	if err != nil {
		return nil, err
	}
	numbers, err := pgx.CollectRows(found, pgx.RowTo[int64])
	if err != nil {
		return nil, err
	}
	var changed []Place
	for _, n := range numbers {
		changed = append(changed, places[n-1])
	}
	return changed, nil
}
