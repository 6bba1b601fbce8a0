//go:build integration

package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	countFrom = `SELECT count(*) FILTER (WHERE ctid < $2::tid), count(*), pg_relation_size('decision_logs') / current_setting('block_size')::bigint,
		pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint
		FROM decision_logs WHERE ctid >= $1::tid`

	untilFirst = 20 * time.Millisecond // between looks at an empty table
	between    = 100 * time.Millisecond
	nearTheEnd = 10 * time.Millisecond
	stalled    = time.Second // without a new row, after which all are counted again
)

// watchTable looks at the table until it has want rows. Each look reads only the end of the table, by a range of places in
// it. So a look costs Postgres little, and every worker the same for a row.
func (b *bench) watchTable(ctx context.Context, p *process, want int64) (s Sightings, err error) {
	conn, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		return nil, fmt.Errorf("connect to Postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var census Census
	var last int64
	changed, recounted := time.Now(), time.Now()
	for {
		var n Count
		if err := conn.QueryRow(ctx, countFrom, census.From(), census.Next()).Scan(&n.Below, &n.All, &n.Blocks, &n.Xmin, &n.Xmax); err != nil {
			return nil, fmt.Errorf("count rows: %w", err)
		}
		now := time.Now()
		switch rows := census.Add(n); {
		case rows > last:
			used, err := processCPU(p.pid())
			if err != nil {
				return nil, err
			}
			s, last, changed, recounted = append(s, Sighting{At: now, Rows: rows, CPU: used}), rows, now, now
		case now.Sub(changed) > stuck:
			return nil, fmt.Errorf("%d of %d rows are there, and no more come, see %s", last, want, p.log)
		case last > 0 && now.Sub(recounted) > stalled:
			census.Again()
			recounted = now
		}
		if last >= want {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.ended:
			return nil, fmt.Errorf("%s has ended, see %s", p.name, p.log)
		case <-time.After(pause(last, want)):
		}
	}
}

// pause until the next look: short where a moment counts.
func pause(rows, want int64) time.Duration {
	switch {
	case rows == 0:
		return untilFirst
	case want < 200_000 || rows > want*95/100:
		return nearTheEnd
	}
	return between
}
