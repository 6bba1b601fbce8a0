package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/kafka"
	"docket/internal/service/config"
)

// After the four topics and the two groups of every set-up come those of the lanes.
const (
	urgentTopic, bulkTopic = 4, 5
	urgentGroup            = 2
)

const bothLanes = "DOCKET_LANES=urgent,bulk"

// findings are the results that are not ok, one line each.
func findings(s config.Settings, c *kafka.Cluster) (bad []string) {
	for _, r := range judge(s, c) {
		if r.Level != OK {
			bad = append(bad, fmt.Sprintf("%s %s: %s; %s", r.Level, r.What, r.Detail, r.Hint))
		}
	}
	return bad
}

func TestLanes_EachTopicAndGroup(t *testing.T) {
	t.Parallel()
	missing := &kafka.FaultError{Reason: kafka.ReasonTopicMissing, Act: "describe topic", Code: "UNKNOWN_TOPIC_OR_PARTITION"}
	for name, c := range map[string]struct {
		desk  bool
		spoil func(*kafka.Cluster)
		want  []string
	}{
		"all is well": {false, func(*kafka.Cluster) {}, nil},
		"urgent is missing": {false, func(c *kafka.Cluster) { c.Topics[urgentTopic].Err = missing }, []string{
			"fail topic decision-logs-urgent: describe topic: topic_missing (UNKNOWN_TOPIC_OR_PARTITION); create it: kafka-topics.sh --create --topic decision-logs-urgent --partitions 12 --replication-factor 3 --config min.insync.replicas=2; or remove urgent from DOCKET_LANES"}},
		"bulk is missing, with six partitions": {false, func(c *kafka.Cluster) {
			c.Topics[bulkTopic].Err, c.Topics[source].Partitions, c.Topics[urgentTopic].Partitions = missing, 6, 6
		}, []string{"fail topic decision-logs-bulk: describe topic: topic_missing (UNKNOWN_TOPIC_OR_PARTITION); create it: kafka-topics.sh --create --topic decision-logs-bulk --partitions 6 "}},
		"urgent may not be read": {false, func(c *kafka.Cluster) {
			c.Topics[urgentTopic].CanRead, c.Topics[urgentTopic].CanWrite = kafka.Denied, kafka.Denied
		}, []string{"fail topic decision-logs-urgent: no permission to read it (READ); grant the principal READ on the topic: kafka-acls.sh"}},
		"the desk may not write bulk": {true, func(c *kafka.Cluster) { c.Topics[bulkTopic].CanWrite = kafka.Denied }, []string{
			"fail topic decision-logs-bulk: no permission to write to it (WRITE), so the desk cannot retry dead letters; grant the principal WRITE"}},
		"urgent's group refused": {false, func(c *kafka.Cluster) { c.Groups[urgentGroup].CanRead = kafka.Denied }, []string{
			"fail group docket-urgent: no permission to join it (READ)"}},
		"urgent kept shortly": {false, func(c *kafka.Cluster) { c.Topics[urgentTopic].Retention = time.Hour }, nil}, // as the default lane: no home
		"urgent on one disk":  {false, func(c *kafka.Cluster) { c.Topics[urgentTopic].Replication = 1 }, []string{"warn topic decision-logs-urgent: replication 1"}},
		"urgent is compacted": {false, func(c *kafka.Cluster) { c.Topics[urgentTopic].CleanupPolicy = "compact" }, []string{"warn topic decision-logs-urgent: cleanup.policy compact: decisions with the same key"}},
		"few partitions": {false, func(c *kafka.Cluster) { c.Topics[urgentTopic].Partitions = 3 }, []string{
			"warn topic decision-logs-urgent: 3 partitions, fewer than the 12 of decision-logs: at most 3 consumers share this lane; kafka-topics.sh --alter --topic decision-logs-urgent --partitions 12"}},
		"many partitions": {false, func(c *kafka.Cluster) { c.Topics[bulkTopic].Partitions = 24 }, nil},
		"urgent takes less": {false, func(c *kafka.Cluster) { c.Topics[urgentTopic].MaxMessageBytes-- }, []string{
			"warn topic decision-logs-urgent: max.message.bytes 1044479 is less than the 1044480 of decision-logs"}},
		"urgent takes more than the homes": {false, func(c *kafka.Cluster) { c.Topics[urgentTopic].MaxMessageBytes = 2 << 20 }, []string{
			"fail topic decision-logs-parking: max.message.bytes 1048576 is less than the source's 2097152", "fail topic decision-logs-dlq: max.message", "fail topic decision-logs-parking-dlq: max.message"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings(t, bothLanes)
			cl := good(s)
			if c.desk {
				s.DeskGroup = "docket-desk"
			}
			c.spoil(cl)
			got := findings(s, cl)
			if len(got) != len(c.want) {
				t.Fatalf("got  %q\nwant %q", got, c.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("got  %s\nwant %s", got[i], c.want[i])
				}
			}
		})
	}
}

func TestLanes_DeskMayRetryIntoEach(t *testing.T) {
	t.Parallel()
	for topics, want := range map[string]int{"": 0, "decision-logs,decision-logs-urgent,decision-logs-bulk": 0, "decision-logs,decision-logs-bulk": 1} {
		s := settings(t, bothLanes)
		s.DeskGroup, s.DeskRetryTopics = "docket-desk", strings.FieldsFunc(topics, func(r rune) bool { return r == ',' })
		bad := findings(s, good(s))
		if len(bad) != want || want == 1 && !strings.HasPrefix(bad[0], "warn topic decision-logs-urgent: DOCKET_DESK_RETRY_TOPICS does not name it, so the desk refuses to retry dead letters of the lane urgent; add decision-logs-urgent") {
			t.Errorf("%q: %q", topics, bad)
		}
	}
	s := settings(t)
	s.DeskGroup, s.DeskRetryTopics = "docket-desk", []string{"elsewhere"}
	if bad := findings(s, good(s)); bad != nil {
		t.Errorf("without lanes: %q", bad)
	}
}

// Each lane has one line for its topic and one for its group. Without lanes no line names a lane.
func TestLanes_OneLineEach(t *testing.T) {
	t.Parallel()
	for lanes, want := range map[string][]string{
		"":            {"ok topic decision-logs: 12 partitions", "ok group docket: Stable"},
		"urgent":      {"ok topic decision-logs: lane default, 12 partitions", "ok topic decision-logs-urgent: lane urgent, 12 partitions", "ok group docket: Stable", "ok group docket-urgent: Stable"},
		"bulk,urgent": {"ok topic decision-logs-bulk: lane bulk, 12 partitions", "ok group docket-bulk: Stable", "ok topic decision-logs-urgent: lane urgent"},
	} {
		s := settings(t, "DOCKET_LANES="+lanes)
		var lines []string
		for _, r := range judge(s, good(s)) {
			lines = append(lines, fmt.Sprintf("%s %s: %s", r.Level, r.What, r.Detail))
		}
		for _, begin := range want {
			if n := len(slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.HasPrefix(line, begin) })); n != 1 {
				t.Errorf("lanes %q: %d lines %q in %q", lanes, n, begin, lines)
			}
		}
		if n := 7 + 2*len(s.LaneNames); len(lines) != n || strings.Contains(fmt.Sprint(lines), "lane") != (lanes != "") {
			t.Errorf("lanes %q: %d lines, want %d: %q", lanes, len(lines), n, lines)
		}
	}
}

func TestLanes_CollectorWritesToAll(t *testing.T) {
	t.Parallel()
	s, _, err := config.Load(config.Collector, []string{"DOCKET_KAFKA_BROKERS=127.0.0.1:1", bothLanes})
	if err != nil {
		t.Fatal(err)
	}
	c := good(settings(t, bothLanes))
	c.Topics, c.Groups = []kafka.Topic{c.Topics[source], c.Topics[urgentTopic], c.Topics[bulkTopic], c.Topics[dlq]}, nil
	for i := range c.Topics {
		c.Topics[i].CanRead = kafka.Denied
	}
	if bad := findings(s, c); bad != nil {
		t.Errorf("it reads nothing: %q", bad)
	}
	c.Topics[1].CanWrite, c.Topics[2].MaxMessageBytes = kafka.Denied, 1000
	want := []string{
		"fail topic decision-logs-urgent: no permission to write to it (WRITE); grant", "fail topic decision-logs-bulk: max.message.bytes 1000 is less than the 1044480 of decision-logs",
	}
	bad := findings(s, c)
	if len(bad) != 2 || !strings.HasPrefix(bad[0], want[0]) || !strings.HasPrefix(bad[1], want[1]) {
		t.Errorf("%q", bad)
	}
}
