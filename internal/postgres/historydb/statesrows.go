package historydb

import (
	"context"
	"crypto/md5" //nolint:gosec // see answerOf
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/postgres/db"
	"docket/internal/record/subject"
	"docket/internal/record/verdict"
)

const (
	// A result that is true or false says no more than the verdict. Any other is a part of the answer, as its reasons are in it. A short
	// one with a verdict is true, false or an object, so it comes as text: that costs the server less than a hash.
	answerSQL = `CASE WHEN ` + db.UnreadableSQL + ` THEN NULL WHEN d.allowed IS NOT NULL AND pg_column_size(d.raw) <= 4000 THEN d.raw->>'result'
	WHEN jsonb_typeof(d.raw->'result') = 'boolean' THEN NULL ELSE md5(coalesce(d.raw->'result', d.raw->'error')::text) END`
	// Text of bundles that is very long is told apart by its hash.
	bundlesSQL = `CASE WHEN d.bundles IS NULL OR ` + db.UnreadableSQL + ` THEN NULL WHEN octet_length(d.bundles::text) <= 4096 THEN d.bundles::text
	ELSE to_json('md5:' || md5(d.bundles::text))::text END`
	// Columns come in the order of [stateRow]. Most decisions have a verdict in the column allowed, which is less to send.
	stateColumnsSQL = `SELECT d.ts, d.decision_id, d.stored_at, d.path, d.allowed, CASE WHEN d.allowed IS NULL THEN ` + verdictSQL + ` END, ` + bundlesSQL + `,
       CASE WHEN d.bundles IS NULL OR d.bundles = '{}' THEN left(d.raw->>'revision', 1000) END, ` + answerSQL + `, `
	stateRowsSQL  = ` FROM decision_logs d WHERE d.stored_at >= $1::timestamptz AND d.stored_at < $2::timestamptz`
	stateOrderSQL = ` ORDER BY d.stored_at, d.ts, d.decision_id COLLATE "C"`
	openRowsSQL   = `DECLARE stored_decisions NO SCROLL CURSOR FOR `
)

// subjectSQL is the text of the subject of decision_logs d, and which of the settings it is by. If careful is false, the text may be
// that of an object or array, which names no subject: see [ambiguous].
func subjectSQL(all []reader.PathSubject, careful bool, args *[]any) string {
	var who, by strings.Builder
	for i, one := range all[:len(all)-1] {
		fits := pathFitsSQL(one.Path, args)
		who.WriteString(" WHEN " + fits + " THEN " + valueSQL(one.Spec, careful, args))
		by.WriteString(" WHEN " + fits + " THEN " + db.Arg(args, i) + "::int")
	}
	last := all[len(all)-1].Spec
	if who.Len() == 0 {
		return valueSQL(last, careful, args) + ", 0"
	}
	return "CASE" + who.String() + " ELSE " + valueSQL(last, careful, args) + " END, CASE" + by.String() + " ELSE " + db.Arg(args, len(all)-1) + "::int END"
}

// pathFitsSQL says whether a path is meant, as extractors have it.
func pathFitsSQL(path string, args *[]any) string {
	if path == "*" {
		return "TRUE"
	}
	if above, ok := strings.CutSuffix(path, "/*"); ok {
		return "starts_with(btrim(d.path, '/'), " + db.Arg(args, above+"/") + "::text)"
	}
	return "btrim(d.path, '/') = " + db.Arg(args, path) + "::text"
}

// valueSQL is the text at a place; NULL: nothing there names a subject. It is cut where it is too long for one.
func valueSQL(by subject.Spec, careful bool, args *[]any) string {
	const most = state.MostKey + 1
	if by.Kind == subject.Input && !careful {
		return "left(" + inputSQL(by.Pointer, "#>>", args) + ", " + db.Arg(args, most) + "::int)"
	}
	switch by.Kind {
	case subject.Label:
		name := db.Arg(args, by.Label)
		return "CASE WHEN jsonb_typeof(d.labels->" + name + "::text) = 'string' THEN left(d.labels->>" + name + "::text, " + db.Arg(args, most) + "::int) END"
	case subject.Input:
		return "(SELECT CASE WHEN jsonb_typeof(v) IN ('string', 'number', 'boolean') THEN left(v #>> '{}', " + db.Arg(args, most) + "::int) END FROM (SELECT " + inputSQL(by.Pointer, "#>", args) + " AS v OFFSET 0) AS one)"
	case subject.RequestedBy, subject.RequestedByHost:
		return "left(d.requested_by, " + db.Arg(args, most) + "::int)"
	default:
		return "NULL::text"
	}
}

// inputSQL is the value at a pointer into the input, as jsonb or as text by the operator.
func inputSQL(pointer, operator string, args *[]any) string {
	steps := []string{"input"}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		steps = append(steps, strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
	}
	at := "d.raw " + operator + " " + db.Arg(args, steps) + "::text[]"
	var objects []string
	for i, step := range steps {
		if numeric.MatchString(step) && !index.MatchString(step) { // Postgres takes it for a place in an array
			objects = append(objects, "jsonb_typeof(d.raw #> "+db.Arg(args, steps[:i])+"::text[]) = 'object'")
		}
	}
	if len(objects) == 0 {
		return at
	}
	return "CASE WHEN " + strings.Join(objects, " AND ") + " THEN " + at + " END"
}

// follow folds what is complete, portion by portion, until the round is long enough.
func (r *followRound) follow(ctx context.Context) error {
	most, began := int64(r.of.cfg.Portions)*int64(r.of.cfg.Rows), time.Now()
	for r.until.Before(r.done) && r.Rows < most && r.fold.Size() < r.of.room && len(r.fold.Flips) < 2*r.of.room && time.Since(began) < stateWork {
		end := r.until.Add(r.of.span)
		if !r.next.IsZero() {
			end, r.next = r.next, time.Time{}
		}
		if end.After(r.done) {
			end = r.done
		}
		whole, err := r.portion(ctx, end)
		if err != nil {
			return err
		}
		if whole {
			r.until = end
		}
	}
	return nil
}

// portion folds the decisions that were stored before end, and adapts the span of the next one. If they are too many, it folds
// nothing and is not whole; a span that cannot be shorter is sorted by the server. It is not whole either if a subject may be no
// text: then all are read with care from now on.
func (r *followRound) portion(ctx context.Context, end time.Time) (whole bool, err error) {
	sql, args := r.statement(end, r.of.careful)
	// Behind a gap nobody knows how many come, so fewer are read before the span is found to be too long.
	most := min(max(4*r.of.last, r.of.cfg.Rows/8+1), r.of.cfg.Rows)
	err = r.in(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(ctx context.Context, tx pgx.Tx) error {
		if r.gone, err = r.of.left(ctx, tx); err != nil {
			return err
		}
		n, skipped, err := r.read(ctx, tx, sql+` LIMIT `+strconv.Itoa(most+1), args...)
		if err != nil {
			return err
		}
		if r.unsure && !r.of.careful {
			r.of.careful = true
			r.fold.Forget()
			return nil
		}
		if n > most {
			return r.shorten(ctx, tx, end, most, &whole)
		}
		whole = true
		r.counted(n, skipped)
		r.of.lengthen(end.Sub(r.until), n)
		return r.settle(ctx, tx)
	})
	return whole, err
}

// shorten chooses a shorter span after one that had more rows than it may have. Rows lie nearly in the order of storing. So half of
// those that were read tell where it ends and how long further spans may be.
func (r *followRound) shorten(ctx context.Context, tx pgx.Tx, end time.Time, most int, whole *bool) error {
	half, middle := r.fold.ForgetHalf()
	short := end.Sub(r.until)
	if short <= leastStateSpan && most < r.of.cfg.Rows {
		r.of.last = r.of.cfg.Rows
		return nil
	}
	if short <= leastStateSpan {
		*whole = true
		return r.sorted(ctx, tx, end)
	}
	r.of.last, r.of.span = most/2, max(min(2*middle, short/2), leastStateSpan)
	if half = half.Add(time.Microsecond); half.After(r.until) && half.Before(end) {
		r.next = half
	}
	return nil
}

// lengthen adapts the span to the rows of the last one.
func (s *States) lengthen(span time.Duration, n int) {
	s.last = n
	switch want := max(s.cfg.Rows/2, 1); {
	case n > s.cfg.Rows*3/4:
		s.span = max(span/2, leastStateSpan)
	case span < s.span: // it ended where decisions are not complete
	case 3*n < want: // n may be 0
		s.span = min(span*3, mostStateSpan)
	case n < want:
		s.span = min(time.Duration(float64(span)*float64(want)/float64(n)), mostStateSpan)
	}
}

// statement reads what was stored before end.
func (r *followRound) statement(end time.Time, careful bool) (string, []any) {
	args := []any{r.until, end}
	return stateColumnsSQL + subjectSQL(r.of.cfg.Question.Subjects(), careful, &args) + stateRowsSQL, args
}

// sorted folds the rows of a span in which too many were stored.
func (r *followRound) sorted(ctx context.Context, tx pgx.Tx, end time.Time) error {
	sql, args := r.statement(end, true)
	if _, err := tx.Exec(ctx, openRowsSQL+sql+stateOrderSQL, args...); err != nil {
		return err
	}
	for {
		n, skipped, err := r.read(ctx, tx, `FETCH FORWARD `+strconv.Itoa(r.of.cfg.Rows)+` FROM stored_decisions`)
		if err != nil {
			return err
		}
		r.counted(n, skipped)
		if err := r.settle(ctx, tx); err != nil || n < r.of.cfg.Rows {
			return err
		}
	}
}

func (r *followRound) counted(n int, skipped map[string]int64) {
	r.Rows += int64(n)
	for why, n := range skipped {
		r.Skipped[why] += n
	}
}

// stateRow is the places of the columns.
const (
	atTime = iota
	atID
	atStored
	atPath
	atAllowed
	atVerdict
	atBundles
	atOld
	atAnswer
	atSubject
	atPlace
	stateColumns
)

// read gathers rows, and returns how many they are and why some have no state.
func (r *followRound) read(ctx context.Context, tx pgx.Tx, sql string, args ...any) (n int, skips map[string]int64, err error) {
	by := r.of.cfg.Question.Subjects()
	left := leftTimes{gone: r.gone}
	rows, err := tx.Query(ctx, sql, append([]any{pgx.QueryExecModeDescribeExec}, args...)...) // which has rows in binary form
	if err != nil {
		return 0, nil, err
	}
	defer rows.Close()
	skips = map[string]int64{}
	for rows.Next() {
		v := rows.RawValues()
		n++
		if len(v) != stateColumns || len(v[atPlace]) != 4 {
			return n, skips, errRowForm
		}
		who := v[atSubject]
		if by[binary.BigEndian.Uint32(v[atPlace])].Kind == subject.RequestedByHost {
			who = []byte(subject.Host(string(who)))
		}
		r.unsure = r.unsure || ambiguous(who)
		at, okay := microseconds(v[atTime])
		stored, finite := microseconds(v[atStored])
		if !okay || !finite {
			return n, skips, errRowForm
		}
		if why := r.fold.Gather(state.Row{Subject: who, Path: v[atPath], ID: v[atID], Time: at, StoredAt: stored, Said: r.of.saidBy(v), Left: left.has(at)}); why != "" {
			skips[why]++
		}
	}
	return n, skips, rows.Err()
}

// ambiguous says that a text may be that of an object or array, and not of a string.
func ambiguous(who []byte) bool { return len(who) > 0 && (who[0] == '{' || who[0] == '[') }

var errRowForm = errors.New("the server sent rows in another form than was asked for")

// sinceUnix is the beginning of the server's time, in seconds of Unix.
const sinceUnix = 946684800

// microseconds reads a timestamp, in microseconds of Unix.
func microseconds(v []byte) (int64, bool) {
	if len(v) != 8 {
		return 0, false
	}
	n := int64(binary.BigEndian.Uint64(v)) //nolint:gosec // its bits
	return n + sinceUnix*1_000_000, n != math.MaxInt64 && n != math.MinInt64
}

// saidBy returns the verdict, revision and hash of a row. Most rows say the same as one before.
func (s *States) saidBy(v [][]byte) *state.Said {
	key := s.key[:0]
	for _, column := range v[atAllowed : atAnswer+1] {
		if column == nil {
			key = append(key, 0)
			continue
		}
		key = append(key, 1)
		key = binary.AppendUvarint(key, uint64(len(column)))
		key = append(key, column...)
	}
	s.key = key
	if known, ok := s.said[string(key)]; ok {
		return known
	}
	d := state.Decision{Verdict: verdictOf(v[atAllowed], v[atVerdict]), Revision: s.revision(v[atBundles], v[atOld]), Answer: answerOf(v[atAnswer])}
	said := &state.Said{Verdict: d.Verdict, Revision: d.Revision, Hash: d.Hash()}
	if len(key) > mostRevision {
		return said
	}
	if len(s.said) >= mostNames {
		clear(s.said)
	}
	s.said[string(key)] = said
	return said
}

// answerOf is the hash of a result that says more than the verdict.
func answerOf(column []byte) string {
	switch {
	case string(column) == "true" || string(column) == "false":
		return ""
	case len(column) > 0 && column[0] == '{':
		sum := md5.Sum(column) //nolint:gosec // as the server has it: it tells answers apart, and protects nothing
		return hex.EncodeToString(sum[:])
	default:
		return string(column)
	}
}

func verdictOf(allowed, other []byte) reader.Verdict {
	switch {
	case len(allowed) != 1:
		return reader.Verdict(other)
	case allowed[0] == 0:
		return verdict.Denied
	default:
		return verdict.Allowed
	}
}

const (
	mostNames    = 10_000
	mostRevision = 500 // bytes
)

// revision names the bundles of a decision. Most decisions have those of one before.
func (s *States) revision(bundles, old []byte) string {
	if len(bundles)+len(old) == 0 {
		return ""
	}
	key := string(bundles) + "\x00" + string(old)
	name, known := s.names[key]
	if known {
		return name
	}
	name = reader.RevisionOf(json.RawMessage(bundles), string(old))
	if long, ok := strings.CutPrefix(string(bundles), `"md5:`); ok {
		name = "md5:" + strings.TrimSuffix(long, `"`)
	}
	if len(name) > mostRevision {
		sum := sha256.Sum256([]byte(name))
		name = strings.ToValidUTF8(name[:mostRevision-40], "") + "… " + hex.EncodeToString(sum[:16])
	}
	if len(s.names) >= mostNames {
		clear(s.names)
	}
	s.names[key] = name
	return name
}
