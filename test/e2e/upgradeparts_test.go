//go:build integration

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/record/home"
	"docket/internal/testkit/testenv"
)

// directions are from which release to which.
var directions = map[string][2]string{"upgrade": {former, current}, "way back": {current, former}}

func TestUpgrade_RecoversTheOtherSpool(t *testing.T) {
	t.Parallel()
	for name, release := range directions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := upgraded(t, testenv.Postgres(t), "DOCKET_PUBLISH_TIMEOUT=2s")
			s.migrateWith(current)
			g := s.generate(600, 12)
			s.refuse(s.places.DLQTopic)
			g.produce(0)
			writer := s.start(release[0]+"consumer", nil)
			eventually(t, patience, "the offsets are committed on the strength of the spool", func() error {
				lag, _, err := s.places.Lag(t.Context())
				if err != nil || lag > 0 {
					return fmt.Errorf("lag %d, %v", lag, err)
				}
				return nil
			})
			spooled := writer.metric(`docket_records_total{home="spooled"}`)
			writer.stopped()
			files, err := filepath.Glob(filepath.Join(s.places.SpoolDirs[0], "*.jsonl.gz"))
			if err != nil || len(files) == 0 || spooled == 0 {
				t.Fatalf("nothing was spooled: %v files, %v, %v decisions", len(files), err, spooled)
			}
			s.accept(s.places.DLQTopic)
			reader := s.start(release[1]+"consumer", []string{"DOCKET_SPOOL_DIR=" + s.places.SpoolDirs[0]})
			s.places.SpoolDirs = s.places.SpoolDirs[:1]
			a := s.account(patience)
			if n := reader.metric("docket_spool_recovered_records_total"); n == 0 || int(spooled) != a.Homes[home.DeadLetter] {
				t.Errorf("%v were spooled, %v recovered, %d are dead letters", spooled, n, a.Homes[home.DeadLetter])
			}
			if corrupt, _ := filepath.Glob(filepath.Join(s.places.SpoolDirs[0], "corrupt", "*")); len(corrupt) > 0 {
				t.Errorf("taken for broken: %v", corrupt)
			}
			reader.stopped()
		})
	}
}

func TestUpgrade_CountsTheOthersAttempts(t *testing.T) {
	t.Parallel()
	for name, release := range directions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := upgraded(t, testenv.Postgres(t), "DOCKET_PARKING_MAX_ATTEMPTS=3", "DOCKET_PARK_BATCHES=0", "DOCKET_PARKING_BACKOFF=100ms")
			s.migrateWith(current)
			s.exec(`CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF NEW.decision_id LIKE 'never%' THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF;
				IF NEW.decision_id LIKE 'bad%' THEN RAISE EXCEPTION USING ERRCODE = '23514', CONSTRAINT = 'planted', TABLE = 'decision_logs'; END IF;
				RETURN NEW;
			END $$;
			CREATE TRIGGER planted BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION planted();`)
			foreign := []kgo.RecordHeader{{Key: envelope.RetryOf, Value: []byte("7c1f-mark")}, {Key: "traceparent", Value: []byte{0, 0xff}}, {Key: "null"}}
			c := s.start(release[0]+"consumer", nil)
			s.put(&kgo.Record{Key: []byte("k"), Value: []byte(logOf("never", "")), Headers: foreign})
			parked := s.read(s.places.ParkingTopic, 1)[0]
			s.put(&kgo.Record{Key: []byte("k"), Value: []byte(logOf("bad", "")), Headers: foreign})
			s.read(s.places.DLQTopic, 1)
			c.stopped()

			was := headersOf(parked)
			for attempt, by := range []string{release[0], release[1], release[0]} {
				if got := headersOf(parked)[envelope.RetryAttempt]; got != strconv.Itoa(attempt) {
					t.Fatalf("attempt %q, want %d", got, attempt)
				}
				due, err := strconv.ParseInt(headersOf(parked)[envelope.NotBefore], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Until(time.UnixMilli(due)))
				if out, code := s.command([]string{"DOCKET_SPOOL_DIR=", "DOCKET_HTTP_ADDR=" + freeAddr(t)}, by+"parking-replayer", "--once"); code != 0 {
					t.Fatalf("%sparking-replayer --once ended with %d:\n%s", by, code, out)
				}
				if attempt < 2 {
					parked = s.read(s.places.ParkingTopic, attempt+2)[attempt+1]
				}
			}
			for topic, code := range map[string]string{s.places.ParkingDLQ: "40001", s.places.DLQTopic: "23514"} {
				r := s.read(topic, 1)[0]
				h := headersOf(r)
				if h[envelope.FailureCode] != code {
					t.Errorf("%s: code %q, want %s", topic, h[envelope.FailureCode], code)
				}
				others := slices.DeleteFunc(slices.Clone(r.Headers), func(h kgo.RecordHeader) bool {
					return !slices.ContainsFunc(foreign, func(f kgo.RecordHeader) bool { return f.Key == h.Key })
				})
				if fmt.Sprint(others) != fmt.Sprint(foreign) {
					t.Errorf("%s: headers of others are %v, were %v", topic, others, foreign)
				}
				if code != "40001" {
					continue
				}
				for _, same := range []string{envelope.OriginalTopic, envelope.OriginalPartition, envelope.OriginalOffset, envelope.OriginalIndex,
					envelope.OriginalTimestamp, envelope.FirstFailedAt, envelope.DeadLetterID} {
					if h[same] == "" || h[same] != was[same] {
						t.Errorf("%s: %q, and it was parked with %q", same, h[same], was[same])
					}
				}
			}
		})
	}
}

// The desk may be there before the consumers are all new: a retry goes through one of the previous release.
func TestUpgrade_DeskRetriesByFormerConsumer(t *testing.T) {
	t.Parallel()
	s := upgraded(t, testenv.Postgres(t), deskEnv(t)...)
	s.migrateWith(current)
	s.exec(broken)
	const bad = 20
	s.send(decisions("billing/refund", bad)...)
	c := s.start(former+"consumer", nil)
	d := s.desk()
	s.groups(bad)
	s.exec(mended)
	var job shownJob
	s.docket(&job, 0, "dlq", "retry", "--code", "23514", "--rate", "200", "--operator", "ada", "--reason", "the check is dropped", "--yes")
	if job.State != "DONE" || job.Sent != bad || job.Stored != bad || job.Dead != 0 {
		t.Errorf("the job ended as %+v", job)
	}
	s.once("billing/refund", bad)
	s.verify(0)
	c.stopped()
	if code := d.stop(); code != 0 {
		t.Errorf("the desk ended with %d after SIGTERM", code)
	}
}
