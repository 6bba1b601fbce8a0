//go:build integration

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"docket/internal/record/home"
	"docket/internal/testkit/testenv"
)

// rights are what the programs need, each as its own principal, and nothing else.
func (s *system) rights() (consumer, replayer []testenv.ACL) {
	p := s.places
	return []testenv.ACL{
			{Operation: kadm.OpRead, Topic: p.Topic},
			{Operation: kadm.OpRead, Group: p.Group},
			{Operation: kadm.OpWrite, Topic: p.DLQTopic},
			{Operation: kadm.OpWrite, Topic: p.ParkingTopic},
		}, []testenv.ACL{
			{Operation: kadm.OpRead, Topic: p.ParkingTopic},
			{Operation: kadm.OpRead, Group: p.ParkingGroup},
			{Operation: kadm.OpWrite, Topic: p.ParkingTopic},
			{Operation: kadm.OpWrite, Topic: p.DLQTopic},
			{Operation: kadm.OpWrite, Topic: p.ParkingDLQ},
		}
}

// principal is one user of a secured broker with its files.
type principal struct {
	name, password string
	dir            string
}

func newPrincipal(t *testing.T, k *testenv.SecuredKafka, role string) principal {
	t.Helper()
	p := principal{name: role, password: "s3cret-of-" + role, dir: t.TempDir()}
	p.write(t, "ca.pem", k.CA.PEM)
	return p
}

func (p principal) file(name string) string { return filepath.Join(p.dir, name) }

func (p principal) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(p.file(name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// tls is the environment of who trusts the CA and shows nothing.
func (p principal) tls(addr string) []string {
	return []string{"DOCKET_KAFKA_BROKERS=" + addr, "DOCKET_KAFKA_TLS=true", "DOCKET_KAFKA_TLS_CA=" + p.file("ca.pem")}
}

// scram is the environment of a user with a password in a file.
func (p principal) scram(t *testing.T, addr, mechanism string) []string {
	t.Helper()
	p.write(t, "password", []byte(p.password+"\n"))
	return append(p.tls(addr), "DOCKET_KAFKA_SASL_MECHANISM="+mechanism, "DOCKET_KAFKA_SASL_USERNAME="+p.name, "DOCKET_KAFKA_SASL_PASSWORD_FILE="+p.file("password"))
}

// mtls is the environment of who proves the name by a certificate.
func (p principal) mtls(t *testing.T, addr string, by *testenv.Authority, until time.Time) []string {
	t.Helper()
	p.show(t, by, until)
	return append(p.tls(addr), "DOCKET_KAFKA_TLS_CERT="+p.file("cert.pem"), "DOCKET_KAFKA_TLS_KEY="+p.file("key.pem"))
}

// show puts another certificate into the files.
func (p principal) show(t *testing.T, by *testenv.Authority, until time.Time) {
	t.Helper()
	pair, err := by.Client(p.name, until)
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "cert.pem", pair.Cert)
	p.write(t, "key.pem", pair.Key)
}

// tomorrow is when certificates end whose end is of no matter.
func tomorrow() time.Time { return time.Now().Add(24 * time.Hour) }

// securedSystem is four topics of a secured broker and a migrated database, whose table refuses for the moment what says raise.
func securedSystem(t *testing.T, k *testenv.SecuredKafka) *system {
	t.Helper()
	s := partitioned(t, k.KafkaServer, testenv.Postgres(t), 2, "DOCKET_PARKING_MAX_ATTEMPTS=2",
		"DOCKET_PUBLISH_TIMEOUT=20s") // on a busy machine a late answer would count as a refusal, and add a second dead letter
	s.exec(`CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.raw ? 'raise' THEN RAISE EXCEPTION USING ERRCODE = NEW.raw->>'raise'; END IF;
		RETURN NEW;
	END $$;
	CREATE TRIGGER planted BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION planted()`)
	return s
}

// sendAll makes use of every right: a row, a dead letter of each program, and one that is parked, parked again and given up.
func (s *system) sendAll() {
	s.t.Helper()
	s.send(logOf("good", ""), "no decision", logOf("refused", `,"raise":"40001"`))
	parked := *s
	parked.places.Topic = s.places.ParkingTopic
	parked.send("nor this", logOf("again", `,"raise":"40001"`))
}

// arrived waits until all of that is at home.
func (s *system) arrived() {
	s.t.Helper()
	s.drained(patience)
	if n := s.rows("decision_id = 'good'"); n != 1 {
		s.t.Errorf("%d rows, want 1", n)
	}
	if got, want := s.forwarded(s.places.DLQTopic, home.DeadLetter), map[string]int{"syntax": 2}; !maps.Equal(got, want) {
		s.t.Errorf("dead letters %v, want %v", got, want)
	}
	if got, want := s.forwarded(s.places.ParkingDLQ, home.Exhausted), map[string]int{"40001": 2}; !maps.Equal(got, want) {
		s.t.Errorf("given up %v, want %v", got, want)
	}
}

// silentAbout checks that nothing that a program shows holds a secret.
func (p *process) silentAbout(secrets ...string) {
	p.t.Helper()
	_, metrics := p.get("/metrics")
	_, ready := p.get("/readyz")
	for _, secret := range secrets {
		for where, text := range map[string]string{"the log": p.out.String(), "/metrics": metrics, "/readyz": ready} {
			if strings.Contains(text, secret) {
				p.t.Errorf("%s: a secret is in %s", p.name, where)
			}
		}
	}
	if strings.Contains(p.out.String(), "PRIVATE KEY") {
		p.t.Errorf("%s: a key is in the log", p.name)
	}
}

func TestSecured_EveryLoginWithLeastRights(t *testing.T) {
	t.Parallel()
	k := testenv.Secured(t)
	type pair struct {
		s      *system
		all    []*process
		secret []string
	}
	running := map[string]*pair{}
	for _, how := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", "mTLS"} {
		s := securedSystem(t, k)
		one := &pair{s: s}
		running[how] = one
		forConsumer, forReplayer := s.rights()
		for role, rights := range map[string][]testenv.ACL{"consumer": forConsumer, "replayer": forReplayer} {
			p := newPrincipal(t, k, s.places.Topic+role)
			var env []string
			switch how {
			case "mTLS":
				env = p.mtls(t, k.At(testenv.ListenerMTLS), k.CA, tomorrow())
			case "PLAIN":
				p.name, p.password = testenv.PlainUser, testenv.PlainPassword
				env = p.scram(t, k.At(testenv.ListenerReauth), how)
			default:
				k.User(t, p.name, p.password)
				env = p.scram(t, k.At(testenv.ListenerSASL), how)
			}
			k.Grant(t, p.name, rights...)
			if role == "consumer" {
				one.all = append(one.all, s.consumer(env...))
			} else {
				one.all = append(one.all, s.replayer(env...))
			}
			one.secret = append(one.secret, p.password)
		}
		s.sendAll()
	}
	for _, how := range slices.Sorted(maps.Keys(running)) { //nolint:paralleltest // what was started together is looked at one after another
		one := running[how]
		t.Run(how, func(t *testing.T) {
			one.s.t = t
			one.s.arrived()
			for _, p := range one.all {
				p.t = t
				p.sound()
				p.silentAbout(one.secret...)
				eventually(t, patience, p.name+" is ready", func() error {
					if code, body := p.get("/readyz"); code != 200 {
						return fmt.Errorf("%d %s", code, body)
					}
					return nil
				})
				if strings.Contains(p.out.String(), "kafka fault began") {
					t.Errorf("%s complained", p.name)
				}
			}
		})
	}
}
