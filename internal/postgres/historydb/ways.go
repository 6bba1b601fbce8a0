package historydb

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"docket/internal/postgres/db"
)

// ways are what leads to decisions besides the time.
type ways struct {
	askers, paths bool   // whether the filter has what an index of a day that is over leads to
	verdicts      bool   // whether it has verdicts alone that one leads to
	bloom         bool   // the days have what tells where a host or a path is not
	spans         []span // the days that have such indexes, from the newest on
}

func (w *ways) any() bool { return w.askers || w.paths || w.verdicts }

// names are the indexes of a day that the search needs.
func (w *ways) names() []string {
	if w.verdicts {
		return []string{"verdict_ts"}
	}
	return []string{"path_ts", "host_ts", "host_path_ts"}
}

// span is a range of time.
type span struct{ from, to time.Time }

// indexed says whether the window at the search's place is in days that have their indexes. It also gives the end of these
// days, or of those that have none, in the direction of the search; zero: nowhere.
func (s *search) indexed() (yes bool, end time.Time) {
	if !s.ways.any() || !s.at.set {
		return false, end
	}
	in := func(of span, at time.Time) bool {
		if s.oldest || s.at.id != "" && at.Equal(s.at.at) {
			return !at.Before(of.from) && at.Before(of.to)
		}
		return at.After(of.from) && !at.After(of.to)
	}
	at := s.at.at
	for again := true; again; { // from span to span
		again = false
		for _, of := range s.ways.spans {
			switch {
			case in(of, at) && s.oldest:
				at, yes, again = of.to, true, true
			case in(of, at):
				at, yes, again = of.from, true, true
			}
		}
	}
	if yes && (at.Equal(finite(pgtype.Timestamptz{InfinityModifier: pgtype.Infinity})) || at.Equal(finite(pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity}))) {
		return true, time.Time{}
	}
	if yes {
		return true, at
	}
	for _, of := range s.ways.spans {
		switch {
		case s.oldest && of.from.After(at) && (end.IsZero() || of.from.Before(end)):
			end = of.from
		case !s.oldest && of.to.Before(at) && of.to.After(end):
			end = of.to
		}
	}
	return false, end
}

const (
	waysSQL = `SELECT now(), to_regclass('decision_logs_times_brin') IS NOT NULL`
	// spansSQL are the days that have indexes $1 of their own, from the newest on.
	spansSQL = `
SELECT CASE WHEN bound[1] <> 'MINVALUE' THEN trim(BOTH '''' FROM bound[1])::timestamptz ELSE '-infinity' END,
       CASE WHEN bound[2] <> 'MAXVALUE' THEN trim(BOTH '''' FROM bound[2])::timestamptz ELSE 'infinity' END
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid,
       regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \(([^,]*)\) TO \(([^,]*)\)$') AS bound
 WHERE i.inhparent = 'decision_logs'::regclass AND bound IS NOT NULL
   AND (SELECT count(*) FROM pg_index x JOIN pg_class b ON b.oid = x.indexrelid
         WHERE x.indrelid = c.oid AND x.indisvalid AND b.relname = ANY (SELECT left(c.relname, 50) || '_' || of FROM unnest($1::text[]) AS of)) = cardinality($1::text[])
 ORDER BY 1 DESC`
	// leavingIndexesSQL tells whether a day that was taken out has indexes $2.
	leavingIndexesSQL = `
SELECT count(*) = cardinality($2::text[]) FROM pg_index x JOIN pg_class b ON b.oid = x.indexrelid
 WHERE x.indrelid = $1::text::regclass AND x.indisvalid AND substring(b.relname FROM '_p\d{8}_(.*)$') = ANY ($2::text[])`
	betweenSQL = `SELECT EXISTS (SELECT FROM decision_logs WHERE ts >= $1::timestamptz AND ts < $2::timestamptz)`
	beforeSQL  = `SELECT EXISTS (SELECT FROM decision_logs WHERE ts < $1::timestamptz)`
)

const (
	manyPlaces = 800 // is up to how many places a window is looked through place by place
	manyPairs  = 256 // is up to how many pairs of a host and a place are looked for one by one; beyond it, each host anywhere
)

// begin finds out where the search begins, and what leads to what it looks for.
func (s *search) begin(ctx context.Context, left time.Duration) error {
	f := s.filter
	s.end = f.Since
	if s.oldest {
		s.end = f.Until
	}
	return s.r.look(ctx, left, func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, waysSQL).Scan(&s.now, &s.ways.bloom); err != nil {
			return err
		}
		s.ways.askers, s.ways.paths = len(f.RequestedBy) > 0, s.aim()
		s.ways.verdicts = !s.ways.any() && len(s.verdicts()) > 0
		if s.ways.any() {
			if err := s.spans(ctx, tx); err != nil {
				return err
			}
			if err := s.aimed(ctx, tx); err != nil {
				return err
			}
		}
		switch {
		case s.at.set:
		case s.oldest && !f.Since.IsZero():
			s.at = spot{at: f.Since, set: true}
		case s.oldest:
			return s.oldestBegin(ctx, tx)
		case !f.Until.IsZero():
			s.at = spot{at: f.Until, set: true}
		}
		return nil
	})
}

// spans finds the days that have indexes of their own.
func (s *search) spans(ctx context.Context, tx pgx.Tx) error {
	if s.source.leaving() {
		var has bool
		err := tx.QueryRow(ctx, leavingIndexesSQL, s.source.name, s.ways.names()).Scan(&has)
		if has {
			s.ways.spans = []span{s.source.day}
		}
		return err
	}
	rows, err := tx.Query(ctx, spansSQL, s.ways.names())
	if err != nil {
		return err
	}
	var from, to pgtype.Timestamptz
	_, err = pgx.ForEachRow(rows, []any{&from, &to}, func() error {
		s.ways.spans = append(s.ways.spans, span{finite(from), finite(to)})
		return nil
	})
	return err
}

// oldestBegin goes back in time until nothing is before.
func (s *search) oldestBegin(ctx context.Context, tx pgx.Tx) error {
	for back := 24 * time.Hour; back < 100*365*24*time.Hour; back *= growth {
		s.at = spot{at: s.now.Add(-back), set: true}
		var earlier bool
		if err := tx.QueryRow(ctx, in(s.source.name, beforeSQL), s.at.at).Scan(&earlier); err != nil || !earlier {
			return err
		}
	}
	s.at = spot{at: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), set: true}
	return nil
}

// skip goes over a gap without decisions, to within a minute of the first one behind it. A window that grew over the gap would
// reach far behind it. It says whether it moved.
func (s *search) skip(ctx context.Context, deadline time.Time, to time.Time) (skipped bool, err error) {
	near, far := s.at.at, to
	err = s.r.look(ctx, time.Until(deadline), func(ctx context.Context, tx pgx.Tx) error {
		some := func(from, until time.Time) (there bool, err error) {
			if from.After(until) {
				from, until = until, from
			}
			return there, tx.QueryRow(ctx, in(s.source.name, betweenSQL), from, until.Add(time.Microsecond)).Scan(&there)
		}
		step := firstWindow
		if !s.oldest {
			step = -step
		}
		if there, err := some(near, near.Add(step)); err != nil || there {
			return err
		}
		if there, err := some(near, far); err != nil || !there {
			return err
		}
		for far.Sub(near).Abs() > firstWindow {
			middle := near.Add(far.Sub(near) / 2)
			there, err := some(near, middle)
			if err != nil {
				return err
			}
			if there {
				far = middle
			} else {
				near, skipped = middle, true
			}
		}
		return nil
	})
	if err == nil && skipped {
		s.at = spot{at: near, set: true}
	}
	return skipped, err
}

// way is how a window is searched.
type way int

const (
	byIndex  way = iota // of a day that is over
	byBlocks            // those blocks that the filter of BRIN does not rule out
	byRow               // row after row
)

// way chooses the one of the next window. To look at who asked costs more than other columns. So if one host asks a lot, and
// other columns rule out most rows, row after row is faster: one window tries it.
func (s *search) way(indexed bool) way {
	switch {
	case indexed:
		return byIndex
	case !s.ways.askers || !s.ways.bloom:
		return byRow
	case s.ruledOut() && s.paces.rows():
		return byRow
	}
	return byBlocks
}

// ruledOut reports whether a column that is cheap to look at rules out rows.
func (s *search) ruledOut() bool { return len(s.filter.Paths) > 0 || len(s.filter.Verdicts) > 0 }

// paces are how long the widest window took, by its way.
type paces [byRow + 1]struct{ span, took time.Duration }

const (
	tellingWindow = 15 * time.Minute // of a narrower one most is the question itself
	fasterBy      = 1.5              // a window that few blocks have takes as long as its question
)

// noted notes how long the window to a time took at least.
func (s *search) noted(way way, to time.Time, took time.Duration) {
	if s.at.set { // else it has all the time to come, which is mostly empty
		s.paces.note(way, to.Sub(s.at.at).Abs(), took)
	}
}

func (p *paces) note(w way, span, took time.Duration) {
	if span >= p[w].span {
		p[w].span, p[w].took = span, took
	}
}

// rows reports whether the next window is to be searched row after row: to try it, or because it is faster.
func (p *paces) rows() bool {
	blocks, rows := p[byBlocks], p[byRow]
	if blocks.span < tellingWindow || rows.span == 0 {
		return blocks.span >= tellingWindow
	}
	return float64(blocks.took)/float64(blocks.span) > fasterBy*float64(rows.took)/float64(rows.span)
}

// look looks through one window: from where the search is to a time.
func (s *search) look(ctx context.Context, within time.Duration, to time.Time, way way) (keys []key, err error) {
	indexed := way == byIndex
	err = s.r.look(ctx, within, func(ctx context.Context, tx pgx.Tx) error {
		var args []any
		var sql string
		var places []spotKey
		if indexed && s.ways.paths {
			if places, err = s.places(ctx, tx, to); err != nil {
				return err
			}
			if len(places) == 0 {
				return nil
			}
		}
		switch {
		case indexed && s.ways.askers && s.ways.paths && len(places)*len(s.hosts()) <= manyPairs:
			sql = s.pairsSQL(places, to, &args)
		case s.ways.askers && way != byRow:
			sql = s.askersSQL(indexed, to, &args)
		case indexed && s.ways.paths && len(places) <= manyPlaces:
			sql = s.placesSQL(places, to, &args)
		case indexed && s.ways.verdicts:
			sql = s.verdictsSQL(to, &args)
		default:
			sql = s.plainSQL(to, &args)
		}
		keys, err = collectKeys(tx.Query(ctx, in(s.source.name, sql), args...))
		return err
	})
	return keys, err
}

func collectKeys(rows pgx.Rows, err error) ([]key, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (k key, err error) {
		err = row.Scan(&k.ts, &k.id)
		return k, err
	})
}

// within are the conditions of the window from where the search is to a time.
func (s *search) within(to time.Time, args *[]any) string {
	var of []string
	beyond, from, until := "<", "<", ">="
	if s.oldest {
		beyond, from, until = ">", ">=", "<"
	}
	switch {
	case s.at.set && s.at.id == "":
		of = append(of, "d.ts "+from+" "+db.Arg(args, s.at.at)+"::timestamptz")
	case s.at.set: // first what an index and the planner understand
		at := db.Arg(args, s.at.at) + "::timestamptz"
		of = append(of, "d.ts "+beyond+"= "+at, "(d.ts "+beyond+" "+at+` OR d.decision_id COLLATE "C" `+beyond+" "+db.Arg(args, s.at.id)+"::text)")
	}
	if !to.IsZero() {
		of = append(of, "d.ts "+until+" "+db.Arg(args, to)+"::timestamptz")
	}
	if len(of) == 0 {
		return "TRUE"
	}
	return strings.Join(of, " AND ")
}

// order is that of a page, limited to what is still needed.
func (s *search) order(args *[]any) string {
	way := " DESC"
	if s.oldest {
		way = ""
	}
	return " ORDER BY d.ts" + way + `, d.decision_id COLLATE "C"` + way + " LIMIT " + db.Arg(args, s.need-len(s.keys)) + "::int"
}

// plainSQL looks at every decision of the window.
func (s *search) plainSQL(to time.Time, args *[]any) string {
	return `SELECT d.ts, d.decision_id FROM decision_logs d WHERE ` + s.within(to, args) + ` AND ` + conditions(s.filter, args) + s.order(args)
}

// verdictsSQL looks at those of each verdict, as the index has them.
func (s *search) verdictsSQL(to time.Time, args *[]any) string {
	return `SELECT d.ts, d.decision_id FROM (SELECT DISTINCT unnest(` + db.Arg(args, s.verdicts()) + `::int[]) AS verdict) v CROSS JOIN LATERAL (
		SELECT d.ts, d.decision_id FROM decision_logs d WHERE ` + verdictKeySQL + ` = v.verdict AND ` + s.within(to, args) + ` AND ` + conditions(s.filter, args) + s.order(args) + `) d` + s.order(args)
}

// askersSQL looks at those of each host.
func (s *search) askersSQL(indexed bool, to time.Time, args *[]any) string {
	of, is := "unnest("+db.Arg(args, s.hosts())+"::text[])", askerSQL+" = a.asker"
	if indexed { // by the hash alone, as what else is asked the planner would look for in BRIN; the filter's own condition says the rest
		of, is = "hashtext("+of+")", hostKeySQL+" = a.asker"
	}
	return `SELECT d.ts, d.decision_id FROM (SELECT DISTINCT ` + of + ` AS asker) a CROSS JOIN LATERAL (
		SELECT d.ts, d.decision_id FROM decision_logs d WHERE ` + is + ` AND ` + s.within(to, args) + ` AND ` + conditions(s.filter, args) + s.order(args) + `) d` + s.order(args)
}

// pairsSQL looks at those of each host on each path and outcome: all of one pair lie side by side in the index, in their order.
func (s *search) pairsSQL(places []spotKey, to time.Time, args *[]any) string {
	paths := make([]int32, len(places))
	for i, p := range places {
		paths[i] = p.path
	}
	return `SELECT d.ts, d.decision_id FROM (SELECT DISTINCT hashtext(unnest(` + db.Arg(args, s.hosts()) + `::text[])) AS asker) a CROSS JOIN (SELECT DISTINCT unnest(` + db.Arg(args, paths) + `::int[]) AS path) p CROSS JOIN LATERAL (
		SELECT d.ts, d.decision_id FROM decision_logs d WHERE ` + hostKeySQL + ` = a.asker AND ` + pathKeySQL + ` = p.path AND ` + s.within(to, args) + ` AND ` + conditions(s.filter, args) + s.order(args) + `) d` + s.order(args)
}

// hosts are what is looked for of those who asked.
func (s *search) hosts() (hosts []string) {
	for _, who := range s.filter.RequestedBy {
		hosts = append(hosts, askers(who)...)
	}
	return hosts
}

// placesSQL looks at those of each path and outcome, as the index has them.
func (s *search) placesSQL(places []spotKey, to time.Time, args *[]any) string {
	services, paths := make([]int32, len(places)), make([]int32, len(places))
	for i, p := range places {
		services[i], paths[i] = p.service, p.path
	}
	return `SELECT d.ts, d.decision_id FROM unnest(` + db.Arg(args, services) + `::int[], ` + db.Arg(args, paths) + `::int[]) AS p(service, path) CROSS JOIN LATERAL (
		SELECT d.ts, d.decision_id FROM decision_logs d WHERE ` + serviceKeySQL + ` = p.service AND ` + pathKeySQL + ` = p.path AND ` + s.within(to, args) + ` AND ` + conditions(s.filter, args) + s.order(args) + `) d` + s.order(args)
}

// finite is a time that may be as far as any.
func finite(t pgtype.Timestamptz) time.Time {
	switch t.InfinityModifier {
	case pgtype.NegativeInfinity:
		return time.Date(-4800, 1, 1, 0, 0, 0, 0, time.UTC)
	case pgtype.Infinity:
		return time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return t.Time
}
