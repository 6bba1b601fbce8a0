package ledgerdb

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

const (
	// fewCombinations is how many combinations of group, path and state are looked into one by one, whatever they hold.
	fewCombinations = 400
	// manyCombinations is how many of them may be looked into where the newest dead letters did not fill the page.
	manyCombinations = 20_000
	// newestLooked is how many of the newest dead letters are looked through for those that fit.
	newestLooked = 40_000
)

// place is where a list continues: after the dead letter that failed last at a time and has an id.
type place struct {
	at time.Time
	id string
}

func (p place) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.at.UnixMicro(), 36) + " " + p.id))
}

func parsePlace(text string) (p place, err error) {
	if text == "" {
		return p, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return p, ledger.ErrBadPage
	}
	at, id, ok := strings.Cut(string(plain), " ")
	micros, err := strconv.ParseInt(at, 36, 64)
	if err != nil || !ok || id == "" || len(id) > idLength || strings.Trim(id, "0123456789abcdef") != "" {
		return p, ledger.ErrBadPage
	}
	// Years 1 to 9999, which timestamptz holds, with room.
	if p = (place{time.UnixMicro(micros).UTC(), id}); p.at.Year() < 1 || p.at.Year() > 9999 {
		return place{}, ledger.ErrBadPage
	}
	return p, nil
}

// afterSQL is the condition that dead_letters d comes after p in a list.
func (p place) afterSQL(args *[]any) string {
	if p.id == "" {
		return "TRUE"
	}
	return "(d.last_failed_at, d.dead_letter_id) < (" + db.Arg(args, p.at) + "::timestamptz, " + db.Arg(args, p.id) + "::text)"
}

// List lists newest failure first.
func (l *Ledger) List(ctx context.Context, f ledger.Filter, p ledger.Page) (list ledger.List, err error) {
	after, err := parsePlace(p.After)
	if err == nil {
		err = f.Validate()
	}
	if err != nil {
		return list, err
	}
	n := p.Limit
	if n <= 0 {
		n = ledger.DefaultPage
	}
	n = min(n, ledger.MaxPage)
	err = l.look(ctx, "list dead letters", func(ctx context.Context, tx pgx.Tx) error {
		s := &listing{tx: tx, filter: f, after: after, n: n + 1}
		entries, err := s.entries(ctx)
		list.Entries = entries
		return err
	})
	if len(list.Entries) > n {
		list.Entries = list.Entries[:n]
		last := list.Entries[n-1]
		list.Next = place{last.FailedAt, last.ID}.String()
	}
	return list, err
}

// listing is one list in the making.
type listing struct {
	tx     pgx.Tx
	filter ledger.Filter
	after  place
	n      int
}

// combination is of what the counters count. There is at least one dead letter of it, in whatever time and place.
type combination struct {
	group int32
	path  string
	state string
	n     int64
}

// entries goes by the counters where the filter names a group, a path or a state. Where few combinations fit, each has its
// newest looked up. Where many do, the page is most likely among the newest of all. If it is not, each is looked up after all.
func (s *listing) entries(ctx context.Context) ([]ledger.Entry, error) {
	f := s.filter
	if f.Fingerprint == "" && f.Kind == "" && f.Code == "" && f.Path == "" && len(f.States) == 0 && !looked(f) {
		return s.newest(ctx, 0)
	}
	combinations, err := s.combinations(ctx)
	switch {
	case err != nil || len(combinations) == 0:
		return nil, err
	case len(combinations) <= fewCombinations:
		return s.each(ctx, combinations)
	}
	entries, err := s.newest(ctx, newestLooked)
	if err != nil || len(entries) == s.n {
		return entries, err
	}
	if len(combinations) > manyCombinations {
		return s.newest(ctx, 0)
	}
	return s.each(ctx, combinations)
}

func (s *listing) combinations(ctx context.Context) ([]combination, error) {
	var args []any
	rows, err := s.tx.Query(ctx, `SELECT c.group_id, c.path, c.state::text, sum(c.n)::bigint FROM dead_letter_counts c WHERE `+
		counterSQL(s.filter, &args)+awakeSQL(s.filter)+` GROUP BY 1, 2, c.state HAVING sum(c.n) > 0`, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (c combination, err error) {
		err = r.Scan(&c.group, &c.path, &c.state, &c.n)
		return c, err
	})
}

// awakeSQL leaves out groups that are snoozed as a whole, so that none of their letters is looked at.
func awakeSQL(f ledger.Filter) string {
	if f.Snoozed != ledger.NotSnoozed {
		return ""
	}
	return ` AND (c.state = 'RESOLVED' OR c.group_id NOT IN (SELECT group_id FROM dead_letter_rules WHERE act = 'snoozed' AND topic = '' AND state = 'ACTIVE' AND ends_at > now()))`
}

// newestFirst is the order of a list, of dead_letters d.
const newestFirst = " ORDER BY d.last_failed_at DESC, d.dead_letter_id DESC"

// newest looks for what fits among so many of the newest dead letters; 0: all. The index has all that
// it asks for before the page is known.
func (s *listing) newest(ctx context.Context, among int) ([]ledger.Entry, error) {
	var args []any
	from := "dead_letters d"
	if among > 0 {
		columns := "d.last_failed_at, d.dead_letter_id, d.group_id, d.path, d.state, d.origin_partition"
		if s.filter.Topic != "" || looked(s.filter) {
			columns += ", d.origin_topic"
		}
		if s.filter.AttemptsBelow > 0 {
			columns += ", d.attempts"
		}
		from = `(SELECT ` + columns + ` FROM dead_letters d WHERE ` + s.after.afterSQL(&args) + ` AND ` + rangeSQL(s.filter, &args) + newestFirst + ` LIMIT ` + db.Arg(&args, among) + `) d`
	}
	return s.collect(ctx, `SELECT d.last_failed_at, d.dead_letter_id FROM `+from+` WHERE `+wholeSQL(s.filter, &args)+` AND `+s.after.afterSQL(&args)+
		newestFirst+` LIMIT `+db.Arg(&args, s.n), args)
}

// each merges the newest of each combination. At first each is asked for the time of its k-th. Where n/k of them have one
// that is not before a time, the whole page is not before it. So only few of each have to be read.
func (s *listing) each(ctx context.Context, combinations []combination) ([]ledger.Entry, error) {
	groups, paths, states := make([]int32, len(combinations)), make([]string, len(combinations)), make([]string, len(combinations))
	for i, c := range combinations {
		groups[i], paths[i], states[i] = c.group, c.path, c.state
	}
	var args []any
	of := `unnest(` + db.Arg(&args, groups) + `::int[], ` + db.Arg(&args, paths) + `::text[], ` + db.Arg(&args, states) + `::text[]::dead_letter_state[]) c (group_id, path, state)`
	fits := `d.group_id = c.group_id AND d.path = c.path AND d.state = c.state AND ` + s.after.afterSQL(&args) + ` AND ` + innerSQL(s.filter, &args)
	k := (s.n + len(combinations) - 1) / len(combinations)
	later := "" // with k = 1, none that has its newest before that time has anything on the page
	if k == 1 {
		later = ` WHERE c.at >= (SELECT at FROM b)`
	}
	n := db.Arg(&args, s.n)
	return s.collect(ctx, `WITH c AS MATERIALIZED (
			SELECT c.*, h.last_failed_at AS at FROM `+of+`
			  LEFT JOIN LATERAL (SELECT d.last_failed_at FROM dead_letters d WHERE `+fits+newestFirst+` OFFSET `+db.Arg(&args, k-1)+` LIMIT 1) h ON true),
		b AS MATERIALIZED (
			SELECT coalesce((SELECT at FROM c WHERE at IS NOT NULL ORDER BY at DESC OFFSET `+db.Arg(&args, (s.n+k-1)/k-1)+` LIMIT 1), '-infinity') AS at)
		SELECT d.last_failed_at, d.dead_letter_id FROM c CROSS JOIN LATERAL (
			SELECT d.last_failed_at, d.dead_letter_id FROM dead_letters d WHERE `+fits+` AND d.last_failed_at >= (SELECT at FROM b)`+newestFirst+` LIMIT `+n+`) d`+
		later+newestFirst+` LIMIT `+n, args)
}

// collect fetches the dead letters that keys names.
func (s *listing) collect(ctx context.Context, keys string, args []any) ([]ledger.Entry, error) {
	rows, err := s.tx.Query(ctx, `SELECT `+entrySQL+` FROM (`+keys+`) k JOIN dead_letters d USING (dead_letter_id) JOIN dead_letter_groups g USING (group_id)`+newestFirst, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanListed)
}
