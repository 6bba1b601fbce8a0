//go:build integration

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/service/failpoint"
	"docket/internal/testkit/testenv"
)

// link is one death in a chain: the n-th time that the process comes by the point.
type link struct {
	point failpoint.Point
	n     int
}

// chain kills one process after the other, each while it takes up what the last one left.
func (s *system) chain(program string, links []link, env ...string) {
	s.t.Helper()
	for _, l := range links {
		p := s.armed(program, fmt.Sprintf("%s@%d=kill", l.point, l.n), append(env, "DOCKET_SPOOL_DIR="+s.spool())...)
		p.awaitKill(l.point, l.n)
		s.t.Logf("killed at %s, time %d", l.point, l.n)
		s.bury(s.places.Group)
		s.bury(s.places.ParkingGroup)
	}
	s.nothingLostYet()
}

func TestKilledTwice_Recovering(t *testing.T) {
	t.Parallel()
	for name, links := range map[string][]link{
		"the first, the second, the third time": {
			{failpoint.Polled, 1}, {failpoint.Polled, 2}, {failpoint.Polled, 3},
			{failpoint.RowsSent, 1}, {failpoint.RowsSent, 2}, {failpoint.RowsSent, 3},
			{failpoint.CommitSent, 1}, {failpoint.CommitSent, 2}, {failpoint.CommitSent, 3},
			{failpoint.OffsetCommitAcked, 1}, {failpoint.OffsetCommitAcked, 2}, {failpoint.OffsetCommitAcked, 3},
		},
		"what was just redone is cut short again": {
			{failpoint.CommitAcked, 1}, {failpoint.CommitAcked, 1}, {failpoint.CommitAcked, 2}, {failpoint.CommitAcked, 3},
			{failpoint.DLQAcked, 1}, {failpoint.DLQSent, 1}, {failpoint.DLQAcked, 2}, {failpoint.HalfStored, 1},
			{failpoint.Settled, 1}, {failpoint.Settled, 2}, {failpoint.OffsetCommitSent, 1}, {failpoint.OffsetCommitSent, 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), "DOCKET_BATCH_MAX_RECORDS=20")
			s.generate(1200, 200).produce(0)
			s.places.SpoolDirs = append(s.places.SpoolDirs, s.spool())
			s.chain("consumer", links)
			c := s.consumer("DOCKET_SPOOL_DIR=" + s.spool())
			s.replayer()
			s.account(patience)
			c.sound()
		})
	}
}

func TestKilledTwice_SpoolingAndRecovering(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), "DOCKET_PUBLISH_TIMEOUT=1s", "DOCKET_BATCH_MAX_RECORDS=100")
	g := s.generate(600, 201)
	s.places.SpoolDirs = append(s.places.SpoolDirs, s.spool())
	away := noDLQ()
	away.prepare(s, g)
	for _, l := range []link{
		{failpoint.SpoolTmpHalfWritten, 1}, {failpoint.SpoolRenamed, 1}, {failpoint.SpoolMetaRenamed, 2}, {failpoint.SpoolDirSynced, 1}, // one append is all that may be left by then
	} {
		p := s.armed("consumer", fmt.Sprintf("%s@%d=kill", l.point, l.n), "DOCKET_SPOOL_DIR="+s.spool())
		p.awaitKill(l.point, l.n)
		s.bury(s.places.Group)
	}
	p := s.consumer("DOCKET_SPOOL_DIR=" + s.spool())
	s.caughtUp()
	p.kill()
	s.bury(s.places.Group)
	away.mend(s)
	s.chain("consumer", []link{
		{failpoint.SpoolFilePublished, 1}, {failpoint.SpoolFilePublished, 2}, {failpoint.SpoolFileUnlinked, 1}, {failpoint.SpoolFilePublished, 1},
	})
	c := s.consumer("DOCKET_SPOOL_DIR=" + s.spool())
	s.account(patience)
	c.sound()
}

func TestKilledTwice_Replaying(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	g := s.generate(300, 202)
	s.places.SpoolDirs = append(s.places.SpoolDirs, s.spool())
	of := replaying()
	of.prepare(s, g)
	s.chain("parking-replayer", []link{
		{failpoint.CommitSent, 3}, {failpoint.ReplayStored, 1}, {failpoint.ReplayStored, 2}, // while there is something to store
		{failpoint.ReParked, 1}, {failpoint.ReParked, 1}, {failpoint.OffsetCommitAcked, 1},
	}, "DOCKET_PARKING_MAX_ATTEMPTS=50")
	of.mend(s)
	r := s.replayer("DOCKET_PARKING_MAX_ATTEMPTS=50")
	s.account(patience)
	r.sound()
}

// zombieSleep is longer than the session lasts by far.
const zombieSleep = 15 * time.Second

func TestZombie_CommitsNothingAndRewindsNobody(t *testing.T) {
	t.Parallel()
	for point, end := range map[failpoint.Point]string{
		failpoint.Settled:  "offset not committed", // it comes back in the moment before its commit
		failpoint.RowsSent: "partitions given up",  // or in the middle of a write
	} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t), "DOCKET_KAFKA_SESSION_TIMEOUT=3s", "DOCKET_BATCH_MAX_RECORDS=50")
			g := s.generate(600, 203)
			g.produce(300)
			zombie := s.armed("consumer", string(point)+"@3=stop")
			zombie.awaitTrip(point, 3, "stop")
			stopped := time.Now()
			owner := s.consumer()
			s.caughtUp()
			g.produce(0)
			s.caughtUp()
			before := s.offsets()
			time.Sleep(zombieSleep - time.Since(stopped)) // the fault is this pause
			if err := zombie.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			eventually(t, patience, "the one that came back was told off and both have their share again", func() error {
				for p, at := range s.offsets() {
					if at < before[p] {
						t.Fatalf("partition %d was rewound from %d to %d", p, before[p], at)
					}
				}
				if !strings.Contains(zombie.out.String(), end) {
					return fmt.Errorf("the one that came back did not say: %s", end)
				}
				for _, p := range []*process{zombie, owner} {
					if code, body := p.get("/readyz"); code != 200 {
						return fmt.Errorf("%s: %d %s", p.name, code, body)
					}
				}
				return nil
			})
			s.replayer()
			s.account(patience)
			owner.sound()
			if n := zombie.metric("docket_unaccounted_records"); n != 0 {
				t.Errorf("docket_unaccounted_records of the one that came back is %v", n)
			}
		})
	}
}

// offsets are what the consumers have committed, by partition.
func (s *system) offsets() map[int32]int64 {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	committed, err := kadm.NewClient(cl).FetchOffsets(s.t.Context(), s.places.Group)
	if err != nil {
		s.t.Fatalf("fetch offsets: %v", err)
	}
	at := map[int32]int64{}
	committed.Each(func(o kadm.OffsetResponse) { at[o.Partition] = o.At })
	return at
}

func TestRelease_IgnoresFailpoints(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testenv.Kafka(t), testenv.Postgres(t))
	s.send(logOf("a", ""), "not a decision")
	c := s.consumer(failpoint.Variable + "=polled@1+=kill,commit-sent@1+=kill,dlq-sent@1+=kill")
	s.drained(patience)
	if n := s.rows("true"); n != 1 {
		t.Errorf("%d rows", n)
	}
	if code := c.stop(); code != 0 {
		t.Errorf("ended with %d", code)
	}
}

func TestFailpoints_WrongSpecificationEnds(t *testing.T) {
	t.Parallel()
	s := bareSystem(t, testenv.Kafka(t), testenv.Postgres(t).Database(t))
	out, code := s.command([]string{failpoint.Variable + "=no-such-point=kill"}, withFailpoints(t, "consumer"))
	if code == 0 || !strings.Contains(out, "no-such-point") {
		t.Errorf("ended with %d:\n%s", code, out)
	}
}
