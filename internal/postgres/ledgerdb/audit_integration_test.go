//go:build integration

package ledgerdb_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/testkit/pgtest"
)

// hand is somebody who has the desk's login and a psql.
type hand struct {
	*ledgerDB
	role string
	conn *pgx.Conn
	book *ledgerdb.Ledger
}

func newHand(t *testing.T) *hand {
	t.Helper()
	h := &hand{ledgerDB: newLedger(t)}
	login, _ := granted(t, h.DB)
	u, err := url.Parse(login)
	check(t, err)
	h.role, h.conn, h.book = u.User.Username(), pgxConnect(t, login), ledgerdb.New(open(t, login, 0).DB)
	return h
}

// does runs a statement with the desk's login, and wants a code; none: that it works.
func (h *hand) does(sql, code string) {
	h.T.Helper()
	_, err := h.conn.Exec(h.T.Context(), sql)
	got := ""
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		got = e.Code
	} else if err != nil {
		h.T.Fatal(err)
	}
	if got != code {
		h.T.Errorf("%s: %q, want %q", sql, err, code)
	}
}

// last is the newest line of the audit of a letter.
func (h *hand) last(id string) ledger.Audit {
	h.T.Helper()
	lines, _, err := h.History(context.Background(), id)
	check(h.T, err)
	return lines[len(lines)-1]
}

// TestAudit_LoginBesideActor: the line has the login of the session beside the name that the program states.
func TestAudit_LoginBesideActor(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	a, b := letter(1, one), letter(2, two)
	h.Entered(a, b)
	mara := ledger.Actor{Name: "Mara (CISO)", Why: "because"}
	if done, err := h.book.Resolve(t.Context(), []string{a.ID}, mara); err != nil || done[0].Err != nil {
		t.Fatal(done, err)
	}
	if l := h.last(a.ID); l.By != mara.Name || l.Login != h.role || l.Application != "docket" || l.Client == "" {
		t.Errorf("by a program: %+v", l)
	}
	h.does(`SET SESSION AUTHORIZATION postgres`, "42501")
	h.does(`SET application_name = 'mara'; SET docket.actor = 'postgres'; SET docket.login = 'postgres'`, "")
	h.does(`UPDATE dead_letters SET state = 'RESOLVED', changed_at = clock_timestamp(), changed_by = 'postgres', changed_act = 'closed', why = 'mine' WHERE dead_letter_id = '`+b.ID+`'`, "")
	if l := h.last(b.ID); l.By != "postgres" || l.Login != h.role || l.Application != "mara" || l.Act != ledger.Closed {
		t.Errorf("by SQL: %+v", l)
	}
	h.Exec(t, pgtest.Unwatched+`UPDATE dead_letter_audit SET login = NULL, application = NULL, client = NULL`)
	if l := h.last(b.ID); l.Login != "" || l.Application != "" || l.Client != "" {
		t.Errorf("a line of an earlier release: %+v", l)
	}
	h.Sums()
}

// TestAudit_EveryColumn: a change of any column by hand is refused, or its line names the login and the column and keeps what was there.
func TestAudit_EveryColumn(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	l := letter(1, one)
	h.Entered(l)
	h.Retried(l.ID)
	other := map[string]string{
		"text": `'other'`, "integer": `17`, "bigint": `17`, "boolean": `true`, "timestamp with time zone": `'2020-01-01 00:00Z'`, "bytea": `'\x00ff'`, "jsonb": `'[{"key": "x"}]'`,
		"dead_letter_state": `'FAILED'`,
	}
	refused := map[string]string{"dead_letter_id": "23514", "state": "23514", "changed_at": "23514", "changed_act": "23514", "archived_in": "23514"} // it is open
	rows, err := pgxConnect(t, h.URL).Query(t.Context(), `SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'dead_letters'::regclass AND attnum > 0 AND NOT attisdropped`)
	check(t, err)
	var column, kind string
	columns := 0
	_, err = pgx.ForEachRow(rows, []any{&column, &kind}, func() error {
		columns++
		before := h.Text(`SELECT coalesce(to_jsonb(d) -> '` + column + `', 'null')::text FROM dead_letters d`)
		lines := h.Text(`SELECT count(*)::text FROM dead_letter_audit`)
		h.does(fmt.Sprintf(`UPDATE dead_letters SET %s = %s`, column, other[kind]), refused[column])
		if refused[column] != "" {
			return nil
		}
		if h.Text(`SELECT (count(*) - 1)::text FROM dead_letter_audit`) != lines {
			t.Errorf("%s: not one line", column)
		}
		a := h.last(l.ID)
		kept := h.Text(fmt.Sprintf(`SELECT coalesce((was -> '%s')::text, to_jsonb(original)::text, '') FROM dead_letter_audit ORDER BY audit_id DESC LIMIT 1`, column))
		act, columns := ledger.Changed, []string{column}
		switch column {
		case "value":
			act, columns = ledger.Edited, nil
		case "attempts": // each line has them
			act, columns, kept = ledger.Died, nil, before
		}
		if a.Act != act || a.Login != h.role || a.From != a.To || kept != before || !slices.Equal(a.Columns, columns) {
			t.Errorf("%s: %s by %s, columns %v, kept %s of %s", column, a.Act, a.Login, a.Columns, kept, before)
		}
		return nil
	})
	if err != nil || columns < 33 {
		t.Fatal(columns, err)
	}
	h.does(`UPDATE dead_letters SET lease_until = 'infinity'`, "")
	if a := h.last(l.ID); a.Act != ledger.Changed || !slices.Equal(a.Columns, []string{"lease_until"}) {
		t.Errorf("a lease for ever: %+v", a)
	}
	h.Sums()
}

// TestAudit_ChangedBesideMove: a change beside a legal move has a line of its own, and the work of the desk has none.
func TestAudit_ChangedBesideMove(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	l, m := letter(1, one), letter(2, two)
	h.Entered(l, m)
	h.does(`UPDATE dead_letters SET state = 'PROCESSING', changed_at = clock_timestamp(), changed_by = 'mara', changed_act = 'retried', why = 'so', origin_topic = 'payments', key = NULL WHERE dead_letter_id = '`+l.ID+`'`, "")
	if a := h.last(l.ID); a.Act != ledger.Changed || a.By != "mara" || !slices.Equal(a.Columns, []string{"key", "origin_topic"}) || !strings.Contains(string(a.Was), original) {
		t.Errorf("%+v", a)
	}
	s := h.Put(m.ID, 500)
	if n := h.Entered(home(s, 500)); n.DeadAgain != 1 {
		t.Fatalf("%+v", n)
	}
	same(t, h.trail(m.ID), "entered >PENDING, retried PENDING>PROCESSING, died PROCESSING>PENDING")
	h.Sums()
}

// TestRemove_ByFunctionAlone: a letter leaves the ledger RESOLVED, old, and not as the only copy, whoever removes it.
func TestRemove_ByFunctionAlone(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	h.KeepFor("7 days")
	young, old, open, stored := letter(1, one), letter(2, two), letter(3, three), letter(4, `{"a":4}`)
	h.Entered(young, old, open, stored)
	s := h.Put(stored.ID, 77)
	check(t, h.book.Stored(t.Context(), []int64{s.ID}, []string{"row"}, ann))
	_, err := h.book.Resolve(t.Context(), []string{young.ID, old.ID}, ann)
	check(t, err)
	aged := func(id, age string) {
		t.Helper()
		h.Exec(t, pgtest.Unwatched+`UPDATE dead_letters SET changed_at = now() - interval '`+age+`' WHERE dead_letter_id = '`+id+`'`)
	}
	remove := func(want int) {
		t.Helper()
		if n, err := h.book.Remove(t.Context(), time.Now().Add(time.Hour), 100, ledger.Actor{Name: "desk-1"}); n != want || err != nil {
			t.Fatalf("%d removed, want %d; %v", n, want, err)
		}
	}
	aged(stored.ID, "6 days 23 hours")
	aged(old.ID, "8 days")
	aged(open.ID, "8 days")
	remove(0) // one too young, one in no archive, one open
	h.does(`DELETE FROM dead_letters WHERE dead_letter_id = '`+old.ID+`'`, "42501")
	h.does(`SELECT dead_letters_remove('infinity', 100, '', '')`, "22023")
	// The desk's login cannot make a letter look old, archived or stored.
	h.does(`UPDATE dead_letters SET state = 'RESOLVED', changed_at = '2020-01-01', changed_by = 'x', changed_act = 'closed', why = 'x' WHERE dead_letter_id = '`+open.ID+`'`, "23514")
	h.does(`UPDATE dead_letters SET changed_at = changed_at - interval '8 days' WHERE dead_letter_id = '`+young.ID+`'`, "23514")
	h.does(`UPDATE dead_letters SET archived_in = 'x' WHERE dead_letter_id = '`+old.ID+`'`, "42501")
	h.does(`UPDATE dead_letters SET changed_act = 'stored' WHERE dead_letter_id = '`+old.ID+`'`, "23514")
	restored := `INSERT INTO dead_letters SELECT (jsonb_populate_record(d, '{"dead_letter_id": "x", "state": "RESOLVED", "changed_act": "restored", "archived_in": "x", "changed_at": %q}')).* FROM dead_letters d WHERE dead_letter_id = '` + open.ID + `'`
	h.does(fmt.Sprintf(restored, time.Now().Format(time.RFC3339)), "42501")
	h.does(fmt.Sprintf(restored, "2020-01-01"), "23514")
	remove(0)
	// The owner goes past the function, and not past its checks.
	var e *pgconn.PgError
	for id, constraint := range map[string]string{stored.ID: "dead_letters_keep", old.ID: "dead_letters_archived", open.ID: "dead_letters_moves"} {
		if err := h.Tried(`DELETE FROM dead_letters WHERE dead_letter_id = '` + id + `'`); !errors.As(err, &e) || e.ConstraintName != constraint {
			t.Errorf("by the owner: %v, want %s", err, constraint)
		}
	}
	aged(stored.ID, "7 days 1 hour")
	remove(1)
	h.Exec(t, `UPDATE dead_letters SET archived_in = 'archive-1' WHERE dead_letter_id = '`+old.ID+`'`)
	remove(1)
	if a := h.last(old.ID); a.Act != ledger.Removed || a.By != "desk-1" || a.Login != h.role {
		t.Errorf("%+v", a)
	}
	same(t, h.Text(`SELECT count(*)::text FROM dead_letters`), "2")
	h.Sums()
}

// TestRemove_FormerDesk: a desk of the release before deletes with statements of its own. It works while the grants of that
// release hold, under the checks of this one. It is refused once they were taken away.
func TestRemove_FormerDesk(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	h.KeepFor("7 days")
	a, b := letter(1, one), letter(2, two)
	h.Entered(a, b)
	_, err := h.book.Resolve(t.Context(), []string{a.ID, b.ID}, ann)
	check(t, err)
	h.Exec(t, pgtest.Unwatched+`UPDATE dead_letters SET archived_in = 'archive-1', changed_at = now() - interval '8 days' WHERE dead_letter_id = '`+a.ID+`'`)
	h.does(`SELECT set_config('docket.actor', 'desk-0', false)`, "")
	former := []string{
		`DELETE FROM dead_letter_outbox WHERE dead_letter_id = ANY ('{` + a.ID + `}') AND outcome IS DISTINCT FROM 'dead'`, `DELETE FROM dead_letters WHERE dead_letter_id = ANY ('{` + a.ID + `}')`,
		`DELETE FROM dead_letter_counts WHERE n = 0`, `UPDATE decision_counts_mark SET stored_before = stored_before`,
	}
	for _, sql := range former {
		h.does(sql, "42501")
	}
	h.Exec(t, `GRANT DELETE ON dead_letters, dead_letter_outbox, dead_letter_counts TO `+h.role+`; GRANT UPDATE ON decision_counts_mark TO `+h.role)
	for _, sql := range former {
		h.does(sql, "")
	}
	if l := h.last(a.ID); l.Act != ledger.Removed || l.By != "desk-0" || l.Login != h.role {
		t.Errorf("%+v", l)
	}
	h.does(`DELETE FROM dead_letters WHERE dead_letter_id = '`+b.ID+`'`, "23514")
	h.Sums()
}

// TestCounts_ByFunctionAlone: the desk's login can have decisions counted, and cannot choose how far or which.
func TestCounts_ByFunctionAlone(t *testing.T) {
	t.Parallel()
	h := newHand(t)
	const decisions = `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index, stored_at, allowed)
		SELECT 'c' || n, now(), '{"result":true}', 't', 0, n, 0, now() - n * interval '1 hour', true FROM generate_series(1, 10) n`
	h.Exec(t, decisions)
	for _, sql := range []string{`DELETE FROM decision_counts`, `DELETE FROM decision_counts_days`, `INSERT INTO decision_counts VALUES (now(), 'x', 'x', 1, 1, 1, 1, 1)`, `UPDATE decision_counts_mark SET stored_before = 'infinity'`,
		`DELETE FROM decision_counts_mark`, `TRUNCATE decision_counts`, `SELECT decision_counts_keep(NULL)`} {
		h.does(sql, "42501")
	}
	for _, sql := range []string{`SELECT decision_counts_count('1 hour', '1 second')`, `SELECT decision_counts_count('1 hour', '-1 hour')`, `SELECT decision_counts_count('0', '2 minutes')`, `SELECT decision_counts_count('-1 hour', '2 minutes')`} {
		h.does(sql, "22023")
	}
	h.does(`BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT decision_counts_count('1 hour', '2 minutes')`, "25000")
	h.does(`ROLLBACK`, "")
	mark := func() (at time.Time) {
		t.Helper()
		h.Query(t, `SELECT CASE WHEN stored_before = '-infinity' THEN '2000-01-01' ELSE stored_before END FROM decision_counts_mark`, &at)
		return at
	}
	// A transaction that is open can store yet what is of before: the mark stays behind it however often somebody calls.
	writer := pgxConnect(t, h.URL)
	tx, err := writer.Begin(t.Context())
	check(t, err)
	var began time.Time
	check(t, tx.QueryRow(t.Context(), `SELECT now()`).Scan(&began))
	for range 5 {
		h.does(`SELECT decision_counts_count('1000 years', '2 minutes')`, "")
	}
	if at := mark(); !at.Before(began.Add(-2*time.Minute)) && !at.Equal(began.Add(-2*time.Minute)) {
		t.Errorf("the mark is %s, and who began at %s goes on", at, began)
	}
	check(t, tx.Rollback(t.Context()))
	check(t, writer.Close(t.Context()))
	last := mark()
	for deadline := time.Now().Add(time.Minute); h.Text(`SELECT coalesce(sum(allowed), 0)::text FROM decision_counts`) != "10"; {
		if time.Now().After(deadline) {
			t.Fatalf("counted %s", h.Text(`SELECT coalesce(sum(allowed), 0)::text FROM decision_counts`))
		}
		h.does(`SELECT decision_counts_count('1000 years', '2 minutes')`, "")
		at := mark()
		if at.Before(last) || at.After(time.Now().Add(-time.Minute)) {
			t.Fatalf("the mark went from %s to %s", last, at)
		}
		last = at
	}
	same(t, h.Text(`SELECT sum(allowed)::text FROM decision_counts_days`), "10")
}
