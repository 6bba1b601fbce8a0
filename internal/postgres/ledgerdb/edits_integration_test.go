//go:build integration

package ledgerdb_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/migrations"
)

// editing is a ledger beside a table, and a letter whose retry is published.
type editing struct {
	*deskDB
	db *store.Store
}

func newEditing(t *testing.T) *editing {
	t.Helper()
	d := newDesk(t)
	return &editing{d, open(t, d.URL, 0)}
}

// edited enters a letter, gives it another value and publishes the retry at that offset of partition 0.
func (e *editing) edited(n int64, value string, offset int64) ledger.Sending {
	e.t.Helper()
	l := letter(n, one)
	e.enter(l)
	if err := e.Edit(e.t.Context(), l.ID, []byte(value), "-1\n+2", soon, ledger.Actor{Name: "bob", Why: "typo"}); err != nil {
		e.t.Fatal(err)
	}
	s := e.claim("r", 1)
	if len(s) != 1 || s[0].LetterID != l.ID {
		e.t.Fatalf("claimed %+v", s)
	}
	if offset >= 0 {
		e.published("r", ledger.Placed{SendingID: s[0].ID, Offset: offset})
	}
	return s[0]
}

// ended says that a retry is stored.
func (e *editing) ended(s ledger.Sending) {
	e.t.Helper()
	if err := e.Stored(e.t.Context(), []int64{s.ID}, []string{"x"}, ann); err != nil {
		e.t.Fatal(err)
	}
}

// namesOf are the decisions of a value.
func namesOf(t testing.TB, value string) (names []ledger.RowName) {
	t.Helper()
	r, refused := decision.Decode([]byte(value), 1<<20)
	if refused != nil {
		t.Fatal(refused)
	}
	for _, p := range r.Parts {
		names = append(names, ledger.RowName{ID: p.Log.ID, Time: p.Log.Time, Came: p.Log.Came()})
	}
	return names
}

// rowsAt stores the decisions of a value as those of the record at a place.
func (e *editing) rowsAt(value, topic string, offset int64) {
	e.t.Helper()
	r, refused := decision.Decode([]byte(value), 1<<20)
	if refused != nil {
		e.t.Fatal(refused)
	}
	for i := range r.Parts {
		save(e.t, e.db, pipeline.Row{Log: &r.Parts[i].Log, Topic: topic, Offset: offset, Index: i})
	}
}

func (e *editing) mark(s ledger.Sending, value string) (marked, missing int) {
	e.t.Helper()
	marked, missing, err := e.MarkEdited(e.t.Context(), s.ID, namesOf(e.t, value))
	if err != nil {
		e.t.Fatal(err)
	}
	return marked, missing
}

// marks are the rows with the actor of the edit that they are marked with.
func (e *editing) marks() string {
	return e.text(`SELECT coalesce(string_agg(d.decision_id || ':' || coalesce(a.actor, 'none'), ' ' ORDER BY d.decision_id), '')
		FROM decision_logs d LEFT JOIN dead_letter_audit a ON a.audit_id = d.edited_audit_id`)
}

func said(id string) string {
	return fmt.Sprintf(`{"decision_id":"%s","timestamp":"2026-01-01T00:00:00Z","path":"p/%[1]s"}`, id)
}

func TestEdited_RowAtThePlaceOfTheRetry(t *testing.T) {
	t.Parallel()
	e := newEditing(t)
	value := "[" + said("x") + ",\n " + said("y") + "]"
	s := e.edited(1, value, 70)
	e.rowsAt(said("z"), original, 69)
	e.rowsAt(value, original, 70)
	if due, all, err := e.Unmarked(t.Context(), 10); err != nil || all != 0 || len(due) != 0 {
		t.Fatal("a retry that has not ended is due:", due, all, err)
	}
	if marked, _ := e.mark(s, value); marked != 0 {
		t.Fatal("a retry that has not ended is marked")
	}
	e.ended(s)
	due, all, err := e.Unmarked(t.Context(), 10)
	if err != nil || all != 1 || len(due) != 1 || due[0].ID != s.ID || string(due[0].Value) != value {
		t.Fatal(due, all, err)
	}
	same(t, e.text(`SELECT actor || act FROM dead_letter_audit WHERE audit_id = `+fmt.Sprint(due[0].AuditID)), "bobedited")
	marked, missing := e.mark(s, value)
	same(t, []int{marked, missing}, []int{2, 0})
	same(t, e.marks(), "x:bob y:bob z:none")
	if _, all, err := e.Unmarked(t.Context(), 10); err != nil || all != 0 {
		t.Fatal(all, err)
	}
	marked, missing = e.mark(s, value) // once more
	same(t, []int{marked, missing}, []int{0, 0})
}

// What was there before the edit is not its product, though its payload is the same.
func TestEdited_RowThatWasThereBefore(t *testing.T) {
	t.Parallel()
	e := newEditing(t)
	e.rowsAt(said("x"), original, 5)
	s := e.edited(1, said("x"), 70)
	e.ended(s)
	marked, missing := e.mark(s, said("x"))
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
		value := said("x") + "\n" + said("y")
		s := e.edited(1, value, known)
		e.rowsAt(value, original, 68)
		e.ended(s)
		// The caller names a row that is not in what was published: it is found, and left alone.
		e.rowsAt(said("z"), original, 69)
		marked, missing := e.mark(s, value+"\n"+said("z"))
		same(t, []int{marked, missing}, []int{2, 0})
		same(t, e.marks(), "x:bob y:bob z:none")
	}
}

func TestEdited_RowOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	e := newEditing(t)
	s := e.edited(1, said("x"), 70)
	e.rowsAt(said("x"), original, 70)
	e.Exec(t, `UPDATE decision_logs SET raw_sha256 = NULL`)
	e.ended(s)
	e.mark(s, said("x"))
	same(t, e.marks(), "x:bob")
}

// A decision of an edited letter that was a dead letter of its own comes from that edit, too.
func TestEdited_PartOfAnEditedLetter(t *testing.T) {
	t.Parallel()
	e := newEditing(t)
	value := "[" + said("x") + "," + said("y") + "]"
	parent := e.edited(1, value, 70)
	child := part(parent, 70, 1, said("y"))
	e.enter(child)
	e.rowsAt(said("x"), original, 70)
	e.ended(parent)
	s := e.put(child.ID, 72)
	e.rowsAt(said("y"), original, 72)
	e.ended(s)
	e.mark(parent, said("x"))
	e.mark(s, said("y"))
	same(t, e.marks(), "x:bob y:bob")
	other := letter(8, said("q")) // and one that nobody edited
	e.enter(other)
	s = e.put(other.ID, 76)
	e.rowsAt(said("q"), original, 76)
	e.ended(s)
	e.mark(s, said("q"))
	same(t, e.marks(), "q:none x:bob y:bob")
}

// An edit by SQL, after the retry was made and before it is published.
func TestEdited_ByHandWhileItWaits(t *testing.T) {
	t.Parallel()
	e := newEditing(t)
	l := letter(1, one)
	e.enter(l)
	e.retry(l.ID)
	e.Exec(t, `UPDATE dead_letters SET value = $1`, []byte(said("x")))
	s := e.claim("r", 1)[0]
	same(t, string(s.Value), said("x"))
	e.published("r", ledger.Placed{SendingID: s.ID, Offset: 70})
	e.rowsAt(said("x"), original, 70)
	e.ended(s)
	e.mark(s, said("x"))
	if got := e.marks(); !strings.HasSuffix(got, " (SQL)") {
		t.Errorf("marked with %s", got)
	}
}

// What cannot be marked is due again later, and its letter stays until then.
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
			s := e.edited(1, said("x"), 70)
			e.rowsAt(said("x"), original, 70)
			e.Exec(t, c.before)
			e.ended(s)
			same(t, e.stands(s.LetterID), "RESOLVED 0 stored")
			_, missing, err := e.MarkEdited(t.Context(), s.ID, namesOf(t, said("x")))
			if (err != nil) != c.fails || err == nil && missing != 1 {
				t.Fatal(missing, err)
			}
			if due, all, err := e.Unmarked(t.Context(), 10); err != nil || all != 1 || (len(due) == 1) != c.fails { // what failed noted no pause
				t.Fatal(due, all, err)
			}
			if n, err := e.Remove(t.Context(), time.Now().Add(time.Hour), 10, ann); n != 0 || err != nil {
				t.Fatal("the letter is gone:", n, err)
			}
			e.Exec(t, c.after)
			if name == "no row" {
				e.rowsAt(said("x"), original, 70)
			}
			e.mark(s, said("x"))
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
	s := e.edited(1, said("x"), 70)
	e.rowsAt(said("x"), original, 70)
	e.ended(s)
	const mark = `SELECT dead_letters_mark_edited(1, '{}', '{}', '{}')`
	for _, url := range []string{deskURL, readerURL} {
		refused(t, url, `UPDATE decision_logs SET edited_audit_id = 1`, `UPDATE dead_letter_edits SET marked_at = now()`, `DELETE FROM dead_letter_edits`,
			`INSERT INTO dead_letter_edits (outbox_id, audit_id) VALUES (1, 1)`, `SELECT dead_letters_edit_of('x')`)
	}
	refused(t, readerURL, mark)
	marked, missing, err := ledgerdb.New(open(t, deskURL, 0).DB).MarkEdited(t.Context(), s.ID, namesOf(t, said("x")))
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
	s := e.edited(1, said("x"), 70)
	unedited := letter(2, said("y"))
	e.enter(unedited)
	e.put(unedited.ID, 72)
	e.rowsAt(said("x"), original, 70)
	e.ended(s)
	if _, err := schema.New(e.db.DB).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, e.text(`SELECT count(*)::text FROM dead_letter_edits`), "1")
	e.mark(s, said("x"))
	same(t, e.marks(), "x:bob")
}
