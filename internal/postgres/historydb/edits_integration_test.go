//go:build integration

package historydb_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

// vouched is a person whom a desk vouches for.
func vouched(name string) ledger.Actor {
	return ledger.Actor{Name: name, Why: "because of " + name, Vouched: true}
}

// TestEdits_AreAnswered: by the place of the retry until the row is marked, and by the mark from then on.
func TestEdits_AreAnswered(t *testing.T) {
	t.Parallel()
	e := pgtest.NewEditing(t)
	ask := func(db *store.Store, id string, whole bool) (reader.Decision, error) {
		t.Helper()
		all, err := historydb.NewReader(db.DB).ByID(t.Context(), id)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		err = reader.AddEdits(t.Context(), historydb.NewReader(db.DB), all, whole)
		return all[0], err
	}
	s := e.Edited(1, pgtest.Said("x"), 70)
	e.RowsAt(pgtest.Said("x"), "decision-logs", 70)
	e.RowsAt(pgtest.Said("y"), "decision-logs", 71)
	for _, act := range []func(){func() {}, func() { e.Ended(s) }, func() { e.Mark(s, pgtest.Said("x")) }} {
		act()
		d, err := ask(e.Store, "x", true)
		if err != nil || d.Edit == nil || d.Edit.By != "bob" || d.Edit.Why != "typo" || d.Edit.At == nil || d.Edit.DeadLetter != s.LetterID || d.Edit.Original == nil || *d.Edit.Original != pgtest.Unedited {
			t.Fatalf("%+v, %v", d.Edit, err)
		}
		if len(d.Edit.Changes) != 2 || d.Edit.Changes[0].Pointer != "/path" && d.Edit.Changes[1].Pointer != "/path" {
			t.Fatalf("%+v", d.Edit.Changes)
		}
		if d, err := ask(e.Store, "x", false); err != nil || d.Edit == nil || d.Edit.Original != nil || d.Edit.Changes != nil || d.Edit.Diff != "" {
			t.Fatalf("without payload: %+v, %v", d.Edit, err)
		}
		if d, err := ask(e.Store, "y", true); err != nil || d.Edit != nil {
			t.Fatalf("what nobody edited: %+v, %v", d.Edit, err)
		}
	}
	// Of several edits the first original is told, and the last editor.
	l := pgtest.Letter(2, pgtest.Unedited)
	e.Entered(l)
	for i, by := range []string{"ann", "carl"} {
		if err := e.Edit(t.Context(), l.ID, "", []byte(pgtest.Said(fmt.Sprint("z", i))), "", 0, ledger.Actor{Name: by}); err != nil {
			t.Fatal(err)
		}
	}
	s = e.Put(l.ID, 72)
	e.RowsAt(pgtest.Said("z1"), "decision-logs", 72)
	e.Ended(s)
	e.Mark(s, pgtest.Said("z1"))
	if d, err := ask(e.Store, "z1", true); err != nil || d.Edit == nil || d.Edit.By != "carl" || d.Edit.Original == nil || *d.Edit.Original != pgtest.Unedited {
		t.Fatalf("%+v, %v", d.Edit, err)
	}
	// Evidence that two persons changed: both are told, also after pgtest.Unedited of them changed a label of it alone.
	m := pgtest.Letter(3, pgtest.Said("w"))
	e.Entered(m)
	p, err := e.Propose(t.Context(), ledger.Draft{LetterID: m.ID, Before: m.Value, Value: []byte(pgtest.Said("v"))}, vouched("mara"))
	check(t, err)
	if _, err := e.Approve(t.Context(), p.ID, "-w\n+v", time.Hour, vouched("oleg")); err != nil {
		t.Fatal(err)
	}
	labelled := strings.Replace(pgtest.Said("v"), "{", `{"labels":{},`, 1)
	for i, by := range []string{"mara", "zoe"} {
		if by == "zoe" {
			check(t, e.Edit(t.Context(), m.ID, "", []byte(labelled), "", 0, ledger.Actor{Name: by}))
		}
		value := []string{pgtest.Said("v"), labelled}[i]
		s = e.Put(m.ID, int64(80+i))
		e.Exec(t, `DELETE FROM decision_logs WHERE decision_id = 'v'`)
		e.RowsAt(value, "decision-logs", int64(80+i))
		if by == "mara" {
			e.Entered(pgtest.Returned(s, int64(80+i))) // it is dead again
		} else {
			e.Ended(s)
			e.Mark(s, value)
		}
		d, err := ask(e.Store, "v", true)
		if err != nil || d.Edit == nil || d.Edit.By != by || d.Edit.Approved == nil || d.Edit.Approved.By != "oleg" || d.Edit.Approved.Why != fmt.Sprintf("proposal %d: because of oleg", p.ID) || d.Edit.Approved.At.IsZero() {
			t.Fatalf("by %s: %+v, %v", by, d.Edit, err)
		}
	}
	if d, err := ask(e.Store, "z1", true); err != nil || d.Edit.Approved != nil {
		t.Fatalf("nobody approved: %+v, %v", d.Edit, err)
	}
	// A mark that the ledger does not know: a row that was restored from elsewhere.
	e.Exec(t, `UPDATE decision_logs SET edited_audit_id = 1 WHERE decision_id = 'y'`) // the line of an entry
	if d, err := ask(e.Store, "y", true); err != nil || d.Edit == nil || d.Edit.AuditID != 1 || d.Edit.At != nil || d.Edit.By != "" || d.Edit.Original != nil {
		t.Fatalf("%+v, %v", d.Edit, err)
	}
	// A role that may not read the ledger sees the marks, and is told that there may be more.
	e.Exec(t, `DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'edits_reader') THEN CREATE ROLE edits_reader LOGIN PASSWORD 'role'; END IF; END $$; GRANT SELECT ON decision_logs TO edits_reader`)
	t.Cleanup(func() { e.Exec(t, `DROP OWNED BY edits_reader; DROP ROLE edits_reader`) })
	u, err := url.Parse(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("edits_reader", "role")
	db := open(t, u.String(), 0)
	d, err := ask(db, "x", true)
	if !errors.Is(err, reader.ErrEdits) || d.Edit == nil || d.Edit.By != "" || d.Edit.AuditID == 0 {
		t.Fatalf("%+v, %v", d.Edit, err)
	}
}
