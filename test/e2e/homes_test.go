//go:build integration

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"docket/internal/record/home"
	"docket/internal/testkit/testenv"
)

// On a busy machine a late answer must not count as a failure: a failure would add homes that a quiet run does not have.
var slowly = []string{patient, "DOCKET_KAFKA_SESSION_TIMEOUT=30s", "DOCKET_STORE_TIMEOUT=30s", "DOCKET_KAFKA_REBALANCE_TIMEOUT=5m"}

func TestHomes_EveryRecord(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), slowly...)
	g := s.generate(6000, 1)
	c, r := s.consumer(), s.replayer()
	g.produce(0)
	a := s.account(patience)
	if a.Homes[home.Row] < 5000 || a.Homes[home.DeadLetter] < 50 || a.Homes[home.Duplicate] < 1 {
		t.Errorf("the run was too tame to show anything: %v", a.Homes)
	}
	c.sound()
	for _, h := range []home.Home{home.Row, home.Duplicate, home.DeadLetter} {
		if got := c.metric(`docket_records_total{home="` + h.String() + `"}`); int(got) != a.Homes[h] {
			t.Errorf("docket_records_total{home=%q} is %v, outside %d were counted", h, got, a.Homes[h])
		}
	}
	for _, p := range []*process{c, r} {
		if !p.ready() {
			t.Errorf("%s is not ready", p.name)
		}
		if code := p.stop(); code != 0 {
			t.Errorf("%s ended with %d after SIGTERM", p.name, code)
		}
	}
}

func TestHomes_ServerErrorsOfEveryClass(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), append(slowly, "DOCKET_PARKING_MAX_ATTEMPTS=2")...)
	s.exec(`CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.raw ? 'raise' THEN
			RAISE EXCEPTION 'quotes the row: %', NEW.raw USING ERRCODE = NEW.raw->>'raise', CONSTRAINT = 'planted', TABLE = 'decision_logs';
		END IF;
		RETURN NEW;
	END $$;
	CREATE TRIGGER planted BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION planted();`)
	dead := map[string]string{ // the error that is raised, and the code of the dead letter
		"23514": "23514", "22P02": "22P02", "22008": "22008", "23502": "23502", "54000": "54000", "P0001": "P0001", "38000": "38000",
		"23503": "23503", "57014": "too_slow", "XX000": "internal",
	}
	exhausted := map[string]string{
		"40001": "40001", "40P01": "40P01", "53300": "53300", "55P03": "55P03", "57P01": "57P01", "08006": "08006", "53200": "53200",
		"42P01": "42P01", "42501": "42501", "53100": "53100", "25006": "25006", "58030": "58030", "XX001": "XX001",
	}
	var values []string
	for _, codes := range []map[string]string{dead, exhausted} {
		for code := range codes {
			values = append(values, logOf("planted-"+code, `,"raise":"`+code+`"`))
		}
	}
	for i := range 300 {
		values = append(values, logOf(fmt.Sprintf("good-%d", i), ""))
	}
	s.send(values...)
	c, r := s.consumer(), s.replayer()
	s.drained(patience)

	want := func(codes map[string]string) map[string]int {
		m := map[string]int{}
		for _, code := range codes {
			m[code]++
		}
		return m
	}
	if got := s.forwarded(s.places.DLQTopic, home.DeadLetter); !maps.Equal(got, want(dead)) {
		t.Errorf("dead letters\n got %v\nwant %v", got, want(dead))
	}
	if got := s.forwarded(s.places.ParkingDLQ, home.Exhausted); !maps.Equal(got, want(exhausted)) {
		t.Errorf("exhausted\n got %v\nwant %v", got, want(exhausted))
	}
	if n := s.rows("decision_id LIKE 'good-%'"); n != 300 {
		t.Errorf("%d good decisions have a row, want 300", n)
	}
	for _, p := range []*process{c, r} {
		p.sound()
		if strings.Contains(p.out.String(), "quotes the row") || strings.Contains(p.out.String(), "planted-") {
			t.Errorf("%s logged what the server quoted of a row", p.name)
		}
	}
}

func TestHold_BrokenSetUpEndsByItself(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ breaks, mends, reason string }{
		"table renamed": {
			"ALTER TABLE decision_logs RENAME TO elsewhere", "ALTER TABLE elsewhere RENAME TO decision_logs", "database_refuses"},
		"column that must not be null": {
			"ALTER TABLE decision_logs ADD COLUMN owner text NOT NULL CHECK (owner <> '')", "ALTER TABLE decision_logs DROP COLUMN owner", "database_refuses"},
		"trigger that refuses every row": {
			`CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE='23514', CONSTRAINT='k'; END $$;
			CREATE TRIGGER no BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION no()`, dropping("no"), "database_refuses"},
		"read-only database": {
			`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`,
			`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$`, "read_only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
			g := s.generate(800, 2)
			s.exec(tc.breaks)
			g.produce(0)
			c := s.consumer()
			c.awaitHold(tc.reason)
			for topic, h := range map[string]home.Home{s.places.DLQTopic: home.DeadLetter, s.places.ParkingTopic: home.Parked} {
				if sent := s.forwarded(topic, h); len(sent) > 0 {
					t.Errorf("forwarded during the hold: %v", sent)
				}
			}
			s.exec(tc.mends)
			s.account(patience)
			eventually(t, patience, "it is ready again", func() error {
				if code, body := c.get("/readyz"); code != http.StatusOK {
					return fmt.Errorf("/readyz: %d %s", code, body)
				}
				return nil
			})
			c.sound()
		})
	}
}

func TestReplayer_AttemptsOnlyForLoneFailures(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), append(slowly, "DOCKET_PARKING_MAX_ATTEMPTS=3", "DOCKET_PARK_BATCHES=0")...)
	s.exec(`CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.decision_id LIKE 'never%' THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF;
		RETURN NEW;
	END $$;
	CREATE TRIGGER planted BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION planted();`)
	var values []string
	for i := range 100 {
		values = append(values, logOf(fmt.Sprintf("good-%d", i), ""))
	}
	values = append(values, logOf("never-1", ""), logOf("never-2", ""))
	s.send(values...)
	s.consumer()
	s.replayer()
	s.drained(patience)
	if got := s.forwarded(s.places.ParkingDLQ, home.Exhausted); got["40001"] != 2 || len(got) != 1 {
		t.Errorf("exhausted: %v, want the two that never pass", got)
	}
	if n := s.rows("true"); n != 100 {
		t.Errorf("%d rows, want 100", n)
	}
	if got := s.forwarded(s.places.DLQTopic, home.DeadLetter); len(got) != 0 {
		t.Errorf("dead letters: %v", got)
	}
}

func TestReplayer_OnceReplaysAndExits(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), "DOCKET_PARK_BATCHES=0", "DOCKET_PARKING_BACKOFF=1ms")
	s.exec(`CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57P03'; END $$;
	CREATE TRIGGER away BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION away();`)
	var values []string
	for i := range 50 {
		values = append(values, logOf(fmt.Sprintf("d-%d", i), ""))
	}
	s.send(values...)
	c := s.consumer()
	eventually(t, patience, "all are parked", func() error {
		if n := c.metric(`docket_records_total{home="parked"}`); n != 50 {
			return fmt.Errorf("%v parked, last hold %v", n, c.metric(`docket_hold{reason="database_refuses"}`))
		}
		return nil
	})
	c.stop()
	s.exec(dropping("away"))
	p := s.start("parking-replayer", nil, "--once")
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatal("parking-replayer --once did not end")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 || s.rows("true") != 50 {
		t.Errorf("ended with %d, %d rows of 50", code, s.rows("true"))
	}
}
