//go:build integration

package ledgerdb_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/testkit/ledgermodel"
)

// office is a ledger with its roles, where evidence is edited by two persons.
type office struct {
	*ledgerDB
	roles map[string]string
}

func newOffice(t *testing.T) *office {
	t.Helper()
	d := newLedger(t)
	d.FourEyes(true)
	return &office{d, rolesOf(t, d.DB)}
}

// person is somebody with a login of their own.
type person struct {
	*ledgerdb.Ledger
	login string
	conn  *pgx.Conn
}

// person makes a login that is a member of roles of docs/desk-grants.sql.
func (o *office) person(t *testing.T, roles ...string) person {
	t.Helper()
	login := "person_" + strings.ToLower(rand.Text())
	var in []string
	for _, role := range roles {
		in = append(in, o.roles[role])
	}
	o.Exec(t, `CREATE ROLE `+login+` IN ROLE `+strings.Join(in, ", "))
	t.Cleanup(func() { o.Exec(t, `DROP OWNED BY `+login+`; DROP ROLE `+login) })
	url := as(t, o.DB, login)
	return person{ledgerdb.New(open(t, url, 0).DB), login, pgxConnect(t, url)}
}

// does runs a statement, and wants a code; none: that it works.
func (p person) does(t *testing.T, code, sql string, args ...any) {
	t.Helper()
	_, err := p.conn.Exec(t.Context(), sql, args...)
	got := ""
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		got = e.Code
	} else if err != nil {
		t.Fatal(err)
	}
	if got != code {
		t.Errorf("%s: %v, want %q", sql, err, code)
	}
}

const (
	told   = `{"decision_id":"d","timestamp":"2026-01-01T00:00:00Z","path":"a\nb","labels":{"id":"x"},"input":{"user":"alice"},"result":true}`
	untold = `{"decision_id":"d","timestamp":"2026-01-01T00:00:00Z","path":"a/b","labels":{"id":"x"},"input":{"user":"alice"},"result":true}`
)

func by(name string) ledger.Actor { return ledger.Actor{Name: name, Why: "because of " + name} }

func vouched(name string) ledger.Actor {
	return ledger.Actor{Name: name, Why: "because of " + name, Vouched: true}
}

// draft is the edit that all of these tests want.
func draft(l ledger.Letter) ledger.Draft {
	return ledger.Draft{LetterID: l.ID, Before: l.Value, Value: []byte(untold), Retry: true}
}

// entered is a letter whose path has a line break.
func (o *office) entered(offset int64) ledger.Letter {
	o.T.Helper()
	l := letter(offset, told)
	o.Entered(l)
	return l
}

// proposed is what p wants of a letter.
func (p person) proposed(t *testing.T, d ledger.Draft, by ledger.Actor) ledger.Proposal {
	t.Helper()
	made, err := p.Propose(t.Context(), d, by)
	check(t, err)
	return made
}

// refuses wants that a proposal is not approved for a reason, and that nothing was changed.
func (o *office) refuses(t *testing.T, p person, id int64, by ledger.Actor, want ledger.Because) {
	t.Helper()
	before := o.Text(`SELECT (SELECT count(*) FROM dead_letter_audit) || ' ' || (SELECT string_agg(encode(sha256(value), 'hex'), ',' ORDER BY dead_letter_id) FROM dead_letters)`)
	_, err := p.Approve(t.Context(), id, "-1\n+2", soon, by)
	var refused *ledger.ProposalError
	if !errors.As(err, &refused) || refused.Because != want || refused.ID != id || refused.Hint() == "" {
		t.Errorf("approved by %s with %s: %v, want %s", by.Name, p.login, err, want)
	}
	same(t, o.Text(`SELECT (SELECT count(*) FROM dead_letter_audit) || ' ' || (SELECT string_agg(encode(sha256(value), 'hex'), ',' ORDER BY dead_letter_id) FROM dead_letters)`), before)
}

func TestFourEyes_TwoLogins(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	mara, oleg := o.person(t, "docket_desk_admin"), o.person(t, "docket_desk_admin")
	l := o.entered(1)
	members, second, err := mara.Touched(t.Context(), l.ID, []byte(untold))
	check(t, err)
	same(t, members, []string{"path"})
	same(t, second, true)
	var alone *ledger.SecondPersonError
	if err := mara.Edit(t.Context(), l.ID, "", []byte(untold), "diff", soon, by("mara")); !errors.As(err, &alone) || alone.ID != l.ID {
		t.Fatalf("edited alone: %v", err)
	}
	p := mara.proposed(t, draft(l), by("mara"))
	if p.State != ledger.ProposalOpen || !slices.Equal(p.Members, []string{"path"}) || p.Login != mara.login || p.Vouched || p.ExpiresAt.Sub(p.CreatedAt).Round(time.Minute) != 7*24*time.Hour || string(p.Value) != untold {
		t.Errorf("%+v", p)
	}
	same(t, o.trail(l.ID), "entered >PENDING, proposed PENDING>PENDING")
	o.refuses(t, mara, p.ID, by("mara"), ledger.BecauseName)
	o.refuses(t, mara, p.ID, by("oleg"), ledger.BecauseLogin)
	o.refuses(t, oleg, p.ID, by(" Mara "), ledger.BecauseName)
	list, err := oleg.ListProposals(t.Context(), ledger.ProposalQuery{}, 10)
	check(t, err)
	if len(list) != 1 || list[0].ID != p.ID || list[0].Value != nil {
		t.Errorf("%+v", list)
	}
	done, err := oleg.Approve(t.Context(), p.ID, "-1\n+2", soon, by("oleg"))
	check(t, err)
	if done.State != ledger.ProposalApproved || done.Decided.By != "oleg" || done.Decided.Login != oleg.login || done.Decided.At.IsZero() {
		t.Errorf("%+v", done)
	}
	same(t, o.trail(l.ID), "entered >PENDING, proposed PENDING>PENDING, approved PENDING>PENDING, edited PENDING>PENDING, retried PENDING>PROCESSING")
	same(t, o.Text(`SELECT string_agg(actor || ' ' || why, ', ' ORDER BY audit_id) FROM dead_letter_audit WHERE act IN ('proposed', 'approved', 'edited', 'retried')`),
		fmt.Sprintf("mara proposal %[1]d: because of mara, oleg proposal %[1]d: because of oleg, mara because of mara, oleg because of oleg", p.ID))
	same(t, o.Text(`SELECT string_agg(login::text, ', ' ORDER BY audit_id) FROM dead_letter_audit WHERE act IN ('proposed', 'approved')`), mara.login+", "+oleg.login)
	same(t, o.Text(`SELECT (original = convert_to($$`+told+`$$, 'UTF8'))::text || ' ' || diff FROM dead_letter_audit WHERE act = 'edited'`), "true -1\n+2")
	same(t, o.Text(`SELECT path || ' ' || decision_id || ' ' || edited FROM dead_letters`), "a/b d true")
	s := o.Claimed("r", 10)
	if len(s) != 1 || string(s[0].Value) != untold {
		t.Errorf("retried %+v", s)
	}
	o.refuses(t, oleg, p.ID, by("oleg"), ledger.BecauseEnded)
	if list, err := oleg.ListProposals(t.Context(), ledger.ProposalQuery{All: true}, 10); err != nil || len(list) != 1 || list[0].State != ledger.ProposalApproved {
		t.Errorf("%+v %v", list, err)
	}
	o.Sums()
}

// All who use the API of a desk have its login: it names them, and whoever may not speak for others cannot.
func TestFourEyes_VouchedByTheDesk(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	daemon, other, mara, clerk := o.person(t, "docket_desk_api"), o.person(t, "docket_desk_api"), o.person(t, "docket_desk_admin"), o.person(t, "docket_desk")
	l, m := o.entered(1), o.entered(2)
	p := daemon.proposed(t, draft(l), vouched("mara"))
	if !p.Vouched || p.Login != daemon.login {
		t.Errorf("%+v", p)
	}
	o.refuses(t, daemon, p.ID, vouched("mara"), ledger.BecauseName)
	o.refuses(t, other, p.ID, vouched("MARA"), ledger.BecauseName)
	o.refuses(t, mara, p.ID, by("oleg"), ledger.BecauseOtherWay)
	if _, err := mara.Approve(t.Context(), p.ID, "-1\n+2", soon, vouched("oleg")); codeOf(err) != "42501" {
		t.Errorf("a person speaks for another: %v", err)
	}
	if _, err := mara.Propose(t.Context(), draft(m), vouched("oleg")); codeOf(err) != "42501" {
		t.Errorf("a person proposes for another: %v", err)
	}
	for what, err := range map[string]error{
		"propose": errOf(clerk.Propose(t.Context(), draft(m), by("clerk"))), "approve": errOf(clerk.Approve(t.Context(), p.ID, "-1\n+2", soon, by("clerk"))), "reject": errOf(clerk.Reject(t.Context(), p.ID, by("clerk"))),
	} {
		if codeOf(err) != "42501" || !strings.Contains(db.Hint(err), "docket_desk_admin") {
			t.Errorf("%s without the role: %v; %s", what, err, db.Hint(err))
		}
	}
	if _, err := daemon.Approve(t.Context(), p.ID, "-1\n+2", soon, vouched("oleg")); err != nil {
		t.Error(err)
	}
	same(t, o.Text(`SELECT convert_from(value, 'UTF8') FROM dead_letters WHERE dead_letter_id = '`+l.ID+`'`), untold)
	q := mara.proposed(t, draft(m), by("mara"))
	o.refuses(t, daemon, q.ID, vouched("oleg"), ledger.BecauseOtherWay)
}

func errOf[T any](_ T, err error) error { return err }

func codeOf(err error) string {
	var said *db.ServerError
	if errors.As(err, &said) {
		return said.SQLState()
	}
	return ""
}

// Whatever a role of the desk does by SQL: these members stay, and nobody but two persons changes them. For the owner the trigger holds, too.
func TestFourEyes_NoWayAroundBySQL(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	l, other := o.entered(1), o.entered(2)
	was := o.Text(`SELECT string_agg(dead_letter_id || encode(value, 'hex'), ',' ORDER BY dead_letter_id) FROM dead_letters`)
	set := func(value string) string {
		return `UPDATE dead_letters SET value = convert_to($x$` + value + `$x$, 'UTF8'), edited = true, changed_at = clock_timestamp(), changed_by = 'mara' WHERE dead_letter_id = '` + l.ID + `'`
	}
	for name, roles := range map[string][]string{
		"docket_desk": {"docket_desk"}, "docket_desk_admin": {"docket_desk_admin"}, "docket_desk_api": {"docket_desk_api"}, "all": {"docket_desk_admin", "docket_desk_api", "docket_desk_reader"},
	} {
		t.Log("as " + name)
		p := o.person(t, roles...)
		for _, sql := range []string{
			set(untold), set(strings.Replace(told, "alice", "bob", 1)), set(strings.Replace(told, "true", "false", 1)), set(strings.Replace(told, `"d"`, `"e"`, 1)), set(strings.Replace(told, "2026-01-01", "2026-01-02", 1)),
			set(strings.Replace(told, `"result":true`, `"x":1`, 1)), set("[" + told + "," + told + "]"), set(""), set("no JSON"), set(strings.Replace(told, `{"dec`, `{"path":"z","dec`, 1)),
			`UPDATE dead_letters SET value = NULL`, `UPDATE dead_letters SET value = '\x1f8b08'`, `UPDATE dead_letters SET value = convert_to(upper(convert_from(value, 'UTF8')), 'UTF8')`,
			`UPDATE dead_letters SET state = 'PROCESSING', changed_at = clock_timestamp(), changed_act = 'retried', value = ''`,
			`INSERT INTO dead_letters SELECT * FROM dead_letters ON CONFLICT (dead_letter_id) DO UPDATE SET value = ''`,
			`WITH a AS (UPDATE dead_letters SET value = '' RETURNING 1) SELECT count(*) FROM a`,
			`MERGE INTO dead_letters d USING dead_letters e ON d.dead_letter_id = e.dead_letter_id WHEN MATCHED THEN UPDATE SET value = ''`,
		} {
			p.does(t, "23514", sql)
		}
		// Letters do not change places.
		p.does(t, "23505", `UPDATE dead_letters SET dead_letter_id = CASE dead_letter_id WHEN '`+l.ID+`' THEN '`+other.ID+`' ELSE '`+l.ID+`' END`)
		p.does(t, "23514", `UPDATE dead_letters SET dead_letter_id = 'x' WHERE dead_letter_id = '`+l.ID+`'`)
		for _, sql := range []string{
			`INSERT INTO dead_letter_proposals (dead_letter_id, state, letter_state, members, value_hash, value, retry, proposed_by, why, vouched, decided_at, decided_in)
					SELECT dead_letter_id, 'APPROVED', state, '{}', sha256(value), '', false, 'x', 'x', false, now(), pg_current_xact_id() FROM dead_letters`,
			`UPDATE dead_letter_proposals SET decided_in = pg_current_xact_id()`, `DELETE FROM dead_letter_proposals`, `TRUNCATE dead_letter_proposals`,
			`ALTER TABLE dead_letters DISABLE TRIGGER approved`, `DROP TRIGGER approved ON dead_letters`, `SET session_replication_role = replica`,
			`CREATE OR REPLACE FUNCTION dead_letters_four_eyes() RETURNS boolean LANGUAGE sql AS 'SELECT false'`, `ALTER FUNCTION dead_letters_four_eyes() SET search_path = pg_temp`,
			`SELECT dead_letters_noted('x', 'approved', 1, 'x', 'x')`, `SELECT dead_letters_open_proposal(1)`, `SELECT dead_letters_asked('x', 'x', false)`, `SELECT dead_letters_decisions('')`,
		} {
			p.does(t, "42501", sql)
		}
		// Names of settings and of temporary tables are anybody's.
		p.does(t, "", `SET docket.four_eyes = 'off'; SET docket.proposal = '1'; SET docket.actor = 'x'`)
		p.does(t, "", `CREATE TEMP TABLE dead_letter_proposals AS SELECT dead_letter_id, 'APPROVED' AS state, pg_current_xact_id() AS decided_in, ''::bytea AS value, sha256(value) AS value_hash FROM public.dead_letters`)
		p.does(t, "", `SET search_path = pg_temp, public`)
		p.does(t, "23514", `UPDATE public.dead_letters SET value = ''`)
	}
	var e *pgconn.PgError
	if err := o.Tried(set(untold)); !errors.As(err, &e) || e.ConstraintName != "dead_letters_four_eyes" {
		t.Errorf("the owner alone: %v", err)
	}
	same(t, o.Text(`SELECT string_agg(dead_letter_id || encode(value, 'hex'), ',' ORDER BY dead_letter_id) FROM dead_letters`), was)
	o.Sums()
}

// An approval is for one change and one transaction.
func TestFourEyes_ApprovalIsForOneChange(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	mara, oleg := o.person(t, "docket_desk_admin"), o.person(t, "docket_desk_admin")
	l, m := o.entered(1), o.entered(2)
	p := mara.proposed(t, draft(l), by("mara"))
	approve := fmt.Sprintf(`SELECT dead_letters_approve(%d, NULL, NULL, NULL, NULL, 'oleg', 'so', false)`, p.ID)
	value := `convert_to($x$` + untold + `$x$, 'UTF8')`
	for _, then := range []string{
		`UPDATE dead_letters SET value = ` + value + ` WHERE dead_letter_id = '` + m.ID + `'`, // another letter
		`UPDATE dead_letters SET value = '' WHERE dead_letter_id = '` + l.ID + `'`,            // another value
	} {
		oleg.does(t, "", `BEGIN`)
		oleg.does(t, "", approve)
		oleg.does(t, "23514", then)
		oleg.does(t, "", `ROLLBACK`)
	}
	oleg.does(t, "", approve)
	o.Exec(t, `SET session_replication_role = replica; UPDATE dead_letters SET value = convert_to($x$`+told+`$x$, 'UTF8')`)
	oleg.does(t, "23514", `UPDATE dead_letters SET value = `+value+` WHERE dead_letter_id = '`+l.ID+`'`) // later
}

// The letter is not as it was when the two persons agreed, or they agreed too long ago.
func TestFourEyes_VoidAndExpired(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	mara, oleg := o.person(t, "docket_desk_admin"), o.person(t, "docket_desk_admin")
	edited, moved, old, gone := o.entered(1), o.entered(2), o.entered(3), o.entered(4)
	var ids []int64
	for _, l := range []ledger.Letter{edited, moved, old, gone} {
		ids = append(ids, mara.proposed(t, draft(l), by("mara")).ID)
	}
	// A label is nobody's evidence, so one person changes it.
	check(t, mara.Edit(t.Context(), edited.ID, "", []byte(strings.Replace(told, `"x"`, `"y"`, 1)), "", 0, by("mara")))
	if n, err := oleg.Retry(t.Context(), []string{moved.ID}, soon, by("oleg")); err != nil || n[0].Err != nil {
		t.Fatal(n, err)
	}
	o.Exec(t, `UPDATE dead_letter_proposals SET expires_at = now() - interval '1 s' WHERE proposal_id = `+fmt.Sprint(ids[2]))
	for i, want := range []ledger.Because{ledger.BecauseVoid, ledger.BecauseVoid, ledger.BecauseExpired} {
		o.refuses(t, oleg, ids[i], by("oleg"), want)
	}
	all, err := oleg.ListProposals(t.Context(), ledger.ProposalQuery{All: true}, 10)
	check(t, err)
	var states []string
	for _, p := range all {
		states = append(states, string(p.State))
	}
	same(t, strings.Join(states, " "), "OPEN EXPIRED VOID VOID")
	if list, err := oleg.ListProposals(t.Context(), ledger.ProposalQuery{}, 10); err != nil || len(list) != 1 || list[0].ID != ids[3] {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := oleg.Reject(t.Context(), ids[3], by("oleg")); err != nil {
		t.Error(err)
	}
	o.refuses(t, oleg, ids[3], by("oleg"), ledger.BecauseEnded)
	if _, err := oleg.Reject(t.Context(), ids[3], by("oleg")); !errors.As(err, new(*ledger.ProposalError)) {
		t.Errorf("rejected twice: %v", err)
	}
	same(t, o.trail(gone.ID), "entered >PENDING, proposed PENDING>PENDING, rejected PENDING>PENDING")
	var refused *ledger.ProposalError
	if _, err := mara.Propose(t.Context(), draft(edited), by("mara")); !errors.As(err, &refused) || refused.Because != ledger.BecauseVoid || refused.ID != 0 {
		t.Errorf("proposed for a value that was seen before: %v", err)
	}
	if _, err := mara.Propose(t.Context(), draft(moved), by("mara")); !errors.As(err, new(*ledger.RefusedError)) {
		t.Errorf("proposed while it is retried: %v", err)
	}
	if _, err := oleg.Approve(t.Context(), 4711, "-1\n+2", soon, by("oleg")); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("%v", err)
	}
	// A removed letter takes its proposals along. Its audit stays.
	if _, err := oleg.Resolve(t.Context(), []string{gone.ID}, by("oleg")); err != nil {
		t.Fatal(err)
	}
	o.Exec(t, `UPDATE dead_letters SET archived_in = 'archive-1' WHERE state = 'RESOLVED'`)
	if n, err := o.Remove(t.Context(), time.Now().Add(time.Hour), 10, by("desk")); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := oleg.Proposal(t.Context(), ids[3]); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("%v", err)
	}
	same(t, o.Text(`SELECT string_agg(why, ', ' ORDER BY audit_id) FROM dead_letter_audit WHERE act = 'rejected'`), fmt.Sprintf("proposal %d: because of oleg", ids[3]))
	o.Sums()
}

// Of several who approve at one time one does.
func TestFourEyes_TwoApproveAtOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	mara := o.person(t, "docket_desk_admin")
	l := o.entered(1)
	p := mara.proposed(t, draft(l), by("mara"))
	var group sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		approver := o.person(t, "docket_desk_admin")
		group.Go(func() {
			_, errs[i] = approver.Approve(context.Background(), p.ID, "-1\n+2", soon, by(fmt.Sprint("approver", i)))
		})
	}
	group.Wait()
	won := 0
	for _, err := range errs {
		var refused *ledger.ProposalError
		switch {
		case err == nil:
			won++
		case !errors.As(err, &refused) || refused.Because != ledger.BecauseEnded:
			t.Errorf("%v", err)
		}
	}
	same(t, won, 1)
	same(t, o.Text(`SELECT count(*) FILTER (WHERE act = 'approved') || ' ' || count(*) FILTER (WHERE act = 'edited') || ' ' || (SELECT count(*) FROM dead_letter_outbox) FROM dead_letter_audit`), "1 1 1")
	o.Sums()
}

// A desk of the release before edits by a statement of its own: the database refuses it where two persons are needed, and nothing else.
func TestFourEyes_FormerDesk(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	former := o.person(t, "docket_desk")
	l := o.entered(1)
	edit := func(value string) string {
		return `UPDATE dead_letters SET value = convert_to($x$` + value + `$x$, 'UTF8'), edited = true, path = 'a/b', decision_id = 'd', decision_ts = NULL,
			changed_at = clock_timestamp(), changed_by = 'ada', why = 'so', job_id = coalesce(nullif(0, 0), job_id) WHERE dead_letter_id = '` + l.ID + `'`
	}
	former.does(t, "23514", edit(untold))
	former.does(t, "", edit(strings.Replace(told, `"x"`, `"y"`, 1)))
	same(t, o.trail(l.ID), "entered >PENDING, edited PENDING>PENDING")
	if done, err := former.Retry(t.Context(), []string{l.ID}, soon, by("ada")); err != nil || done[0].Err != nil {
		t.Error(done, err)
	}
}

// The rule is what whoever migrates last was told, and it is on where nobody says anything.
func TestFourEyes_SwitchedByMigrate(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	l := o.entered(1)
	migrate := func(one bool) {
		t.Helper()
		db, err := store.Open(db.Config{URL: o.URL, OneEditor: one}, zerolog.Nop())
		check(t, err)
		defer db.Close()
		_, err = schema.New(db.DB).Migrate(t.Context())
		check(t, err)
	}
	migrate(true)
	members, second, err := o.Touched(t.Context(), l.ID, []byte(untold))
	if err != nil || second || !slices.Equal(members, []string{"path"}) {
		t.Errorf("off: %v %v %v", members, second, err)
	}
	clerk := o.person(t, "docket_desk") // rights stay
	check(t, clerk.Edit(t.Context(), l.ID, "", []byte(untold), "", 0, by("clerk")))
	migrate(false)
	if _, second, err := clerk.Touched(t.Context(), l.ID, []byte(told)); err != nil || !second {
		t.Errorf("on: %v %v", second, err)
	}
	if err := clerk.Edit(t.Context(), l.ID, "", []byte(told), "", 0, by("clerk")); !errors.As(err, new(*ledger.SecondPersonError)) {
		t.Error(err)
	}
}

// The tables compare as the model does, whatever is in a value.
func TestTouched_TablesAndModel(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	values := [][]byte{nil}
	for _, value := range []string{
		"", " ", "{}", "[]", "null", "17", "no JSON", "\x1f\x8b", "\xff", told, untold, "\n " + told + "\n", "[" + told + "]", "[" + told + ",\n" + untold + "]", told + "\n" + untold + "\n", told + "\r\n\r\n" + untold,
		told + untold, "[" + told + ",17]", told + "\n17", "\ufeff" + told, strings.Replace(told, `{"dec`, `{"path":"z","dec`, 1), strings.Replace(told, `{"dec`, `{"p\u0061th":"z","dec`, 1),
		strings.Replace(told, `"x"`, `"y"`, 1), strings.Replace(told, `"x"`, `"\u0000"`, 1), strings.Replace(told, `"x"`, `"\ud800"`, 1), strings.Replace(told, `"x"`, `1e999999`, 1),
		strings.Replace(told, "alice", "bob", 1), strings.Replace(told, `"alice"`, `{"a":[1,2.0,{}]}`, 1), strings.Replace(told, `"alice"`, `{"a": [1.0,2,{}]}`, 1), strings.Replace(told, `"alice"`, `{"a":1,"a":[1,2,{}]}`, 1),
		strings.Replace(told, `"alice"`, `"\u0061lice"`, 1), strings.Replace(told, "true", "null", 1), strings.Replace(told, `,"result":true`, "", 1), strings.Replace(told, "true", "false", 1), strings.Replace(told, "true", `"true"`, 1),
		strings.Replace(told, `"d"`, `"e"`, 1), strings.Replace(told, "00Z", "00+00:00", 1), strings.Replace(told, `"alice"`, strings.Repeat("[", 3000)+strings.Repeat("]", 3000), 1), `{"labels":1}`, `{"labels":2}`, `[{"labels":1},{"labels":1}]`,
	} {
		values = append(values, []byte(value))
	}
	conn := pgxConnect(t, d.URL)
	model := ledgermodel.New()
	found := map[string]bool{}
	for i, before := range values {
		l := letter(int64(i), "")
		l.Value = before
		if _, err := model.Enter(t.Context(), []ledger.Letter{l}, atMost, ann); err != nil {
			t.Fatal(err)
		}
		for _, after := range values {
			var tables []string
			if err := conn.QueryRow(t.Context(), `SELECT dead_letters_touched($1::bytea, $2::bytea)`, before, after).Scan(&tables); err != nil {
				t.Fatalf("%.100q to %.100q: %v", before, after, err)
			}
			own, _, err := model.Touched(t.Context(), l.ID, after)
			check(t, err)
			if !slices.Equal(tables, own) {
				t.Errorf("%.200q to %.200q: tables %v, model %v", before, after, tables, own)
			}
			found[strings.Join(own, " ")] = true
		}
	}
	for _, want := range []string{"", "path", "input", "result", "decision_id", "timestamp", "decision_id timestamp path result input", "path input"} {
		if !found[want] {
			t.Errorf("nothing touches %q alone: %v", want, found)
		}
	}
	for _, c := range []struct{ before, after, want string }{
		{told, untold, "path"}, {told, strings.Replace(told, `"x"`, `"y"`, 1), ""}, {told, "[" + told + "]", ""}, {told, strings.Replace(told, `"x"`, `"\u0000"`, 1), strings.Join(ledger.Evidence(), " ")},
		{strings.Replace(told, `"alice"`, `{"a":[1,2.0,{}]}`, 1), strings.Replace(told, `"alice"`, `{"a": [1.0,2,{}]}`, 1), ""}, {told, strings.Replace(told, "true", "null", 1), "result"},
	} {
		same(t, d.Text(`SELECT array_to_string(dead_letters_touched(convert_to($x$`+c.before+`$x$, 'UTF8'), convert_to($x$`+c.after+`$x$, 'UTF8')), ' ')`), c.want)
	}
}
