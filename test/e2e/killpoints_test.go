//go:build integration

package e2e

import (
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"docket/internal/audit/verify"
	"docket/internal/record/home"
	"docket/internal/service/failpoint"
	"docket/internal/testkit/testenv"
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

	partitions int32 // of the source; 1 where it is not said, so that what is left behind is a matter of the point alone
}

const (
	refuseAll = `CREATE FUNCTION stumble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57P03'; END $$;
		CREATE TRIGGER stumble BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION stumble()`
	// Of the generator's ids, which are hexadecimal, one in 64; never that of a probe.
	refuseSome = `CREATE FUNCTION stumble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.decision_id ~ '` + stubborn + `' THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER stumble BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION stumble()`
	stubborn = `(00|55|aa|ff)$`
)

var refuseNone = dropping("stumble")

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

// refusing: every row violates a constraint. So the table is at fault, not a pile of records.
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

// noDLQ: the dead-letter topic takes nothing, so the spool takes what belongs there.
func noDLQ() situation {
	return situation{
		program: "consumer", env: []string{"DOCKET_PUBLISH_TIMEOUT=1s"},
		prepare: func(s *system, g *producer) { s.refuse(s.places.DLQTopic); g.produce(0) },
		mend:    func(s *system) { s.accept(s.places.DLQTopic) },
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

// givingUp: a record that the table still refuses is given up after one try.
func givingUp() situation {
	of := replaying()
	of.env = []string{"DOCKET_PARKING_MAX_ATTEMPTS=1"}
	of.mend = func(*system) {}
	of.judge = func(s *system) {
		a := s.settled(patience)
		misplaced := map[verify.Place]bool{} // by decision: a killed program may have left copies, each of which is a finding
		for _, f := range a.Misplaced {
			misplaced[f.Place] = true
		}
		if a.Homes[home.Exhausted] == 0 || len(misplaced) != a.Homes[home.Exhausted] {
			s.t.Errorf("%d were given up, and %d are not where they would be in a table that takes all: %v", a.Homes[home.Exhausted], len(misplaced), a.Misplaced)
		}
		for _, f := range a.Misplaced {
			if !regexp.MustCompile(stubborn).MatchString(f.ID) {
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
	of.partitions = 4
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

// killPoint is a point, the situation in which a program comes by it, and what a kill there leaves behind.
type killPoint struct {
	point failpoint.Point
	of    situation
	left  string // see remains.differ
}

func killPoints() []killPoint {
	untouched := "rows=0 committed=0 dead=0 parked=0 spooled=0 tmp=0"
	return []killPoint{
		{failpoint.Polled, ordinary(), untouched},
		{failpoint.Parsed, ordinary(), untouched},
		{failpoint.TxBegun, ordinary(), untouched},
		{failpoint.RowsSent, ordinary(), untouched},
		{failpoint.CommitSent, ordinary(), "committed=0 dead=0 parked=0 spooled=0"}, // rows: all or none
		{failpoint.CommitAcked, ordinary(), "rows=+ committed=0 dead=0 parked=0 spooled=0"},
		{failpoint.Stored, ordinary(), "rows=+ committed=0 dead=0 parked=0 spooled=0"},
		{failpoint.FirstPause, stumbling(), untouched},
		{failpoint.SecondPause, stumbling(), untouched},
		{failpoint.Classified, ordinary(), untouched},
		{failpoint.ProbeOpen, ordinary(), untouched},
		{failpoint.HalfStored, ordinary(), "rows=+ committed=0 dead=0 parked=0 spooled=0"},
		{failpoint.Holding, refusing(), untouched},
		{failpoint.DLQSent, ordinary(), "rows=+ committed=0 parked=0 spooled=0"},
		{failpoint.DLQAcked, ordinary(), "rows=+ committed=0 dead=+ parked=0 spooled=0"},
		{failpoint.ParkingSent, stumbling(), "rows=0 committed=0 spooled=0"},
		{failpoint.ParkingPartlyAcked, stumbling(), "rows=0 committed=0 parked=+ spooled=0"},
		{failpoint.ParkingAcked, stumbling(), "rows=0 committed=0 parked=+ spooled=0"},
		{failpoint.SpoolTmpCreated, noDLQ(), "rows=+ committed=0 spooled=0 tmp=+"},
		{failpoint.SpoolTmpHalfWritten, noDLQ(), "rows=+ committed=0 spooled=0 tmp=+"},
		{failpoint.SpoolTmpSynced, noDLQ(), "rows=+ committed=0 spooled=0 tmp=+"},
		{failpoint.SpoolMetaWritten, noDLQ(), "rows=+ committed=0 spooled=0 tmp=+"},
		{failpoint.SpoolMetaRenamed, noDLQ(), "rows=+ committed=0 spooled=0 tmp=+"},
		{failpoint.SpoolRenamed, noDLQ(), "rows=+ committed=0 spooled=+ tmp=0"},
		{failpoint.SpoolDirSynced, noDLQ(), "rows=+ committed=0 spooled=+ tmp=0"},
		{failpoint.Settled, ordinary(), "rows=+ committed=0 dead=+ parked=0 spooled=0"},
		{failpoint.OffsetCommitSent, ordinary(), "rows=+ dead=+ parked=0 spooled=0"}, // committed or not
		{failpoint.OffsetCommitAcked, ordinary(), "rows=+ committed=+ dead=+ parked=0 spooled=0"},
		{failpoint.Revoking, revoked(), ""},
		{failpoint.Losing, lost(), ""},
		{failpoint.Draining, stopped(), untouched},
		{failpoint.SpoolFilePublished, recovering(), "rows=+ committed=+ dead=+ spooled=+"},
		{failpoint.SpoolFileUnlinked, recovering(), "rows=+ committed=+ dead=+ parked=0"},
		{failpoint.ReplayStored, replaying(), "rows=+ replayed=0 exhausted=0"},
		{failpoint.ReParkedSent, replaying(), "rows=+ parked=+ exhausted=0"},
		{failpoint.ReParked, replaying(), "rows=+ parked=+ exhausted=0"},
		{failpoint.ParkingDLQSent, givingUp(), "rows=+ parked=+"},
		{failpoint.ParkingDLQAcked, givingUp(), "rows=+ parked=+ exhausted=+"},
	}
}

func TestPoints_EachHasItsKill(t *testing.T) {
	t.Parallel()
	tried := map[failpoint.Point]bool{}
	for _, k := range killPoints() {
		tried[k.point] = true
	}
	for _, place := range failpoint.Table() {
		if !tried[place.Point] {
			t.Errorf("no situation leads to %s", place.Point)
		}
	}
}

func TestKilled_AtEveryPoint(t *testing.T) {
	t.Parallel()
	for i, k := range killPoints() {
		t.Run(string(k.point), func(t *testing.T) {
			t.Parallel()
			s := partitioned(t, testenv.Kafka(t), testenv.Postgres(t), max(1, k.of.partitions), "DOCKET_PUBLISH_TIMEOUT=20s") // late answers go into no spool
			g := s.generate(240, uint64(100+i))
			k.die(s, g)
		})
	}
}

// die brings the situation about, sees a program killed at the point, and counts after plain programs took over.
func (k killPoint) die(s *system, g *producer) {
	s.t.Helper()
	of, spec := k.of, string(k.point)+"@1=kill"
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
	p.awaitKill(k.point, 1)
	left := s.remains()
	s.t.Logf("left behind: %v", left)
	if problem := left.differ(k.left); problem != "" {
		s.t.Errorf("a kill at %s left behind %v: %s", k.point, left, problem)
	}
	if of.mend != nil {
		of.mend(s)
	}
	s.nothingLostYet()
	if of.provoke == nil || k.point == failpoint.Draining { // else somebody alive is in the group
		s.bury(s.places.Group)
		s.bury(s.places.ParkingGroup)
	}
	c := s.consumer(append(of.env, "DOCKET_SPOOL_DIR="+s.spool())...)
	s.replayer(of.env...)
	if of.judge != nil {
		of.judge(s)
	} else {
		s.account(patience)
	}
	c.sound()
}
