package historydb

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"docket/internal/history/reader"
	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
)

// Reader reads stored decisions. It is safe for concurrent use, and writes nothing but the counts of [Reader.Count].
type Reader struct {
	db                    *db.DB
	counts                counting
	briefTime, prefixTime time.Duration
	// Rights of this login when they were asked for last: on the ledger and its counters, on the days that archives took out, and on the traces
	// of archived days.
	ledger       atomic.Bool
	counters     atomic.Bool
	leftReadable atomic.Bool
	traceRights  atomic.Pointer[traceRights]

	// notedReadable is such a right, on the names of archives of dead letters.
	notedReadable atomic.Bool

	days struct {
		sync.Mutex
		known schema.Summarized
	}
}

// NewReader gives a reader of the decisions in a database.
func NewReader(db *db.DB) *Reader {
	r := &Reader{db: db, briefTime: briefTime, prefixTime: prefixTime}
	r.days.known = schema.Summarized{}
	return r
}

var _ reader.Store = (*Reader)(nil)

// These settings say how a statement of a reader is run. Plans are made for the values at hand, as the width of a window of
// time decides how it is looked through. Compiling a plan takes longer than any of these may.
const (
	readSettings = `; SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL jit = off; SET LOCAL max_parallel_workers_per_gather = 0`
	lookSettings = readSettings + `; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off`
	scanSettings = readSettings + `; SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on`
)

// look runs do in a transaction that writes nothing and sees one moment, within so much time.
func (r *Reader) look(ctx context.Context, within time.Duration, do func(ctx context.Context, tx pgx.Tx) error) error {
	return r.looking(ctx, within, lookSettings, do)
}

// scan is look for statements that read much of the table.
func (r *Reader) scan(ctx context.Context, within time.Duration, do func(ctx context.Context, tx pgx.Tx) error) error {
	return r.looking(ctx, within, scanSettings, do)
}

func (r *Reader) looking(ctx context.Context, within time.Duration, settings string, do func(ctx context.Context, tx pgx.Tx) error) error {
	if err := r.db.Usable(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return pgx.BeginTxFunc(ctx, r.db.Pool(), db.Reading(within*9/10, settings), func(tx pgx.Tx) error { return do(ctx, tx) })
}

// atOnce is look with one request: see [db.AtOnce].
func (r *Reader) atOnce(ctx context.Context, within time.Duration, level pgx.TxIsoLevel, ask func(*pgx.Batch), read func(pgx.BatchResults) error) error {
	return r.limited(ctx, within, within*9/10, level, ask, read)
}

// limited is atOnce with another limit of each statement. One that the server ends leaves a connection that can be used.
func (r *Reader) limited(ctx context.Context, within, each time.Duration, level pgx.TxIsoLevel, ask func(*pgx.Batch), read func(pgx.BatchResults) error) error {
	if err := r.db.Usable(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return r.db.Pool().AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		return db.AtOnce(ctx, conn.Conn(), each, level, ask, read)
	})
}

// patience is how long one question may take in all: the caller's deadline or the store timeout.
func (r *Reader) patience(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(time.Until(deadline), r.db.Timeout())
	}
	return r.db.Timeout()
}

// outOfTime says that a statement was given up because its time was over, and for no other reason.
func outOfTime(ctx context.Context, err error) bool {
	s, ok := db.AsServerError(err)
	return ctx.Err() == nil && (ok && s.SQLState() == pgerrcode.QueryCanceled || errors.Is(err, context.DeadlineExceeded))
}

// verdictSQL is the verdict of decision_logs d, in words of [reader.Verdict].
const verdictSQL = `CASE WHEN d.allowed THEN 'allowed' WHEN NOT d.allowed THEN 'denied'
	WHEN coalesce(d.raw->'error', 'null') <> 'null' THEN 'error' WHEN coalesce(d.raw->'result', 'null') = 'null' THEN 'undefined' ELSE 'other' END`

const (
	// Columns of a payload that nobody can read are left out. $1 and $2 are the identity whose payload is held; NULL: none is
	// asked for.
	columnsSQL = `SELECT d.decision_id, d.ts, d.path, d.service, ` + verdictSQL + `, d.allowed, d.requested_by, d.req_id, d.opa_id, d.opa_version,
       CASE WHEN NOT u.unreadable THEN d.labels END, CASE WHEN NOT u.unreadable THEN d.bundles END, d.source_topic, d.source_partition, d.source_offset, d.source_index, d.stored_at, d.uploaded_by, d.edited_audit_id, d.unfaithful, u.unreadable,
       CASE WHEN (d.decision_id <> ALL ($1::text[]) OR d.ts <> ALL ($2::timestamptz[])) AND NOT u.unreadable THEN d.raw END`
	lookedIntoSQL   = ` CROSS JOIN LATERAL (SELECT ` + db.UnreadableSQL + ` AS unreadable OFFSET 0) AS u`
	decisionByIDSQL = columnsSQL + `
  FROM decision_logs d` + lookedIntoSQL + ` WHERE d.decision_id = $3::text ORDER BY d.ts LIMIT 1001`
	// The range of times says nothing new; it spares the planner the partitions that have none of them.
	decisionsSQL = columnsSQL + `
  FROM unnest($3::text[], $4::timestamptz[]) WITH ORDINALITY AS i(decision_id, ts, n)
  JOIN decision_logs d ON d.decision_id = i.decision_id AND d.ts = i.ts AND d.ts BETWEEN $5::timestamptz AND $6::timestamptz` + lookedIntoSQL + `
 ORDER BY i.n`
)

// mostOfID limits the decisions of an id. A statement asks for one more, which tells that there are others.
const mostOfID = 1000

var errMany = errors.New("of an id only the first 1000 decisions were read")

// ByID is that of [reader.Store]. It goes through the primary key of each partition, and of each day that is being archived.
func (r *Reader) ByID(ctx context.Context, id string) ([]reader.Decision, error) {
	all, missed, err := r.byID(ctx, id)
	if err != nil {
		return nil, err
	}
	var parts reader.Parts
	if all = inTime(all); len(all) > mostOfID {
		all = all[:mostOfID]
		parts.Miss(tableRows, errMany)
	}
	if err := parts.Pass(missed); err != nil {
		return nil, err
	}
	return all, reader.Told(ctx, parts.Err())
}

// byID returns more than [mostOfID] decisions if there are more.
func (r *Reader) byID(ctx context.Context, id string) (all []reader.Decision, missed, err error) {
	if all, known, err := r.byIDAtOnce(ctx, id); known {
		return all, nil, err
	}
	missed, err = r.whole(ctx, span{}, func(int) { all = nil }, func(s source) error {
		return r.look(ctx, r.patience(ctx), func(ctx context.Context, tx pgx.Tx) error {
			of := payloads(ctx, true)
			rows, err := tx.Query(ctx, in(s.name, decisionByIDSQL), of.ids, of.times, id)
			if err != nil {
				return err
			}
			found, err := of.collect(rows)
			all = append(all, found...)
			return err
		})
	})
	if err != nil {
		return nil, nil, db.Clean("look for a decision", err)
	}
	return all, missed, nil
}

// byIDAtOnce is ByID with one request. It is enough if no day is being archived. Known is false if one is, or if it is not known.
func (r *Reader) byIDAtOnce(ctx context.Context, id string) (all []reader.Decision, known bool, err error) {
	of := payloads(ctx, true)
	var asked steady
	err = r.atOnce(ctx, r.patience(ctx), pgx.ReadCommitted, func(b *pgx.Batch) {
		b.Queue(layoutSQL)
		b.Queue(decisionByIDSQL, of.ids, of.times, id)
		b.Queue(layoutSQL)
	}, func(answers pgx.BatchResults) error { return asked.read(answers, of) })
	if outOfTime(ctx, err) {
		return nil, true, db.Clean("look for a decision", err)
	}
	return asked.found, err == nil && asked.whole(), nil
}

// Having returns the decisions of the table with one of the identities, with their payload.
func (r *Reader) Having(ctx context.Context, of []reader.Spot) (all []reader.Decision, err error) {
	keys := make([]key, len(of))
	for i, at := range of {
		keys[i] = key{ts: at.Time, id: at.ID}
	}
	missed, err := r.whole(ctx, span{}, func(int) { all = nil }, func(s source) error {
		return r.look(ctx, r.patience(ctx), func(ctx context.Context, tx pgx.Tx) error {
			found, err := r.decisions(ctx, tx, s.name, keys, true)
			all = append(all, found...)
			return err
		})
	})
	if err != nil {
		return nil, db.Clean("look for decisions of archived days", err)
	}
	return inTime(all), reader.Told(ctx, missed)
}

// key is a decision's identity.
type key struct {
	ts time.Time
	id string
}

// decisions reads those of keys from a table, in their order.
func (r *Reader) decisions(ctx context.Context, tx pgx.Tx, from string, keys []key, payload bool) ([]reader.Decision, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	ids, times := make([]string, len(keys)), make([]time.Time, len(keys))
	first, last := keys[0].ts, keys[0].ts
	for i, k := range keys {
		ids[i], times[i] = k.id, k.ts
		if k.ts.Before(first) {
			first = k.ts
		}
		if k.ts.After(last) {
			last = k.ts
		}
	}
	of := payloads(ctx, payload)
	rows, err := tx.Query(ctx, in(from, decisionsSQL), of.ids, of.times, ids, times, first, last)
	if err != nil {
		return nil, err
	}
	return of.collect(rows)
}

// wanted are the payloads that a statement reads: all but the held one, or none where ids is nil.
type wanted struct {
	ids   []string
	times []time.Time
	held  reader.Held
}

func payloads(ctx context.Context, payload bool) (of wanted) {
	if !payload {
		return of
	}
	of = wanted{[]string{}, []time.Time{}, reader.HeldOf(ctx)}
	for _, d := range of.held {
		of.ids, of.times = append(of.ids, d.ID), append(of.times, d.Time)
	}
	return of
}

func (of wanted) collect(rows pgx.Rows) ([]reader.Decision, error) {
	all, err := pgx.CollectRows(rows, scanDecision)
	of.held.Fill(all)
	return all, err
}

func scanDecision(row pgx.CollectableRow) (d reader.Decision, err error) {
	var verdict string
	err = row.Scan(&d.ID, &d.Time, &d.Path, &d.Service, &verdict, &d.Allowed, &d.RequestedBy, &d.ReqID, &d.OPAID, &d.OPAVersion,
		(*[]byte)(&d.Labels), (*[]byte)(&d.Bundles), &d.Topic, &d.Partition, &d.Offset, &d.Index, &d.StoredAt, &d.UploadedBy, &d.EditedAuditID, &d.Unfaithful, &d.Unreadable, (*[]byte)(&d.Raw))
	d.Verdict, d.Time, d.StoredAt = reader.Verdict(verdict), d.Time.UTC(), d.StoredAt.UTC()
	return d, err
}
