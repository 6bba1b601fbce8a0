//go:build integration

package e2e

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"docket/internal/testkit/testenv"
)

// taskOf returns the first block of commands below a heading of a page.
func taskOf(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, below, _ := strings.Cut(string(text), "\n"+heading+"\n")
	below, _, _ = strings.Cut(below, "\n#")
	block := regexp.MustCompile("(?ms)^ *```(?:bash|sh|sql)\n(.*?)^ *```$").FindStringSubmatch(below)
	if block == nil {
		t.Fatalf("%s has no commands below %q", page, heading)
	}
	return block[1]
}

// inside is the address of a database for a program in the container of its server.
func inside(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = "localhost:5432"
	return u.String()
}

// TestTasks_RestoredDatabase copies a database with the commands of the runbook, as a backup does, and continues. Then the
// copy takes the place of the database. With the commands of the runbook Docket reads again whatever the copy lacks.
func TestTasks_RestoredDatabase(t *testing.T) {
	t.Parallel()
	k, db := testenv.Kafka(t), testenv.OwnPostgresWith(t, testenv.PostgresOptions{Memory: true}) // roles are copied, too
	s := newSystem(t, k, db, deskEnv(t)...)
	backup := db.Database(t)
	s.exec(`CREATE FUNCTION busy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.decision_id = 'parked' THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF;
		RETURN NEW;
	END $$;
	CREATE TRIGGER busy BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION busy()`)
	g := s.generate(1600, 53)
	s.exec(broken)
	running := []*process{s.consumer(), s.desk()}
	s.send(logOf("parked", ""))
	s.read(s.places.ParkingTopic, 1)
	s.exec(dropping("busy()"))
	g.produce(800)
	s.send(decisions("billing/refund", 1)...)
	s.carried()

	if _, err := db.Handle().Output(t.Context(), "bash", "-c", "set -e\ncd /tmp\nOLD='"+inside(t, s.dsn)+"' NEW='"+inside(t, backup)+"'\n"+taskOf(t, "runbook.md", "### Another database")); err != nil {
		t.Fatal(err)
	}

	running = append(running, s.replayer()) // it stores what was parked
	s.exec(mended)
	letter := s.letters("--code", "23514", "--path", "billing/refund")
	if len(letter) != 1 {
		t.Fatalf("letters of billing/refund: %v", letter)
	}
	s.docket(nil, 0, "dlq", "retry", letter[0].ID, "--operator", "ada", "--reason", "the rule is gone", "--yes")
	g.produce(0)
	s.drained(patience)
	s.carried()
	if n := s.rows("decision_id IN ('parked', 'billing/refund-0')"); n != 2 {
		t.Fatalf("%d rows of what was parked and retried", n)
	}
	s.verify(0, "--settled")
	before, ids := s.fingerprint(), s.letterIDs()
	for _, p := range running {
		if code := p.stop(); code != 0 {
			t.Errorf("%s ended with %d", p.name, code)
		}
	}

	s.dsn, s.places.DatabaseURL, s.env = backup, backup, append(s.env, "DOCKET_DATABASE_URL="+backup)
	if now := s.fingerprint(); now == before || len(s.letterIDs()) >= len(ids) {
		t.Fatalf("the backup lacks nothing: %s, %d letters", now, len(ids))
	}
	s.has(s.verify(1), "I1", "broken")
	s.exec(mended)
	const groups = "docket docket-parking docket-desk"
	task := taskOf(t, "runbook.md", "### Postgres lost commits")
	if !strings.Contains(task, "in "+groups+";") {
		t.Fatalf("the task is about other groups:\n%s", task)
	}
	task = strings.Replace(task, groups, s.places.Group+" "+s.places.ParkingGroup+" "+testenv.Prefix(t)+"desk", 1)
	if _, err := k.Handle().Output(t.Context(), "bash", "-c", "set -e\nexport PATH=$PATH:/opt/kafka/bin BROKERS=localhost:19092 "+brief+"\n"+task); err != nil {
		t.Fatal(err)
	}
	s.consumer()
	s.replayer()
	s.desk()
	s.drained(patience)
	s.carried()
	if now := s.fingerprint(); now != before {
		t.Errorf("the rows are %s, before %s", now, before)
	}
	if now := s.letterIDs(); !slices.Equal(now, ids) {
		t.Errorf("%d letters, before %d", len(now), len(ids))
	}
	s.verify(0) // the first record of what was retried has a row now, and a dead letter
}

// carried waits until the consumers have read the source, and the desk both dead-letter topics.
func (s *system) carried() {
	s.t.Helper()
	eventually(s.t, patience, "the source and the dead letters are read", func() error {
		if source, _, err := s.places.Lag(s.t.Context()); err != nil || source > 0 {
			return fmt.Errorf("lag of the source %d, %w", source, err)
		}
		var report struct {
			Horizons []struct {
				Topic, Error string
				Unread       int64
			}
		}
		if told, err := s.tryDocket(&report, 0, "report"); err != nil {
			return fmt.Errorf("%w %s", err, told)
		}
		for _, h := range report.Horizons {
			if of := h.Topic == s.places.DLQTopic || h.Topic == s.places.ParkingDLQ; of && (h.Unread > 0 || h.Error != "") {
				return fmt.Errorf("%d of %s are unread %s", h.Unread, h.Topic, h.Error)
			}
		}
		return nil
	})
}

// fingerprint is a hash over the identities and payloads of all rows, and their number.
func (s *system) fingerprint() (text string) {
	s.t.Helper()
	if err := s.scan(`SELECT count(*) || ' ' || md5(string_agg(decision_id || ' ' || ts || ' ' || encode(raw_sha256, 'hex') || md5(raw::text), ',' ORDER BY decision_id, ts)) FROM decision_logs`, nil, &text); err != nil {
		s.t.Fatal(err)
	}
	return text
}

// letterIDs are the ids in the ledger, in order.
func (s *system) letterIDs() (ids []string) {
	s.t.Helper()
	if err := s.scan(`SELECT array_agg(dead_letter_id ORDER BY dead_letter_id) FROM dead_letters`, nil, &ids); err != nil {
		s.t.Fatal(err)
	}
	return ids
}

// TestTasks_ErasedRow: the statement of docs/security.md erases a payload. A second delivery is a duplicate, and brings nothing
// back. As the page says, verify reports the row while Kafka has the record.
func TestTasks_ErasedRow(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	c := s.consumer()
	person := logOf("erased", `,"input":{"user":"alice"},"requested_by":"10.0.0.7:1"`)
	s.send(person, logOf("other", `,"input":{"user":"bob"}`))
	s.carried()
	s.verify(0, "--settled")
	s.exec(strings.ReplaceAll(taskOf(t, "security.md", "## Erasing personal data"), "'...'", "'erased'"))
	if n := s.rows("decision_id = 'erased' AND requested_by IS NULL AND raw::text !~ 'alice|10.0.0.7'"); n != 1 {
		t.Fatalf("%d rows are erased", n)
	}
	s.has(s.verify(1), "I3", "broken", ": 1 of ", "(erased): its row has another payload")
	s.send(person)
	eventually(t, patience, "the second delivery is a duplicate", func() error {
		if n := c.metric(`docket_records_total{home="duplicate"}`); n != 1 {
			return fmt.Errorf("%v duplicates", n)
		}
		return nil
	})
	if n := s.rows("raw::text ~ 'alice'"); n != 0 {
		t.Errorf("%d rows have the name", n)
	}
	if n := c.metric(`docket_records_total{home="dead_letter"}`); n != 0 {
		t.Errorf("%v dead letters", n)
	}
}

// TestTasks_ErasedInArchive follows docs/security.md for a decision that was archived. Answers are complete afterwards, and no
// archive has the payload.
func TestTasks_ErasedInArchive(t *testing.T) {
	t.Parallel()
	shelf := filepath.Join(t.TempDir(), "shelf")
	a := newArchives(t, []string{"DOCKET_ARCHIVE_TO=" + shelf})
	run := func(words ...string) string {
		t.Helper()
		out, err := a.run(nil, words...)
		if err != nil {
			t.Fatalf("docket %s: %v\n%s", strings.Join(words, " "), err, out)
		}
		return out
	}
	run("archive", "--day", a.day)
	if out := run("logs", "d7", "--full"); !strings.Contains(out, `"input"`) {
		t.Fatalf("the archived decision has no input:\n%s", out)
	}
	former, err := filepath.Glob(filepath.Join(shelf, "*-"+a.day+"-*"))
	inDays, errDays := filepath.Glob(filepath.Join(shelf, "*", "day="+a.day, "*"))
	if former = append(former, inDays...); errors.Join(err, errDays) != nil || len(former) < 2 {
		t.Fatalf("the archive is %v: %v, %v", former, err, errDays)
	}
	steps := 0
	for line := range strings.Lines(taskOf(t, "security.md", "### An archived day")) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		line = strings.ReplaceAll(strings.TrimSpace(line), "2026-08-01", a.day)
		switch words := strings.Fields(line); words[0] {
		case "docket":
			run(words[1:]...)
			if slices.Equal(words[1:], []string{"archive", "list"}) {
				for _, name := range former {
					if err := os.Remove(name); err != nil {
						t.Fatal(err)
					}
				}
			}
		case "psql":
			sql := regexp.MustCompile(`-c "(.*)"$`).FindStringSubmatch(line)
			a.exec(strings.ReplaceAll(sql[1], "'...'", "'d7'"))
		default:
			t.Fatalf("no step: %q", line)
		}
		steps++
	}
	if steps != 5 {
		t.Fatalf("%d steps", steps)
	}
	var rows int
	if err := a.db.QueryRow(t.Context(), `SELECT count(*) FROM decision_logs`).Scan(&rows); err != nil || rows != 0 {
		t.Fatalf("%d rows are in the table: %v", rows, err)
	}
	for _, words := range [][]string{{"logs", "d7", "--full"}, {"logs", "--since", a.day, "--until", "2026-03-05", "-n", "5"}, {"archive", "list"}, {"archive", "verify", "--all"}} {
		if out := run(words...); strings.Contains(out, "not looked at") || strings.Contains(out, "PARTIAL") || words[1] == "d7" && strings.Contains(out, `"input"`) {
			t.Errorf("docket %s says\n%s", strings.Join(words, " "), out)
		}
	}
}

// TestTasks_ColumnOfYourOwn: the statement of the runbook adds a column while decisions are stored, and days that are made later have
// it, too.
func TestTasks_ColumnOfYourOwn(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	c := s.consumer()
	s.send(logOf("before", ""))
	s.carriedRows(1)
	s.exec(taskOf(t, "runbook.md", "### A column of your own"))
	s.send(logOf("after", ""))
	s.carriedRows(2)
	s.exec(`SELECT decision_logs_make_partitions(20)`)
	if n := s.rows("ticket IS NULL"); n != 2 {
		t.Errorf("%d rows", n)
	}
	if out, _ := s.command(nil, "consumer", "check"); !strings.Contains(out, "ok    database columns:") {
		t.Errorf("check says\n%s", out)
	}
	c.sound()
}

// carriedRows waits until the table has so many rows.
func (s *system) carriedRows(n int) {
	s.t.Helper()
	eventually(s.t, patience, fmt.Sprintf("%d decisions are stored", n), func() error {
		if got := s.rows("true"); got != n {
			return fmt.Errorf("%d rows", got)
		}
		return nil
	})
}
