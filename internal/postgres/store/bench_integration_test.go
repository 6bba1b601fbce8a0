//go:build integration

package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
	"docket/internal/record/decision"
	"docket/internal/testkit/pgtest"
)

// distinct makes n rows that no other call makes.
func distinct(call, n int) []pipeline.Row {
	rows := make([]pipeline.Row, n)
	for i := range rows {
		rows[i] = full(fmt.Sprintf("%08x-1b4e-4c5a-9d2f-%012x", (call*n+i)*2654435761&0xffffffff, call*n+i), noon.Add(time.Duration(i)*time.Millisecond), 1000)
	}
	return rows
}

func BenchmarkStore(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 5000} {
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			db := open(b, pgtest.New(b).URL, time.Minute)
			b.ReportAllocs()
			call := 0
			for b.Loop() {
				b.StopTimer()
				rows := distinct(call, n)
				call++
				b.StartTimer()
				save(b, db, rows...)
			}
			b.ReportMetric(float64(call*n)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkStoreWhatIsThere delivers everything a second time: in the same bytes, and in others that are equal as JSON.
func BenchmarkStoreWhatIsThere(b *testing.B) {
	for name, other := range map[string]bool{"the same bytes": false, "equal as JSON": true} {
		for _, n := range []int{1000, 5000} {
			b.Run(fmt.Sprintf("%s/rows=%d", name, n), func(b *testing.B) {
				db := open(b, pgtest.New(b).URL, time.Minute)
				batch := func(call int) []pipeline.Row {
					rows := distinct(call, n)
					for i := range rows {
						rows[i].Offset = int64(call*n + i)
					}
					return rows
				}
				again := func(call int) []pipeline.Row {
					rows := batch(call)
					for i := range rows {
						if other {
							rows[i].Log.Raw = append([]byte(" "), rows[i].Log.Raw...)
						}
					}
					return rows
				}
				const batches = 20 // so that the table is more than what is asked for
				for call := range batches {
					save(b, db, batch(call)...)
				}
				b.ReportAllocs()
				call := 0
				for b.Loop() {
					b.StopTimer()
					rows := again(call % batches)
					call++
					b.StartTimer()
					save(b, db, rows...)
				}
				b.ReportMetric(float64(call*n)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// BenchmarkStoreOneInAHundred has one row in a hundred of each batch there, or refused: then the batch is tried again
// without what the server pointed at, as whoever looks for bad rows does.
func BenchmarkStoreOneInAHundred(b *testing.B) {
	const n = 1000
	b.Run("there", func(b *testing.B) {
		db := open(b, pgtest.New(b).URL, time.Minute)
		call := 0
		for b.Loop() {
			b.StopTimer()
			rows, old := distinct(call+1, n), distinct(call, n)
			for i := 0; i < n && call > 0; i += 100 {
				rows[i] = old[i+1]
			}
			call++
			b.StartTimer()
			save(b, db, rows...)
		}
		b.ReportMetric(float64(call*n)/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("bad", func(b *testing.B) {
		d := open(b, pgtest.New(b).URL, time.Minute)
		call, tries := 0, 0
		for b.Loop() {
			b.StopTimer()
			rows := distinct(call, n)
			for i := 0; i < n; i += 100 {
				rows[i].Log.Raw = []byte(`{"a":"\u0000"}`)
			}
			call++
			b.StartTimer()
			for {
				tries++
				_, err := d.Store(context.Background(), rows, false)
				if err == nil {
					break
				}
				var s *db.ServerError
				if !errors.As(err, &s) {
					b.Fatal(err)
				}
				at, ok := s.Row()
				if !ok {
					b.Fatalf("no row: %v", err)
				}
				rows = slices.Delete(rows, at, at+1)
			}
		}
		b.ReportMetric(float64(call*n)/b.Elapsed().Seconds(), "rows/s")
		b.ReportMetric(float64(tries)/float64(call), "tries/batch")
	})
}

// BenchmarkCopy is the measure for BenchmarkStore: the same rows by COPY into the same table, with no care for doubles.
func BenchmarkCopy(b *testing.B) {
	ctx := context.Background()
	columns := []string{"decision_id", "ts", "path", "allowed", "requested_by", "req_id", "opa_id", "opa_version", "service",
		"labels", "bundles", "raw", "source_topic", "source_partition", "source_offset", "source_index"}
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			conn, err := pgx.Connect(ctx, pgtest.New(b).URL)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = conn.Close(ctx) }()
			call := 0
			for b.Loop() {
				b.StopTimer()
				rows := distinct(call, n)
				call++
				b.StartTimer()
				_, err := conn.CopyFrom(ctx, pgx.Identifier{"decision_logs"}, columns, pgx.CopyFromSlice(n, func(i int) ([]any, error) {
					return values(rows[i].Log, &rows[i]), nil
				}))
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(call*n)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func values(l *decision.Log, r *pipeline.Row) []any {
	return []any{l.ID, l.Time, l.Path.V, l.Allowed.V, l.RequestedBy.V, l.ReqID.V, l.OPAID.V, l.OPAVersion.V, l.Service.V,
		l.Labels, l.Bundles, l.Raw, r.Topic, r.Partition, r.Offset, int32(r.Index)}
}
