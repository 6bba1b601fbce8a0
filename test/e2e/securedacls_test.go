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
	// The rights for lanes are in commands of their own, in a loop.
	for principal, want := range map[string][]testenv.ACL{"docket-consumer": consumer, "docket-replayer": replayer, "docket-collector": s.collectorRights(), "docket-verify": verify} {
		if got := rightsOf(documented(t, principal)); !slices.Equal(sorted(got), sorted(want)) {
			t.Errorf("%s: the page gives %v, the tests %v", principal, got, want)
		}
	}
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
