//go:build integration

package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
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

// readyMade is a set of files that COPY can read, one for each partition of the topic.
type readyMade struct {
	format string
	// printed: the payloads are as Postgres puts jsonb out, with the members of objects in the order in which it keeps
	// them: that spares it sorting them, and no decision comes like this. Else they are the bytes that the topic has.
	printed bool
}

var readyMades = []readyMade{{format: "text"}, {format: "binary"}, {format: "text", printed: true}, {format: "binary", printed: true}}

func (r readyMade) String() string {
	if r.printed {
		return r.format + ", payloads as Postgres prints them"
	}
	return r.format
}

func (r readyMade) file(partition int) string {
	name := r.format
	if r.printed {
		name += "-printed"
	}
	return fmt.Sprintf("%s/%s.%d", readyFolder, name, partition)
}

func copyName(r readyMade, sessions int) string {
	return fmt.Sprintf("psql COPY %s, sessions: %d", r, sessions)
}

// payload is the column raw of a file, out of the row d and the payload o as it was sent. COPY in binary reads a version
// before the text of jsonb.
func (r readyMade) payload() string {
	switch {
	case r.printed:
		return "d.raw"
	case r.format == "binary":
		return `'\x01'::bytea || convert_to(o.raw, 'UTF8')`
	}
	return "o.raw"
}

// makeReady writes the rows of the table into files.
func (b *bench) makeReady(ctx context.Context, t topic) error {
	if err := b.postgres.Handle().Run(ctx, "install", "-d", "-o", "postgres", readyFolder); err != nil {
		return err
	}
	if err := b.payloads(ctx, t); err != nil {
		return err
	}
	var columns string
	err := b.one(ctx, &columns, `SELECT string_agg(CASE attname WHEN 'raw' THEN '%[1]s' ELSE 'd.' || quote_ident(attname) END, ', ' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = 'decision_logs'::regclass AND attnum > 0 AND NOT attisdropped`)
	if err != nil {
		return err
	}
	for _, r := range readyMades {
		for p := range partitions {
			err := b.sql(ctx, fmt.Sprintf("COPY (SELECT "+columns+" FROM decision_logs d JOIN payloads o USING (decision_id) WHERE d.source_partition = %[2]d ORDER BY d.ctid) TO '%[3]s' (FORMAT %[4]s)",
				r.payload(), p, r.file(p), r.format))
			if err != nil {
				return fmt.Errorf("make rows ready: %w", err)
			}
		}
	}
	return b.sql(ctx, "DROP TABLE payloads")
}

// payloads makes a table of the topic's payloads as they were sent.
func (b *bench) payloads(ctx context.Context, t topic) error {
	if err := b.sql(ctx, "CREATE UNLOGGED TABLE payloads (decision_id text PRIMARY KEY, raw text NOT NULL)"); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	decisions, left := NewDecisions(b.Seed, drainedDay), t.decisions
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"payloads"}, []string{"decision_id", "raw"}, pgx.CopyFromFunc(func() ([]any, error) {
		if left--; left < 0 {
			return nil, nil
		}
		d := decisions.Next()
		return []any{d.ID, d.Value}, nil
	}))
	if err != nil {
		return fmt.Errorf("note the payloads: %w", err)
	}
	return nil
}

// copied loads the ready-made rows into the empty table by psql, in so many sessions.
func (b *bench) copied(ctx context.Context, ready readyMade, sessions, rows int) (run Run, err error) {
	if err := b.emptied(ctx); err != nil {
		return run, err
	}
	from, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	printed, err := b.postgres.Handle().Output(ctx, "bash", "-c", b.copyScript(ready, sessions))
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
func (b *bench) copyScript(ready readyMade, sessions int) string {
	var s strings.Builder
	s.WriteString("set -eu; begin=$(date +%s%N); pids=\n")
	for session := range sessions {
		fmt.Fprintf(&s, "psql -qX -v ON_ERROR_STOP=1 -d '%s'", b.dsn)
		for p := session * partitions / sessions; p < (session+1)*partitions/sessions; p++ {
			fmt.Fprintf(&s, ` -c "\\copy decision_logs FROM '%s' (FORMAT %s)"`, ready.file(p), ready.format)
		}
		s.WriteString(" & pids=\"$pids $!\"\n")
	}
	s.WriteString("for pid in $pids; do wait $pid; done; echo $(($(date +%s%N) - begin))\n")
	return s.String()
}
