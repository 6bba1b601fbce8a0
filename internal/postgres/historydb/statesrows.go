package historydb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	// A result that is true or false says no more than the verdict. Any other is a part of the answer, as its reasons are in it.
	answerSQL = `CASE WHEN jsonb_typeof(d.raw->'result') = 'boolean' THEN NULL WHEN ` + db.UnreadableSQL + ` THEN NULL
	ELSE md5(coalesce(d.raw->'result', d.raw->'error')::text) END`
	// Text of bundles that is very long is told apart by its hash.
	bundlesSQL = `CASE WHEN d.bundles IS NULL OR ` + db.UnreadableSQL + ` THEN NULL WHEN octet_length(d.bundles::text) <= 4096 THEN d.bundles::text
	ELSE to_json('md5:' || md5(d.bundles::text))::text END`
	stateColumnsSQL = `DECLARE stored_decisions NO SCROLL CURSOR FOR
SELECT d.ts, d.decision_id, d.stored_at, d.path, ` + verdictSQL + `, ` + bundlesSQL + `,
       CASE WHEN coalesce(d.bundles, '{}') = '{}' THEN left(d.raw->>'revision', 1000) END, ` + answerSQL + `, `
	stateRowsSQL = ` FROM decision_logs d WHERE d.stored_at >= $1::timestamptz AND d.stored_at < $2::timestamptz
 ORDER BY d.stored_at, d.ts, d.decision_id COLLATE "C"`
	closeRowsSQL = `CLOSE stored_decisions`
)

// followed is a row of decision_logs.
type followed struct {
	ts, stored         time.Time
	id, verdict        string
	path, bundles, old *string
	answer, who        *string
	by                 int
}

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

// follow folds the rows of the round in portions.
func (r *followRound) follow(ctx context.Context, tx pgx.Tx) error {
	args := []any{r.from, r.until}
	subjects := r.of.cfg.Question.Subjects()
	if _, err := tx.Exec(ctx, stateColumnsSQL+subjectSQL(subjects, &args)+stateRowsSQL, args...); err != nil {
		return err
	}
	for {
		rows, err := r.fetch(ctx, tx)
		if err != nil {
			return err
		}
		r.Rows += int64(len(rows))
		if err := r.fold(ctx, tx, r.decisions(rows, subjects)); err != nil {
			return err
		}
		if len(rows) < r.of.cfg.Rows {
			_, err := tx.Exec(ctx, closeRowsSQL)
			return err
		}
	}
}

func (r *followRound) fetch(ctx context.Context, tx pgx.Tx) ([]followed, error) {
	rows, err := tx.Query(ctx, `FETCH FORWARD `+strconv.Itoa(r.of.cfg.Rows)+` FROM stored_decisions`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f followed, err error) {
		err = row.Scan(&f.ts, &f.id, &f.stored, &f.path, &f.verdict, &f.bundles, &f.old, &f.answer, &f.who, &f.by)
		return f, err
	})
}

// decisions are those of the rows that have a state.
func (r *followRound) decisions(rows []followed, by []reader.PathSubject) []state.Decision {
	all := make([]state.Decision, 0, len(rows))
	for i := range rows {
		f := &rows[i]
		who := text(f.who)
		if by[f.by].Kind == subject.RequestedByHost {
			who = subject.Host(who)
		}
		switch path := text(f.path); {
		case path == "":
			r.Skipped[state.SkipNoPath]++
		case who == "":
			r.Skipped[state.SkipNoSubject]++
		case len(who) > state.MostKey || len(path) > state.MostKey:
			r.Skipped[state.SkipTooLong]++
		default:
			all = append(all, state.Decision{
				Key: state.Key{Subject: who, Path: path}, Version: state.Version{Time: f.ts.UTC(), ID: f.id}, Verdict: verdict.Verdict(f.verdict),
				Revision: r.of.revision(text(f.bundles), text(f.old)), Answer: text(f.answer), StoredAt: f.stored.UTC(),
			})
		}
	}
	return all
}

func text(t *string) string {
	if t == nil {
		return ""
	}
	return *t
}

const (
	mostNames    = 10_000
	mostRevision = 500 // bytes
)

// revision names the bundles of a decision. Most decisions have those of one before.
func (s *States) revision(bundles, old string) string {
	key := bundles + "\x00" + old
	name, known := s.names[key]
	if known {
		return name
	}
	name = reader.RevisionOf(json.RawMessage(bundles), old)
	if long, ok := strings.CutPrefix(bundles, `"md5:`); ok {
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
