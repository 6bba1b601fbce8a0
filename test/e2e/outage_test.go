//go:build integration

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docket/internal/record/home"
	"docket/internal/testkit/testenv"
)

func TestOutage_PostgresUnderLoad(t *testing.T) {
	t.Parallel()
	db := testenv.OwnPostgres(t)
	s := newSystem(t, testenv.Kafka(t), db)
	g := s.generate(8000, 3)
	c, r := s.consumer(), s.replayer()
	g.background(0, time.Millisecond)
	for _, fault := range []func(){
		func() { db.Restart(t, testenv.Fast) },
		func() { db.Restart(t, testenv.Immediate) },
		func() { db.Kill(t); time.Sleep(4 * time.Second); db.Start(t) }, // long enough for parking and hold
		func() { db.Pause(t); time.Sleep(3 * time.Second); db.Unpause(t) },
	} {
		fault()
		eventually(t, patience, "rows are stored again", func() error {
			if n := c.metric(`docket_hold{reason="database_away"}`) + c.metric(`docket_hold{reason="database_refuses"}`); n != 0 {
				return fmt.Errorf("still holding")
			}
			return nil
		})
	}
	g.wg.Wait()
	a := s.account(patience)
	if a.Homes[home.Exhausted] != 0 {
		t.Errorf("the outage sent %d good decisions to the parking dead-letter topic", a.Homes[home.Exhausted])
	}
	c.sound()
	r.sound()
}

func TestOutage_KafkaRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	kafka := testenv.OwnKafka(t)
	s := newSystem(t, kafka, testenv.Postgres(t))
	g := s.generate(4000, 4)
	c, r := s.consumer(), s.replayer()
	g.background(0, time.Millisecond)
	eventually(t, patience, "rows are stored", func() error {
		if s.rows("true") < 100 {
			return fmt.Errorf("%d rows", s.rows("true"))
		}
		return nil
	})
	kafka.Kill(t)
	time.Sleep(2 * time.Second)
	kafka.Start(t)
	g.wg.Wait()
	if err := g.cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.account(patience)
	c.sound()
	r.sound()
}

func TestSpool_KeepsRecordsThatKafkaRefuses(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	g := s.generate(600, 5)
	s.refuse(s.places.DLQTopic)
	g.produce(0)
	c := s.consumer("DOCKET_PUBLISH_TIMEOUT=2s")
	eventually(t, patience, "the offsets are committed on the strength of the spool", func() error {
		lag, _, err := s.places.Lag(t.Context())
		if err != nil || lag > 0 {
			return fmt.Errorf("lag %d, %v", lag, err)
		}
		return nil
	})
	files, err := filepath.Glob(filepath.Join(s.places.SpoolDirs[0], "*.jsonl.gz"))
	if err != nil || len(files) == 0 || c.metric(`docket_records_total{home="spooled"}`) == 0 {
		t.Fatalf("nothing was spooled: %v, %v", files, err)
	}
	if n := s.spooled(); n != nil {
		t.Errorf("an answer says that %d are spooled, and does not know it", *n)
	}
	c.kill() // the spool outlives the process
	if n := s.spooled(); n != nil {
		t.Errorf("an answer says that %d are spooled, while nobody has the spool", *n)
	}
	s.accept(s.places.DLQTopic)
	s.places.SpoolDirs = s.places.SpoolDirs[:1]
	again := s.consumer("DOCKET_SPOOL_DIR=" + s.places.SpoolDirs[0])
	s.places.SpoolDirs = s.places.SpoolDirs[:1]
	s.account(patience)
	if again.metric("docket_spool_recovered_records_total") == 0 {
		t.Error("docket_spool_recovered_records_total is 0")
	}
	eventually(t, patience, "answers know that no spool has records any more", func() error {
		if n := s.spooled(); n == nil || *n != 0 {
			return errors.New("it is not known")
		}
		return nil
	})
	again.sound()
}

// spooled returns how many decisions are in spools, by an answer about all of them; nil: it does not know.
func (s *system) spooled() *int64 {
	s.t.Helper()
	var said struct {
		Spooled *int64 `json:"spooled"`
		Behind  *int64 `json:"behind"`
	}
	s.docket(&said, 0, "logs", "--limit", "1")
	if said.Behind == nil {
		s.t.Error("the answer did not see Kafka")
	}
	return said.Spooled
}

func TestKilled_AtRandomMoments(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	g := s.generate(6000, 6)
	g.background(0, time.Millisecond)
	rng := rand.New(rand.NewPCG(6, 6))
	s.replayer()
	for range 6 {
		c := s.consumer()
		time.Sleep(time.Duration(300+rng.IntN(1500)) * time.Millisecond) // the random moment
		c.kill()
	}
	g.wg.Wait()
	c := s.consumer()
	s.account(patience)
	c.sound()
}

func TestSIGTERM_DuringAnOutageLosesNothing(t *testing.T) {
	t.Parallel()
	db := testenv.OwnPostgres(t)
	s := newSystem(t, testenv.Kafka(t), db, "DOCKET_RETRY_PAUSES=5s,10s", "DOCKET_KAFKA_REBALANCE_TIMEOUT=3m")
	g := s.generate(500, 7)
	c := s.consumer()
	eventually(t, patience, "it is ready", func() error {
		if !c.ready() {
			return fmt.Errorf("not ready")
		}
		return nil
	})
	db.Kill(t)
	g.produce(0)
	eventually(t, patience, "a write failed", func() error {
		if _, body := c.get("/metrics"); !strings.Contains(body, "docket_store_failures_total{class=\"transient\"") {
			return fmt.Errorf("no failure yet")
		}
		return nil
	})
	from := time.Now()
	if code := c.stop(); code != 0 {
		t.Errorf("ended with %d", code)
	}
	if took := time.Since(from); took > 25*time.Second {
		t.Errorf("SIGTERM took %v: the pauses between tries were kept", took)
	}
	db.Start(t)
	s.consumer()
	s.replayer()
	s.account(patience)
}

func TestRebalance_DuringARetry(t *testing.T) {
	t.Parallel()
	db := testenv.OwnPostgres(t)
	s := newSystem(t, testenv.Kafka(t), db, "DOCKET_PARK_BATCHES=0", "DOCKET_RETRY_PAUSES=2s,4s")
	g := s.generate(6000, 8)
	one := s.consumer()
	s.replayer()
	g.background(0, time.Millisecond)
	eventually(t, patience, "rows are stored", func() error {
		if s.rows("true") < 100 {
			return fmt.Errorf("%d rows", s.rows("true"))
		}
		return nil
	})
	db.Kill(t)
	eventually(t, patience, "a write is tried again", func() error {
		if one.metric("docket_store_retries_total") < 1 {
			return fmt.Errorf("no retry yet")
		}
		return nil
	})
	two := s.consumer() // joins while the first is in the pauses of its retries
	eventually(t, patience, "both have partitions", func() error {
		if !two.ready() {
			code, body := two.get("/readyz")
			return fmt.Errorf("the second is not ready: %d %s", code, body)
		}
		return nil
	})
	db.Start(t)
	three := s.consumer()
	time.Sleep(2 * time.Second) // load continues while the third joins
	two.kill()
	one.stop()
	g.wg.Wait()
	s.account(patience)
	three.sound()
}

func TestStart_WaitsForTableAndTopics(t *testing.T) {
	t.Parallel()
	kafka, db := testenv.Kafka(t), testenv.OwnPostgres(t)
	dsn := db.Database(t)
	s := bareSystem(t, kafka, dsn, "DOCKET_AUTO_MIGRATE=true")
	db.Pause(t)
	c := s.consumer() // no topics, no database, no table
	eventually(t, patience, "it says that it is not ready and why", func() error {
		code, body := c.get("/readyz")
		if code != 503 || !strings.Contains(body, "reason") {
			return fmt.Errorf("/readyz: %d %s", code, body)
		}
		return nil
	})
	db.Unpause(t)
	for topic, n := range map[string]int32{s.places.Topic: 2, s.places.DLQTopic: 1, s.places.ParkingTopic: 1, s.places.ParkingDLQ: 1} {
		kafka.CreateTopic(t, topic, n, nil)
	}
	s.send(logOf("a", ""), logOf("b", ""), "not a decision")
	eventually(t, patience, "both decisions have rows", func() error {
		if !c.ready() {
			code, body := c.get("/readyz")
			return fmt.Errorf("/readyz: %d %s", code, body)
		}
		if n := s.rows("true"); n != 2 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	s.drained(patience) // the record without a decision may be in the other partition
	if got := s.forwarded(s.places.DLQTopic, home.DeadLetter); got["syntax"] != 1 {
		t.Errorf("dead letters: %v", got)
	}
}

func TestOutage_AtTheStartIsToldBeforeRecords(t *testing.T) {
	t.Parallel()
	db := testenv.OwnPostgres(t)
	s := newSystem(t, testenv.Kafka(t), db)
	db.Kill(t)
	c := s.consumer()
	c.awaitHold("database_away")
	s.send(logOf("a", ""))
	eventually(t, patience, "the batch fails", func() error {
		if _, body := c.get("/metrics"); !strings.Contains(body, `docket_store_failures_total{class="transient"`) {
			return fmt.Errorf("no failure yet")
		}
		return nil
	})
	db.Start(t)
	s.drained(patience)
	if n, parked := s.rows("true"), c.metric(`docket_records_total{home="parked"}`); n != 1 || parked != 0 {
		t.Errorf("%d rows, %v parked", n, parked)
	}
	eventually(t, patience, "it is ready", func() error {
		if code, body := c.get("/readyz"); code != 200 {
			return fmt.Errorf("/readyz: %d %s", code, body)
		}
		return nil
	})
	c.sound()
}

func TestHold_WrongPasswordIsNeverPrinted(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-marker"
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	wrong := strings.Replace(s.dsn, ":docket@", ":"+secret+"@", 1)
	if wrong == s.dsn {
		t.Fatal("the test could not plant a password")
	}
	s.send(logOf("a", ""))
	c := s.consumer("DOCKET_DATABASE_URL=" + wrong)
	c.awaitHold("database_refuses")
	_, ready := c.get("/readyz")
	if !strings.Contains(ready, "28P01") {
		t.Errorf("/readyz does not name the code: %s", ready)
	}
	_, metrics := c.get("/metrics")
	check, code := s.command([]string{"DOCKET_DATABASE_URL=" + wrong}, "consumer", "check")
	if code != 1 || !strings.Contains(check, "password") {
		t.Errorf("check ended with %d and gives no hint:\n%s", code, check)
	}
	c.stop()
	for what, text := range map[string]string{"log": c.out.String(), "readyz": ready, "metrics": metrics, "check": check} {
		if strings.Contains(text, secret) {
			t.Errorf("the password stands in the %s", what)
		}
	}
}

func TestCheck_NamesMissingParts(t *testing.T) {
	t.Parallel()
	kafka := testenv.Kafka(t)
	s := newSystem(t, kafka, testenv.Postgres(t))
	out, code := s.command(nil, "consumer", "check")
	if code != 0 || strings.Contains("\n"+out, "\nfail ") || !strings.Contains("\n"+out, "\nok ") {
		t.Errorf("check of a sound set-up ended with %d:\n%s", code, out)
	}
	out, code = s.command([]string{"DOCKET_KAFKA_DLQ_TOPIC=no-such-topic"}, "consumer", "check")
	if code != 1 || !strings.Contains(out, "no-such-topic") {
		t.Errorf("check of a missing topic ended with %d:\n%s", code, out)
	}
	s.exec("DROP TABLE decision_logs")
	out, code = s.command(nil, "consumer", "check")
	if code != 1 || !strings.Contains(out, "migrate") {
		t.Errorf("check of a missing table ended with %d:\n%s", code, out)
	}
}
