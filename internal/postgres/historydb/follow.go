package historydb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/reader"
	"docket/internal/postgres/db"
)

// A row's stored_at is when its transaction began, so rows turn up behind others that are already there. The rows before a
// moment are complete once every transaction has ended that was open at it. The server's own list of open transactions
// tells that, as it has each, whoever owns it.
const (
	// openSQL is the server's time before it looks, and the open transactions of this database's sessions. pg_locks has a line for each,
	// whoever asks. One without a user is the server's own work, and stores nothing. Nor does one with the mark of [readsOnlySQL].
	openSQL = `
SELECT statement_timestamp(), pg_is_in_recovery(), coalesce(array_agg(l.virtualtransaction ORDER BY 1) FILTER (WHERE l.virtualtransaction IS NOT NULL), '{}')
  FROM (SELECT) AS one
  LEFT JOIN (SELECT l.virtualtransaction FROM pg_locks l JOIN pg_stat_activity a USING (pid)
              WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND a.usesysid IS NOT NULL
                AND (a.datid IS NULL OR a.datid = 0 OR a.datid = (SELECT oid FROM pg_database WHERE datname = current_database()))
                AND l.pid <> pg_backend_pid()
                AND NOT EXISTS (SELECT FROM pg_locks o WHERE o.pid = l.pid AND o.locktype = 'advisory' AND o.granted
                                   AND o.classid = 'decision_logs'::regclass AND o.objid = 1 AND o.objsubid = 2)) AS l ON true`
	// readsOnlySQL marks a transaction that is READ ONLY, which the server tells nobody else. Reading a day for the archive takes
	// minutes, and what is complete must not wait for it.
	readsOnlySQL = `SELECT pg_advisory_xact_lock_shared('decision_logs'::regclass::int, 1)`
	sinceSQL     = `SELECT d.ts, d.decision_id, d.stored_at FROM decision_logs d WHERE d.stored_at >= $1::timestamptz AND `
)

const (
	// followSlack is for a session that took its time and is not yet on the list, and for steps of the server's clock.
	followSlack = 5 * time.Second
	// longestStore is how long a transaction that stores may take: the longest store timeout that can be set, and some more.
	longestStore = 15 * time.Minute
	// mostRemembered is how many decisions a tail remembers.
	mostRemembered = 1 << 19
)

// horizon follows which moments are complete.
type horizon struct {
	open []string
	at   time.Time // when those were open
}

// complete gives the moment up to which a look after this call sees all that was stored, less slack, and the server's time.
// Zero: none is known just now.
func (h *horizon) complete(ctx context.Context, r *Reader, slack time.Duration) (done, now time.Time, err error) {
	var standby bool
	var open []string
	if err := r.db.Pool().QueryRow(ctx, openSQL).Scan(&now, &standby, &open); err != nil {
		return done, now, err
	}
	if standby {
		h.at = time.Time{}
	} else if !h.at.IsZero() && !anyOf(h.open, open) {
		done = h.at.Add(-slack)
	}
	if h.at.IsZero() || !done.IsZero() {
		h.open, h.at = open, now
		if len(open) == 0 && !standby {
			done = now.Add(-slack)
		}
	}
	return done, now, nil
}

func anyOf(of, among []string) bool {
	is := make(map[string]bool, len(among))
	for _, a := range among {
		is[a] = true
	}
	for _, o := range of {
		if is[o] {
			return true
		}
	}
	return false
}

// stored is a decision in the order of storing.
type stored struct {
	key
	at time.Time
}

func (k key) sum() (sum [16]byte) {
	whole := sha256.Sum256([]byte(strconv.FormatInt(k.ts.UnixMicro(), 36) + " " + k.id))
	return [16]byte(whole[:16])
}

// Follow is that of [reader.Store]. It does not wait for a transaction that is open for longer than a store may take. Where
// more comes meanwhile than a tail remembers, the rest is told once that transaction has ended. It reads days that are being archived, too. A
// day that left between two looks is missed.
func (r *Reader) Follow(ctx context.Context, f reader.Filter, t reader.Tail, limit int, payload bool) ([]reader.Decision, reader.Tail, error) {
	if err := checkFilter(f); err != nil {
		return nil, t, err
	}
	limit = min(max(limit, 1), reader.MaxLimit)
	place, going := t.Mark.(*tail)
	if !going {
		place = &tail{told: map[[16]byte]time.Time{}}
	}
	within := r.patience(ctx)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	done, now, err := place.horizon.complete(ctx, r, followSlack)
	if err != nil {
		return nil, t, db.Clean("look for open transactions", err)
	}
	if least := now.Add(-longestStore); done.Before(least) {
		done = least
	}
	if !going {
		var there []stored
		missed, err := r.whole(ctx, span{}, func(int) { there = nil }, func(s source) error {
			return r.look(ctx, within, func(ctx context.Context, tx pgx.Tx) error {
				found, err := latest(ctx, tx, s, f, done)
				there = append(there, found...)
				return err
			})
		})
		if err != nil {
			return nil, t, db.Clean("look for the newest decisions", err)
		}
		place.begin(there, done)
		return nil, reader.Tail{Mark: place}, reader.Told(ctx, missed)
	}
	var all news
	missed, err := r.whole(ctx, span{}, func(int) { all = news{whole: true} }, func(s source) error {
		return r.look(ctx, within, func(ctx context.Context, tx pgx.Tx) error {
			fresh, whole, err := place.since(ctx, tx, s, f, limit)
			if err != nil {
				return err
			}
			keys := make([]key, len(fresh))
			for i, s := range fresh {
				keys[i] = s.key
			}
			decisions, err := r.decisions(ctx, tx, s.name, keys, payload)
			if err != nil {
				return err
			}
			all.add(s, fresh, decisions, whole)
			return all.gone(ctx, tx, s, place)
		})
	})
	if err != nil {
		return nil, t, db.Clean("look for new decisions", err)
	}
	var parts reader.Parts
	_ = parts.Pass(missed) // nothing else comes here
	decisions := all.first(limit)
	place.passed(&all, &parts)
	place.tell(all.fresh, all.whole, done)
	return decisions, t, reader.Told(ctx, parts.Err())
}

// news are the decisions that several tables have since a place.
type news struct {
	fresh []stored
	has   []reader.Decision // of each
	whole bool              // nothing is left
	bound *stored           // a table that has more was read up to here
	days  []time.Time       // that are being archived
	left  []taken           // days that were taken out since the place
}

// add adds those of one table.
func (n *news) add(s source, fresh []stored, decisions []reader.Decision, whole bool) {
	if !whole {
		n.whole = false
		last := stored{} // before all: nothing of the other tables may pass it
		if len(fresh) > 0 {
			last = fresh[len(fresh)-1]
		}
		if n.bound == nil || last.compare(n.bound) < 0 {
			n.bound = &last
		}
	}
	if s.leaving() {
		n.days = append(n.days, s.day.from)
	}
	if len(decisions) != len(fresh) {
		n.whole = false // never: both were read in one snapshot
		return
	}
	n.fresh, n.has = append(n.fresh, fresh...), append(n.has, decisions...)
}

// takenSQL are the days that an archive took out since a time.
const takenSQL = `
SELECT day, greatest(left_at, leaves_at) FROM decision_counts_left WHERE greatest(left_at, leaves_at) >= $1`

// gone reads which days were taken out since the place, with the table.
func (n *news) gone(ctx context.Context, tx pgx.Tx, s source, t *tail) error {
	if s.leaving() {
		return nil
	}
	var readable bool
	err := tx.QueryRow(ctx, leftReadableSQL).Scan(&readable)
	if err != nil || !readable {
		return err
	}
	rows, err := tx.Query(ctx, takenSQL, t.low)
	if err != nil {
		return err
	}
	n.left, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (one taken, err error) {
		err = row.Scan(&one.day, &one.at)
		one.day, one.at = one.day.UTC(), one.at.UTC()
		return one, err
	})
	return err
}

// taken is a day that an archive took out of the table, and when.
type taken struct{ day, at time.Time }

// first returns so many decisions, in the order of storing, and forgets the others. They end where a table that has more was read to.
func (n *news) first(limit int) []reader.Decision {
	order := make([]int, len(n.fresh))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return n.fresh[a].compare(&n.fresh[b]) })
	var fresh []stored
	var has []reader.Decision
	seen := map[key]bool{}
	for _, i := range order {
		if seen[n.fresh[i].key] {
			continue // it moved from one table to the other
		}
		if len(fresh) == limit || n.bound != nil && n.bound.compare(&n.fresh[i]) < 0 {
			n.whole = false
			break
		}
		seen[n.fresh[i].key] = true
		fresh, has = append(fresh, n.fresh[i]), append(has, n.has[i])
	}
	n.fresh, n.has = fresh, nil
	return has
}

// compare orders by storing.
func (s *stored) compare(o *stored) int {
	return cmp.Or(s.at.Compare(o.at), s.ts.Compare(o.ts), strings.Compare(s.id, o.id))
}

// errTaken says that a day left between two looks.
var errTaken = errors.New("the day was archived between two looks; decisions that were stored shortly before may not be shown: docket logs finds them in the archive")

// passed notes which days were read to their end while they were taken out, and misses those that were dropped before that.
func (t *tail) passed(n *news, parts *reader.Parts) {
	if t.days == nil {
		t.days = map[taken]bool{}
	}
	for _, one := range n.left {
		switch leaving := slices.ContainsFunc(n.days, one.day.Equal); {
		case t.days[one], leaving && !n.whole:
		case leaving:
			t.days[one] = true
		default:
			t.days[one] = true
			parts.Miss("day "+one.day.Format(time.DateOnly), errTaken)
		}
	}
}

// latest reads what a table has since a time, the latest first.
func latest(ctx context.Context, tx pgx.Tx, s source, f reader.Filter, done time.Time) ([]stored, error) {
	args := []any{done}
	sql := sinceSQL + conditions(f, &args) + ` ORDER BY d.stored_at DESC LIMIT ` + db.Arg(&args, mostRemembered/2)
	return collectStored(tx.Query(ctx, in(s.name, sql), args...))
}

// begin makes all that is there at the start be done with.
func (t *tail) begin(there []stored, done time.Time) {
	slices.SortFunc(there, func(a, b stored) int { return b.at.Compare(a.at) })
	t.low = done
	if len(there) >= mostRemembered/2 {
		there = there[:mostRemembered/2]
		t.low = there[len(there)-1].at.Add(time.Microsecond)
	}
	for _, s := range there {
		if !s.at.Before(t.low) {
			t.told[s.sum()] = s.at
		}
	}
}

// since finds what is new in a table, and says whether that is the whole of it.
func (t *tail) since(ctx context.Context, tx pgx.Tx, s source, f reader.Filter, limit int) (fresh []stored, whole bool, err error) {
	limit = min(limit, mostRemembered-len(t.told))
	args := []any{t.low}
	most := limit + len(t.told)
	sql := sinceSQL + conditions(f, &args) + ` ORDER BY d.stored_at, d.ts, d.decision_id COLLATE "C" LIMIT ` + db.Arg(&args, most)
	there, err := collectStored(tx.Query(ctx, in(s.name, sql), args...))
	if err != nil {
		return nil, false, err
	}
	for _, s := range there {
		if _, told := t.told[s.sum()]; !told && len(fresh) < limit {
			fresh = append(fresh, s)
		} else if !told {
			return fresh, false, nil
		}
	}
	return fresh, len(there) < most, nil
}

// tell notes what was told, and forgets what cannot come again.
func (t *tail) tell(fresh []stored, whole bool, done time.Time) {
	for _, s := range fresh {
		t.told[s.sum()] = s.at
	}
	if !whole {
		if len(fresh) == 0 {
			return
		}
		// Further rows of the same time may be behind the last one.
		if last := fresh[len(fresh)-1].at; last.Before(done) {
			done = last
		}
	}
	if t.low.Before(done) {
		t.low = done
		maps.DeleteFunc(t.told, func(_ [16]byte, at time.Time) bool { return at.Before(done) })
	}
}

func collectStored(rows pgx.Rows, err error) ([]stored, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s stored, err error) {
		err = row.Scan(&s.ts, &s.id, &s.at)
		return s, err
	})
}
