package ledgerdb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
)

// reportSQL takes the counts from the counters. Most of the oldest are among the first that failed; what is not there is looked
// up group by group.
const reportSQL = `
WITH l AS MATERIALIZED (
	SELECT g.kind, g.code, c.path, sum(c.n) AS n, sum(c.n) FILTER (WHERE c.state = 'PENDING') AS pending, sum(c.n) FILTER (WHERE c.state = 'PROCESSING') AS processing,
	       sum(c.n) FILTER (WHERE c.state = 'FAILED') AS failed
	  FROM dead_letter_counts c JOIN dead_letter_groups g USING (group_id) WHERE c.state <> 'RESOLVED' GROUP BY 1, 2, 3 HAVING sum(c.n) > 0),
first AS MATERIALIZED (
	SELECT g.kind, g.code, o.path, min(o.first_failed_at) AS at FROM (
		SELECT d.group_id, d.path, d.first_failed_at FROM dead_letters d WHERE d.state <> 'RESOLVED' ORDER BY d.first_failed_at LIMIT 10000) o
	  JOIN dead_letter_groups g USING (group_id) GROUP BY 1, 2, 3),
missing AS MATERIALIZED (
	SELECT l.kind, l.code, l.path FROM l LEFT JOIN first USING (kind, code, path) WHERE first.at IS NULL),
later AS MATERIALIZED (
	SELECT m.kind, m.code, m.path, min(o.first_failed_at) AS at FROM missing m JOIN dead_letter_groups g USING (kind, code) JOIN (
		SELECT DISTINCT group_id, path, state FROM dead_letter_counts WHERE state <> 'RESOLVED' AND EXISTS (SELECT FROM missing)) c USING (group_id, path) CROSS JOIN LATERAL (
		SELECT d.first_failed_at FROM dead_letters d
		 WHERE d.group_id = c.group_id AND d.path = c.path AND d.state = c.state AND d.state <> 'RESOLVED' ORDER BY d.first_failed_at LIMIT 1) o
	 GROUP BY 1, 2, 3)
SELECT kind, code, path, coalesce(pending, 0)::bigint, coalesce(processing, 0)::bigint, coalesce(failed, 0)::bigint, coalesce(first.at, later.at)
  FROM l LEFT JOIN first USING (kind, code, path) LEFT JOIN later USING (kind, code, path) ORDER BY n DESC, kind, code, path`

// foundSQL goes from topic to topic by an index.
const foundSQL = `
WITH RECURSIVE t AS (
	(SELECT found_topic, found_at FROM dead_letters WHERE state <> 'RESOLVED' ORDER BY found_topic, found_at LIMIT 1)
	UNION ALL
	SELECT n.found_topic, n.found_at FROM t CROSS JOIN LATERAL (
		SELECT d.found_topic, d.found_at FROM dead_letters d WHERE d.state <> 'RESOLVED' AND d.found_topic > t.found_topic ORDER BY d.found_topic, d.found_at LIMIT 1) n)
SELECT found_topic, found_at FROM t`

// Report gives the line with the most unresolved dead letters first.
func (l *Ledger) Report(ctx context.Context) (lines []ledger.ReportLine, err error) {
	err = l.look(ctx, "report on dead letters", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, reportSQL)
		if err != nil {
			return err
		}
		lines, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (line ledger.ReportLine, err error) {
			var pending, processing, failed int64
			err = r.Scan(&line.Kind, &line.Code, &line.Path, &pending, &processing, &failed, &line.Oldest)
			line.Oldest, line.Counts = line.Oldest.UTC(), map[ledger.State]int64{}
			for state, n := range map[ledger.State]int64{ledger.Pending: pending, ledger.Processing: processing, ledger.Failed: failed} {
				if n > 0 {
					line.Counts[state] = n
				}
			}
			return line, err
		})
		return err
	})
	return lines, err
}

// OldestFound says when what is unresolved was written to its dead-letter topic at the earliest.
func (l *Ledger) OldestFound(ctx context.Context) (oldest map[string]time.Time, err error) {
	oldest = map[string]time.Time{}
	err = l.look(ctx, "look for the oldest dead letter", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, foundSQL)
		if err != nil {
			return err
		}
		var topic string
		var at time.Time
		_, err = pgx.ForEachRow(rows, []any{&topic, &at}, func() error {
			oldest[topic] = at.UTC()
			return nil
		})
		return err
	})
	return oldest, err
}
