//go:build integration

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"docket/internal/testkit/testenv"
)

// lacking is a program that has all rights but one.
type lacking struct {
	p    *process
	env  []string
	user string
	acl  testenv.ACL
}

func nameOf(acl testenv.ACL) string {
	op := strings.ToUpper(acl.Operation.String())
	if acl.Topic != "" {
		return op + " on topic " + acl.Topic
	}
	return op + " on group " + acl.Group
}

// complains checks that the program names the right that it lacks, and holds.
func (l *lacking) complains() error {
	code, body := l.p.get("/readyz")
	if code != http.StatusServiceUnavailable {
		return fmt.Errorf("/readyz: %d %s", code, body)
	}
	kind, name := "topic", l.acl.Topic
	if name == "" {
		kind, name = "group", l.acl.Group
	}
	hint := "grant the principal " + strings.ToUpper(l.acl.Operation.String()) + " on the " + kind + " " + name
	if !strings.Contains(body, hint) {
		return fmt.Errorf("/readyz has no hint of %q: %s", hint, body)
	}
	return l.p.logged("kafka fault began", map[string]string{"reason": "authorization", "acl": nameOf(l.acl)}, hint)
}

func TestRights_EachMissingOneHolds(t *testing.T) {
	t.Parallel()
	k := testenv.Secured(t)
	// Which rights a consumer and a replayer lack side by side, by their place in what each needs.
	pairs := []struct {
		name               string
		consumer, replayer int
		describe           bool // the consumer may see its topic
	}{
		{"read the topic", 0, 0, false}, {"read the group", 1, 1, false}, {"write dead letters", 2, 3, false}, {"write parking", 3, 2, false},
		{"read a topic that is seen, write the parking dead letters", 0, 4, true},
	}
	systems := make([]*system, len(pairs))
	lack := make([][]*lacking, len(pairs))
	for i, pair := range pairs {
		s := securedSystem(t, k)
		systems[i] = s
		forConsumer, forReplayer := s.rights()
		start := func(role string, rights []testenv.ACL, without int) *lacking {
			p := newPrincipal(t, k, s.places.Topic+role)
			env := append(p.mtls(t, k.At(testenv.ListenerMTLS), k.CA, tomorrow()), "DOCKET_SPOOL_DIR=") // else the spool would be the home
			for n, right := range rights {
				if n != without {
					k.Grant(t, p.name, right)
				}
			}
			l := &lacking{env: env, user: p.name, acl: rights[without]}
			if role == "consumer" {
				l.p = s.consumer(env...)
			} else {
				l.p = s.replayer(env...)
			}
			return l
		}
		if pair.describe {
			k.Grant(t, s.places.Topic+"consumer", testenv.ACL{Operation: kadm.OpDescribe, Topic: s.places.Topic})
		}
		lack[i] = []*lacking{start("consumer", forConsumer, pair.consumer), start("replayer", forReplayer, pair.replayer)}
		s.sendAll()
	}
	// All complain, and all recover, side by side: they only wait for time.
	for i, pair := range pairs {
		t.Run(pair.name+": named", func(t *testing.T) { systems[i].named(t, k, lack[i]) })
	}
	for i, pair := range pairs { //nolint:paralleltest // what was started together is looked at one after another
		t.Run(pair.name+": granted", func(t *testing.T) { systems[i].granted(t, lack[i]) })
	}
}

// named checks that each program says what it lacks, and so does check for the first of them; then it is granted.
func (s *system) named(t *testing.T, k *testenv.SecuredKafka, lack []*lacking) {
	s.t = t
	for _, l := range lack {
		l.p.t = t
		eventually(t, patience, l.p.name+" names "+nameOf(l.acl), l.complains)
	}
	l := lack[0]
	out, code := s.command(l.env, "consumer", "check")
	if want := "--operation " + strings.ToUpper(l.acl.Operation.String()); code != 1 || !lineWith(out, "fail", l.acl.Topic+l.acl.Group, want) {
		t.Errorf("check ended with %d, want 1 and a line that fails %s with %q:\n%s", code, nameOf(l.acl), want, out)
	}
	for _, l := range lack {
		if n := strings.Count(l.p.out.String(), `"message":"kafka fault began"`); n > 3 {
			t.Errorf("%s: %d lines tell of faults:\n%s", l.p.name, n, tail(l.p.out.String(), 20))
		}
		k.Grant(t, l.user, l.acl)
	}
}

// granted checks that everything comes home, and that the programs say so.
func (s *system) granted(t *testing.T, lack []*lacking) {
	s.t = t
	s.arrived()
	for _, l := range lack {
		l.p.t = t
		l.p.sound()
		eventually(t, patience, l.p.name+" is ready", func() error {
			if code, body := l.p.get("/readyz"); code != http.StatusOK {
				return fmt.Errorf("%d %s", code, body)
			}
			return nil
		})
		eventually(t, patience, l.p.name+" says that it is over, which may come after /readyz", func() error {
			if !strings.Contains(l.p.out.String(), "kafka fault ended") {
				return errors.New("it did not")
			}
			return nil
		})
	}
}

// lineWith says whether there is a line, with the hint below it, that holds all of these.
func lineWith(out string, all ...string) bool {
	lines := strings.Split(out, "\n")
	for i := range lines {
		text := strings.Join(lines[i:min(len(lines), i+2)], " ")
		found := true
		for _, part := range all {
			found = found && strings.Contains(text, part)
		}
		if found {
			return true
		}
	}
	return false
}

func TestSpool_KeepsUnpublishable(t *testing.T) {
	t.Parallel()
	k := testenv.Secured(t)
	s := securedSystem(t, k)
	p := newPrincipal(t, k, s.places.Topic+"consumer")
	rights, _ := s.rights()
	k.Grant(t, p.name, rights[:2]...) // nothing may be written at all, which brokers refuse in another way than a topic alone
	c := s.consumer(p.mtls(t, k.At(testenv.ListenerMTLS), k.CA, tomorrow())...)
	s.send(logOf("good", ""), "no decision")
	dlq := rights[2]
	eventually(t, patience, "the missing right is named", func() error {
		return c.logged("kafka fault began", map[string]string{"reason": "authorization", "acl": nameOf(dlq), "topic": dlq.Topic}, "grant the principal WRITE on the topic "+dlq.Topic)
	})
	eventually(t, patience, "it is spooled, and the other is stored", func() error {
		if n := c.metric(`docket_records_total{home="spooled"}`); n != 1 || s.rows("true") != 1 {
			return fmt.Errorf("%v spooled, %d rows", n, s.rows("true"))
		}
		return nil
	})
	k.Grant(t, p.name, dlq)
	eventually(t, patience, "it goes on to its topic", func() error {
		if n := c.metric("docket_spool_recovered_records_total"); n != 1 {
			return fmt.Errorf("%v recovered", n)
		}
		return nil
	})
	c.sound()
}
