package historydb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/postgres/db"
	"docket/internal/record/subject"
)

const (
	// A result that is true or false says no more than the verdict. Any other is a part of the answer, as its reasons are in it.
	answerSQL = `CASE WHEN jsonb_typeof(d.raw->'result') = 'boolean' THEN NULL WHEN ` + db.UnreadableSQL + ` THEN NULL
	ELSE md5(coalesce(d.raw->'result', d.raw->'error')::text) END`
	// Text of bundles that is very long is told apart by its hash.
	bundlesSQL = `CASE WHEN d.bundles IS NULL OR ` + db.UnreadableSQL + ` THEN NULL WHEN octet_length(d.bundles::text) <= 4096 THEN d.bundles::text
	ELSE to_json('md5:' || md5(d.bundles::text))::text END`
	stateColumnsSQL = `SELECT d.ts, d.decision_id, d.stored_at, d.path, ` + verdictSQL + `, ` + bundlesSQL + `,
       CASE WHEN coalesce(d.bundles, '{}') = '{}' THEN left(d.raw->>'revision', 1000) END, ` + answerSQL + `, `
	stateRowsSQL  = ` FROM decision_logs d WHERE d.stored_at >= $1::timestamptz AND d.stored_at < $2::timestamptz`
	stateOrderSQL = ` ORDER BY d.stored_at, d.ts, d.decision_id COLLATE "C"`
	openRowsSQL   = `DECLARE stored_decisions NO SCROLL CURSOR FOR `
	closeRowsSQL  = `CLOSE stored_decisions`
)

// subjectSQL is the text of the subject of decision_logs d, and which of the settings it is by.
func subjectSQL(all []reader.PathSubject, args *[]any) string {
	var who, by strings.Builder
	for i, one := range all[:len(all)-1] {
		fits := pathFitsSQL(one.Path, args)
		who.WriteString(" WHEN " + fits + " THEN " + valueSQL(one.Spec, args))
		by.WriteString(" WHEN " + fits + " THEN " + db.Arg(args, i) + "::int")
	}
	last := all[len(all)-1].Spec
	if who.Len() == 0 {
		return valueSQL(last, args) + ", 0"
	}
	return "CASE" + who.String() + " ELSE " + valueSQL(last, args) + " END, CASE" + by.String() + " ELSE " + db.Arg(args, len(all)-1) + "::int END"
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
func valueSQL(by subject.Spec, args *[]any) string {
	const most = state.MostKey + 1
	switch by.Kind {
	case subject.Label:
		name := db.Arg(args, by.Label)
		return "CASE WHEN jsonb_typeof(d.labels->" + name + "::text) = 'string' THEN left(d.labels->>" + name + "::text, " + db.Arg(args, most) + "::int) END"
	case subject.Input:
		return "(SELECT CASE WHEN jsonb_typeof(v) IN ('string', 'number', 'boolean') THEN left(v #>> '{}', " + db.Arg(args, most) + "::int) END FROM (SELECT " + inputSQL(by.Pointer, args) + " AS v OFFSET 0) AS one)"
	case subject.RequestedBy, subject.RequestedByHost:
		return "left(d.requested_by, " + db.Arg(args, most) + "::int)"
	default:
		return "NULL::text"
	}
}

// inputSQL is the value at a pointer into the input.
func inputSQL(pointer string, args *[]any) string {
	steps := []string{"input"}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		steps = append(steps, strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
	}
	at := "d.raw #> " + db.Arg(args, steps) + "::text[]"
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

// follow folds the rows of the round. They are sorted here if they are few enough, or else by the server.
func (r *followRound) follow(ctx context.Context, tx pgx.Tx) error {
	args := []any{r.from, r.until}
	subjects := r.of.cfg.Question.Subjects()
	sql := stateColumnsSQL + subjectSQL(subjects, &args) + stateRowsSQL
	rows, err := r.read(ctx, tx, subjects, sql+` LIMIT `+strconv.Itoa(r.of.cfg.Rows+1), args...)
	if err != nil {
		return err
	}
	if len(rows) <= r.of.cfg.Rows {
		slices.SortFunc(rows, func(a, b state.Decision) int {
			return cmp.Or(a.StoredAt.Compare(b.StoredAt), a.Version.Compare(b.Version))
		})
		return r.fold(ctx, tx, rows)
	}
	r.Rows, r.Skipped = 0, map[string]int64{}
	if _, err := tx.Exec(ctx, openRowsSQL+sql+stateOrderSQL, args...); err != nil {
		return err
	}
	for {
		before := r.Rows
		rows, err := r.read(ctx, tx, subjects, `FETCH FORWARD `+strconv.Itoa(r.of.cfg.Rows)+` FROM stored_decisions`)
		if err == nil {
			err = r.fold(ctx, tx, rows)
		}
		if err != nil {
			return err
		}
		if r.Rows-before < int64(r.of.cfg.Rows) {
			_, err := tx.Exec(ctx, closeRowsSQL)
			return err
		}
	}
}

// read reads rows, and returns the decisions that have a state.
func (r *followRound) read(ctx context.Context, tx pgx.Tx, by []reader.PathSubject, sql string, args ...any) ([]state.Decision, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []state.Decision
	var path, verdict, bundles, old, who pgtype.DriverBytes
	var answer pgtype.Text
	for rows.Next() {
		var d state.Decision
		var place int
		if err := rows.Scan(&d.Time, &d.Version.ID, &d.StoredAt, &path, &verdict, &bundles, &old, &answer, &who, &place); err != nil {
			return nil, err
		}
		r.Rows++
		if d.Subject = string(who); by[place].Kind == subject.RequestedByHost {
			d.Subject = subject.Host(d.Subject)
		}
		if why := skipped(d.Subject, path); why != "" {
			r.Skipped[why]++
			continue
		}
		d.Time, d.StoredAt = d.Time.UTC(), d.StoredAt.UTC()
		d.Path, d.Verdict, d.Answer = r.of.word(path), reader.Verdict(r.of.word(verdict)), answer.String
		d.Revision = r.of.revision(bundles, old)
		all = append(all, d)
	}
	return all, rows.Err()
}

// skipped says why a decision has no state; empty: it has one.
func skipped(who string, path []byte) string {
	switch {
	case len(path) == 0:
		return state.SkipNoPath
	case who == "":
		return state.SkipNoSubject
	case len(who) > state.MostKey || len(path) > state.MostKey:
		return state.SkipTooLong
	}
	return ""
}

// word returns a text that comes often.
func (s *States) word(text []byte) string {
	if known, ok := s.words[string(text)]; ok {
		return known
	}
	if len(s.words) >= mostNames {
		clear(s.words)
	}
	word := string(text)
	s.words[word] = word
	return word
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
