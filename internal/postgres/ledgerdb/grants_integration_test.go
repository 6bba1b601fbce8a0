//go:build integration

package ledgerdb_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/testkit/pgtest"
)

// rolesOf makes the roles of docs/desk-grants.sql, under names of this test.
func rolesOf(t *testing.T, db *pgtest.DB) (names map[string]string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/desk-grants.sql")
	if err != nil {
		t.Fatal(err)
	}
	suffix := strings.ToLower(rand.Text())
	names = map[string]string{}
	replaced := []string{`:"schema"`, "public"}
	for _, role := range []string{"docket_desk_reader", "docket_desk_admin", "docket_desk_api", "docket_desk"} { // the shortest last
		names[role] = strings.TrimPrefix(role, "docket_") + "_" + suffix
		replaced = append(replaced, role, names[role])
	}
	db.Exec(t, strings.NewReplacer(replaced...).Replace(string(text)))
	t.Cleanup(func() {
		for _, role := range names {
			db.Exec(t, `DROP OWNED BY `+role+`; DROP ROLE `+role)
		}
	})
	return names
}

// as is the URL of the database for a role, which can log in from now on.
func as(t *testing.T, db *pgtest.DB, role string) string {
	t.Helper()
	db.Exec(t, `ALTER ROLE `+role+` LOGIN PASSWORD 'role'`)
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "role")
	return u.String()
}

// granted gives the URL of a login for those of docs/desk-grants.sql that work and that look.
func granted(t *testing.T, db *pgtest.DB) (desk, reader string) {
	t.Helper()
	names := rolesOf(t, db)
	return as(t, db, names["docket_desk"]), as(t, db, names["docket_desk_reader"])
}

func TestGrants_RolesOfTheDesk(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	deskURL, readerURL := granted(t, db)
	l := ledgerdb.New(open(t, deskURL, 0).DB)
	ctx := t.Context()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := l.Enter(ctx, []ledger.Letter{letter(1, `{"a":1}`), letter(2, `{"a":2}`), letter(3, `{"a":3}`)}, atMost, ann)
	must("enter", err)
	_, err = l.Retry(ctx, []string{letter(1, `{"a":1}`).ID, letter(2, `{"a":2}`).ID}, soon, ann)
	must("retry", err)
	claimed, err := l.Claim(ctx, "one", 10, time.Minute)
	must("claim", err)
	must("published", l.Published(ctx, "one", []ledger.Placed{{SendingID: claimed[0].ID, Offset: 7}}, soon))
	must("unpublished", l.Unpublished(ctx, "one", claimed[1].ID, "too_large", 0, true))
	must("look again", l.LookAgain(ctx, []int64{claimed[0].ID}, 0))
	_, err = l.Awaited(ctx, 10)
	must("awaited", err)
	must("stored", l.Stored(ctx, []int64{claimed[0].ID}, []string{"row"}, ann))
	must("edit", l.Edit(ctx, letter(3, `{"a":3}`).ID, "", []byte(`{"a":4}`), "diff", 0, ann))
	_, err = l.Resolve(ctx, []string{letter(3, `{"a":3}`).ID}, ann)
	must("resolve", err)
	_, err = l.EndLeases(ctx, ann)
	must("end leases", err)
	must("compact", l.Compact(ctx))
	_, err = l.Duty(ctx, "d", "one", time.Minute, time.Minute)
	must("duty", err)
	must("duty done", l.DutyDone(ctx, "d", "one"))
	must("remember", l.Remember(ctx, "n", "text"))
	job, err := l.CreateJob(ctx, ledger.Job{Act: ledger.Retried, Operator: "ann", Reason: "because"})
	must("create a job", err)
	_, err = l.TakeJob(ctx, "one", time.Minute)
	must("take a job", err)
	_, err = l.KeepJob(ctx, job.ID, "one", "note", time.Minute)
	must("keep a job", err)
	_, err = l.RetryMatching(ctx, ledger.Filter{}, time.Now().Add(time.Hour), 10, soon, ledger.Actor{Name: "ann", Why: "because", Job: job.ID})
	must("retry what matches", err)
	must("end a job", l.EndJob(ctx, job.ID, "one", ledger.JobDone, ""))
	_, err = l.Remove(ctx, time.Now().Add(time.Hour), 10, ann)
	must("remove", err)
	n, err := l.Bounded(1).Enter(ctx, []ledger.Letter{letter(11, "11"), letter(12, "12"), letter(13, "13")}, atMost, ann)
	must("enter with a bound", err)
	open1, err := l.Surplus(ctx, false, 0, 10)
	must("list what was left", err)
	if n.New != 1 || n.Left != 2 || len(open1) != 1 {
		t.Fatalf("%+v, %+v", n, open1)
	}
	must("order", l.OrderSurplus(ctx, open1[0].ID, ledger.Actor{Name: "ann", Why: "so"}))
	_, _, err = l.EnterSurplus(ctx, ledger.Portion{ID: open1[0].ID, From: open1[0].Next, To: open1[0].Last, Letters: []ledger.Letter{letter(12, "12")}, Anyway: true}, atMost, ann)
	must("enter what was left", err)
	_, err = l.ArchivedSurplus(ctx, open1[0].ID, open1[0].Last, open1[0].Last, "a", 1)
	must("note that it is archived", err)
	must("trim", l.TrimSurplus(ctx))
	must("probe", open(t, deskURL, 0).Probe(ctx, time.Now()))

	for _, url := range []string{deskURL, readerURL} {
		looks(t, ledgerdb.New(open(t, url, 0).DB))
	}
	const forge = `INSERT INTO dead_letter_audit (dead_letter_id, act, actor, why, attempts) VALUES ('x', 'closed', 'somebody else', '', 0)`
	refused(t, deskURL, forge, `UPDATE dead_letter_audit SET actor = 'x'`, `DELETE FROM dead_letter_audit`, `TRUNCATE dead_letters`, `DROP TABLE dead_letters`,
		`ALTER TABLE dead_letters DISABLE TRIGGER ALL`, `DELETE FROM decision_logs`, `UPDATE decision_logs SET path = ''`, `CREATE TABLE t ()`, `DELETE FROM dead_letter_groups`,
		`INSERT INTO dead_letter_moves VALUES ('RESOLVED', 'PENDING', 'x')`, `DELETE FROM dead_letter_jobs`,
		`UPDATE dead_letter_growth SET entered = 0`, `DELETE FROM dead_letter_growth`, `INSERT INTO dead_letter_growth VALUES ('x', now(), 0)`, `UPDATE dead_letter_surplus SET state = 'entered', closed_at = now()`,
		`DELETE FROM dead_letter_surplus`, `TRUNCATE dead_letter_surplus`)
	refused(t, readerURL, forge, `UPDATE dead_letters SET path = ''`, `DELETE FROM dead_letters`, `INSERT INTO dead_letter_jobs (act, filter, operator, reason, matched) VALUES ('retried', '{}', 'x', 'x', 0)`,
		`UPDATE dead_letter_outbox SET topic = ''`, `DELETE FROM dead_letter_counts`, `INSERT INTO decision_logs DEFAULT VALUES`)
}

// looks reads all that there is to read.
func looks(t *testing.T, l interface {
	ledger.Reader
	ledger.Prover
	ledger.Growth
	ListJobs(ctx context.Context, before int64, n int) ([]ledger.Job, error)
}) {
	t.Helper()
	ctx := t.Context()
	list, err := l.List(ctx, ledger.Filter{}, ledger.Page{})
	if err != nil || len(list.Entries) == 0 {
		t.Fatalf("list: %d entries, %v", len(list.Entries), err)
	}
	_, err1 := l.Show(ctx, list.Entries[0].ID)
	_, _, err2 := l.History(ctx, list.Entries[0].ID)
	_, err3 := l.Groups(ctx, ledger.Filter{})
	_, err4 := l.Counts(ctx, ledger.Filter{})
	_, err5 := l.Report(ctx)
	_, err6 := l.OldestFound(ctx)
	_, err7 := l.ListJobs(ctx, 0, 10)
	_, err8 := l.Proof(ctx, time.Time{}, 100)
	_, err9 := l.Knows(ctx, []ledger.Trace{{ID: list.Entries[0].ID}})
	_, err10 := l.Surplus(ctx, true, 0, 10)
	_, err11 := l.SurplusSums(ctx)
	if err := errors.Join(err10, err11, err1, err2, err3, err4, err5, err6, err7, err8, err9); err != nil {
		t.Error(err)
	}
}

func refused(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, sql := range statements {
		_, err := conn.Exec(t.Context(), sql)
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.Code != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// A trigger works as its owner. A role that could put it on its own table could write any line into the audit.
func TestGrants_TriggersOfTheAudit(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	deskURL, readerURL := granted(t, db)
	for _, url := range []string{deskURL, readerURL} {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		for _, sql := range []string{`CREATE TEMP TABLE forged (LIKE dead_letters INCLUDING DEFAULTS)`, `CREATE TEMP TABLE sent (LIKE dead_letter_outbox INCLUDING DEFAULTS)`} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		for _, sql := range []string{
			`CREATE TRIGGER a AFTER INSERT ON forged REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_entered()`,
			`CREATE TRIGGER b AFTER UPDATE ON forged REFERENCING OLD TABLE AS was NEW TABLE AS is_now FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_moved()`,
			`CREATE TRIGGER c AFTER DELETE ON forged REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_left()`,
			`CREATE TRIGGER d AFTER UPDATE ON sent REFERENCING OLD TABLE AS was NEW TABLE AS is_now FOR EACH STATEMENT EXECUTE FUNCTION dead_letters_ended()`,
		} {
			_, err := conn.Exec(t.Context(), sql)
			var e *pgconn.PgError
			if !errors.As(err, &e) || e.Code != "42501" {
				t.Errorf("%s: %v", sql, err)
			}
		}
	}
}

// TestGrants_MissingRightIsNamed, and not of decision_logs, which it may have all of.
func TestGrants_MissingRightIsNamed(t *testing.T) {
	t.Parallel()
	_, err := ledgerdb.New(open(t, pgtest.New(t).Role(t, "SELECT, INSERT"), 0).DB).Groups(t.Context(), ledger.Filter{})
	wantCode(t, nil, err, "42501")
	if hint := db.Hint(err); !strings.Contains(hint, "docs/desk-grants.sql") {
		t.Fatalf("hint %q", hint)
	}
}
