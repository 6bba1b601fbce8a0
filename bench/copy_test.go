//go:build integration

package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// readyFolder is inside the Postgres container, where psql runs too.
const readyFolder = "/var/lib/postgresql/ready-made"

// sessionCounts are the numbers of sessions that COPY is measured with; each divides the partitions. More than four
// where the worker used more.
func sessionCounts(seen int) []int {
	if seen > 4 {
		return []int{1, 2, 4, 8}
	}
	return []int{1, 2, 4}
}

// sameSessions is the number of sessions that comes nearest to the worker's from above.
func sameSessions(counts []int, seen int) int {
	i, _ := slices.BinarySearch(counts, seen)
	return counts[min(i, len(counts)-1)]
}

func copyName(format string, sessions int) string {
	return fmt.Sprintf("psql COPY %s, sessions: %d", format, sessions)
}

// readyMade writes the rows of the table into files that COPY can read, one for each partition of the topic.
func (b *bench) readyMade(ctx context.Context) error {
	if err := b.postgres.Handle().Run(ctx, "install", "-d", "-o", "postgres", readyFolder); err != nil {
		return err
	}
	for _, format := range []string{"text", "binary"} {
		for p := range partitions {
			err := b.sql(ctx, fmt.Sprintf("COPY (SELECT * FROM decision_logs WHERE source_partition = %d) TO '%s/%s.%d' (FORMAT %s)", p, readyFolder, format, p, format))
			if err != nil {
				return fmt.Errorf("make rows ready: %w", err)
			}
		}
	}
	return nil
}

// copied loads the ready-made rows into the empty table by psql, in so many sessions.
func (b *bench) copied(ctx context.Context, format string, sessions, rows int) (run Run, err error) {
	if err := b.emptied(ctx); err != nil {
		return run, err
	}
	from, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	printed, err := b.postgres.Handle().Output(ctx, "bash", "-c", b.copyScript(format, sessions))
	if err != nil {
		return run, err
	}
	nanoseconds, err := strconv.ParseInt(strings.TrimSpace(printed), 10, 64)
	if err != nil {
		return run, fmt.Errorf("psql printed more than the time it took: %q", printed)
	}
	to, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	run = Run{Rows: int64(rows), Took: time.Duration(nanoseconds)}
	run.since(from, to, 0)
	return run, b.counted(ctx, int64(rows))
}

// copyScript starts all sessions at the same time and prints how many nanoseconds it took until the last has ended. The clock
// is inside, so that the engine's own pace does not count.
func (b *bench) copyScript(format string, sessions int) string {
	var s strings.Builder
	s.WriteString("set -eu; begin=$(date +%s%N); pids=\n")
	for session := range sessions {
		fmt.Fprintf(&s, "psql -qX -v ON_ERROR_STOP=1 -d '%s'", b.dsn)
		for p := session * partitions / sessions; p < (session+1)*partitions/sessions; p++ {
			fmt.Fprintf(&s, ` -c "\\copy decision_logs FROM '%s/%s.%d' (FORMAT %s)"`, readyFolder, format, p, format)
		}
		s.WriteString(" & pids=\"$pids $!\"\n")
	}
	s.WriteString("for pid in $pids; do wait $pid; done; echo $(($(date +%s%N) - begin))\n")
	return s.String()
}
