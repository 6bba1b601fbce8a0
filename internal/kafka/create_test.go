package kafka_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

func newTopic(name string) kafka.NewTopic {
	return kafka.NewTopic{Name: name, Partitions: 3, Replication: 1, Settings: map[string]string{"retention.ms": "604800000", "max.message.bytes": "2097152", "min.insync.replicas": "1"}}
}

func TestCreateTopics_AsAsked(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t)
	ctx, cancel := context.WithTimeout(context.Background(), kafkatest.Timeout)
	defer cancel()
	wanted := []kafka.NewTopic{newTopic(topic), newTopic(dlq)}
	for _, again := range []bool{false, true} {
		got, err := kafka.CreateTopics(ctx, fast(c), wanted, false)
		if err != nil || len(got) != 2 {
			t.Fatalf("got %+v, %v", got, err)
		}
		for i, one := range got {
			if one.Name != wanted[i].Name || one.Err != nil || one.Existed != again {
				t.Errorf("again %v: %+v", again, one)
			}
		}
	}
	is, err := kafka.Describe(ctx, fast(c), []string{topic}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if one := is.Topics[0]; one.Err != nil || one.Partitions != 3 || one.Retention != 7*24*time.Hour || one.MaxMessageBytes != 2<<20 {
		t.Errorf("got %+v", one)
	}
}

func TestCreateTopics_DryRunCreatesNothing(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t)
	ctx, cancel := context.WithTimeout(context.Background(), kafkatest.Timeout)
	defer cancel()
	if got, err := kafka.CreateTopics(ctx, fast(c), []kafka.NewTopic{newTopic(topic)}, true); err != nil || got[0].Err != nil || got[0].Existed {
		t.Fatalf("got %+v, %v", got, err)
	}
	is, err := kafka.Describe(ctx, fast(c), []string{topic}, nil)
	if err != nil || reason(is.Topics[0].Err) != kafka.ReasonTopicMissing {
		t.Errorf("got %+v, %v", is, err)
	}
}

func TestCreateTopics_RefusalsHaveAdvice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refused *kerr.Error
		reason  kafka.Reason
		hint    string
	}{
		"no right":          {kerr.TopicAuthorizationFailed, kafka.ReasonAuthorization, "grant the principal CREATE on the topic " + topic},
		"no right, cluster": {kerr.ClusterAuthorizationFailed, kafka.ReasonAuthorization, "grant the principal CREATE on the topic " + topic},
		"few brokers":       {kerr.InvalidReplicationFactor, kafka.ReasonOther, "fewer brokers run"},
		"a policy":          {kerr.PolicyViolation, kafka.ReasonOther, "a policy of the brokers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cl := kafkatest.New(t)
			cl.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
				cl.KeepControl()
				resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
				for _, asked := range req.(*kmsg.CreateTopicsRequest).Topics {
					one := kmsg.NewCreateTopicsResponseTopic()
					one.Topic, one.ErrorCode = asked.Topic, c.refused.Code
					resp.Topics = append(resp.Topics, one)
				}
				return resp, nil, true
			})
			ctx, cancel := context.WithTimeout(context.Background(), kafkatest.Timeout)
			defer cancel()
			got, err := kafka.CreateTopics(ctx, fast(cl), []kafka.NewTopic{newTopic(topic)}, false)
			if err != nil {
				t.Fatal(err)
			}
			var f *kafka.FaultError
			if !errors.As(got[0].Err, &f) || f.Reason != c.reason || f.Code != c.refused.Message || !strings.HasPrefix(f.Hint, c.hint) {
				t.Errorf("got %v", got[0].Err)
			}
		})
	}
}

func TestMessageLimit_OfTheBroker(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "4194304"}))
	ctx, cancel := context.WithTimeout(context.Background(), kafkatest.Timeout)
	defer cancel()
	is, err := kafka.Describe(ctx, fast(c), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := kafka.MessageLimit(ctx, fast(c), is.Brokers[0].ID); got != 4<<20 {
		t.Errorf("got %d", got)
	}
	if got := kafka.MessageLimit(ctx, fast(c), 77); got != -1 {
		t.Errorf("a broker that is not there: %d", got)
	}
}
