package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/goleak"

	"docket/internal/kafka"
	"docket/internal/service/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const planted = "hunter2marker"

func settings(t *testing.T, env ...string) config.Settings {
	t.Helper()
	s, _, err := config.Load(config.Consumer, append([]string{
		"DOCKET_DATABASE_URL=postgres://u:" + planted + "@127.0.0.1:1/x", "DOCKET_KAFKA_BROKERS=127.0.0.1:1",
	}, env...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// good is a cluster without findings.
func good(s config.Settings) *kafka.Cluster {
	c := &kafka.Cluster{Version: "v4.0", Brokers: []kafka.Broker{{ID: 1}, {ID: 2}, {ID: 3}}}
	for _, name := range append([]string{s.KafkaTopic, s.KafkaParkingTopic, s.KafkaDLQTopic, s.KafkaParkingDLQTopic}, s.SourceTopics()[1:]...) {
		c.Topics = append(c.Topics, kafka.Topic{
			Name: name, Partitions: 12, Replication: 3, MinInSyncReplicas: 2, MaxMessageBytes: 1 << 20, Retention: 14 * 24 * time.Hour,
			RetentionKnown: true, RetentionBytes: -1, CleanupPolicy: "delete", CanRead: kafka.Granted, CanWrite: kafka.Granted,
		})
	}
	c.Topics[0].MaxMessageBytes = 1<<20 - headerRoom
	c.Groups = []kafka.Group{{Name: s.KafkaGroup, State: "Stable", Members: 2, CanRead: kafka.Granted}, {Name: s.ParkingGroup}}
	for i, l := range s.Lanes()[1:] {
		c.Topics[4+i].MaxMessageBytes = c.Topics[0].MaxMessageBytes
		c.Groups = append(c.Groups, kafka.Group{Name: l.Group, State: "Stable", Members: 2, CanRead: kafka.Granted})
	}
	return c
}

const source, parked, dlq, parkedDLQ = 0, 1, 2, 3

func TestCluster(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env   []string
		spoil func(*kafka.Cluster)
		want  []string // level, what and a part of the rest; all that is not ok
	}{
		"all is well":            {nil, func(*kafka.Cluster) {}, nil},
		"kept for ever":          {nil, func(c *kafka.Cluster) { c.Topics[parked].Retention = -1 }, nil},
		"two brokers":            {nil, func(c *kafka.Cluster) { c.Brokers = c.Brokers[:2] }, []string{"warn brokers: only 2"}},
		"a broker is away":       {nil, func(c *kafka.Cluster) { c.Brokers[1].Err = errors.New(planted) }, []string{"warn brokers: broker 2"}},
		"password in the open":   {[]string{"DOCKET_KAFKA_SASL_MECHANISM=PLAIN", "DOCKET_KAFKA_SASL_USERNAME=u", "DOCKET_KAFKA_SASL_PASSWORD=" + planted}, func(*kafka.Cluster) {}, []string{"warn brokers: the password"}},
		"replication 1":          {nil, func(c *kafka.Cluster) { c.Topics[source].Replication = 1 }, []string{"warn topic decision-logs: replication 1"}},
		"one disk is enough":     {nil, func(c *kafka.Cluster) { c.Topics[dlq].MinInSyncReplicas = 1 }, []string{"warn topic decision-logs-dlq: min.insync.replicas 1"}},
		"every disk is needed":   {nil, func(c *kafka.Cluster) { c.Topics[dlq].MinInSyncReplicas = 3 }, []string{"warn topic decision-logs-dlq: min.insync.replicas 3 of 3"}},
		"unclean elections":      {nil, func(c *kafka.Cluster) { c.Topics[dlq].UncleanElection = true }, []string{"warn topic decision-logs-dlq: unclean.leader.election.enable"}},
		"no leader":              {nil, func(c *kafka.Cluster) { c.Topics[source].Leaderless = 2 }, []string{"fail topic decision-logs: 2 of 12"}},
		"compacted home":         {nil, func(c *kafka.Cluster) { c.Topics[parked].CleanupPolicy = "compact,delete" }, []string{"fail topic decision-logs-parking: cleanup.policy compact"}},
		"compacted source":       {nil, func(c *kafka.Cluster) { c.Topics[source].CleanupPolicy = "compact" }, []string{"warn topic decision-logs: cleanup.policy compact"}},
		"bounded in bytes":       {nil, func(c *kafka.Cluster) { c.Topics[parkedDLQ].RetentionBytes = 1 << 30 }, []string{"warn topic decision-logs-parking-dlq: retention.bytes"}},
		"gone before due":        {nil, func(c *kafka.Cluster) { c.Topics[parked].Retention = time.Hour }, []string{"fail topic decision-logs-parking: kept for 1h0m0s"}},
		"short for all attempts": {nil, func(c *kafka.Cluster) { c.Topics[parked].Retention = 4 * time.Hour }, []string{"warn topic decision-logs-parking: kept for 4h0m0s"}},
		"longer back-off":        {[]string{"DOCKET_PARKING_MAX_BACKOFF=168h"}, func(*kafka.Cluster) {}, []string{"warn topic decision-logs-parking: kept for 336h0m0s"}},
		"dead letters go soon":   {nil, func(c *kafka.Cluster) { c.Topics[dlq].Retention = 24 * time.Hour }, []string{"warn topic decision-logs-dlq: kept for 24h0m0s"}},
		"source goes soon":       {nil, func(c *kafka.Cluster) { c.Topics[source].Retention = time.Hour }, nil},
		"home smaller":           {nil, func(c *kafka.Cluster) { c.Topics[dlq].MaxMessageBytes = 1000 }, []string{"fail topic decision-logs-dlq: max.message.bytes 1000 is less"}},
		"no room for headers":    {nil, func(c *kafka.Cluster) { c.Topics[source].MaxMessageBytes++ }, []string{"warn topic decision-logs-parking: max.message", "warn topic decision-logs-dlq: max.message", "warn topic decision-logs-parking-dlq: max.message"}},
		"settings are kept back": {nil, func(c *kafka.Cluster) { c.Topics[dlq].ConfigErr = errors.New(planted) }, []string{"warn topic decision-logs-dlq: no permission to read its settings"}},
		"source may not be read": {nil, func(c *kafka.Cluster) {
			c.Topics[source].CanRead, c.Topics[source].CanWrite = kafka.Denied, kafka.Denied
		}, []string{"fail topic decision-logs: no permission to read it (READ)"}},
		"home may not be written": {nil, func(c *kafka.Cluster) { c.Topics[dlq].CanRead, c.Topics[dlq].CanWrite = kafka.Denied, kafka.Denied }, []string{"fail topic decision-logs-dlq: no permission to write to it"}},
		"parking wants both": {nil, func(c *kafka.Cluster) {
			c.Topics[parked].CanRead, c.Topics[parked].CanWrite = kafka.Denied, kafka.Denied
		}, []string{"fail topic decision-logs-parking: no permission to read it", "fail topic decision-logs-parking: no permission to write to it"}},
		"brokers do not tell": {nil, func(c *kafka.Cluster) { c.Topics[dlq].CanWrite = kafka.Untold }, nil},
		"group refused":       {nil, func(c *kafka.Cluster) { c.Groups[1].CanRead = kafka.Denied }, []string{"fail group docket-parking: no permission to join it"}},
		"topic missing": {nil, func(c *kafka.Cluster) {
			c.Topics[parked].Err = &kafka.FaultError{Reason: kafka.ReasonTopicMissing, Act: "describe topic", Code: "UNKNOWN_TOPIC_OR_PARTITION"}
		}, []string{"fail topic decision-logs-parking: describe topic: topic_missing (UNKNOWN_TOPIC_OR_PARTITION); create it: kafka-topics.sh --create --topic decision-logs-parking "}},
		"group not there yet": {nil, func(c *kafka.Cluster) {
			c.Groups[1].Err = &kafka.FaultError{Reason: kafka.ReasonOther, Act: "describe the group", Code: "GROUP_ID_NOT_FOUND", Err: kerr.GroupIDNotFound}
		}, nil},
		"group refused to us": {nil, func(c *kafka.Cluster) {
			c.Groups[0].Err = &kafka.FaultError{Reason: kafka.ReasonAuthorization, Act: "describe the group", Hint: "grant"}
		}, []string{"fail group docket: describe the group: authorization; grant"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings(t, c.env...)
			cl := good(s)
			c.spoil(cl)
			var got []string
			for _, r := range judge(s, cl) {
				line := fmt.Sprintf("%s %s: %s; %s", r.Level, r.What, r.Detail, r.Hint)
				if strings.Contains(line, planted) {
					t.Errorf("the text of an error shows: %s", line)
				}
				if r.Level != OK {
					got = append(got, line)
				}
				if (r.Level == OK) != (r.Hint == "") || r.Detail == "" {
					t.Errorf("%s says not what to do, or says it for nothing", line)
				}
			}
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

func TestUploads_NeedsOnlyWriteRights(t *testing.T) {
	t.Parallel()
	s, _, err := config.Load(config.Collector, []string{"DOCKET_KAFKA_BROKERS=127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	looked := func(spoil func(topics []kafka.Topic)) (bad []string) {
		c := good(settings(t))
		c.Topics, c.Groups = []kafka.Topic{c.Topics[source], c.Topics[dlq]}, nil
		spoil(c.Topics)
		for _, r := range judge(s, c) {
			if r.Level != OK {
				bad = append(bad, fmt.Sprintf("%s %s: %s; %s", r.Level, r.What, r.Detail, r.Hint))
			}
		}
		return bad
	}
	if bad := looked(func(topics []kafka.Topic) { topics[0].CanRead, topics[1].CanRead = kafka.Denied, kafka.Denied }); bad != nil {
		t.Errorf("it reads nothing: %q", bad)
	}
	bad := looked(func(topics []kafka.Topic) {
		topics[0].CanWrite, topics[1].CanWrite, topics[1].MaxMessageBytes = kafka.Denied, kafka.Denied, 1000
	})
	for i, want := range []string{
		"fail topic decision-logs: no permission to write to it (WRITE); grant", "fail topic decision-logs-dlq: no permission to write to it (WRITE); grant",
		"fail topic decision-logs-dlq: max.message.bytes 1000 is less than the source's 1044480: an upload with",
	} {
		if i >= len(bad) || !strings.HasPrefix(bad[i], want) {
			t.Errorf("%q, want %s", bad, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if all := Uploads(ctx, s); !Failed(all) || len(all) != 2 {
		t.Errorf("nobody is there: %v", all)
	}
}

func TestHeaderKey(t *testing.T) {
	t.Parallel()
	if all := headerKey(config.Settings{}); len(all) != 1 || all[0].Level != Warn || !strings.Contains(all[0].Hint, "DOCKET_HEADER_KEY_FILE") {
		t.Errorf("without a key: %v", all)
	}
	if all := headerKey(config.Settings{HeaderKey: "k"}); len(all) != 1 || all[0].Level != OK || strings.Contains(all[0].Detail, "k ") {
		t.Errorf("with one: %v", all)
	}
}

func TestSpool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"none":            {[]string{"DOCKET_SPOOL_DIR="}, "warn the spool is off"},
		"not there yet":   {[]string{"DOCKET_SPOOL_DIR=" + dir + "/a/b"}, ""},
		"others can read": {[]string{"DOCKET_SPOOL_DIR=" + open}, "warn " + open + " has the mode 0755"},
		"a file":          {[]string{"DOCKET_SPOOL_DIR=" + file}, "fail " + file + " is not a directory"},
		"a link":          {[]string{"DOCKET_SPOOL_DIR=" + link}, "fail " + link + " is not a directory"},
		"below a file":    {[]string{"DOCKET_SPOOL_DIR=" + file + "/x"}, "fail " + file + "/x cannot be read by this user"},
		"in memory":       {[]string{"DOCKET_SPOOL_DIR=/dev/shm/docket-none"}, "warn /dev/shm is on a temporary disk (tmpfs)"},
		"larger than it":  {[]string{"DOCKET_SPOOL_DIR=" + dir, "DOCKET_SPOOL_MAX_BYTES=1TiB"}, "MiB are free, less than DOCKET_SPOOL_MAX_BYTES (1TiB)"},
		"evict":           {[]string{"DOCKET_SPOOL_DIR=" + dir, "DOCKET_SPOOL_ON_FULL=evict"}, "warn DOCKET_SPOOL_ON_FULL=evict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, failed := "", false
			for _, r := range spool(settings(t, c.env...)) {
				text += fmt.Sprintf("%s %s\n", r.Level, r.Detail)
				failed = failed || r.Level == Fail
			}
			if !strings.Contains(text, c.want) || failed != strings.HasPrefix(c.want, "fail") {
				t.Errorf("got %s want %s", text, c.want)
			}
		})
	}
	if _, err := os.Lstat(filepath.Join(dir, "a")); err == nil {
		t.Error("looking made a directory")
	}
}

func TestAll_NothingAnswers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	all := All(ctx, settings(t, "DOCKET_SPOOL_DIR="+t.TempDir()), nil)
	if !Failed(all) {
		t.Error("nothing failed")
	}
	seen := map[string]bool{}
	for _, r := range all {
		seen[r.What+" "+string(r.Level)] = true
		if strings.Contains(fmt.Sprint(r), planted) {
			t.Errorf("a secret shows: %v", r)
		}
	}
	if !seen["brokers fail"] || !seen["database connection fail"] || seen["spool fail"] {
		t.Errorf("results %v", all)
	}
}

// On a machine with systemd root runs the check, as root alone reads the secrets, and the spool is that of the user docket.
func TestSpool_RootChecksForAnother(t *testing.T) {
	t.Parallel()
	for users, want := range map[[2]int]Level{{998, 998}: OK, {0, 0}: OK, {998, 0}: Warn, {998, 1000}: Fail, {0, 1000}: Fail} {
		r := report{what: "spool"}
		belongs("/var/lib/docket/consumer/spool", users[0], users[1], &r)
		if got := r.results("fine"); len(got) != 1 || got[0].Level != want {
			t.Errorf("of %d by %d: %+v", users[0], users[1], got)
		}
	}
}
