//go:build integration

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/conservation"
	"docket/internal/testkit/testenv"
)

// urgentSystem is a system whose settings name the lane urgent, with its topic of one partition.
func urgentSystem(t *testing.T) (s *system, urgent conservation.Lane) {
	t.Helper()
	s = newSystem(t, testenv.Kafka(t), testenv.Postgres(t), append(deskEnv(t), "DOCKET_LANES=urgent")...)
	urgent = conservation.Lane{Topic: s.places.Topic + "-urgent", Group: s.places.Group + "-urgent"}
	s.kafka.CreateTopic(t, urgent.Topic, 1, nil)
	s.places.Lanes = []conservation.Lane{urgent}
	return s, urgent
}

// alone starts a consumer of one lane, so that a test can stop it without the others.
func (s *system) alone(l conservation.Lane) *process {
	s.t.Helper()
	return s.consumer("DOCKET_LANES=", "DOCKET_KAFKA_TOPIC="+l.Topic, "DOCKET_KAFKA_GROUP="+l.Group)
}

func (s *system) into(l conservation.Lane, values ...string) {
	s.t.Helper()
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Value: []byte(v)}
	}
	s.produceTo(l.Topic, records...)
}

// refund is a decision that the table refuses while it is [broken].
func refund(id string) string {
	return strings.Replace(logOf(id, ""), "e2e/allow", "billing/refund", 1)
}

func TestLanes_VerifyFindsALossInUrgent(t *testing.T) {
	t.Parallel()
	s, urgent := urgentSystem(t)
	s.exec(broken)
	twice := logOf("twice", "")
	s.send(logOf("ordinary", ""), twice)
	s.alone(conservation.Lane{Topic: s.places.Topic, Group: s.places.Group})
	eventually(t, patience, "the first is stored", func() error {
		if n := s.rows("decision_id = 'twice'"); n != 1 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	s.into(urgent, logOf("denied", ""), twice, refund("refused"))
	c := s.alone(urgent)
	s.drained(patience)

	out := s.verify(0, "--settled")
	for _, part := range []string{s.places.Topic + " (lane default): 2 records, 2 decisions", urgent.Topic + " (lane urgent): 3 records, 3 decisions in 1 partitions", "row 3, duplicate 1,", "dead_letter 1,", "none 0\n"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	place := s.placeOf("denied")
	if place != urgent.Topic+"/0/0/0" {
		t.Fatalf("the row of the lane is from %s", place)
	}
	s.whereIs("denied", 0, urgent.Topic+"/0/0 (lane urgent), produced", "row: stored")
	s.whereIs(urgent.Topic+"/0/1", 0, "(lane urgent)", "duplicate: an equal row was stored")
	s.whereIs(urgent.Topic+"/0/2", 0, "(lane urgent)", "dead letter at "+s.places.DLQTopic)
	s.whereIs("ordinary", 0, "(lane default)")

	s.exec(`CREATE TABLE saved AS SELECT * FROM decision_logs WHERE decision_id = 'denied'`)
	s.exec(`DELETE FROM decision_logs WHERE decision_id = 'denied'`)
	s.has(s.verify(1), "I1", "broken", ": 1 of ", place+" (denied)")
	s.has(s.verify(1, "--from", urgent.Topic+"/0/0"), "I1", ": 1 of 3", place)
	s.exec(`INSERT INTO decision_logs SELECT * FROM saved`)
	s.verify(0, "--settled")

	if code := c.stop(); code != 0 {
		t.Errorf("the consumer of the lane ended with %d", code)
	}
	s.into(urgent, logOf("late", ""))
	s.whereIs("late", 0, urgent.Topic+"/0/3 (lane urgent), produced", "not read yet", "No member in group "+urgent.Group+": start the consumer.")
	s.verify(0)
	s.has(s.verify(1, "--settled"), "I7", "broken", urgent.Topic+"/0 is committed up to 3 of 4")
	var found struct{ Records []struct{ Lane string } }
	if s.docket(&found, 0, "where-is", "late"); len(found.Records) != 1 || found.Records[0].Lane != "urgent" {
		t.Errorf("as JSON: %+v", found)
	}
	if out, code := s.command([]string{"DOCKET_LANES="}, "docket", "where-is", urgent.Topic+"/0/3"); code != 1 || !strings.Contains(out, "name the lane in DOCKET_LANES") {
		t.Errorf("without the lane: exit %d\n%s", code, out)
	}
}

func TestLanes_RetryGoesIntoItsLane(t *testing.T) {
	t.Parallel()
	s, urgent := urgentSystem(t)
	s.exec(broken)
	s.alone(urgent)
	d := s.desk()
	s.into(urgent, refund("first"))
	s.groups(1)
	s.exec(mended)
	s.docket(nil, 0, "dlq", "retry", s.letters()[0].ID, "--operator", "ada", "--reason", "the check is dropped", "--yes")
	if place := s.placeOf("first"); place != urgent.Topic+"/0/1/0" {
		t.Errorf("the retried decision was read at %s", place)
	}
	if all := s.letters("--topic", urgent.Topic); len(all) != 1 || all[0].State != "RESOLVED" {
		t.Errorf("%+v", all)
	}

	// The lane is removed. The desk no longer publishes to its topic, and says which setting decides.
	s.exec(broken)
	s.into(urgent, refund("second"))
	s.groups(1)
	s.exec(mended)
	d.stop()
	d = s.desk("DOCKET_LANES=")
	i := slices.IndexFunc(s.letters(), func(e shownEntry) bool { return e.DecisionID == "second" })
	id := s.letters()[i].ID
	retry := []string{"dlq", "retry", id, "--operator", "ada", "--reason", "again", "--yes"}
	if out := s.docket(nil, 1, retry...); !strings.Contains(out, "foreign_topic") || !strings.Contains(out, "DOCKET_LANES") {
		t.Errorf("a retry into a removed lane:\n%s", out)
	}
	if e := s.letters("--state", "FAILED"); len(e) != 1 || e[0].ID != id {
		t.Errorf("FAILED are %+v", e)
	}
	if err := d.logged("retry refused, not a source topic", map[string]string{"topic": urgent.Topic}, "DOCKET_LANES"); err != nil {
		t.Error(err)
	}
	d.stop()
	s.desk()
	s.docket(nil, 0, retry...)
	if place := s.placeOf("second"); place != urgent.Topic+"/0/3/0" {
		t.Errorf("the retried decision was read at %s", place)
	}
	s.verify(0, "--settled")
}

func TestLanes_CheckNamesMissingTopicAndRights(t *testing.T) {
	t.Parallel()
	k := testenv.Secured(t)
	s := securedSystem(t, k)
	s.env = append(s.env, "DOCKET_LANES=urgent")
	urgent := conservation.Lane{Topic: s.places.Topic + "-urgent", Group: s.places.Group + "-urgent"}
	p := newPrincipal(t, k, s.places.Topic+"checker")
	env := append(p.mtls(t, k.At(testenv.ListenerMTLS), k.CA, tomorrow()), "DOCKET_SPOOL_DIR=")
	consumer, replayer := s.rights()
	k.Grant(t, p.name, slices.Concat(consumer, replayer)...)
	check := func(want int, parts ...string) {
		t.Helper()
		eventually(t, patience, fmt.Sprintf("check says %q", parts), func() error {
			if out, code := s.command(env, "consumer", "check"); code != want || !lineWith(out, parts...) {
				return fmt.Errorf("exit %d:\n%s", code, out)
			}
			return nil
		})
	}
	check(1, "fail", "topic "+urgent.Topic+":", "--operation READ --topic "+urgent.Topic)
	k.Grant(t, p.name, testenv.ACL{Operation: kadm.OpRead, Topic: urgent.Topic})
	check(1, "fail", "topic "+urgent.Topic+":", "--create --topic "+urgent.Topic+" --partitions 2 ", "remove urgent from DOCKET_LANES")
	k.CreateTopic(t, urgent.Topic, 2, nil)
	check(1, "warn", "topic "+urgent.Topic+":", "replication 1")
	check(1, "fail", "group "+urgent.Group+":", "READ", urgent.Group)
	k.Grant(t, p.name, testenv.ACL{Operation: kadm.OpRead, Group: urgent.Group})
	check(0, "group "+urgent.Group+":", "does not exist yet")
}

// rightsOfLane are the rights that the page gives to a principal for each lane more.
func rightsOfLane(t *testing.T, principal, lane string) []testenv.ACL {
	t.Helper()
	const loop = "for lane in urgent bulk; do "
	var commands [][]string
	for _, line := range pageLines(t) {
		if command, ok := strings.CutPrefix(strings.ReplaceAll(line, "$lane", lane), loop); ok && slices.Contains(strings.Fields(command), "User:"+principal) {
			commands = append(commands, strings.Fields(strings.TrimSuffix(strings.TrimSpace(command), "; done")))
		}
	}
	return sorted(rightsOf(commands))
}

func TestPage_NamesRightsOfLanes(t *testing.T) {
	t.Parallel()
	for _, lane := range []string{"urgent", "bulk"} {
		topic, group := "decision-logs-"+lane, "docket-"+lane
		for principal, want := range map[string][]testenv.ACL{
			"docket-consumer":  {{Operation: kadm.OpRead, Topic: topic}, {Operation: kadm.OpRead, Group: group}},
			"docket-desk":      {{Operation: kadm.OpRead, Topic: topic}, {Operation: kadm.OpWrite, Topic: topic}, {Operation: kadm.OpDescribe, Group: group}},
			"docket-collector": {{Operation: kadm.OpWrite, Topic: topic}},
			"docket-verify":    {{Operation: kadm.OpRead, Topic: topic}, {Operation: kadm.OpDescribe, Group: group}},
		} {
			if got := rightsOfLane(t, principal, lane); !slices.Equal(got, sorted(want)) {
				t.Errorf("%s in %s: the page gives %v, want %v", principal, lane, got, want)
			}
		}
	}
}
