//go:build integration

package tree_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"docket/internal/desk/ledger"
	"docket/internal/history/lookup"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/tree"
	"docket/internal/programs/desk"
	"docket/internal/record/envelope"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

// TestMain needs containers only where the environment names no server.
func TestMain(m *testing.M) {
	if os.Getenv("DOCKET_TEST_DATABASE_URL") != "" {
		goleak.VerifyTestMain(m)
		return
	}
	pgtest.StartServer = func(t testing.TB) string { return testenv.Postgres(t).Database(t) }
	testenv.Main(m)
}

// ledgerCLI is a ledger in a real database, and the command line on it.
type ledgerCLI struct {
	t    *testing.T
	url  string
	stop chan os.Signal
}

func (d *ledgerCLI) open(env cli.Env, s config.Settings) (*frame.System, error) {
	db, err := app.OpenDatabase(s, env.Program, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	book := ledgerdb.New(db.DB)
	return &frame.System{
		Book: book, Trial: desk.NewTrial(s, book, db), Decisions: historydb.NewReader(db.DB), Close: db.Close, Look: &lookup.Look{Settings: s, Rows: historydb.NewReader(db.DB).ByID, Book: book},
	}, nil
}

// run runs a command and returns what it printed; the exit code has to be code.
func (d *ledgerCLI) run(code int, stdin string, args ...string) string {
	d.t.Helper()
	var out, errs bytes.Buffer
	got := tree.Main(cli.Env{
		Program: config.Desk, Args: args, Environ: []string{"DOCKET_DATABASE_URL=" + d.url, "DOCKET_OPERATOR=mara"}, Stdout: &out, Stderr: &errs, Signals: d.stop,
	}, frame.Options{Stdin: strings.NewReader(stdin), Open: d.open})
	if got != code {
		d.t.Fatalf("%s: exit %d, wanted %d\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String())
	}
	return out.String() + errs.String()
}

func (d *ledgerCLI) has(text string, parts ...string) {
	d.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			d.t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// TestLedger_RealCommands: dead letters enter, and are listed, shown, tried, retried, edited, resolved and worked on by a job.
func TestLedger_RealCommands(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	d := &ledgerCLI{t: t, url: db.URL}
	s, _, err := config.LoadWith(config.Desk, []string{"DOCKET_DATABASE_URL=" + db.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := app.OpenDatabase(s, config.Desk, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	book := ledgerdb.New(pool.DB)
	if _, err := book.Enter(t.Context(), entering(12), 3, ledger.Actor{Name: "desk", Why: "read"}); err != nil {
		t.Fatal(err)
	}
	var list struct {
		Entries []struct{ ID, State, Fingerprint string }
		Next    string
	}
	var listed string
	for range 20 { // it looks for desks for a few seconds only
		if listed = d.run(0, "", "dlq", "list", "--limit", "5", "--json"); strings.Contains(listed, `"desks": 0`) {
			break
		}
	}
	d.has(listed, `"desks": 0`, `"not_entered": null`, "no desk is running; Kafka did not answer")
	if err := json.NewDecoder(strings.NewReader(listed)).Decode(&list); err != nil || len(list.Entries) != 5 || list.Next == "" {
		t.Fatalf("%v, %+v", err, list)
	}
	first, fingerprint := list.Entries[0].ID, list.Entries[0].Fingerprint
	d.has(d.run(0, "", "dlq", "list", "--after", list.Next, "--limit", "100"), "authz/allow")
	d.has(d.run(0, "", "dlq", "groups", "--code", "23514"), fingerprint, "decision_logs_path_short")
	d.has(d.run(0, "", "dlq", "show", first[:10], "--payload", "--history"), first, `"path": "authz/allow"`, "check_violation", "entered", "docket dlq retry "+first[:12])
	d.has(d.run(0, "", "dlq", "retry", "--fingerprint", fingerprint[:6], "--dry-run"), "12 would be stored")

	d.has(d.run(0, "", "dlq", "retry", first[:10]), "no desk is running", "retried", "PROCESSING")
	d.has(d.run(1, "", "dlq", "retry", first[:10]), "nothing was changed: PROCESSING since", "by mara")
	d.has(d.run(1, "", "dlq", "resolve", first, "--note", "x"), "nothing was changed")

	second := list.Entries[1].ID
	raw := d.run(0, "", "dlq", "show", second, "--raw")
	d.has(d.run(0, strings.Replace(raw, "authz/allow", "authz/deny", 1), "dlq", "edit", second, "--file", "-", "--yes", "--no-retry", "--reason", "path was wrong"), "this changes path", "docket dlq approve 1 ")
	d.has(d.run(0, "", "dlq", "proposals", "1"), `-  "path": "authz/allow"`, `+  "path": "authz/deny"`, "proposed by     mara")
	d.has(d.run(1, "", "dlq", "approve", "1", "--yes", "--reason", "mine"), "you proposed it")
	d.has(d.run(1, "", "dlq", "approve", "1", "--yes", "--operator", "oleg", "--reason", "hers"), "it was proposed with this database login", "use a database login for each person")
	login := "second_" + strings.ToLower(rand.Text())
	db.Exec(t, `CREATE ROLE `+login+` LOGIN SUPERUSER PASSWORD 'role'`)
	t.Cleanup(func() { db.Exec(t, `DROP ROLE `+login) })
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(login, "role")
	other := &ledgerCLI{t: t, url: u.String()}
	d.has(other.run(0, "", "dlq", "approve", "1", "--yes", "--operator", "oleg", "--reason", "as she says"), "proposal 1 of dead letter", "APPROVED", "edited")
	d.has(other.run(1, "", "dlq", "reject", "1", "--operator", "oleg", "--reason", "no"), "it was approved or rejected before")
	d.has(d.run(0, "", "dlq", "show", second, "--payload", "--history"), "authz/deny", `-  "path": "authz/allow"`, "proposal 1: path was wrong", login, "proposal 1: as she says", "edited")

	d.has(d.run(0, "", "dlq", "resolve", second, "--note", "a test of staging"), "resolved")
	d.has(d.run(0, "", "dlq", "show", second), "RESOLVED", "a test of staging")

	d.has(d.run(0, "", "dlq", "retry", "--code", "23514", "--rate", "5", "--reason", "mended"), "10 dead letters (PENDING 10) match", "job 1 is WAITING")
	d.has(d.run(0, "", "jobs", "stop", "1", "--reason", "not yet"), "Job 1, STOPPED", "not yet")
	d.has(d.run(0, "", "jobs", "resume", "1"), "Job 1, WAITING")
	d.has(d.run(0, "", "jobs", "list"), "--code 23514", "mara")
	d.has(d.run(0, "", "report"), "11 dead letters open")
	d.has(d.run(1, "", "dlq", "show", "ffffffff"), "not in the ledger")
	d.has(d.run(1, "", "jobs", "show", "99"), "not in the ledger")
	d.has(d.run(0, "", "__complete", "dlq", "show", first[:4]), first[:12]+"\tPROCESSING")
}

// TestRetry_EndsWithDesk: somebody else ends it while the command waits.
func TestRetry_EndsWithDesk(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	d := &ledgerCLI{t: t, url: db.URL}
	s, _, err := config.LoadWith(config.Desk, []string{"DOCKET_DATABASE_URL=" + db.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := app.OpenDatabase(s, config.Desk, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	book := ledgerdb.New(pool.DB)
	letters := entering(1)
	if _, err := book.Enter(t.Context(), letters, 3, ledger.Actor{Name: "desk", Why: "read"}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for {
			rows, err := book.Claim(t.Context(), "test", 10, time.Minute)
			if err == nil && len(rows) > 0 {
				ended <- book.Unpublished(t.Context(), "test", rows[0].ID, "network", 0, true)
				return
			}
			if err != nil {
				ended <- err
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	d.has(d.run(1, "", "dlq", "retry", letters[0].ID[:12], "--wait"), "FAILED", "not published: network")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// entering are dead letters that the table refused, and takes now.
func entering(n int) []ledger.Letter {
	out := make([]ledger.Letter, n)
	for i := range out {
		failed := time.Now().Add(-time.Duration(i) * time.Minute).UTC().Truncate(time.Microsecond)
		l := &out[i]
		l.Origin = envelope.Origin{Topic: "decision-logs", Partition: 1, Offset: int64(100 + i), Timestamp: failed}
		l.Value = fmt.Appendf(nil, `{"decision_id":"d-%04d","path":"authz/allow","timestamp":%q,"result":true}`, i, failed.Format(time.RFC3339))
		l.ID = envelope.ID(l.Origin, l.Value)
		l.Found = ledger.Found{Topic: "decision-logs-dlq", Offset: int64(i), Stamp: failed}
		l.Cause = envelope.Cause{Kind: envelope.Data, Code: "23514", Message: "the row violates a CHECK", Table: "decision_logs", Constraint: "decision_logs_path_short"}
		l.FirstFailedAt, l.FailedAt = failed, failed
		l.Path, l.DecisionID, l.DecisionTime = "authz/allow", fmt.Sprintf("d-%04d", i), failed
	}
	return out
}
