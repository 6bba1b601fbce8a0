//go:build integration

package e2e

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/testenv"
)

// pageLines are the lines of docs/kafka-security.md.
func pageLines(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/kafka-security.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(page), "\n")
}

// documented are the commands of docs/kafka-security.md that give rights to a principal.
func documented(t *testing.T, principal string) (commands [][]string) {
	t.Helper()
	for _, line := range pageLines(t) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == "kafka-acls.sh" && slices.Contains(words, "User:"+principal) {
			commands = append(commands, words)
		}
	}
	if len(commands) == 0 {
		t.Fatalf("the page gives nothing to %s", principal)
	}
	return commands
}

// rightsOf are the rights that such commands give.
func rightsOf(commands [][]string) (rights []testenv.ACL) {
	operations := map[string]kadm.ACLOperation{"Read": kadm.OpRead, "Write": kadm.OpWrite, "Describe": kadm.OpDescribe}
	for _, words := range commands {
		op := operations[words[slices.Index(words, "--operation")+1]]
		for i, word := range words {
			switch word {
			case "--topic":
				rights = append(rights, testenv.ACL{Operation: op, Topic: words[i+1]})
			case "--group":
				rights = append(rights, testenv.ACL{Operation: op, Group: words[i+1]})
			}
		}
	}
	return rights
}

// sorted orders rights for comparison.
func sorted(rights []testenv.ACL) []testenv.ACL {
	return slices.SortedFunc(slices.Values(rights), func(a, b testenv.ACL) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Operation, b.Operation))
	})
}

func TestPage_NamesLeastRights(t *testing.T) {
	t.Parallel()
	s := &system{}
	s.places.Topic, s.places.Group, s.places.ParkingTopic, s.places.ParkingGroup = "decision-logs", "docket", "decision-logs-parking", "docket-parking"
	s.places.DLQTopic, s.places.ParkingDLQ = "decision-logs-dlq", "decision-logs-parking-dlq"
	consumer, replayer := s.rights()
	var verify []testenv.ACL
	for _, topic := range []string{"decision-logs", "decision-logs-dlq", "decision-logs-parking", "decision-logs-parking-dlq"} {
		verify = append(verify, testenv.ACL{Operation: kadm.OpRead, Topic: topic})
	}
	for _, group := range []string{"docket", "docket-parking", "docket-desk"} { // the ledger has the dead letters before the desk's offset
		verify = append(verify, testenv.ACL{Operation: kadm.OpDescribe, Group: group})
	}
	desk := []testenv.ACL{{Operation: kadm.OpRead, Group: "docket-desk"}, {Operation: kadm.OpWrite, Topic: "decision-logs"}}
	for _, topic := range []string{"decision-logs", "decision-logs-dlq", "decision-logs-parking", "decision-logs-parking-dlq"} { // parking and source for the loss horizon
		desk = append(desk, testenv.ACL{Operation: kadm.OpRead, Topic: topic})
	}
	for _, group := range []string{"docket", "docket-parking"} {
		desk = append(desk, testenv.ACL{Operation: kadm.OpDescribe, Group: group})
	}
	// The rights for lanes are in commands of their own, in a loop.
	for principal, want := range map[string][]testenv.ACL{
		"docket-consumer": consumer, "docket-replayer": replayer, "docket-desk": desk, "docket-collector": s.collectorRights(), "docket-verify": verify,
	} {
		if got := rightsOf(documented(t, principal)); !slices.Equal(sorted(got), sorted(want)) {
			t.Errorf("%s: the page gives %v, the tests %v", principal, got, want)
		}
	}
}

// TestPage_DeskSeesHorizon: with the rights that the page gives to it, the desk knows when Kafka deletes records that wait in each topic.
func TestPage_DeskSeesHorizon(t *testing.T) {
	t.Parallel()
	k := testenv.Secured(t)
	s := securedSystem(t, k)
	group := testenv.Prefix(t) + "desk"
	own := map[string]string{
		"decision-logs": s.places.Topic, "decision-logs-dlq": s.places.DLQTopic, "decision-logs-parking": s.places.ParkingTopic, "decision-logs-parking-dlq": s.places.ParkingDLQ,
		"docket": s.places.Group, "docket-parking": s.places.ParkingGroup, "docket-desk": group, "": "",
	}
	var rights []testenv.ACL
	for _, acl := range rightsOf(documented(t, "docket-desk")) {
		acl.Topic, acl.Group = own[acl.Topic], own[acl.Group]
		rights = append(rights, acl)
	}
	p := newPrincipal(t, k, s.places.Topic+"desk")
	k.Grant(t, p.name, rights...)
	for _, topic := range []string{s.places.Topic, s.places.ParkingTopic, s.places.DLQTopic, s.places.ParkingDLQ} {
		s.produceTo(topic, &kgo.Record{Value: []byte(logOf("waits", ""))})
	}
	s.env = append(append(s.env, p.mtls(t, k.At(testenv.ListenerMTLS), k.CA, tomorrow())...), "DOCKET_DESK_GROUP="+group)
	eventually(t, patience, "the rights are in force", func() error {
		var report struct {
			Horizons []struct {
				Topic, Error string
				Unread       int64
				Oldest       string
			}
		}
		if told, err := s.tryDocket(&report, 0, "report"); err != nil {
			return fmt.Errorf("%w %s", err, told)
		}
		if len(report.Horizons) != 4 {
			return fmt.Errorf("%d topics", len(report.Horizons))
		}
		for _, h := range report.Horizons {
			if h.Error != "" || h.Unread != 1 || h.Oldest == "" {
				return fmt.Errorf("%+v", h)
			}
		}
		return nil
	})
}

// brief makes Java fit for a command that ends at once.
const brief = `KAFKA_HEAP_OPTS=-Xmx64m KAFKA_JVM_PERFORMANCE_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"`

func TestKafkaACLs_CommandsOfThePageWork(t *testing.T) {
	t.Parallel()
	k := testenv.Secured(t)
	var script []string
	want := map[string][]testenv.ACL{}
	for _, principal := range []string{"docket-consumer", "docket-replayer", "docket-desk", "docket-collector", "docket-verify"} {
		commands := documented(t, principal)
		want[principal] = sorted(rightsOf(commands))
		for _, words := range commands {
			script = append(script, "/opt/kafka/bin/"+strings.Join(words, " "))
		}
	}
	ctx := t.Context()
	if _, err := k.Handle().Output(ctx, "bash", "-c", "set -e\nBROKERS=localhost:19092\nexport "+brief+"\n"+strings.Join(script, "\n")); err != nil {
		t.Fatal(err)
	}
	for principal, rights := range want {
		eventually(t, patience, principal+" has its rights", func() error {
			all, err := k.Admin(t).DescribeACLs(ctx, kadm.NewACLs().Allow("User:"+principal).AllowHosts().Operations(kadm.OpRead, kadm.OpWrite, kadm.OpDescribe).Topics().Groups().ResourcePatternType(kadm.ACLPatternLiteral))
			if err != nil {
				return err
			}
			var got []testenv.ACL
			for _, found := range all {
				for _, acl := range found.Described {
					one := testenv.ACL{Operation: acl.Operation}
					if acl.Type.String() == "TOPIC" {
						one.Topic = acl.Name
					} else {
						one.Group = acl.Name
					}
					got = append(got, one)
				}
			}
			if got = sorted(got); !slices.Equal(got, rights) {
				return fmt.Errorf("it has %v, want %v", got, rights)
			}
			return nil
		})
	}
}
