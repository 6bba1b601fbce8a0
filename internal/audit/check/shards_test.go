package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

func TestShards_Partitions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*kafka.Cluster)
		want  []string
	}{
		"all is well": {func(*kafka.Cluster) {}, nil},
		"partitions of no shard": {func(c *kafka.Cluster) {
			c.Topics[source].Partitions, c.Topics[urgentTopic].Partitions = 14, 14
		}, []string{"fail topic decision-logs: 2 of 14 partitions, from 12 on, belong to no shard", "fail topic decision-logs-urgent: 2 of 14 partitions"}},
		"ranges beyond the topic": {func(c *kafka.Cluster) {
			c.Topics[source].Partitions, c.Topics[urgentTopic].Partitions = 10, 10
		}, []string{"warn topic decision-logs: it has 10 partitions, and shard b has partitions up to 11", "warn topic decision-logs-urgent: it has 10 partitions"}},
		"a lane with more partitions": {func(c *kafka.Cluster) { c.Topics[urgentTopic].Partitions = 16 }, []string{
			"fail topic decision-logs-urgent: 4 of 16 partitions", "fail topic decision-logs-urgent: 16 partitions, and decision-logs has 12: a decision that comes in both lanes"}},
		"a home with few partitions": {func(c *kafka.Cluster) { c.Topics[parked].Partitions = 1 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings(t, "DOCKET_LANES=urgent", "DOCKET_SHARDS=a=0-5,b=6-11", "DOCKET_SHARD=a")
			cl := good(s)
			c.spoil(cl)
			got := findings(s, cl)
			if len(got) != len(c.want) {
				t.Fatalf("found %q, want %q", got, c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("found %q, want %q", got[i], want)
				}
			}
		})
	}
}

// Producers that do not key by decision_id are told, as far as the latest records of the shard show it.
func TestShards_Keys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key, value string
		level      Level
		detail     string
	}{
		"by decision_id":  {"d-1", `{"decision_id":"d-1","timestamp":"2026-01-01T00:00:00Z"}`, OK, "the latest 4 records have their decision_id as key"},
		"by requested_by": {"10.0.0.7", `{"decision_id":"d-1","timestamp":"2026-01-01T00:00:00Z"}`, Warn, "1 of the latest 4 records have another key"},
		"several in one":  {"d-1", `[{"decision_id":"d-1","timestamp":"2026-01-01T00:00:00Z"},{"decision_id":"d-2","timestamp":"2026-01-01T00:00:00Z"}]`, Warn, "1 of the latest 4"},
		"unreadable":      {"x", `{`, OK, "the latest 4 records"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kafkatest.New(t, kfake.SeedTopics(4, "decision-logs"))
			var records []*kgo.Record
			for i := range 3 {
				id := fmt.Sprint(i)
				records = append(records, &kgo.Record{Topic: "decision-logs", Partition: int32(i % 2), Key: []byte(id), Value: fmt.Appendf(nil, `{"decision_id":%q,"timestamp":"2026-01-01T00:00:00Z"}`, id)})
			}
			records = append(records, &kgo.Record{Topic: "decision-logs", Partition: 1, Key: []byte(c.key), Value: []byte(c.value)},
				&kgo.Record{Topic: "decision-logs", Partition: 2, Key: []byte("other"), Value: records[0].Value}) // of shard b
			k.Produce(t, records...)
			s := settings(t, "DOCKET_KAFKA_BROKERS="+strings.Join(k.Brokers(), ","), "DOCKET_SHARDS=a=0-1,b=2-3", "DOCKET_SHARD=a")
			got := keys(t.Context(), s)
			if len(got) != 1 || got[0].Level != c.level || !strings.HasPrefix(got[0].Detail, c.detail) || !strings.Contains(got[0].Detail+got[0].Hint, "stored once holds in each shard") {
				t.Errorf("found %+v", got)
			}
		})
	}
	if got := keys(t.Context(), settings(t)); got != nil {
		t.Errorf("without shards: %+v", got)
	}
}

// Nobody reads the homes of before the shards, so what is unread there is told.
func TestShards_FormerHomes(t *testing.T) {
	t.Parallel()
	k := kafkatest.New(t, kfake.SeedTopics(2, "decision-logs-dlq", "decision-logs-parking"))
	client := k.Client(t)
	defer client.Close()
	look := func(env ...string) (found []string) {
		t.Helper()
		s := settings(t, append(env, "DOCKET_KAFKA_BROKERS="+strings.Join(k.Brokers(), ","))...)
		for _, r := range former(t.Context(), s.WithDeskGroup("docket-desk")) {
			found = append(found, string(r.Level)+" "+r.What+": "+r.Detail)
		}
		return found
	}
	expect := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	commit := func(group, topic string, offsets ...int64) {
		t.Helper()
		var all kadm.Offsets
		for p, at := range offsets {
			all.AddOffset(topic, int32(p), at, -1)
		}
		if err := kadm.NewClient(client).CommitAllOffsets(t.Context(), group, all); err != nil {
			t.Fatal(err)
		}
	}
	shard, all := []string{"DOCKET_SHARDS=a=0-5,b=6-11", "DOCKET_SHARD=a"}, []string{"DOCKET_SHARDS=a=0-5,b=6-11", "DOCKET_SHARD_URLS=a=postgres://h/a b=postgres://h/b"}
	expect(look(shard...))
	k.Values(t, "decision-logs-dlq", 0, "1", "2")
	k.Values(t, "decision-logs-dlq", 1, "3")
	k.Values(t, "decision-logs-parking", 1, "4")
	for _, env := range [][]string{shard, all} {
		if env[1] != shard[1] {
			env = append(env, "DOCKET_DATABASE_URL=")
		}
		expect(look(env...),
			"warn former topic decision-logs-dlq: it has 3 records and no commit of the group docket-desk: these may be unread, and nobody reads them with shards",
			"warn former topic decision-logs-parking: it has 1 record and no commit of the group docket-parking: these may be unread, and nobody reads them with shards")
	}
	commit("docket-desk", "decision-logs-dlq", 1, 1)
	commit("docket-parking", "decision-logs-parking", 0, 1)
	expect(look(shard...), "fail former topic decision-logs-dlq: 1 record is unread by the group docket-desk, and nobody reads them with shards")
	expect(look())
	k.Fail(kmsg.ListOffsets, kerr.TopicAuthorizationFailed, 1)
	if got := look(shard...); len(got) != 1 || !strings.HasPrefix(got[0], "warn former topic decision-logs-dlq: it cannot be read") {
		t.Errorf("found %q", got)
	}
}
