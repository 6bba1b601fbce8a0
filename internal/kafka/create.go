package kafka

import (
	"context"
	"errors"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// NewTopic is a topic to create.
type NewTopic struct {
	Name        string
	Partitions  int               // at least 1
	Replication int               // at least 1, at most the number of brokers
	Settings    map[string]string // those that differ from the brokers' defaults, like retention.ms
}

// Creation is the brokers' answer about a topic to create.
type Creation struct {
	Name    string
	Existed bool  // it exists; the brokers changed nothing
	Err     error // a [*FaultError], or nil
}

// CreateTopics asks the brokers to create topics, one by one, and returns their answers in the same order. With dry they
// check each request and create nothing. A topic that exists is left as it is. An error is a [*FaultError] and means that
// no topic could be asked about.
func CreateTopics(ctx context.Context, cfg Config, topics []NewTopic, dry bool) ([]Creation, error) {
	client, err := oneTime(cfg)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	all := make([]Creation, len(topics))
	for i, t := range topics {
		all[i] = createTopic(ctx, admin, t, dry)
	}
	return all, nil
}

func createTopic(ctx context.Context, admin *kadm.Client, t NewTopic, dry bool) Creation {
	settings := map[string]*string{}
	for name, value := range t.Settings {
		settings[name] = &value
	}
	ask := admin.CreateTopics
	if dry {
		ask = admin.ValidateCreateTopics
	}
	answers, err := ask(ctx, int32(t.Partitions), int16(t.Replication), settings, t.Name) //nolint:gosec // the numbers are of settings and of brokers
	if err == nil {
		err = answers[t.Name].Err
	}
	done := Creation{Name: t.Name}
	switch {
	case errors.Is(err, kerr.TopicAlreadyExists):
		done.Existed = true
	case err != nil:
		f := fault("create topic", t.Name, -1, err).missing("CREATE", "topic", t.Name)
		if hint := createHints[f.Code]; hint != "" {
			f.Hint = hint
		}
		done.Err = f
	}
	return done
}

// createHints are the advice where brokers refuse to create a topic, by Kafka's name of the error.
var createHints = map[string]string{
	kerr.InvalidReplicationFactor.Message: "fewer brokers run than the topic needs replicas: start the others, or use a lower replication",
	kerr.InvalidPartitions.Message:        "use another number of partitions",
	kerr.PolicyViolation.Message:          "a policy of the brokers (create.topic.policy.class.name) refuses these settings: use others, or let the owner of the cluster create the topic",
	kerr.InvalidConfig.Message:            "the brokers do not know one of the settings, or refuse its value: see their logs",
	kerr.InvalidTopicException.Message:    "use a name of at most 249 letters, digits, dots, hyphens and underscores",
}

// MessageLimit returns message.max.bytes of a broker: the max.message.bytes of topics that have none of their own. It is
// -1 if the broker does not say it.
func MessageLimit(ctx context.Context, cfg Config, broker int32) int64 {
	client, err := oneTime(cfg)
	if err != nil {
		return -1
	}
	defer client.Close()
	configs, err := kadm.NewClient(client).DescribeBrokerConfigs(ctx, broker)
	if err != nil {
		return -1
	}
	of, err := configs.On(strconv.Itoa(int(broker)), nil)
	if err != nil || of.Err != nil {
		return -1
	}
	for _, c := range of.Configs {
		if n, err := strconv.ParseInt(c.MaybeValue(), 10, 64); c.Key == "message.max.bytes" && err == nil {
			return n
		}
	}
	return -1
}
