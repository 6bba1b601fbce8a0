//go:build integration

package e2e

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"docket/internal/failpoint"
	"docket/internal/home"
	"docket/internal/testenv"
)

// situation is what has to be the case for a program to come by a point.
type situation struct {
	program string
	env     []string
	prepare func(s *system, g *producer) // before the armed program starts; default: everything is produced
	with    string                       // armed besides
	provoke func(s *system, p *process)  // while it runs
	mend    func(s *system)              // when it is dead
	judge   func(s *system)              // default: every decision has its one right home
}

const (
	refuseAll = `CREATE FUNCTION stumble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57P03'; END $$;
		CREATE TRIGGER stumble BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION stumble()`
	// Of the generator's ids, which are hexadecimal, one in sixteen; never that of a probe.
	refuseSome = `CREATE FUNCTION stumble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.decision_id LIKE '%0' THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER stumble BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION stumble()`
	refuseNone = `DROP FUNCTION stumble CASCADE`
)

// ordinary records with all sorts of bad ones among them, and a table that is well.
func ordinary() situation { return situation{program: "consumer"} }

// stumbling: the table takes nothing just now, so batches are tried again and parked.
func stumbling() situation {
	return situation{
		program: "consumer", env: []string{"DOCKET_PARK_BATCHES=0"},
		prepare: func(s *system, g *producer) { s.exec(refuseAll); g.produce(0) },
		mend:    func(s *system) { s.exec(refuseNone) },
	}
}

// refusing: every row violates a constraint, so it is no pile of bad records but a table that is not as it should be.
func refusing() situation {
	return situation{
		program: "consumer",
		prepare: func(s *system, g *producer) {
			s.exec(`ALTER TABLE decision_logs ADD COLUMN owner text NOT NULL CHECK (owner <> '')`)
			g.produce(0)
		},
		mend: func(s *system) { s.exec(`ALTER TABLE decision_logs DROP COLUMN owner`) },
	}
}

// noDLQ: the dead-letter topic is away, so the spool takes what belongs there.
func noDLQ() situation {
	return situation{
		program: "consumer", env: []string{"DOCKET_PUBLISH_TIMEOUT=1s"},
		prepare: func(s *system, g *producer) { s.delete(s.places.DLQTopic); g.produce(0) },
		mend:    func(s *system) { s.kafka.CreateTopic(s.t, s.places.DLQTopic, 3, nil) },
	}
}

// recovering: the spool is full of what the dead-letter topic, which is back, did not take.
func recovering() situation {
	return situation{
		program: "consumer",
		prepare: func(s *system, g *producer) {
			before := noDLQ()
			before.prepare(s, g)
			p := s.consumer(append(before.env, "DOCKET_SPOOL_DIR="+s.spool())...)
			s.caughtUp()
			p.stop()
			if files, _ := filepath.Glob(filepath.Join(s.spool(), "*.jsonl.gz")); len(files) == 0 {
				s.t.Fatal("nothing was spooled")
			}
			before.mend(s)
		},
	}
}

// replaying: the table refuses some for the moment's sake; whole batches are parked, most of it can be stored now.
func replaying() situation {
	return situation{
		program: "parking-replayer",
		prepare: func(s *system, g *producer) {
			s.exec(refuseSome)
			g.produce(0)
			p := s.consumer("DOCKET_PARK_BATCHES=0")
			s.caughtUp()
			p.stop()
		},
		mend: func(s *system) { s.exec(refuseNone) },
	}
}

// givingUp: what the table goes on refusing is given up after one try.
func givingUp() situation {
	of := replaying()
	of.env = []string{"DOCKET_PARKING_MAX_ATTEMPTS=1"}
	of.mend = func(*system) {}
	of.judge = func(s *system) {
		a := s.settled(time.Minute)
		if a.Homes[home.Exhausted] == 0 || len(a.Misplaced) != a.Homes[home.Exhausted] {
			s.t.Errorf("%d were given up, and %d are not where they would be in a table that takes all", a.Homes[home.Exhausted], len(a.Misplaced))
		}
		for _, f := range a.Misplaced {
			if f.ID[len(f.ID)-1] != '0' {
				s.t.Errorf("given up, and the table takes it: %v", f)
			}
		}
		if len(a.Lost)+len(a.Unread)+len(a.Doubled)+len(a.Invented)+len(a.Altered) > 0 || a.Housed() != a.Produced {
			s.t.Errorf("the account does not add up: %v", a.Err())
		}
	}
	return of
}

// revoked: a second consumer wants its share.
func revoked() situation {
	of := ordinary()
	of.with = string(failpoint.Parsed) + "@1=sleep:3s"
	of.provoke = func(s *system, p *process) {
		p.awaitTrip(failpoint.Parsed, 1, "sleep:3s")
		s.consumer()
	}
	return of
}

// stopped: SIGTERM while a batch is in hand.
func stopped() situation {
	of := ordinary()
	of.with = string(failpoint.Parsed) + "@1=sleep:3s"
	of.provoke = func(_ *system, p *process) {
		p.awaitTrip(failpoint.Parsed, 1, "sleep:3s")
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	return of
}

// lost: the process stood still for longer than its session lasts, and comes back.
func lost() situation {
	of := ordinary()
	of.with = string(failpoint.Stored) + "@1=stop"
	of.env = []string{"DOCKET_KAFKA_SESSION_TIMEOUT=1s"}
	of.provoke = func(s *system, p *process) {
		p.awaitTrip(failpoint.Stored, 1, "stop")
		s.consumer()
		s.caughtUp()
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
	}
	return of
}

// killPoints says in which situation a program comes by each point.
func killPoints() map[failpoint.Point]situation {
	return map[failpoint.Point]situation{
		failpoint.Polled: ordinary(), failpoint.Parsed: ordinary(), failpoint.TxBegun: ordinary(), failpoint.RowsSent: ordinary(),
		failpoint.CommitSent: ordinary(), failpoint.CommitAcked: ordinary(), failpoint.Stored: ordinary(),
		failpoint.FirstPause: stumbling(), failpoint.SecondPause: stumbling(),
		failpoint.Classified: ordinary(), failpoint.ProbeOpen: ordinary(), failpoint.HalfStored: ordinary(),
		failpoint.Holding: refusing(),
		failpoint.DLQSent: ordinary(), failpoint.DLQAcked: ordinary(),
		failpoint.ParkingSent: stumbling(), failpoint.ParkingPartlyAcked: stumbling(), failpoint.ParkingAcked: stumbling(),
		failpoint.SpoolTmpCreated: noDLQ(), failpoint.SpoolTmpHalfWritten: noDLQ(), failpoint.SpoolTmpSynced: noDLQ(),
		failpoint.SpoolMetaWritten: noDLQ(), failpoint.SpoolMetaRenamed: noDLQ(), failpoint.SpoolRenamed: noDLQ(), failpoint.SpoolDirSynced: noDLQ(),
		failpoint.Settled: ordinary(), failpoint.OffsetCommitSent: ordinary(), failpoint.OffsetCommitAcked: ordinary(),
		failpoint.Revoking: revoked(), failpoint.Losing: lost(), failpoint.Draining: stopped(),
		failpoint.SpoolFilePublished: recovering(), failpoint.SpoolFileUnlinked: recovering(),
		failpoint.ReplayStored: replaying(), failpoint.ReParkedSent: replaying(), failpoint.ReParked: replaying(),
		failpoint.ParkingDLQSent: givingUp(), failpoint.ParkingDLQAcked: givingUp(),
	}
}

func TestKilledAtEveryPointNothingIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	situations := killPoints()
	for i, place := range failpoint.Table() {
		of, ok := situations[place.Point]
		if !ok {
			t.Errorf("no situation leads to %s", place.Point)
			continue
		}
		t.Run(string(place.Point), func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
			g := s.generate(240, uint64(100+i))
			of.kill(s, g, place.Point)
		})
	}
}

// kill brings the situation about, sees a program killed at the point, and counts after plain programs took over.
func (of situation) kill(s *system, g *producer, point failpoint.Point) {
	s.t.Helper()
	spec := string(point) + "@1=kill"
	if of.with != "" {
		spec = of.with + "," + spec
	}
	if of.prepare == nil {
		of.prepare = func(_ *system, g *producer) { g.produce(0) }
	}
	s.places.SpoolDirs = append(s.places.SpoolDirs, s.spool())
	of.prepare(s, g)
	p := s.armed(of.program, spec, append(of.env, "DOCKET_SPOOL_DIR="+s.spool())...)
	if of.provoke != nil {
		of.provoke(s, p)
	}
	p.awaitKill(point, 1)
	if of.mend != nil {
		of.mend(s)
	}
	if of.provoke == nil || point == failpoint.Draining { // else somebody alive is in the group
		s.bury(s.places.Group)
		s.bury(s.places.ParkingGroup)
	}
	c := s.consumer(append(of.env, "DOCKET_SPOOL_DIR="+s.spool())...)
	s.replayer(of.env...)
	if of.judge != nil {
		of.judge(s)
	} else {
		s.account(time.Minute)
	}
	c.sound()
}
