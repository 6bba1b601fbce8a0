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
	snapshotSQL = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	exportSQL   = `SELECT pg_export_snapshot()`
)

// Read hands out all rows in one snapshot. Postgres hashes each line where it makes it.
func (d *archiveDay) Read(ctx context.Context, shape archive.Shape, each func(line []byte) error) (archive.Facts, error) {
	var facts archive.Facts
	d.seen = nil
	columns, err := carried(ctx, d.conn, d.oid, shape.Columns)
	if err != nil {
		return facts, d.of.failed("read the columns", err)
	}
	if _, err := d.conn.Exec(ctx, snapshotSQL); err != nil {
		return facts, d.of.failed("read the day", err)
	}
	defer func() { _, _ = d.conn.Exec(ctx, db.RollbackSQL) }() // an error shows at the next statement
	if _, err := d.conn.Exec(ctx, readsOnlySQL); err != nil {
		return facts, d.of.failed("read the day", err)
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
		parts = append(parts, `COPY (SELECT line, sha256(line), name FROM (SELECT convert_to(`+line+`, 'UTF8') AS line, `+identitySQL+` AS name FROM `+table+
			` WHERE ts >= '`+s.from.Format(time.RFC3339Nano)+`' AND ts < '`+s.to.Format(time.RFC3339Nano)+`' ORDER BY ts, decision_id COLLATE "C") AS l) TO STDOUT (FORMAT binary)`)
	}
	sessions := []*pgx.Conn{d.conn}
	if len(parts) > 1 && d.joined(ctx) {
		sessions = append(sessions, d.second)
		defer func() { _, _ = d.second.Exec(ctx, db.RollbackSQL) }()
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

// joined reports whether the second session has the snapshot of the first one.
func (d *archiveDay) joined(ctx context.Context) bool {
	if !d.helped(ctx) {
		return false
	}
	var snapshot string
	if err := d.conn.QueryRow(ctx, exportSQL).Scan(&snapshot); err != nil || strings.ContainsAny(snapshot, `'\\`) {
		return false // the transaction of the first session says it again
	}
	for _, sql := range []string{snapshotSQL, `SET TRANSACTION SNAPSHOT '` + snapshot + `'`, readsOnlySQL, aloneSQL} {
		if _, err := d.second.Exec(ctx, sql); err != nil {
			_, _ = d.second.Exec(ctx, db.RollbackSQL)
			return false
		}
	}
	_, err := d.second.Exec(ctx, sortingSQL, sliceMemory)
	return err == nil
}

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
		err = copyOut(ctx, conn, out, parts[i])
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
