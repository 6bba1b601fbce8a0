package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cluster is the description of a cluster.
type Cluster struct {
	ID      string
	Version string // best guess for the oldest broker that answered, empty if none said
	Brokers []Broker
	Topics  []Topic // in the order asked for
	Groups  []Group // in the order asked for
}

// Broker is one broker of the cluster.
type Broker struct {
	ID      int32
	Address string
	Version string // best guess, empty if it did not answer
	Err     error  // a [*FaultError] if it did not answer
}

// Topic is the description of a topic. Settings that could not be read are -1.
type Topic struct {
	Name              string
	Err               error // a [*FaultError] if the topic is missing or may not be seen
	Partitions        int
	Leaderless        int // partitions without a leader
	Replication       int // least number of replicas of a partition
	MinInSyncReplicas int64
	MaxMessageBytes   int64
	Retention         time.Duration // negative: unlimited, or not known; see RetentionKnown
	RetentionKnown    bool
	RetentionBytes    int64  // per partition; -1: no limit, or not known
	CleanupPolicy     string // "delete", "compact" or both; empty if not known
	UncleanElection   bool   // a replica that lacks acknowledged records may become the leader
	ConfigErr         error  // a [*FaultError] if the settings may not be read
	Operations        []string
	CanRead, CanWrite Permission
}

// Group is the description of a consumer group.
type Group struct {
	Name    string
	Err     error  // a [*FaultError]
	State   string // empty if the group does not exist yet
	Members int
	CanRead Permission
}

// Permission is the brokers' answer about an ACL.
type Permission uint8

// Brokers may leave it open.
const (
	Untold Permission = iota
	Granted
	Denied
)

func permission(ops []kadm.ACLOperation, op kmsg.ACLOperation) Permission {
	switch {
	case len(ops) == 0:
		return Untold
	case slices.Contains(ops, op), slices.Contains(ops, kmsg.ACLOperationAll):
		return Granted
	}
	return Denied
}

// Ping reports whether a broker answers with these credentials. The error is a [*FaultError].
func Ping(ctx context.Context, cfg Config) error {
	client, err := oneTime(cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return unreachable("reach the brokers", err)
	}
	return nil
}

func oneTime(cfg Config) (*kgo.Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(cfg.options(cfg.quiet(zerolog.Nop(), "describe"), kgo.RequestRetries(2))...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return client, nil
}

// Describe asks a cluster for its brokers, and for topics and groups by name. It creates nothing. An error is a
// [*FaultError] and means that the whole request failed. Errors of one broker, topic or group are in its description.
func Describe(ctx context.Context, cfg Config, topics, groups []string) (*Cluster, error) {
	client, err := oneTime(cfg)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	meta, err := admin.BrokerMetadata(ctx)
	if err != nil {
		return nil, unreachable("describe the cluster", err)
	}
	c := &Cluster{ID: meta.Cluster}
	c.brokers(ctx, admin, meta)
	for _, name := range topics {
		c.Topics = append(c.Topics, describeTopic(ctx, admin, name))
	}
	for _, name := range groups {
		c.Groups = append(c.Groups, describeGroup(ctx, admin, name))
	}
	return c, nil
}

// Topic describes one topic like [Describe], over the reader's own connections.
func (r *Reader) Topic(ctx context.Context, name string) Topic {
	return describeTopic(ctx, r.admin, name)
}

func (c *Cluster) brokers(ctx context.Context, admin *kadm.Client, meta kadm.Metadata) {
	versions, err := admin.ApiVersions(ctx)
	for _, b := range meta.Brokers {
		broker := Broker{ID: b.NodeID, Address: fmt.Sprintf("%s:%d", b.Host, b.Port), Err: err}
		if v, ok := versions[b.NodeID]; ok && v.Err == nil {
			broker.Version = v.VersionGuess()
		} else if ok {
			broker.Err = v.Err
		}
		if broker.Err != nil {
			broker.Err = unreachable("reach broker "+broker.Address, broker.Err)
		} else if c.Version == "" || broker.Version < c.Version {
			c.Version = broker.Version
		}
		c.Brokers = append(c.Brokers, broker)
	}
	slices.SortFunc(c.Brokers, func(a, b Broker) int { return int(a.ID - b.ID) })
}

// describeTopic asks for one topic alone, because one that may not be seen would hide the others.
func describeTopic(ctx context.Context, admin *kadm.Client, name string) Topic {
	t := Topic{Name: name, MinInSyncReplicas: -1, MaxMessageBytes: -1, Retention: -1, RetentionBytes: -1}
	meta, err := admin.Metadata(kadm.WithAuthorizedOps(ctx), name)
	d := meta.Topics[name]
	if err == nil {
		err = d.Err
	}
	if err != nil {
		t.Err = fault("describe topic", name, -1, err).missing("DESCRIBE", "topic", name)
		return t
	}
	t.Partitions = len(d.Partitions)
	for _, p := range d.Partitions {
		if t.Replication == 0 || len(p.Replicas) < t.Replication {
			t.Replication = len(p.Replicas)
		}
		if p.Leader < 0 {
			t.Leaderless++
		}
	}
	for _, op := range d.AuthorizedOperations {
		t.Operations = append(t.Operations, op.String())
	}
	t.CanRead = permission(d.AuthorizedOperations, kmsg.ACLOperationRead)
	t.CanWrite = permission(d.AuthorizedOperations, kmsg.ACLOperationWrite)
	configs, err := admin.DescribeTopicConfigs(ctx, name)
	t.settings(configs, err)
	return t
}

func (t *Topic) settings(configs kadm.ResourceConfigs, err error) {
	if err == nil {
		var of kadm.ResourceConfig
		if of, err = configs.On(t.Name, nil); err == nil {
			err = of.Err
		}
		for _, c := range of.Configs {
			t.setting(c.Key, c.MaybeValue())
		}
	}
	if err != nil {
		t.ConfigErr = fault("read the settings of", t.Name, -1, err).missing("DESCRIBE_CONFIGS", "topic", t.Name)
	}
}

func (t *Topic) setting(key, value string) {
	n, err := strconv.ParseInt(value, 10, 64)
	switch key {
	case "cleanup.policy":
		t.CleanupPolicy = value
		return
	case "unclean.leader.election.enable":
		t.UncleanElection = value == "true"
		return
	}
	if err != nil {
		return
	}
	switch key {
	case "min.insync.replicas":
		t.MinInSyncReplicas = n
	case "max.message.bytes":
		t.MaxMessageBytes = n
	case "retention.ms":
		t.RetentionKnown = true
		t.Retention = time.Duration(min(n, int64(1<<63-1)/int64(time.Millisecond))) * time.Millisecond
	case "retention.bytes":
		t.RetentionBytes = n
	}
}

// coordinatorPatience is how long to wait for a group's coordinator. The first request about any group makes a new
// cluster create __consumer_offsets. After a broker's death, another one loads the group's data.
const (
	coordinatorPause    = 250 * time.Millisecond
	coordinatorPatience = 20 * time.Second
)

// oncePresent repeats a request until the group's coordinator is there, for at most coordinatorPatience.
func oncePresent(ctx context.Context, ask func() error) error {
	for began := time.Now(); ; {
		err := ask()
		away := errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.CoordinatorLoadInProgress) || errors.Is(err, kerr.NotCoordinator)
		if !away || time.Since(began) >= coordinatorPatience {
			return err
		}
		select {
		case <-ctx.Done():
			return err // it says more than a timeout does
		case <-time.After(coordinatorPause):
		}
	}
}

func describeGroup(ctx context.Context, admin *kadm.Client, name string) Group {
	g := Group{Name: name}
	err := oncePresent(ctx, func() error {
		described, err := admin.DescribeGroups(ctx, name)
		d, ok := described[name]
		switch {
		case ok && d.Err != nil:
			return d.Err
		case err != nil:
			return err
		case !ok:
			return errors.New("the brokers did not answer for the group")
		}
		g.State, g.Members = d.State, len(d.Members)
		g.CanRead = permission(d.AuthorizedOperations, kmsg.ACLOperationRead)
		return nil
	})
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) { // a group begins with its first member
		g.Err = ofGroup("describe the group "+name, name, "", -1, err)
	}
	return g
}
