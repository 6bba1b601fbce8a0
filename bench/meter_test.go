//go:build integration

package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// tick is the unit of times in /proc, on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// meter is what has been used up to a moment.
type meter struct {
	at                    time.Time
	busy                  time.Duration // by everything on the machine
	postgres, kafka, self time.Duration
	wal                   int64
}

func (b *bench) meter(ctx context.Context) (m meter, err error) {
	if m.wal, err = b.number(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"); err != nil {
		return m, err
	}
	if m.postgres, err = b.postgres.Handle().CPU(ctx); err != nil {
		return m, err
	}
	if m.kafka, err = b.kafka.Handle().CPU(ctx); err != nil {
		return m, err
	}
	if m.self, err = self(); err != nil {
		return m, err
	}
	m.busy, err = busy()
	m.at = time.Now()
	return m, err
}

// self is what the harness has used.
func self() (time.Duration, error) {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0, fmt.Errorf("ask for the own use: %w", err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano()), nil
}

// since fills in what was used from one moment to another. The worker's own time up to then is given.
func (r *Run) since(from, to meter, worker time.Duration) {
	r.Postgres, r.Kafka, r.WAL = to.postgres-from.postgres, to.kafka-from.kafka, to.wal-from.wal
	known := worker + r.Postgres + r.Kafka + to.self - from.self
	r.Foreign = ForeignShare(to.busy-from.busy, known, to.at.Sub(from.at), runtime.NumCPU())
}

// busy is the processor time of the whole machine that was not idle. Time that a hypervisor took away counts as busy.
func busy() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read the use of the machine: %w", err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := strings.Fields(string(line))
	var sum int64
	for i, field := range fields[1:min(len(fields), 9)] { // user nice system idle iowait irq softirq steal; guests are in user
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the use of the machine: %w", err)
		}
		if i != 3 && i != 4 {
			sum += n
		}
	}
	return time.Duration(sum) * tick, nil
}

// processCPU is what a process has used so far.
func processCPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the use of a process: %w", err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before it may have blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("read the use of a process: %q", rest)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the use of a process: %w", err)
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the use of a process: %w", err)
	}
	return time.Duration(user+system) * tick, nil
}

// peakMemory is the most memory that a process has had resident, in bytes.
func peakMemory(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kib), "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("process %d does not say how much memory it had", pid)
}

// machine describes what all was measured on.
func (b *bench) machine(ctx context.Context) []string {
	model := "unknown"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	version := "unknown"
	if conn, err := pgx.Connect(ctx, b.dsn); err == nil {
		if err := conn.QueryRow(ctx, "SHOW server_version").Scan(&version); err != nil {
			version = "unknown" // the page says so
		}
		_ = conn.Close(ctx) // only read
	}
	return []string{
		fmt.Sprintf("machine: %d cores, %s, %s", runtime.NumCPU(), model, memory()),
		fmt.Sprintf("Kafka %s, Postgres %s (%s), Go %s", kafkaVersion(), version, strings.Join(postgresSettings, ", "), strings.TrimPrefix(runtime.Version(), "go")),
		fmt.Sprintf("commit %s; N=%d ROUNDS=%d SEED=%d; took %v", commit(ctx), b.N, b.Rounds, b.Seed, time.Since(b.began).Round(time.Second)),
	}
}
