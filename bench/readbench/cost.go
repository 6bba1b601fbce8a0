package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/migrations"
)

// variant is a table with some of the indexes.
type variant struct {
	name    string
	indexes []string
}

// measure is what one slice took.
type measure struct {
	cpu, wall time.Duration
	wal       int64
}

// cost stores the same rows into tables with and without the indexes of searches, slice by slice in turns. It prints the
// cost of each for the server: the CPU of its process, summarizing included, and the bytes of WAL.
func cost(ctx context.Context, conn *pgx.Conn, rounds, size int, variants []variant) error {
	for i, v := range variants {
		sql := fmt.Sprintf(`DROP TABLE IF EXISTS cost_%d;
			CREATE TABLE cost_%[1]d (LIKE decision_logs INCLUDING DEFAULTS, PRIMARY KEY (decision_id, ts)) PARTITION BY RANGE (ts);
			CREATE TABLE cost_%[1]d_day PARTITION OF cost_%[1]d FOR VALUES FROM ('2026-01-01Z') TO ('2026-01-02Z')`, i)
		for n, of := range v.indexes {
			sql += fmt.Sprintf(`; CREATE INDEX cost_%d_index_%d ON cost_%[1]d %[3]s`, i, n, of)
		}
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	now := func() (cpu time.Duration, lsn int64, err error) {
		var text string
		err = conn.QueryRow(ctx, `SELECT pg_read_file('/proc/self/schedstat'), (pg_current_wal_insert_lsn() - '0/0')::int8`).Scan(&text, &lsn)
		first, _, _ := strings.Cut(text, " ")
		ns, parseErr := strconv.ParseInt(first, 10, 64)
		if err == nil {
			err = parseErr
		}
		return time.Duration(ns), lsn, err
	}
	all := make([][]measure, len(variants))
	if _, err := conn.Exec(ctx, `DROP TABLE IF EXISTS cost_rows; CREATE TABLE cost_rows (LIKE decision_logs)`); err != nil {
		return err
	}
	fill := strings.NewReplacer("decision_logs", "cost_rows", "bench_fill", "cost_fill", "bench_days", "cost_days").Replace(fillSQL)
	if _, err := conn.Exec(ctx, fill); err != nil {
		return err
	}
	for round := range rounds {
		if round%4 == 0 {
			if _, err := conn.Exec(ctx, `CHECKPOINT`); err != nil {
				return err
			}
		}
		const day = 20 * time.Hour
		span := day / time.Duration(rounds)
		_, err := conn.Exec(ctx, `TRUNCATE cost_rows`)
		if err == nil {
			_, err = conn.Exec(ctx, `SELECT cost_fill('2026-01-01Z'::timestamptz + $1::interval, $2::interval, $3::int8, $4::int8)`, span*time.Duration(round), span, round*size, size)
		}
		if err != nil {
			return err
		}
		var rows bytes.Buffer
		if _, err := conn.PgConn().CopyTo(ctx, &rows, `COPY (SELECT * FROM cost_rows) TO STDOUT (FORMAT binary)`); err != nil {
			return err
		}
		for i := range variants {
			i = (i + round) % len(variants) // none is always the one behind another
			cpu, lsn, err := now()
			if err != nil {
				return err
			}
			began := time.Now()
			if _, err := conn.PgConn().CopyFrom(ctx, bytes.NewReader(rows.Bytes()), fmt.Sprintf(`COPY cost_%d FROM STDIN (FORMAT binary)`, i)); err != nil {
				return err
			}
			wall := time.Since(began)
			for n, of := range variants[i].indexes {
				if strings.Contains(of, "USING brin") {
					if _, err := conn.Exec(ctx, `SELECT brin_summarize_new_values(inhrelid) FROM pg_inherits WHERE inhparent = $1::regclass`, fmt.Sprintf("cost_%d_index_%d", i, n)); err != nil {
						return err
					}
				}
			}
			cpu2, lsn2, err := now()
			if err != nil {
				return err
			}
			all[i] = append(all[i], measure{cpu2 - cpu, wall, lsn2 - lsn})
		}
	}
	fmt.Printf("| indexes besides the primary key | CPU, us a row | | rows/s | | WAL, bytes a row | |\n|---|---|---|---|---|---|---|\n")
	median := func(of func(measure) float64, i int) float64 {
		var values []float64
		for _, m := range all[i] {
			values = append(values, of(m))
		}
		slices.Sort(values)
		return (values[len(values)/2] + values[(len(values)-1)/2]) / 2
	}
	// The ratio is that of each round, so that what else the machine does in a round is in both.
	ratio := func(of func(measure) float64, i int) float64 {
		var values []float64
		for round, m := range all[i] {
			values = append(values, of(m)/of(all[0][round]))
		}
		slices.Sort(values)
		return (values[len(values)/2] + values[(len(values)-1)/2]) / 2
	}
	per := func(m measure) float64 { return float64(m.cpu.Nanoseconds()) / 1000 / float64(size) }
	rate := func(m measure) float64 { return float64(size) / m.wall.Seconds() }
	wal := func(m measure) float64 { return float64(m.wal) / float64(size) }
	for i, v := range variants {
		fmt.Printf("| %s | %.2f | %.3f | %.0f | %.3f | %.0f | %.3f |\n", v.name, median(per, i), ratio(per, i), median(rate, i), ratio(rate, i), median(wal, i), ratio(wal, i))
	}
	return nil
}

const before = `USING brin (ts)` // the index of the table before there were these

// costVariants are what ships and what was there before.
func costVariants() []variant {

	ships := variant{name: "those of searches"}
	for _, x := range migrations.ReadIndexes {
		ships.indexes = append(ships.indexes, x.Of)
	}
	return []variant{{"BRIN on ts alone", []string{before}}, ships}
}
