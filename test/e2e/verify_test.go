//go:build integration

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/home"
	"docket/internal/testkit/testenv"
)

// verify runs the command over all that this system has and returns what it printed.
func (s *system) verify(want int, args ...string) string {
	s.t.Helper()
	args = append([]string{"verify", "--since", "1h"}, args...)
	for _, dir := range s.places.SpoolDirs {
		args = append(args, "--spool", dir)
	}
	out, code := s.command(nil, "consumer", args...)
	if code != want {
		s.t.Errorf("consumer %s ended with %d, want %d:\n%s", strings.Join(args, " "), code, want, out)
	}
	return out
}

// lineOf is the line about an invariant.
func lineOf(out, invariant string) string {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, invariant+" ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func (s *system) has(out, invariant string, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		if !strings.Contains(lineOf(out, invariant), part) {
			s.t.Errorf("%q is not in %q of\n%s", part, lineOf(out, invariant), out)
		}
	}
}

// placeOf is where the row of a decision says that it was read.
func (s *system) placeOf(id string) (place string) {
	s.t.Helper()
	err := s.scan(`SELECT source_topic || '/' || source_partition || '/' || source_offset || '/' || source_index FROM decision_logs WHERE decision_id = $1`,
		[]any{id}, &place)
	if err != nil {
		s.t.Fatalf("place of %s: %v", id, err)
	}
	return place
}

func TestVerify_NamesEachFault(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	g := s.generate(3000, 21)
	s.send(logOf("lost", ""), logOf("altered", `,"n":1`), logOf("moved", ""))
	c, r := s.consumer(), s.replayer()
	g.produce(0)
	s.drained(patience)
	metrics := []string{"--settled", "--try-dead-letters", "--metrics", "http://" + c.addr + "/metrics", "--metrics", "http://" + r.addr + "/metrics"}

	out := s.verify(0, metrics...)
	for _, id := range []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I10", "I15", "I17"} {
		s.has(out, id, " ok ")
	}
	for _, id := range []string{"I9", "I11", "I12", "I13", "I14", "I16", "I18"} {
		s.has(out, id, "not decidable here")
	}
	if strings.Contains(out, "payload") || strings.Contains(out, `"timestamp"`) || !strings.Contains(out, "none 0") {
		t.Errorf("what is shown:\n%s", out)
	}
	before := s.rows("true")

	lost := s.placeOf("lost")
	s.exec(`CREATE TABLE saved AS SELECT * FROM decision_logs WHERE decision_id IN ('lost', 'altered', 'moved')`)
	s.exec(`DELETE FROM decision_logs WHERE decision_id = 'lost'`)
	out = s.verify(1)
	s.has(out, "I1", "broken", ": 1 of ", lost+" (lost)")
	s.has(out, "I3", " ok ")
	if !strings.Contains(out, "first broken, I1: "+lost) || !strings.Contains(out, "no row has its identity") || !strings.Contains(out, "none 1\n") {
		t.Errorf("the lost one's history:\n%s", out)
	}
	at := strings.Split(lost, "/")
	if out, code := s.command(nil, "consumer", "where-is", lost); code != 1 || !strings.Contains(out, "This should never happen") {
		t.Errorf("where-is ended with %d:\n%s", code, out)
	}
	out = s.verify(1, "--from", strings.Join(at[:3], "/"))
	s.has(out, "I1", ": 1 of ", lost)

	place := s.placeOf("altered")
	s.exec(`INSERT INTO decision_logs SELECT * FROM saved WHERE decision_id = 'lost'`)
	s.exec(`UPDATE decision_logs SET raw = raw || '{"n":2}' WHERE decision_id = 'altered'`)
	out = s.verify(1)
	s.has(out, "I3", "broken", ": 1 of ", place+" (altered): its row has another payload")
	s.exec(`UPDATE decision_logs SET raw = raw || '{"n":1.0}' WHERE decision_id = 'altered'`)
	s.verify(0)

	s.exec(`UPDATE decision_logs SET source_offset = source_offset + 1000000 WHERE decision_id = 'moved'`)
	s.has(s.verify(1), "I4", "broken", ": 1 of ", "(moved): a row that was read where nothing is")
	s.exec(`DELETE FROM decision_logs WHERE decision_id = 'moved'`)
	s.exec(`INSERT INTO decision_logs SELECT * FROM saved WHERE decision_id = 'moved'`)
	if n := s.rows("true"); n != before {
		t.Errorf("%d rows, %d before: verify must not write", n, before)
	}

	dead := s.read(s.places.DLQTopic, sum(s.forwarded(s.places.DLQTopic, home.DeadLetter)))[0]
	h := headersOf(dead)
	s.produceTo(s.places.DLQTopic, &kgo.Record{Key: dead.Key, Value: append([]byte("x"), dead.Value...), Headers: dead.Headers})
	out = s.verify(1)
	s.has(out, "I3", "broken", ": 1 of ", fmt.Sprintf("%s/%s/%s/", h["x-original-topic"], h["x-original-partition"], h["x-original-offset"]), "another value and another dead-letter id")
	s.has(out, "I1", " ok ")
	s.produceTo(s.places.DLQTopic, &kgo.Record{Value: []byte("whoever wrote this")})
	s.has(s.verify(1), "I4", "broken", "does not say where it was read")
	out, code := s.command(nil, "consumer", "verify", "--json", "--spool", s.dir)
	if code != 1 || !strings.Contains(out, `"broken": true`) || !strings.Contains(out, `"invariant": "I18"`) {
		t.Errorf("--json ended with %d:\n%s", code, out)
	}
	if out, code := s.command(nil, "consumer", "verify", "--from", "elsewhere/0/0"); code != 2 {
		t.Errorf("a foreign topic ended with %d:\n%s", code, out)
	}
}

func sum(of map[string]int) (n int) {
	for _, one := range of {
		n += one
	}
	return n
}

// produceTo writes records as they are into a topic.
func (s *system) produceTo(topic string, rs ...*kgo.Record) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1), kgo.DefaultProduceTopic(topic))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(s.t.Context(), rs...).FirstErr(); err != nil {
		s.t.Fatalf("produce: %v", err)
	}
}

// whereIs runs the command and checks that it says all parts.
func (s *system) whereIs(record string, want int, parts ...string) {
	s.t.Helper()
	args := []string{"where-is"}
	for _, dir := range s.places.SpoolDirs {
		args = append(args, "--spool", dir)
	}
	s.says(func() (string, int) { return s.command(nil, "consumer", append(args, record)...) }, "where-is "+record, want, parts...)
}

// says asks until an answer is whole: a question gives the database half a second for some of its parts, which can be too
// short while others work.
func (s *system) says(ask func() (string, int), what string, want int, parts ...string) {
	s.t.Helper()
	eventually(s.t, patience, what+" says all", func() error {
		out, code := ask()
		if code != want {
			return fmt.Errorf("it ended with %d, want %d:\n%s", code, want, out)
		}
		for _, part := range parts {
			if !strings.Contains(out, part) {
				return fmt.Errorf("it does not say %q:\n%s", part, out)
			}
		}
		return nil
	})
}

func TestWhereIs_EveryHome(t *testing.T) {
	t.Parallel()
	s := bareSystem(t, testenv.Kafka(t), testenv.Postgres(t).Database(t), "DOCKET_PARK_BATCHES=0", "DOCKET_PARKING_BACKOFF=10m", "DOCKET_PARKING_MAX_BACKOFF=1h")
	for _, topic := range []string{s.places.Topic, s.places.ParkingTopic, s.places.ParkingDLQ} {
		s.kafka.CreateTopic(t, topic, 1, nil)
	}
	s.kafka.CreateTopic(t, s.places.DLQTopic, 1, map[string]string{"max.message.bytes": "4000"})
	s.migrate()
	s.exec(`CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.decision_id = 'away' THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF;
		IF NEW.decision_id = 'refused' THEN RAISE EXCEPTION USING ERRCODE = '23514', CONSTRAINT = 'planted'; END IF;
		RETURN NEW; END $$;
	CREATE TRIGGER away BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION away();`)
	one := func(offset int) string { return fmt.Sprintf("%s/0/%d", s.places.Topic, offset) }
	c := s.consumer()
	first := logOf("stored", "")
	for i, value := range []string{first, logOf("refused", ""), "huge " + noise(9000), "[" + logOf("two-0", "") + `,{"decision_id":"two-1"}]`, first} {
		s.put(&kgo.Record{Key: []byte("k"), Value: []byte(value)})
		s.committedTo(int64(i + 1))
	}
	s.put(&kgo.Record{Key: []byte("k"), Value: []byte(logOf("away", ""))})
	s.committedTo(6)

	for _, record := range []string{"stored", one(0), one(0) + "/0"} {
		s.whereIs(record, 0, "1 decision\n", "row: stored 20", "Nothing to do.")
	}
	s.whereIs(one(4), 0, "duplicate: an equal row", "first read at "+one(0)+"/0")
	for _, record := range []string{"refused", one(1), s.places.DLQTopic + "/0/0"} {
		s.whereIs(record, 0, "dead letter at "+s.places.DLQTopic+"/0/0, 23514 (check_violation)", "dead-letter id ", "Nothing happens by itself")
	}
	s.whereIs(one(2), 0, "cannot be decoded: syntax", "spooled in ", "for "+s.places.DLQTopic, "raise max.message.bytes")
	s.whereIs(one(3), 0, "2 decisions", "[0] two-0", "row: stored", "[1] two-1 cannot be decoded: missing_field", "dead letter at")
	s.whereIs(one(3)+"/1", 0, "dead letter at")
	s.whereIs("away", 0, "parked at "+s.places.ParkingTopic+"/0/0, attempt 0, 40001 (serialization_failure)", "No member in group "+s.places.ParkingGroup)
	r := s.replayer()
	eventually(t, patience, "the replayer has joined", func() error {
		if !r.ready() {
			return fmt.Errorf("not ready")
		}
		return nil
	})
	s.whereIs("away", 0, "It is replayed in ")

	c.stop()
	s.put(&kgo.Record{Value: []byte(logOf("later-1", ""))}, &kgo.Record{Value: []byte(logOf("later-2", ""))}, &kgo.Record{Value: []byte(logOf("later-3", ""))})
	s.whereIs("later-3", 0, "not read yet: 2 records before it", "No member in group "+s.places.Group)
	s.whereIs(one(7), 0, "not read yet: 1 record before it")
	s.whereIs(one(99), 1, "is not written yet: the partition holds offsets 0 to 8")
	s.whereIs("unheard-of", 1, "not found in ", "archives: nothing was archived", "the rows of decision_logs, "+s.places.Topic+", 9 records since")
	for id, where := range map[string]string{"later-3": "not read yet, at " + one(8), "away": "parked at " + s.places.ParkingTopic + "/0/0, attempt 0", "unheard-of": "It was not found anywhere\n"} {
		for _, act := range []string{"logs", "why"} {
			spool := []string{"DOCKET_SPOOL_DIR=" + s.places.SpoolDirs[0]} // else nobody knows what other hosts have
			s.says(func() (string, int) { return s.command(spool, "docket", act, id, "--within", "30s") }, "docket "+act+" "+id, 1, where)
		}
	}
	s.whereIs("elsewhere/0/1", 1, "is not a topic of the settings")
	s.whereIs("", 2)
}

// committedTo waits until the source's only partition is committed up to there.
func (s *system) committedTo(offset int64) {
	s.t.Helper()
	eventually(s.t, patience, fmt.Sprintf("%d is committed", offset), func() error {
		lag, _, err := s.places.Lag(s.t.Context())
		if err != nil || lag > 0 {
			return fmt.Errorf("lag %d, %v", lag, err)
		}
		return nil
	})
}

// TestVerify_ArchivedIsNotLost: a decision that only an archive has is stored. Without the place of archives, verify says why it counts
// as lost.
func TestVerify_ArchivedIsNotLost(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	s.exec(`ALTER TABLE decision_logs DETACH PARTITION decision_logs_before; DROP TABLE decision_logs_before`)
	for _, id := range []string{"old-1", "old-2"} {
		s.send(fmt.Sprintf(`{"decision_id":%q,"timestamp":"2026-03-04T12:00:00.5Z","path":"authz/allow","result":true,"input":{"n":1.50}}`, id))
	}
	s.send(logOf("new", ""))
	s.consumer()
	s.replayer()
	s.drained(patience)
	shelf := []string{"DOCKET_ARCHIVE_TO=" + t.TempDir(), "DOCKET_OPERATOR=mara"}
	if out, code := s.command(shelf, "docket", "archive", "--day", "2026-03-04"); code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	if n := s.rows("decision_id LIKE 'old-%'"); n != 0 {
		t.Fatalf("%d rows are left", n)
	}
	args := []string{"verify", "--since", "1h"}
	for _, dir := range s.places.SpoolDirs {
		args = append(args, "--spool", dir)
	}
	out, code := s.command(shelf, "docket", args...)
	if code != 0 || !strings.Contains(out, "none 0\n") || !strings.Contains(lineOf(out, "I3"), " ok ") {
		t.Errorf("%d: %s", code, out)
	}
	out, code = s.command(nil, "docket", args...)
	if code != 1 || !strings.Contains(out, "DOCKET_ARCHIVE_TO is not set, and days were archived or removed: its decisions count as lost") || !strings.Contains(lineOf(out, "I1"), ": 2 of 3") {
		t.Errorf("without archives %d: %s", code, out)
	}
}
