package ledgerdb

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

var _ ledger.Auditor = (*Ledger)(nil)

// The audit has no index by person or time, as each line would pay for it. So it is read in windows of numbers.
const (
	auditWindow   = 2_000
	auditGrowth   = 4
	auditWidest   = 200_000
	auditPatience = 700 * time.Millisecond
	// auditSlack is by how much times of lines may be in another order than their numbers: the longest transaction.
	auditSlack = time.Hour
)

const auditColumns = `audit_id, at, dead_letter_id, act, coalesce(from_state::text, ''), coalesce(to_state::text, ''), actor, why,
	attempts, coalesce(job_id, 0), coalesce(login::text, ''), coalesce(application, ''), coalesce(host(client), ''), original IS NOT NULL OR diff IS NOT NULL OR was IS NOT NULL`

// Audits implements [ledger.Auditor]. It looks back for 700 ms, and says how far it came.
func (l *Ledger) Audits(ctx context.Context, q ledger.AuditQuery) (found ledger.Audits, err error) {
	q.Limit = min(max(q.Limit, 1), ledger.MostAudits)
	if q.Groups {
		return l.groupAudits(ctx, q)
	}
	err = l.look(ctx, "read the audit", func(ctx context.Context, tx pgx.Tx) error {
		found = ledger.Audits{}
		w := auditWalk{tx: tx, q: q, up: q.After > 0, size: auditWindow}
		return w.walk(ctx, &found)
	})
	if q.After > 0 {
		slices.Reverse(found.Lines)
	}
	return found, err
}

// groupAudits reads the audit of groups. People and rules write a line for each of their acts, so it is short.
func (l *Ledger) groupAudits(ctx context.Context, q ledger.AuditQuery) (found ledger.Audits, err error) {
	var args []any
	order, of := " DESC", []string{auditSQL("a.", q, &args)}
	if q.Fingerprint != "" {
		of = append(of, "g.fingerprint = "+db.Arg(&args, db.Text(q.Fingerprint))+"::text")
	}
	switch {
	case q.After > 0:
		order, of = "", append(of, "a.audit_id > "+db.Arg(&args, q.After)+"::bigint")
	case q.Before > 0:
		of = append(of, "a.audit_id < "+db.Arg(&args, q.Before)+"::bigint")
	}
	sql := `SELECT a.audit_id, a.at, g.fingerprint, a.act, coalesce(a.rule_id, 0), a.actor, a.why, a.login::text, coalesce(a.application, ''), coalesce(host(a.client), '')
		FROM dead_letter_group_audit a JOIN dead_letter_groups g USING (group_id) WHERE ` + allOf(of) + ` ORDER BY a.audit_id` + order + ` LIMIT ` + db.Arg(&args, q.Limit+1) + `::int`
	err = l.look(ctx, "read the audit of groups", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		found.Lines, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (a ledger.Audit, err error) {
			err = r.Scan(&a.ID, &a.At, &a.Fingerprint, &a.Act, &a.Rule, &a.By, &a.Why, &a.Login, &a.Application, &a.Client)
			a.At = a.At.UTC()
			return a, err
		})
		return err
	})
	if err != nil {
		return ledger.Audits{}, err
	}
	if len(found.Lines) > q.Limit {
		found.Lines = found.Lines[:q.Limit]
		found.Next = found.Lines[q.Limit-1].ID
	}
	if q.After > 0 {
		slices.Reverse(found.Lines)
	}
	return found, nil
}

// auditSQL is the condition on author, act and time of a line.
func auditSQL(alias string, q ledger.AuditQuery, args *[]any) string {
	var of []string
	if q.By != "" {
		of = append(of, alias+"actor = "+db.Arg(args, q.By)+"::text")
	}
	if len(q.Acts) > 0 {
		acts := make([]string, len(q.Acts))
		for i, a := range q.Acts {
			acts[i] = string(a)
		}
		of = append(of, alias+"act = ANY("+db.Arg(args, acts)+"::text[])")
	}
	if !q.Since.IsZero() {
		of = append(of, alias+"at >= "+db.Arg(args, q.Since)+"::timestamptz")
	}
	if !q.Until.IsZero() {
		of = append(of, alias+"at < "+db.Arg(args, q.Until)+"::timestamptz")
	}
	return allOf(of)
}

// auditWalk reads window after window, away from where it began.
type auditWalk struct {
	tx   pgx.Tx
	q    ledger.AuditQuery
	up   bool
	size int64
	at   int64 // the last number that was looked at
}

func (w *auditWalk) walk(ctx context.Context, found *ledger.Audits) error {
	var first, last int64
	if err := w.tx.QueryRow(ctx, `SELECT coalesce(min(audit_id), 0), coalesce(max(audit_id), 0) FROM dead_letter_audit`).Scan(&first, &last); err != nil || last == 0 {
		return err
	}
	if w.at = w.q.After; !w.up {
		if w.at = last + 1; w.q.Before > 0 {
			w.at = min(w.at, w.q.Before)
		}
	}
	for began := time.Now(); w.up && w.at < last || !w.up && w.at > first; {
		lines, err := w.window(ctx, w.q.Limit+1-len(found.Lines))
		if err != nil {
			return err
		}
		if found.Lines = append(found.Lines, lines...); len(found.Lines) > w.q.Limit {
			found.Lines = found.Lines[:w.q.Limit]
			found.Next = found.Lines[w.q.Limit-1].ID
			return nil
		}
		over, reached, err := w.over(ctx)
		if err != nil || over {
			return err
		}
		if time.Since(began) > auditPatience && (w.up && w.at < last || !w.up && w.at > first) {
			found.Next, found.Reached = w.at, reached
			return nil
		}
		w.size = min(w.size*auditGrowth, auditWidest)
	}
	return nil
}

// window reads the next window, at most n lines.
func (w *auditWalk) window(ctx context.Context, n int) ([]ledger.Audit, error) {
	var args []any
	from, to, order := w.at-w.size, w.at-1, " DESC"
	if w.up {
		from, to, order = w.at+1, w.at+w.size, ""
	}
	sql := `SELECT ` + auditColumns + ` FROM dead_letter_audit WHERE audit_id BETWEEN ` + db.Arg(&args, from) + `::bigint AND ` + db.Arg(&args, to) + `::bigint`
	sql += ` AND ` + auditSQL("", w.q, &args)
	rows, err := w.tx.Query(ctx, sql+` ORDER BY audit_id`+order+` LIMIT `+db.Arg(&args, n)+`::int`, args...)
	if err != nil {
		return nil, err
	}
	if w.at = from; w.up {
		w.at = to
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (a ledger.Audit, err error) {
		err = r.Scan(&a.ID, &a.At, &a.LetterID, &a.Act, &a.From, &a.To, &a.By, &a.Why, &a.Attempts, &a.Job, &a.Login, &a.Application, &a.Client, &a.Withheld)
		a.At = a.At.UTC()
		return a, err
	})
}

// over reports whether the lines ahead are all out of the range of time, and the time of the nearest of them.
func (w *auditWalk) over(ctx context.Context) (over bool, next time.Time, err error) {
	sql := `SELECT at FROM dead_letter_audit WHERE audit_id < $1::bigint ORDER BY audit_id DESC LIMIT 1`
	if w.up {
		sql = `SELECT at FROM dead_letter_audit WHERE audit_id > $1::bigint ORDER BY audit_id LIMIT 1`
	}
	rows, err := w.tx.Query(ctx, sql, w.at)
	if err != nil {
		return false, next, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	switch {
	case err != nil:
		return false, next, err
	case len(all) == 0:
		return true, next, nil
	}
	next = all[0].UTC()
	if w.up {
		return !w.q.Until.IsZero() && next.After(w.q.Until.Add(auditSlack)), next, nil
	}
	return !w.q.Since.IsZero() && next.Before(w.q.Since.Add(-auditSlack)), next, nil
}
