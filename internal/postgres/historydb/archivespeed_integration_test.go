//go:build integration

package historydb_test

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"docket/bench"
	"docket/internal/history/archive"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

// BenchmarkArchive_Day archives a day and restores it. DOCKET_BENCH_ROWS says how many rows it has (default 20,000).
func BenchmarkArchive_Day(b *testing.B) {
	n := 20_000
	if more, err := strconv.Atoi(os.Getenv("DOCKET_BENCH_ROWS")); err == nil {
		n = more
	}
	// The server of the other measurements, with its settings and without a proxy: see docs/performance.md.
	server := testenv.OwnPostgresWith(b, testenv.PostgresOptions{Settings: []string{"shared_buffers=1GB", "max_wal_size=8GB", "checkpoint_timeout=30min"}, HostNetwork: true})
	b.Setenv(pgtest.ServerVariable, server.URL("postgres"))
	world := pgtest.New(b)
	world.Exec(b, `ALTER TABLE decision_logs DETACH PARTITION decision_logs_before; DROP TABLE decision_logs_before`)
	a := newArchived(b, world)
	a.settle()
	conn, err := pgx.Connect(b.Context(), a.URL)
	check(b, err)
	defer func() { _ = conn.Close(b.Context()) }()
	d := bench.NewDecisions(1, a.day.Add(3*time.Hour))
	var start time.Time
	i := int64(0)
	var raw []byte
	_, err = conn.CopyFrom(b.Context(), pgx.Identifier{"decision_logs"}, []string{"decision_id", "ts", "path", "allowed", "requested_by", "req_id", "opa_id", "opa_version", "service", "labels", "raw", "source_topic",
		"source_partition", "source_offset", "source_index", "stored_at", "raw_sha256"}, pgx.CopyFromFunc(func() ([]any, error) {
		if i++; i > int64(n) {
			return nil, nil
		}
		raw = d.Next().Value
		var log struct {
			ID     string          `json:"decision_id"`
			TS     time.Time       `json:"timestamp"`
			Path   string          `json:"path"`
			By     string          `json:"requested_by"`
			Labels json.RawMessage `json:"labels"`
		}
		if err := json.Unmarshal(raw, &log); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(raw)
		return []any{log.ID, log.TS, log.Path, i%4 > 0, log.By, i, "5bf7d126-339c-49a0-aabe-d960791bad7f", "1.22.0", "http", log.Labels, json.RawMessage(raw), "decision-logs", int32(i % 12), i / 12, 0,
			log.TS.Truncate(100 * time.Millisecond), sum[:]}, nil
	}))
	check(b, err)
	_, err = conn.Exec(b.Context(), "VACUUM ANALYZE decision_logs")
	check(b, err)
	a.c.PartRows = 0
	counted(b, a.URL)
	for b.Loop() {
		start = time.Now()
		last := start
		a.c.Told = func(s archive.Step) {
			b.Logf("%-10s %v", s, time.Since(last).Round(time.Millisecond))
			last = time.Now()
		}
		used, own := serverCPU(b, server), programCPU(b)
		done := a.archive(false)
		b.ReportMetric(float64(n)/time.Since(start).Seconds(), "archived/s")
		b.ReportMetric(float64((serverCPU(b, server)-used).Microseconds())/float64(n), "server-us/archived")
		b.ReportMetric(float64((programCPU(b)-own).Microseconds())/float64(n), "program-us/archived")
		b.ReportMetric(float64(done.Bytes)/float64(n), "bytes/row")
		a.c.Told = nil
		used, own = serverCPU(b, server), programCPU(b)
		start = time.Now()
		if back := a.restore(); back.Stored != int64(n) {
			b.Fatalf("%+v", back)
		}
		b.ReportMetric(float64(n)/time.Since(start).Seconds(), "restored/s")
		b.ReportMetric(float64((serverCPU(b, server)-used).Microseconds())/float64(n), "server-us/restored")
		b.ReportMetric(float64((programCPU(b)-own).Microseconds())/float64(n), "program-us/restored")
	}
	text, err := os.Create(filepath.Join(b.TempDir(), "copied"))
	check(b, err)
	defer func() { _ = text.Close() }()
	used := serverCPU(b, server)
	start = time.Now()
	_, err = conn.PgConn().CopyTo(b.Context(), text, "COPY (SELECT * FROM decision_logs) TO STDOUT")
	check(b, err)
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "copied-out/s")
	b.ReportMetric(float64((serverCPU(b, server)-used).Microseconds())/float64(n), "server-us/copied-out")
	_, err = text.Seek(0, io.SeekStart)
	check(b, err)
	_, err = conn.Exec(b.Context(), "CREATE TABLE copied (LIKE decision_logs INCLUDING ALL)")
	check(b, err)
	used = serverCPU(b, server)
	start = time.Now()
	_, err = conn.PgConn().CopyFrom(b.Context(), text, "COPY copied FROM STDIN")
	check(b, err)
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "copied-in/s")
	b.ReportMetric(float64((serverCPU(b, server)-used).Microseconds())/float64(n), "server-us/copied-in")
}

// counted has all decisions counted for rates, as a desk does soon after they were stored.
func counted(b *testing.B, url string) {
	b.Helper()
	pg, err := store.Open(db.Config{URL: url, StoreTimeout: 10 * time.Minute}, zerolog.Nop())
	check(b, err)
	defer pg.Close()
	for began := time.Now(); ; {
		n, err := historydb.NewReader(pg.DB).Count(b.Context())
		check(b, err)
		if n == 0 {
			b.Logf("counted    %v", time.Since(began).Round(time.Millisecond))
			return
		}
	}
}

// programCPU is the processor time of this program so far.
func programCPU(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// serverCPU is the processor time of the server so far. It tells more than rates where others use the machine.
func serverCPU(b *testing.B, server *testenv.PostgresServer) time.Duration {
	b.Helper()
	used, err := server.Handle().CPU(b.Context())
	check(b, err)
	return used
}
