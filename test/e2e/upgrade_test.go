//go:build integration

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/home"
	"docket/internal/service/config"
	"docket/internal/testkit/testenv"
)

// upgraded makes a system as the previous release set it up.
func upgraded(t *testing.T, db *testenv.PostgresServer, env ...string) *system {
	t.Helper()
	version := previous(t)
	kafka := testenv.Kafka(t)
	s := bareSystem(t, kafka, db.Database(t), env...)
	s.former = true
	for topic, partitions := range map[string]int32{s.places.Topic: 6, s.places.DLQTopic: 3, s.places.ParkingTopic: 4, s.places.ParkingDLQ: 2} {
		kafka.CreateTopic(t, topic, partitions, nil)
	}
	for program, want := range map[string]bool{former + "consumer": true, former + "parking-replayer": true, "consumer": false} {
		if out, code := s.command(nil, program, "version"); code != 0 || strings.Contains(out, version) != want {
			t.Fatalf("%s version ended with %d: %q, and the previous release is %s", program, code, out, version)
		}
	}
	s.migrateWith(former)
	return s
}

func (s *system) migrateWith(release string) {
	s.t.Helper()
	if out, code := s.command(nil, release+"consumer", "migrate"); code != 0 {
		s.t.Fatalf("%sconsumer migrate ended with %d:\n%s", release, code, out)
	}
}

// newer are the settings that the previous release does not know, as a deployment still has them that was put back.
func (s *system) newer() (env, names []string) {
	s.t.Helper()
	help, code := s.command(nil, former+"consumer", "--help")
	if code != 0 {
		s.t.Fatalf("consumer --help of the previous release ended with %d", code)
	}
	known := strings.FieldsFunc(help, func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
	for _, setting := range config.Table() {
		if !slices.Contains(known, setting.Name) {
			names = append(names, setting.Name)
			env = append(env, setting.Name+"=newer")
		}
	}
	if len(names) == 0 {
		s.t.Fatal("this release adds no setting: nothing is shown of settings that the previous one does not know")
	}
	return env, names
}

// serving waits until each of these has partitions and has brought this many decisions to that home since it started.
func serving(t *testing.T, h home.Home, n float64, ps ...*process) {
	t.Helper()
	for _, p := range ps {
		eventually(t, patience, fmt.Sprintf("%s is at work: %v", p.name, h), func() error {
			if got := p.metric(`docket_records_total{home="` + h.String() + `"}`); got < n {
				_, body := p.get("/readyz")
				return fmt.Errorf("%v of %v, /readyz %s", got, n, body)
			}
			return nil
		})
	}
}

// shared waits until a group has so many members, all of which agree to hand over partitions without stopping the others.
func (s *system) shared(group string, members int) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	eventually(s.t, patience, fmt.Sprintf("%s has %d members with partitions", group, members), func() error {
		described, err := kadm.NewClient(cl).DescribeGroups(s.t.Context(), group)
		if err != nil {
			return err
		}
		g := described[group]
		if g.State != "Stable" || len(g.Members) != members {
			return fmt.Errorf("%s with %d members", g.State, len(g.Members))
		}
		if g.Protocol != "cooperative-sticky" {
			return fmt.Errorf("the members agreed on %q", g.Protocol)
		}
		for _, m := range g.Members {
			if c, ok := m.Assigned.AsConsumer(); !ok || len(c.Topics) == 0 {
				return fmt.Errorf("%s has no partitions", m.ClientID)
			}
		}
		return nil
	})
}

// replayed waits until all that was parked has left the parking topic.
func (s *system) replayed() {
	s.t.Helper()
	eventually(s.t, patience, "what was parked is replayed", func() error {
		_, parking, err := s.places.Lag(s.t.Context())
		if err == nil && parking > 0 {
			err = fmt.Errorf("lag %d", parking)
		}
		return err
	})
}

func (p *process) stopped() {
	p.t.Helper()
	p.sound()
	if code := p.stop(); code != 0 {
		p.t.Errorf("%s ended with %d after SIGTERM", p.name, code)
	}
}

// Both releases work side by side in one group, on one table and one parking topic, there and back again. The database is
// away meanwhile. Records that one release parks, the other replays.
func TestUpgrade_ThereAndBackUnderLoad(t *testing.T) {
	t.Parallel()
	db := testenv.OwnPostgres(t)
	s := upgraded(t, db, "DOCKET_BATCH_MAX_RECORDS=50")
	newer, names := s.newer()
	g := s.generate(30_000, 11)
	old := func(name string) *process { return s.start(former+name, newer) }
	// away stops the database until each of these has parked.
	away := func(ps ...*process) {
		t.Helper()
		db.Kill(t)
		serving(t, home.Parked, 1, ps...)
		db.Start(t)
	}

	oldest, older, oldReplayer := old("consumer"), old("consumer"), old("parking-replayer")
	g.background(0, unhurried)
	serving(t, home.Row, 100, oldest, older)

	s.migrateWith(current)
	schema := func() (version int) {
		if err := s.scan("SELECT max(version_id) FROM goose_db_version WHERE is_applied", nil, &version); err != nil {
			t.Fatal(err)
		}
		return version
	}
	if v := schema(); v < 3 {
		t.Fatalf("the schema is at %d after the migration", v)
	}
	for _, act := range []string{"migrate", "check"} { // a pod of the previous release that is started again meanwhile
		if out, code := s.command(newer, former+"consumer", act); code != 0 {
			t.Errorf("consumer %s of the previous release ended with %d on the newer schema:\n%s", act, code, out)
		}
	}
	serving(t, home.Row, oldest.metric(`docket_records_total{home="row"}`)+100, oldest) // it continues

	oldReplayer.stopped()
	first := s.consumer()
	s.shared(s.places.Group, 3)
	serving(t, home.Row, 50, first)
	away(oldest, older, first)
	newReplayer := s.replayer()
	serving(t, home.Row, 1, newReplayer) // records that the previous release parked are among them, however few
	oldest.stopped()
	second := s.consumer()
	older.stopped()
	s.shared(s.places.Group, 2)
	serving(t, home.DeadLetter, 1, first, second)
	s.replayed()
	newReplayer.stopped()

	back := old("consumer")
	s.shared(s.places.Group, 3)
	serving(t, home.Row, 50, back)
	away(first, second)
	first.stopped()
	backReplayer := old("parking-replayer")
	serving(t, home.Row, 1, backReplayer)
	serving(t, home.DeadLetter, 1, back)
	second.stopped()
	s.shared(s.places.Group, 1)

	g.enough.Store(true)
	g.wg.Wait()
	a := s.account(patience)
	if a.Homes[home.Exhausted] != 0 {
		t.Errorf("%d good decisions are exhausted: an attempt of one release was spent for the other's", a.Homes[home.Exhausted])
	}
	s.verify(0, "--settled")
	for _, p := range []*process{oldest, older, back} {
		for _, name := range names {
			if !strings.Contains(p.out.String(), name) {
				t.Errorf("%s does not warn of %s, which it does not know", p.name, name)
			}
		}
	}
	back.stopped()
	backReplayer.stopped()
}
