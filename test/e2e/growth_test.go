//go:build integration

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/testenv"
)

// shownSurplus is a range as `docket dlq surplus` shows it.
type shownSurplus struct {
	Range                                  int
	State, Client, Archive                 string
	Letters, Open, Entered, Archived, Lost int
}

func (s *system) surplus() []shownSurplus {
	s.t.Helper()
	var all shownList[shownSurplus]
	s.docket(&all, 0, "dlq", "surplus", "--all")
	return all.Entries
}

// hour has growth count to that hour, whatever the clock says.
func (s *system) hour(n int) {
	s.exec(fmt.Sprintf(`CREATE OR REPLACE FUNCTION dead_letters_hour() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT timestamptz '2026-01-01 %02d:00:00Z' $$`, n))
}

// leftOpen waits until so many letters are in the ledger and so many are in Kafka alone.
func (s *system) leftOpen(entered, open int) {
	s.t.Helper()
	eventually(s.t, patience, fmt.Sprintf("%d letters in the ledger, %d in Kafka alone", entered, open), func() error {
		n := 0
		for _, r := range s.surplus() {
			n += r.Open
		}
		if all := s.letters(); len(all) != entered || n != open {
			return fmt.Errorf("%d and %d", len(all), n)
		}
		return nil
	})
}

// flood makes a system with a table that refuses billing/refund. A client of the collector brings n such decisions, and a
// desk enters 10 of them an hour.
func flood(t *testing.T, n int, env ...string) *system {
	t.Helper()
	file, _ := headerKey(t)
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), slices.Concat(deskEnv(t), []string{"DOCKET_HEADER_KEY_FILE=" + file, "DOCKET_DESK_MAX_ENTERED=10"}, env)...)
	s.hour(1)
	s.exec(broken)
	uploads := freeAddr(t)
	awaitReady(t, s.collector(uploads))
	s.consumer()
	if status, body := upload(t, uploads, "["+strings.Join(decisions("billing/refund", n), ",")+"]", true); status/100 != 2 {
		t.Fatalf("the upload was answered %d %s", status, body)
	}
	s.read(s.places.DLQTopic, n)
	return s
}

// without are the ids of n decisions that are not among letters.
func without(letters []shownEntry, n int) (ids []string) {
	for i := range n {
		if id := fmt.Sprintf("billing/refund-%d", i); !slices.ContainsFunc(letters, func(l shownEntry) bool { return l.DecisionID == id }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestGrowth_OneClientFloods: letters beyond a client's limit stay in Kafka, and are counted and found. Letters of other
// clients enter at once. In the end all letters enter.
func TestGrowth_OneClientFloods(t *testing.T) {
	t.Parallel()
	const many, others = 40, 5
	s := flood(t, many)
	first := s.desk()
	s.leftOpen(10, many-10)
	for i := range others {
		s.put(&kgo.Record{Value: fmt.Appendf(nil, `{"decision_id":"other-%d","timestamp":%q,"path":"billing/refund"}`, i, time.Now().UTC().Format(time.RFC3339Nano))})
	}
	s.leftOpen(10+others, many-10)
	for _, r := range s.surplus() {
		if r.Client != "opa" || r.State != "open" || r.Lost > 0 {
			t.Errorf("%+v", r)
		}
	}
	eventually(t, patience, "docket dlq groups tells of them", func() error { // it waits a few seconds for Kafka
		if told := s.docket(nil, 0, "dlq", "groups"); !strings.Contains(told, "30 dead letters of opa (in Kafka: ") {
			return fmt.Errorf("it says\n%s", told)
		}
		return nil
	})
	ids := without(s.letters(), many)
	if len(ids) != many-10 {
		t.Fatalf("%d are not in the ledger", len(ids))
	}
	for _, id := range []string{ids[0], ids[len(ids)-1]} {
		for _, command := range []string{"where-is", "logs", "why"} {
			if out, _ := s.command(nil, "docket", command, id, "--within", "30s"); !strings.Contains(out, "docket dlq surplus") || !strings.Contains(out, s.places.DLQTopic) {
				t.Errorf("docket %s %s does not find it in Kafka:\n%s", command, id, out)
			}
		}
	}
	if out := s.verify(0); !strings.Contains(lineOf(out, "I16"), "ok") || !strings.Contains(out, "30 dead letters are in a dead-letter topic") {
		t.Errorf("verify does not account for them:\n%s", out)
	}

	first.kill()
	second, third := s.desk(), s.desk()
	awaitReady(t, second)
	awaitReady(t, third)
	s.hour(2)
	s.leftOpen(20+others, many-20)
	s.hour(3)
	s.leftOpen(30+others, many-30)
	args := []string{"dlq", "surplus", "--operator", "ada", "--reason", "the check is known"}
	for _, r := range s.surplus() {
		if r.State == "open" {
			args = append(args, "--enter", fmt.Sprint(r.Range))
		}
	}
	s.docket(nil, 0, args...)
	s.leftOpen(many+others, 0)
	letters := 0
	for _, r := range s.surplus() {
		if letters += r.Letters; r.State != "entered" || r.Entered != r.Letters || r.Lost > 0 {
			t.Errorf("%+v", r)
		}
	}
	if ids := without(s.letters(), many); letters != many-10 || len(ids) > 0 {
		t.Errorf("%d letters were in ranges, and the ledger has not %v", letters, ids)
	}
	for id, acts := range s.audits() {
		if len(acts) != 1 {
			t.Errorf("the audit of %.12s is %v", id, acts)
		}
	}
	if out := s.verify(0); strings.Contains(out, "dead letters are in a dead-letter topic") {
		t.Errorf("nothing is in Kafka alone:\n%s", out)
	}
	s.exec(mended)
	s.docket(nil, 0, "dlq", "retry", "--code", "23514", "--operator", "ada", "--reason", "the check is dropped", "--yes")
	s.once("billing/refund", many+others)
	for _, p := range []*process{second, third} {
		if code := p.stop(); code != 0 {
			t.Errorf("%s ended with %d after SIGTERM", p.name, code)
		}
		if strings.Contains(p.out.String(), "billing/refund-") {
			t.Errorf("the log of %s shows what is in a payload", p.name)
		}
	}
}

// TestGrowth_ArchivedBeforeKafkaDeletesIt: where nobody knows how long Kafka keeps what is left, it is archived at once, found there, and brought back.
func TestGrowth_ArchivedBeforeKafkaDeletesIt(t *testing.T) {
	t.Parallel()
	const many = 25
	shelf := t.TempDir()
	s := flood(t, many, "DOCKET_ARCHIVE_TO="+shelf)
	changed, err := s.admin().AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "retention.bytes", Value: new("1073741824")}}, s.places.DLQTopic)
	if err != nil || changed[0].Err != nil {
		t.Fatal(err, changed)
	}
	d := s.desk()
	eventually(t, patience, "what is left is archived", func() error {
		n := 0
		for _, r := range s.surplus() {
			n += r.Archived
		}
		if n != many-10 {
			return fmt.Errorf("%+v", s.surplus())
		}
		return nil
	})
	s.leftOpen(10, 0)
	ids := without(s.letters(), many)
	if len(ids) != many-10 {
		t.Fatalf("%d are not in the ledger", len(ids))
	}
	if out, _ := s.command(nil, "docket", "logs", ids[0], "--within", "30s"); !strings.Contains(out, "in archive dead_letters-") {
		t.Errorf("docket logs does not find it in the archive:\n%s", out)
	}
	if out, _ := s.command(nil, "docket", "where-is", ids[0], "--within", "30s"); !strings.Contains(out, "in archive dead_letters-") || !strings.Contains(out, "restore --dead-letters") {
		t.Errorf("it is not found in the archive:\n%s", out)
	}
	if out := s.verify(0); !strings.Contains(lineOf(out, "I16"), "ok") || !strings.Contains(out, "15 dead letters are in a dead-letter topic or an archive") {
		t.Errorf("verify does not account for them:\n%s", out)
	}
	if code := d.stop(); code != 0 {
		t.Errorf("the desk ended with %d", code)
	}
	if out, code := s.command(nil, "docket", "archive", "verify", "--all"); code != 0 {
		t.Errorf("archive verify ended with %d:\n%s", code, out)
	}
	days := map[string]bool{}
	for _, r := range s.surplus() {
		days[strings.Join(strings.Split(r.Archive, "-")[1:4], "-")] = true
	}
	for day := range days {
		s.docket(nil, 0, "restore", "--dead-letters", "--day", day, "--operator", "ada")
	}
	if ids := without(s.letters(), many); len(ids) > 0 {
		t.Errorf("the ledger has not %v", ids)
	}
	s.verify(0)
}
