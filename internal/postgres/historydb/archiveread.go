package historydb

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/archive"
	"docket/internal/postgres/db"
)

const (
	beginReadSQL = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	exportSQL    = `SELECT pg_export_snapshot()`
	// impatientSQL is for a session that another one waits for.
	impatientSQL = `SELECT set_config('lock_timeout', '1s', true)`
)

// Read hands out all rows in one snapshot. Postgres hashes each line where it makes it.
func (d *archiveDay) Read(ctx context.Context, shape archive.Shape, each func(line []byte) error) (archive.Facts, error) {
	var facts archive.Facts
	d.seen = nil
	helped := d.helped(ctx)                                    // before there is a snapshot, as a pooler may take its time
	defer func() { _, _ = d.conn.Exec(ctx, db.RollbackSQL) }() // an error shows at the next statement
	// The lock is taken before the snapshot, so that both have the same columns.
	for _, sql := range []string{beginReadSQL, d.shareSQL(), readsOnlySQL} {
		if _, err := d.conn.Exec(ctx, sql); err != nil {
			return facts, d.of.failed("read the day", err)
		}
	}
	columns, err := carried(ctx, d.conn, d.oid, shape.Columns)
	if err != nil {
		return facts, d.of.failed("read the columns", err)
	}
	rows, err := d.measure(ctx, columns)
	if err != nil {
		return facts, d.of.failed("read the day", err)
	}
	seen, err := d.see(ctx, columns)
	if err != nil {
		return facts, d.of.failed("read the day", err)
	}
	facts.FirstTS, facts.LastTS = rows.firstText, rows.lastText
	line, table := d.lines(columns, rows.plain)
	var parts []string
	for _, s := range rows.slices(d.day, d.of.sliced) {
		parts = append(parts, `SELECT line, sha256(line), name FROM (SELECT convert_to(`+line+`, 'UTF8') AS line, `+identitySQL+` AS name FROM `+table+
			` WHERE ts >= '`+s.from.Format(time.RFC3339Nano)+`' AND ts < '`+s.to.Format(time.RFC3339Nano)+`' ORDER BY ts, decision_id COLLATE "C") AS l`)
	}
	sessions := []*pgx.Conn{d.conn}
	if d.of.beforeJoin != nil {
		d.of.beforeJoin()
	}
	if len(parts) > 1 && helped && d.joined(ctx, parts[1]) {
		sessions = append(sessions, d.second)
		defer d.dismiss(ctx)
	}
	refused, err := inTurn(ctx, sessions, parts, seen.passing(each))
	if refused != nil {
		return facts, refused
	}
	if err != nil {
		return facts, d.of.failed("read the day", err)
	}
	facts.Total, d.seen = seen.total, seen
	return facts, nil
}

// shareSQL keeps everybody from changing the columns of the day, and nobody from reading and writing it.
func (d *archiveDay) shareSQL() string { return `LOCK TABLE ` + d.table + ` IN ACCESS SHARE MODE` }

// joined reports whether the second session has the snapshot of the first one, and all locks that it needs for a part.
//
// It must not wait for a lock later. A change of the table waits for the first session, whose rows wait for those of the second. If
// the second waited behind that change, all three would wait for ever, and the server would see no cycle.
func (d *archiveDay) joined(ctx context.Context, part string) bool {
	var snapshot string
	if err := d.conn.QueryRow(ctx, exportSQL).Scan(&snapshot); err != nil || strings.ContainsAny(snapshot, `'\\`) {
		return false // the transaction of the first session says it again
	}
	steps := []string{beginReadSQL, `SET TRANSACTION SNAPSHOT '` + snapshot + `'`, impatientSQL, d.shareSQL() + ` NOWAIT`, readsOnlySQL, aloneSQL,
		`EXPLAIN ` + part} // locks the indexes, too
	for _, sql := range steps {
		if _, err := d.second.Exec(ctx, sql); err != nil {
			d.dismiss(ctx)
			return false
		}
	}
	if _, err := d.second.Exec(ctx, sortingSQL, sliceMemory); err != nil {
		d.dismiss(ctx)
		return false
	}
	return true
}

// dismiss ends the part of the second session in reading, which wrote nothing. If the rollback fails, the next statement of that
// session fails as well, and the first one works alone.
func (d *archiveDay) dismiss(ctx context.Context) { _, _ = d.second.Exec(ctx, db.RollbackSQL) }

// inTurn reads parts one after the other, and passes their rows to each in that order. With two sessions the server sorts one part
// while the rows of the one before are passed. refused is what each returned.
func inTurn(ctx context.Context, sessions []*pgx.Conn, parts []string, each func([][]byte) error) (refused, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	turns := make([]chan struct{}, len(parts)+1) // each is closed when the part has its turn
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	close(turns[0])
	read := func(conn *pgx.Conn, i int) (refused, err error) {
		passing := false
		turn := func() error {
			select {
			case <-turns[i]:
				passing = true
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		out := &binaryRows{each: func(columns [][]byte) error {
			if !passing {
				if err := turn(); err != nil {
					return err
				}
			}
			return each(columns)
		}}
		err = copyOut(ctx, conn, out, `COPY (`+parts[i]+`) TO STDOUT (FORMAT binary)`)
		if err == nil && !passing { // it has no rows
			err = turn()
		}
		if err == nil {
			close(turns[i+1])
		}
		return out.refused, err
	}
	var all sync.WaitGroup
	failures := make([]struct{ refused, err error }, len(sessions))
	for n, conn := range sessions {
		all.Go(func() {
			for i := n; i < len(parts); i += len(sessions) {
				if refused, err := read(conn, i); refused != nil || err != nil {
					failures[n].refused, failures[n].err = refused, err
					cancel()
					return
				}
			}
		})
	}
	all.Wait()
	for _, f := range failures {
		if f.refused != nil && !errors.Is(f.refused, context.Canceled) {
			return f.refused, nil
		}
		if f.err != nil && (err == nil || errors.Is(err, context.Canceled)) {
			err = f.err
		}
	}
	return nil, err
}
