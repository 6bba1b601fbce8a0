//go:build integration

package e2e

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"docket/internal/record/home"
	"docket/internal/testkit/testenv"
)

// The change of an operator to the table, and its repair.
const (
	broken = "ALTER TABLE decision_logs ADD CONSTRAINT no_billing CHECK (path <> 'billing/refund') NOT VALID"
	mended = "ALTER TABLE decision_logs DROP CONSTRAINT no_billing"
)

func TestDesk_RetriesLettersOfABrokenMigration(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), deskEnv(t)...)
	s.exec(broken)
	const bad, good = 60, 90
	s.send(slices.Concat(decisions("authz/allow", good), decisions("billing/refund", bad))...)
	c, d := s.consumer(), s.desk()

	groups := s.groups(bad)
	if len(groups) != 1 || groups[0].Code != "23514" || groups[0].Constraint != "no_billing" || groups[0].Counts["PENDING"] != bad || !slices.Equal(groups[0].Paths, []string{"billing/refund"}) {
		t.Fatalf("one cause is not one fingerprint: %+v", groups)
	}
	filter := []string{"dlq", "retry", "--code", "23514"}
	var before, after shownTrial
	s.docket(&before, 1, append(filter, "--dry-run")...)
	if before.Would != 0 || len(before.StillFail) != 1 || before.StillFail[0].Code != "23514" || before.StillFail[0].Constraint != "no_billing" || before.StillFail[0].Letters != bad {
		t.Errorf("a dry run on the broken table: %+v", before)
	}
	s.exec(mended)
	s.docket(&after, 0, append(filter, "--dry-run")...)
	if after.Would != bad || len(after.StillFail) != 0 {
		t.Errorf("a dry run on the mended table: %+v", after)
	}
	s.once("billing/refund", 0)

	var job shownJob
	s.docket(&job, 0, append(filter, "--rate", "200", "--operator", "ada", "--reason", "the check is dropped", "--yes")...)
	if job.State != "DONE" || job.Sent != bad || job.Stored != bad || job.Dead != 0 || job.Operator != "ada" {
		t.Errorf("the job ended as %+v", job)
	}
	s.resolved(bad, "ada")
	s.once("billing/refund", bad)
	s.once("authz/allow", good)
	s.verify(0)
	s.produced(bad+good+bad, func(path string, retried bool) string {
		if path == "billing/refund" && !retried {
			return "23514"
		}
		return ""
	})
	if a := s.account(patience); a.Homes[home.Row] != good+bad || a.DeadLetters["23514"] != bad {
		t.Errorf("retried records are records of their own, and what was a dead letter stays one: %v, dead letters %v", a.Homes, a.DeadLetters)
	}
	c.sound()
	for _, p := range []*process{d, c} {
		if code := p.stop(); code != 0 {
			t.Errorf("%s ended with %d after SIGTERM", p.name, code)
		}
	}
	if strings.Contains(d.out.String(), "billing/refund-") {
		t.Error("the desk's log shows what is in a payload")
	}
}

// resolved checks that the ledger holds so many letters, all of them entered, retried by that name, and stored.
func (s *system) resolved(n int, operator string) {
	s.t.Helper()
	if all := s.letters("--state", "RESOLVED"); len(all) != n {
		s.t.Errorf("%d letters are RESOLVED, want %d; all: %+v", len(all), n, s.groups(0))
	}
	for id, acts := range s.audits() {
		if len(acts) != 3 || !strings.HasPrefix(acts[0], "entered:") || acts[1] != "retried:"+operator || !strings.HasPrefix(acts[2], "stored:") {
			s.t.Errorf("the audit of %.12s is %v", id, acts)
		}
	}
}

func TestDesk_KilledLeavesItsJobToAnother(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), deskEnv(t)...)
	s.exec(broken)
	const bad = 400
	s.send(decisions("billing/refund", bad)...)
	s.consumer()
	first := s.desk()
	s.groups(bad)
	s.exec(mended)
	var job shownJob
	s.docket(&job, 0, "dlq", "retry", "--code", "23514", "--rate", "40", "--operator", "ada", "--reason", "the check is dropped", "--yes", "--detach")
	shown := func() (j shownJob) {
		s.docket(&j, 0, "jobs", "show", fmt.Sprint(job.ID))
		return j
	}
	eventually(t, patience, "the job is in the middle", func() error {
		if j := shown(); j.Sent < 20 {
			return fmt.Errorf("%+v", j)
		}
		return nil
	})
	first.kill()
	if j := shown(); j.Sent >= bad || j.State != "RUNNING" {
		t.Fatalf("the kill came too late: %+v", j)
	}
	second, third := s.desk(), s.desk()
	eventually(t, patience, "the job is done and every retry has ended", func() error {
		if j := shown(); j.State != "DONE" || j.Stored != bad {
			return fmt.Errorf("%+v", j)
		}
		return nil
	})
	s.groups(0)
	s.resolved(bad, "ada")
	s.once("billing/refund", bad)
	s.verify(0)
	for _, p := range []*process{second, third} {
		if code := p.stop(); code != 0 {
			t.Errorf("%s ended with %d after SIGTERM", p.name, code)
		}
	}
}

func TestDesk_RetryDeadAgainIsTheSameLetter(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), append(deskEnv(t), "DOCKET_DESK_MAX_ATTEMPTS=2")...)
	s.exec(broken)
	s.send(decisions("billing/refund", 1)...)
	s.consumer()
	s.desk()
	s.groups(1)
	id := s.letters()[0].ID
	for attempt, state := range []string{"PENDING", "FAILED"} {
		s.docket(nil, 1, "dlq", "retry", id, "--operator", "ada")
		all := s.letters()
		if len(all) != 1 || all[0].ID != id || all[0].State != state || all[0].Attempts != attempt+1 {
			t.Fatalf("after %d retries that died: %+v", attempt+1, all)
		}
	}
	s.docket(nil, 0, "dlq", "resolve", id, "--operator", "bob", "--note", "a refund of a test account")
	if acts := s.audits()[id]; len(acts) != 6 || acts[5] != "closed:bob" {
		t.Errorf("the audit is %v", acts)
	}
	s.verify(0)
}

func TestDesk_EditedLetterIsStored(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), deskEnv(t)...)
	value := decisions("authz/allow", 1)[0]
	s.send(strings.TrimSuffix(value, "}"))
	s.consumer()
	s.desk()
	if groups := s.groups(1); groups[0].Kind != "decode" {
		t.Fatalf("%+v", groups)
	}
	id := s.letters()[0].ID
	file := filepath.Join(s.dir, "mended.json")
	if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	s.docket(nil, 0, "dlq", "edit", id, "--file", file, "--yes", "--operator", "ada", "--reason", "a brace was missing")
	if all := s.letters(); all[0].State != "PENDING" || all[0].Edited {
		t.Errorf("one person edited it: %+v", all)
	}
	s.docket(nil, 1, "dlq", "approve", "1", "--yes", "--operator", "bob", "--reason", "with her login")
	s.second(t).docket(nil, 0, "dlq", "approve", "1", "--yes", "--operator", "bob", "--reason", "so it is")
	all := s.letters()
	if len(all) != 1 || all[0].State != "RESOLVED" || !all[0].Edited {
		t.Errorf("the edited letter is %+v", all)
	}
	s.once("authz/allow", 1)
	var shown shownLetter
	s.docket(&shown, 0, "dlq", "show", id, "--history", "--payload")
	acts := []string{}
	for _, a := range shown.History {
		acts = append(acts, a.Act)
		if a.Act == "edited" && (a.By != "ada" || a.Why != "a brace was missing" || a.Diff == "") {
			t.Errorf("the edit is written down as %+v", a)
		}
	}
	if !slices.Equal(acts, []string{"entered", "proposed", "approved", "edited", "retried", "stored"}) {
		t.Errorf("the history is %v", acts)
	}
	s.verify(0)
}

func TestDesk_HoldsWhileItsTableIsMissing(t *testing.T) {
	t.Parallel()
	kafka, db := testenv.Kafka(t), testenv.Postgres(t)
	s := bareSystem(t, kafka, db.Database(t), deskEnv(t)...)
	d := s.desk()
	d.awaitHold("migration")
	s.migrate()
	d.awaitHold("kafka_topic_missing")
	for topic, n := range map[string]int32{s.places.Topic: 2, s.places.DLQTopic: 2, s.places.ParkingTopic: 2, s.places.ParkingDLQ: 1} {
		kafka.CreateTopic(t, topic, n, nil)
	}
	eventually(t, patience, "the desk is ready", func() error {
		if code, body := d.get("/readyz"); code != http.StatusOK || !strings.Contains(body, `"assigned":3`) {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	if code := d.stop(); code != 0 {
		t.Errorf("it ended with %d after SIGTERM", code)
	}
}

func TestDesk_WaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	db := testenv.OwnPostgres(t)
	s := newSystem(t, testenv.Kafka(t), db, deskEnv(t)...)
	s.exec(broken)
	const bad = 30
	s.send(decisions("billing/refund", bad)...)
	c := s.consumer()
	s.drained(patience) // they are dead letters before there is a desk
	s.exec(mended)
	db.Pause(t)
	away, d := s.desk(), s.desk()
	for _, p := range []*process{away, d} {
		p.awaitHold("database_away")
	}
	if code := away.stop(); code != 0 {
		t.Errorf("stopped in the outage, it ended with %d", code)
	}
	db.Unpause(t)
	s.groups(bad)
	s.docket(nil, 0, "dlq", "retry", "--code", "23514", "--operator", "ada", "--reason", "the check is dropped", "--yes", "--detach")
	db.Restart(t, testenv.Immediate)
	s.groups(0)
	s.resolved(bad, "ada")
	s.once("billing/refund", bad)
	eventually(t, patience, "the desk is ready", func() error {
		if code, body := d.get("/readyz"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	s.verify(0)
	c.sound()
	if code := d.stop(); code != 0 {
		t.Errorf("it ended with %d after SIGTERM", code)
	}
}

func TestDesk_AnswersTokensOverHTTP(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), deskEnv(t)...)
	api := freeAddr(t)
	d := s.desk("DOCKET_DESK_API_ADDR="+api, "DOCKET_DESK_API_TOKENS=mara:viewer:0123456789abcdef")
	eventually(t, patience, "the desk is ready", func() error {
		if code, body := d.get("/readyz"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	s.send(decisions("authz/allow", 1)...)
	s.consumer()
	s.drained(patience)
	ask := func(path, header string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+api+"/api/v1"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			req.Header.Set("Authorization", header)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	for header, want := range map[string]int{"": 401, "Bearer 0123456789abcdee": 401, "Bearer 0123456789abcdef": 200} {
		if code, body := ask("/groups", header); code != want {
			t.Errorf("%s: %d %s, want %d", cmp.Or(header, "no token"), code, body, want)
		}
	}
	if code, body := ask("/where-is?q=authz/allow-0", "Bearer 0123456789abcdef"); code != 200 || !strings.Contains(body, `"row: stored `) {
		t.Errorf("where-is: %d %s", code, body)
	}
	if code, body := ask("/report", "Bearer 0123456789abcdef"); code != 200 || !strings.Contains(body, s.places.DLQTopic) {
		t.Errorf("report: %d %s", code, body)
	}
}
