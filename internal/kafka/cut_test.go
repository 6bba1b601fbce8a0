package kafka_test

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

// cut makes the brokers say that the log of every epoch ends at this offset, as after an unclean election.
func cut(c *kafkatest.Cluster, at int64) {
	c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := r.(*kmsg.OffsetForLeaderEpochRequest)
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		for _, rt := range req.Topics {
			st := kmsg.NewOffsetForLeaderEpochResponseTopic()
			st.Topic = rt.Topic
			for _, rp := range rt.Partitions {
				sp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				sp.Partition, sp.LeaderEpoch, sp.EndOffset = rp.Partition, rp.LeaderEpoch, at
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
}

var resetCommand = regexp.MustCompile("`kafka-consumer-groups.sh --bootstrap-server (\\S+) --group (\\S+) --topic ([a-z-]+):([0-9]+) --reset-offsets --to-offset ([0-9]+) --execute`")

// follow runs the command of a hint: it commits an offset without an epoch.
func follow(t *testing.T, c *kafkatest.Cluster, hint string) int64 {
	t.Helper()
	words := resetCommand.FindStringSubmatch(hint)
	if words == nil || words[1] != c.Brokers()[0] || words[2] != group || words[3] != topic || words[4] != "0" {
		t.Fatalf("no command for this partition in %q", hint)
	}
	to, err := strconv.ParseInt(words[5], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	client := c.Client(t)
	defer client.Close()
	ctx, end := context.WithTimeout(context.Background(), kafkatest.Timeout)
	defer end()
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, to, -1)
	if err := kadm.NewClient(client).CommitAllOffsets(ctx, group, offsets); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestCutLog_HintHelps(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.Values(t, topic, 0, values(20)...)
	var before book
	m := run(t, fast(c), small(), storing(before.note))
	kafkatest.Eventually(t, "all is committed", func() bool { return c.Committed(t, group, topic)[0] == 20 })
	m.end()
	cut(c, 12)
	c.Values(t, topic, 0, values(10)...)

	var hint string
	for range 2 { // a restart alone changes nothing
		var seen book
		m = run(t, fast(c), small(), storing(seen.note))
		kafkatest.Eventually(t, "the fault says truncated", func() bool { return reason(m.Fault()) == kafka.ReasonTruncated })
		f := (*kafka.FaultError)(nil)
		if errors.As(m.Fault(), &f) {
			hint = f.Hint
		}
		if lag := m.Lag(); len(lag) != 1 || !lag[0].Stuck {
			t.Errorf("lag %+v of a log that cannot be read", lag)
		}
		m.end()
		if n := seen.len(); n > 0 {
			t.Fatalf("%d records were read from a log that was cut", n)
		}
	}

	if to := follow(t, c, hint); to != 12 {
		t.Fatalf("the hint resets to %d, the log was cut at 12", to)
	}
	var after book
	m = run(t, fast(c), small(), storing(after.note))
	kafkatest.Eventually(t, "all from the cut on is read and committed", func() bool {
		return after.len() == 18 && c.Committed(t, group, topic)[0] == 30
	})
	if err := m.Fault(); err != nil {
		t.Error(err)
	}
	if lag := m.Lag(); len(lag) != 1 || lag[0].Stuck {
		t.Errorf("lag %+v afterwards", lag)
	}
}

func TestResetHint_NamesTheCommand(t *testing.T) {
	t.Parallel()
	const command = "`kafka-consumer-groups.sh --bootstrap-server b:9092,c:9092 --group g --topic t:3 --reset-offsets "
	for reason, want := range map[kafka.Reason]string{
		kafka.ReasonTruncated:      command + "--to-offset 7 --execute`",
		kafka.ReasonOutOfRange:     command + "--to-earliest --execute`",
		kafka.ReasonTopicRecreated: command + "--to-earliest --execute`",
		kafka.ReasonUnreachable:    "",
	} {
		f := kafka.FaultError{Reason: reason, Topic: "t", Partition: 3, Offset: 7}
		kafka.Resetting(&f, []string{"b:9092", "c:9092"}, "g")
		if (want == "") != (f.Hint == "") || !regexp.MustCompile(regexp.QuoteMeta(want)).MatchString(f.Hint) {
			t.Errorf("%s: %q, want %q", reason, f.Hint, want)
		}
	}
}
