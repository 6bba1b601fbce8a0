//go:build integration

package ledgerdb_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
	"docket/migrations"
)

// editing is a ledger beside a table, and a letter whose retry is published.
type editing struct{ *pgtest.Editing }

func newEditing(t *testing.T) *editing {
	t.Helper()
	return &editing{pgtest.NewEditing(t)}
}

// marks are the rows with the actor of the edit that they are marked with.
func (e *editing) marks() string {
	return e.Text(`SELECT coalesce(string_agg(d.decision_id || ':' || coalesce(a.actor, 'none'), ' ' ORDER BY d.decision_id), '')
		FROM decision_logs d LEFT JOIN dead_letter_audit a ON a.audit_id = d.edited_audit_id`)
}

func TestEdited_RowAtThePlaceOfTheRetry(t *testing.T) {
	t.Parallel()
	e := newEditing(t)
	value := "[" + pgtest.Said("x") + ",\n " + pgtest.Said("y") + "]"
	s := e.Edited(1, value, 70)
	e.RowsAt(pgtest.Said("z"), original, 69)
	e.RowsAt(value, original, 70)
	if due, all, err := e.Unmarked(t.Context(), 10); err != nil || all != 0 || len(due) != 0 {
		t.Fatal("a retry that has not ended is due:", due, all, err)
	}
	if marked, _ := e.Mark(s, value); marked != 0 {
		t.Fatal("a retry that has not ended is marked")
	}
	e.Ended(s)
	due, all, err := e.Unmarked(t.Context(), 10)
	if err != nil || all != 1 || len(due) != 1 || due[0].ID != s.ID || string(due[0].Value) != value {
		t.Fatal(due, all, err)
	}
	same(t, e.Text(`SELECT actor || act FROM dead_letter_audit WHERE audit_id = `+fmt.Sprint(due[0].AuditID)), "bobedited")
	marked, missing := e.Mark(s, value)
	same(t, []int{marked, missing}, []int{2, 0})
	same(t, e.marks(), "x:bob y:bob z:none")
	if _, all, err := e.Unmarked(t.Context(), 10); err != nil || all != 0 {
		t.Fatal(all, err)
	}
	marked, missing = e.Mark(s, value) // once more
	same(t, []int{marked, missing}, []int{0, 0})
}

// A row from before the edit is not its product, though its payload is the same.
func TestEdited_RowThatWasThereBefore(t *testing.T) {
	t.Parallel()
	e := newEditing(t)
	e.RowsAt(pgtest.Said("x"), original, 5)
	s := e.Edited(1, pgtest.Said("x"), 70)
	e.Ended(s)
	marked, missing := e.Mark(s, pgtest.Said("x"))
	same(t, []int{marked, missing}, []int{0, 0})
	same(t, e.marks(), "x:none")
	if _, all, err := e.Unmarked(t.Context(), 10); err != nil || all != 0 {
		t.Fatal("it is asked about again:", all, err)
	}
}

// The answer of a broker was lost, so the record is in the topic twice, or at a place that nobody knows.
func TestEdited_RowAtAnotherPlaceOfTheRetry(t *testing.T) {
	t.Parallel()
	for _, known := range []int64{70, -1} {
		e := newEditing(t)
		value := pgtest.Said("x") + "\n" + pgtest.Said("y")
		s := e.Edited(1, value, known)
		e.RowsAt(value, original, 68)
		e.Ended(s)
		// The caller names a row that is not in what was published: it is found, and left alone.
		e.RowsAt(pgtest.Said("z"), original, 69)
		marked, missing := e.Mark(s, value+"\n"+pgtest.Said("z"))
		same(t, []int{marked, missing}, []int{2, 0})
		same(t, e.marks(), "x:bob y:bob z:none")
	}
}

func TestEdited_RowOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	e := newEditing(t)
	s := e.Edited(1, pgtest.Said("x"), 70)
	e.RowsAt(pgtest.Said("x"), original, 70)
	e.Exec(t, `UPDATE decision_logs SET raw_sha256 = NULL`)
	e.Ended(s)
	e.Mark(s, pgtest.Said("x"))
	same(t, e.marks(), "x:bob")
}

// A decision of an edited letter that was a dead letter of its own comes from that edit, too.
func TestEdited_PartOfAnEditedLetter(t *testing.T) {
	t.Parallel()
	e := newEditing(t)
	value := "[" + pgtest.Said("x") + "," + pgtest.Said("y") + "]"
	parent := e.Edited(1, value, 70)
	child := part(parent, 70, 1, pgtest.Said("y"))
	e.Entered(child)
	e.RowsAt(pgtest.Said("x"), original, 70)
	e.Ended(parent)
	s := e.Put(child.ID, 72)
	e.RowsAt(pgtest.Said("y"), original, 72)
	e.Ended(s)
	e.Mark(parent, pgtest.Said("x"))
	e.Mark(s, pgtest.Said("y"))
	same(t, e.marks(), "x:bob y:bob")
	other := letter(8, pgtest.Said("q")) // and one that nobody edited
	e.Entered(other)
	s = e.Put(other.ID, 76)
	e.RowsAt(pgtest.Said("q"), original, 76)
	e.Ended(s)
	e.Mark(s, pgtest.Said("q"))
	same(t, e.marks(), "q:none x:bob y:bob")
}

// An edit by SQL, after the retry was made and before it is published.
func TestEdited_ByHandWhileItWaits(t *testing.T) {
	t.Parallel()
	e := newEditing(t)
	l := letter(1, one)
	e.Entered(l)
	e.Retried(l.ID)
	e.Exec(t, `UPDATE dead_letters SET value = $1`, []byte(pgtest.Said("x")))
	s := e.Claimed("r", 1)[0]
	same(t, string(s.Value), pgtest.Said("x"))
	e.Placed("r", ledger.Placed{SendingID: s.ID, Offset: 70})
	e.RowsAt(pgtest.Said("x"), original, 70)
	e.Ended(s)
	e.Mark(s, pgtest.Said("x"))
	if got := e.marks(); !strings.HasSuffix(got, " (SQL)") {
		t.Errorf("marked with %s", got)
	}
}

// A row that cannot be marked is due again later, and its letter stays until then.
func TestEdited_RowThatCannotBeMarked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		fails         bool
	}{
		"no row":                  {`DELETE FROM decision_logs`, `SELECT`, false},
		"a trigger that keeps it": {`CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER keep BEFORE UPDATE ON decision_logs FOR EACH ROW EXECUTE FUNCTION keep()`, `DROP TRIGGER keep ON decision_logs`, false},
		"a trigger that refuses":  {`CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no'; END$$; CREATE TRIGGER no BEFORE UPDATE ON decision_logs FOR EACH ROW EXECUTE FUNCTION no()`, `DROP TRIGGER no ON decision_logs`, true},
		"no column":               {`ALTER TABLE decision_logs RENAME COLUMN edited_audit_id TO was`, `ALTER TABLE decision_logs RENAME COLUMN was TO edited_audit_id`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEditing(t)
			s := e.Edited(1, pgtest.Said("x"), 70)
			e.RowsAt(pgtest.Said("x"), original, 70)
			e.Exec(t, c.before)
			e.Ended(s)
			same(t, e.State(s.LetterID), "RESOLVED 0 stored")
			_, missing, err := e.MarkEdited(t.Context(), s.ID, pgtest.NamesOf(t, pgtest.Said("x")))
			if (err != nil) != c.fails || err == nil && missing != 1 {
				t.Fatal(missing, err)
			}
			if due, all, err := e.Unmarked(t.Context(), 10); err != nil || all != 1 || (len(due) == 1) != c.fails { // a failure notes no pause
				t.Fatal(due, all, err)
			}
			if n, err := e.Remove(t.Context(), time.Now().Add(time.Hour), 10, ann); n != 0 || err != nil {
				t.Fatal("the letter is gone:", n, err)
			}
			e.Exec(t, c.after)
			if name == "no row" {
				e.RowsAt(pgtest.Said("x"), original, 70)
			}
			e.Mark(s, pgtest.Said("x"))
			same(t, e.marks(), "x:bob")
			if n, err := e.Remove(t.Context(), time.Now().Add(time.Hour), 10, ann); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		})
	}
}

// The roles of the desk mark through the function alone.
func TestEdited_Rights(t *testing.T) {
	t.Parallel()
	e := newEditing(t)
	deskURL, readerURL := granted(t, e.DB)
	s := e.Edited(1, pgtest.Said("x"), 70)
	e.RowsAt(pgtest.Said("x"), original, 70)
	e.Ended(s)
	const mark = `SELECT dead_letters_mark_edited(1, '{}', '{}', '{}')`
	for _, url := range []string{deskURL, readerURL} {
		refused(t, url, `UPDATE decision_logs SET edited_audit_id = 1`, `UPDATE dead_letter_edits SET marked_at = now()`, `DELETE FROM dead_letter_edits`,
			`INSERT INTO dead_letter_edits (outbox_id, audit_id) VALUES (1, 1)`, `SELECT dead_letters_edit_of('x')`)
	}
	refused(t, readerURL, mark)
	marked, missing, err := ledgerdb.New(open(t, deskURL, 0).DB).MarkEdited(t.Context(), s.ID, pgtest.NamesOf(t, pgtest.Said("x")))
	if marked != 1 || missing != 0 || err != nil {
		t.Fatal(marked, missing, err)
	}
	same(t, e.marks(), "x:bob")
}

// Retries that were made before the ledger kept their edits are found by the migration.
func TestEdited_Migration(t *testing.T) {
	t.Parallel()
	e := newEditing(t)
	e.Exec(t, migrations.NoEdits+";"+migrations.NoEditedColumn+`; DELETE FROM goose_db_version WHERE version_id >= 12`)
	s := e.Edited(1, pgtest.Said("x"), 70)
	unedited := letter(2, pgtest.Said("y"))
	e.Entered(unedited)
	e.Put(unedited.ID, 72)
	e.RowsAt(pgtest.Said("x"), original, 70)
	e.Ended(s)
	if _, err := schema.New(e.Store.DB).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, e.Text(`SELECT count(*)::text FROM dead_letter_edits`), "1")
	e.Mark(s, pgtest.Said("x"))
	same(t, e.marks(), "x:bob")
}
