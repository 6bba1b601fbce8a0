package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/kafka"
	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
)

// kafkaOnly are settings without a database.
func kafkaOnly(t *testing.T, env ...string) config.Settings {
	t.Helper()
	s, _, err := config.LoadKafka(config.Consumer, env)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bare is a cluster of three brokers without topics.
func bare(s config.Settings, brokers int) *kafka.Cluster {
	c := &kafka.Cluster{Version: "v4.0"}
	for i := range brokers {
		c.Brokers = append(c.Brokers, kafka.Broker{ID: int32(i)})
	}
	seen := map[string]bool{}
	for _, of := range s.ByShard() {
		for _, name := range topicsOf(of) {
			if !seen[name] {
				seen[name] = true
				c.Topics = append(c.Topics, kafka.Topic{Name: name, Err: &kafka.FaultError{Reason: kafka.ReasonTopicMissing}})
			}
		}
	}
	return c
}

// existing puts a topic of a good cluster in the place of one that is missing.
func existing(c *kafka.Cluster, name string, change func(*kafka.Topic)) {
	i := slices.IndexFunc(c.Topics, func(t kafka.Topic) bool { return t.Name == name })
	c.Topics[i] = kafka.Topic{
		Name: name, Partitions: 12, Replication: 3, MinInSyncReplicas: 2, MaxMessageBytes: 1 << 20, Retention: 30 * 24 * time.Hour,
		RetentionKnown: true, RetentionBytes: -1, CleanupPolicy: "delete",
	}
	change(&c.Topics[i])
}

func lines(all []TopicPlan) (text []string) {
	for _, p := range all {
		if p.Create {
			text = append(text, p.Name+": "+p.Describe())
		}
		for _, r := range p.Findings {
			text = append(text, fmt.Sprintf("%s %s: %s", r.Level, r.What, r.Detail))
		}
	}
	return text
}

func TestPlan_NewTopics(t *testing.T) {
	t.Parallel()
	const homes = "max.message.bytes=1052684, min.insync.replicas=2, retention.bytes=-1, retention.ms=2592000000"
	for name, c := range map[string]struct {
		env     []string
		brokers int
		wanted  Wanted
		limit   int64
		want    []string
	}{
		"defaults": {nil, 3, Wanted{}, -1, []string{
			"decision-logs: 12 partitions, replication 3, cleanup.policy=delete, min.insync.replicas=2",
			"decision-logs-parking: 12 partitions, replication 3, cleanup.policy=delete, " + homes,
			"decision-logs-dlq: 12 partitions, replication 3, cleanup.policy=delete, " + homes,
			"decision-logs-parking-dlq: 12 partitions, replication 3, cleanup.policy=delete, " + homes}},
		"one broker": {nil, 1, Wanted{Replication: 1}, -1, []string{"decision-logs: 12 partitions, replication 1, cleanup.policy=delete, min.insync.replicas=1"}},
		"as asked":   {nil, 5, Wanted{Partitions: 6, Replication: 5}, -1, []string{"decision-logs: 6 partitions, replication 5, cleanup.policy=delete, min.insync.replicas=4"}},
		"brokers take more": {nil, 3, Wanted{}, 4 << 20, []string{
			"decision-logs: 12 partitions, replication 3, cleanup.policy=delete, min.insync.replicas=2",
			"decision-logs-parking: 12 partitions, replication 3, cleanup.policy=delete, max.message.bytes=4198400, "}},
		"long back-off": {[]string{"DOCKET_PARKING_MAX_BACKOFF=168h", "DOCKET_PARKING_MAX_ATTEMPTS=10"}, 3, Wanted{}, -1, []string{
			"decision-logs: ", "decision-logs-parking: 12 partitions, replication 3, cleanup.policy=delete, max.message.bytes=1052684, min.insync.replicas=2, retention.bytes=-1, retention.ms=6048000000"}},
		"lanes": {[]string{bothLanes}, 3, Wanted{Partitions: 8}, -1, []string{
			"decision-logs: 8 ", "decision-logs-urgent: 8 partitions, replication 3, cleanup.policy=delete, min.insync.replicas=2", "decision-logs-bulk: 8 ", "decision-logs-parking: 8 "}},
		"shards": {[]string{"DOCKET_SHARDS=a=0-3,b=4-6"}, 3, Wanted{}, -1, []string{
			"decision-logs: 7 partitions", "decision-logs-parking-a: ", "decision-logs-dlq-a: ", "decision-logs-parking-dlq-a: ", "decision-logs-parking-b: ", "decision-logs-dlq-b: ", "decision-logs-parking-dlq-b: "}},
		"one shard": {[]string{"DOCKET_SHARDS=a=0-3,b=4-6", "DOCKET_SHARD=b"}, 3, Wanted{}, -1, []string{
			"decision-logs: 7 partitions", "decision-logs-parking-b: ", "decision-logs-dlq-b: ", "decision-logs-parking-dlq-b: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := kafkaOnly(t, c.env...)
			got := lines(planAll(s, bare(s, c.brokers), c.limit, c.wanted))
			if len(got) < len(c.want) {
				t.Fatalf("got %q", got)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got  %s\nwant %s", got[i], want)
				}
			}
			if strings.HasPrefix(name, "one shard") && len(got) != len(c.want) || name == "shards" && len(got) != len(c.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestPlan_ExistingTopicsStay(t *testing.T) {
	t.Parallel()
	same := func(*kafka.Topic) {}
	for name, c := range map[string]struct {
		topic  string
		change func(*kafka.Topic)
		wanted Wanted
		want   []string
	}{
		"as it should be":  {"decision-logs-dlq", same, Wanted{}, []string{"ok topic decision-logs-dlq: 12 partitions, replication 3"}},
		"kept too shortly": {"decision-logs-parking", func(t *kafka.Topic) { t.Retention = time.Hour }, Wanted{}, []string{"fail topic decision-logs-parking: kept for 1h0m0s"}},
		"compacted":        {"decision-logs-dlq", func(t *kafka.Topic) { t.CleanupPolicy = "compact" }, Wanted{}, []string{"fail topic decision-logs-dlq: cleanup.policy compact"}},
		"too small":        {"decision-logs-dlq", func(t *kafka.Topic) { t.MaxMessageBytes = 1000 }, Wanted{}, []string{"fail topic decision-logs-dlq: max.message.bytes 1000 is less than the source's 1040000"}},
		"other partitions": {"decision-logs-dlq", same, Wanted{Partitions: 6}, []string{"warn topic decision-logs-dlq: 12 partitions, not 6"}},
		"other replicas":   {"decision-logs-dlq", same, Wanted{Replication: 5}, []string{"warn topic decision-logs-dlq: replication 3, not 5"}},
		"not to be seen": {"decision-logs-dlq", func(t *kafka.Topic) {
			*t = kafka.Topic{Name: t.Name, Err: &kafka.FaultError{Reason: kafka.ReasonAuthorization, Act: "describe topic"}}
		}, Wanted{}, []string{"fail topic decision-logs-dlq: no permission to see it (DESCRIBE)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := kafkaOnly(t)
			cl := bare(s, 3)
			existing(cl, c.topic, c.change)
			all := planAll(s, cl, 1_040_000, c.wanted)
			i := slices.IndexFunc(all, func(p TopicPlan) bool { return p.Name == c.topic })
			got := lines(all[i : i+1])
			if all[i].Unknown != (name == "not to be seen") {
				t.Errorf("unknown: %v", all[i].Unknown)
			}
			if all[i].Create || len(all) != 4 || len(got) != len(c.want) {
				t.Fatalf("got %q", got)
			}
			for j, want := range c.want {
				if !strings.HasPrefix(got[j], want) {
					t.Errorf("got  %s\nwant %s", got[j], want)
				}
			}
			for _, p := range all {
				if p.Name != c.topic && !p.Create {
					t.Errorf("%s is not created", p.Name)
				}
			}
		})
	}
}

// A topic that the plan creates has no finding afterwards: the plan and the check know the same.
func TestPlan_CheckFindsNothing(t *testing.T) {
	t.Parallel()
	for _, lanes := range []string{"", "urgent,bulk"} {
		for _, large := range []int64{-1, 1 << 20, 8 << 20} {
			s := kafkaOnly(t, "DOCKET_LANES="+lanes, "DOCKET_PARKING_MAX_BACKOFF=168h")
			cl := bare(s, 3)
			if large > 0 {
				existing(cl, s.KafkaTopic, func(t *kafka.Topic) { t.MaxMessageBytes, t.Partitions = large, 30 })
			}
			for i, p := range planAll(s, cl, 1<<20, Wanted{}) {
				if p.Create {
					cl.Topics[i] = made(t, p.NewTopic, 1<<20)
				}
			}
			cl.Groups = nil
			if bad := findings(s, cl); bad != nil {
				t.Errorf("lanes %q, source %d: %q", lanes, large, bad)
			}
		}
	}
}

// A lane takes the partitions, the retention and the largest record of a default lane that exists.
func TestPlan_LaneLikeTheSource(t *testing.T) {
	t.Parallel()
	for retention, want := range map[time.Duration]string{72 * time.Hour: "259200000", -time.Millisecond: "-1", -1: "-1"} {
		s := kafkaOnly(t, "DOCKET_LANES=urgent")
		cl := bare(s, 3)
		existing(cl, s.KafkaTopic, func(t *kafka.Topic) { t.Retention, t.Partitions, t.MaxMessageBytes = retention, 30, 3<<20 })
		all := planAll(s, cl, 1<<20, Wanted{})
		if got, want := all[1].Describe(), "30 partitions, replication 3, cleanup.policy=delete, max.message.bytes=3145728, min.insync.replicas=2, retention.ms="+want; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// made is the description of a topic after it was created.
func made(t *testing.T, n kafka.NewTopic, limit int64) kafka.Topic {
	t.Helper()
	number := func(name string, otherwise int64) int64 {
		text, set := n.Settings[name]
		if !set {
			return otherwise
		}
		var v int64
		if _, err := fmt.Sscan(text, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	return kafka.Topic{
		Name: n.Name, Partitions: n.Partitions, Replication: n.Replication, MinInSyncReplicas: number("min.insync.replicas", 1),
		MaxMessageBytes: number("max.message.bytes", limit), Retention: time.Duration(number("retention.ms", 604800000)) * time.Millisecond, RetentionKnown: true,
		RetentionBytes: number("retention.bytes", 1<<30), CleanupPolicy: n.Settings["cleanup.policy"],
	}
}

// With fewer than three brokers up nobody may get topics of a lower replication unasked.
func TestTopics_FewBrokers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		brokers int
		topics  []string
		wanted  Wanted
		says    string // empty: it is planned
	}{
		"one":             {1, nil, Wanted{}, "1 broker is up, and new topics need 3; start the others, or name --replication 1 if that is the cluster"},
		"two":             {2, nil, Wanted{Partitions: 4}, "2 brokers are up, and new topics need 3; start the others, or name --replication 2 if that is the cluster"},
		"one topic there": {1, []string{"decision-logs"}, Wanted{}, "1 broker is up"},
		"all there":       {1, []string{"decision-logs", "decision-logs-parking", "decision-logs-dlq", "decision-logs-parking-dlq"}, Wanted{}, ""},
		"as asked":        {1, nil, Wanted{Replication: 1}, ""},
		"three":           {3, nil, Wanted{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kafkatest.New(t, kfake.NumBrokers(c.brokers), kfake.SeedTopics(4, c.topics...))
			_, err := Topics(t.Context(), kafkaOnly(t, "DOCKET_KAFKA_BROKERS="+strings.Join(k.Brokers(), ",")), c.wanted)
			if (err != nil) != (c.says != "") {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				if r := Unplanned(err); !strings.HasPrefix(r.Detail+"; "+r.Hint, c.says) {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// Another process creates a topic between the plan and the request: it exists, with what is wrong with it.
func TestCreateTopics_CreatedMeanwhile(t *testing.T) {
	t.Parallel()
	k := kafkatest.New(t, kfake.NumBrokers(3))
	s := kafkaOnly(t, "DOCKET_KAFKA_BROKERS="+strings.Join(k.Brokers(), ","))
	plans, err := Topics(t.Context(), s, Wanted{})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.CreateTopic("decision-logs-parking", 2, map[string]string{"retention.ms": "60000"}); err != nil {
		t.Fatal(err)
	}
	after, results := CreateTopics(t.Context(), s, plans, Wanted{}, false)
	for i, p := range after {
		other := p.Name == "decision-logs-parking"
		if p.Create == other || p.Unknown || !plans[i].Create {
			t.Errorf("%+v", p)
		}
		if found := strings.Join(lines(after[i:i+1]), "\n"); other && !strings.Contains(found, "kept for 1m0s") {
			t.Errorf("not described again: %s", found)
		}
	}
	if !Failed(results) || Failed(slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.What == "topic decision-logs-parking" })) {
		t.Errorf("%+v", results)
	}
}
