package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"docket/internal/kafka"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// Figures of new topics that no setting and no existing topic decides.
const (
	newPartitions  = 12
	newReplication = 3
	// newRetention outlasts a long outage with holidays on top: records in a home wait for a person or a database.
	newRetention = 30 * 24 * time.Hour
	// kafkaMessageLimit is Kafka's default of message.max.bytes.
	kafkaMessageLimit = 1048588
)

// Wanted are the wishes of a person for new topics. 0 means none: 12 partitions and replication 3.
type Wanted struct{ Partitions, Replication int }

// TopicPlan is the plan for one topic.
type TopicPlan struct {
	kafka.NewTopic          // as it is created, if it does not exist
	Create         bool     // it does not exist
	Unknown        bool     // it cannot be seen: the brokers do not say whether it exists
	Findings       []Result // of one that exists, or that cannot be seen: one ok, or what differs
}

// fewBrokersError says that fewer brokers are up than new topics need replicas. A broker that is down for a while must not
// decide the replication of a topic for good.
type fewBrokersError struct{ up int }

func (e *fewBrokersError) Error() string {
	are := "brokers are"
	if e.up == 1 {
		are = "broker is"
	}
	return fmt.Sprintf("%d %s up, and new topics need %d", e.up, are, newReplication)
}

func (e *fewBrokersError) hint() string {
	return fmt.Sprintf("start the others, or name --replication %d if that is the cluster", e.up)
}

// Topics plans every topic that the settings need. It creates nothing. An error is a [*kafka.FaultError], one of the
// settings, or of too few brokers for new topics.
func Topics(ctx context.Context, s config.Settings, w Wanted) ([]TopicPlan, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	all, brokers, err := look(ctx, s, w)
	if err != nil {
		return nil, err
	}
	creates := slices.ContainsFunc(all, func(p TopicPlan) bool { return p.Create })
	if creates && w.Replication == 0 && brokers < newReplication {
		return nil, &fewBrokersError{max(brokers, 1)}
	}
	return all, nil
}

// look plans every topic by the topics that there are. It also returns the number of brokers that are up.
func look(ctx context.Context, s config.Settings, w Wanted) (all []TopicPlan, brokers int, err error) {
	cfg, err := app.Kafka(s, "topics")
	if err != nil {
		return nil, 0, err
	}
	var names []string
	for _, of := range s.ByShard() {
		names = append(names, topicsOf(of)...)
	}
	slices.Sort(names)
	c, err := kafka.Describe(ctx, cfg, slices.Compact(names), nil)
	if err != nil {
		return nil, 0, err
	}
	limit := int64(-1)
	if len(c.Brokers) > 0 {
		limit = kafka.MessageLimit(ctx, cfg, c.Brokers[0].ID)
	}
	return planAll(s, c, limit, w), len(c.Brokers), nil
}

// topicsOf returns the names of all topics that the settings need, the source topics first.
func topicsOf(s config.Settings) []string {
	return append(s.SourceTopics(), s.KafkaParkingTopic, s.KafkaDLQTopic, s.KafkaParkingDLQTopic)
}

// planAll plans the topics of all shards. Each topic comes once: shards share the source topics.
func planAll(s config.Settings, c *kafka.Cluster, limit int64, w Wanted) []TopicPlan {
	byName := map[string]kafka.Topic{}
	for _, t := range c.Topics {
		byName[t.Name] = t
	}
	var all []TopicPlan
	planned := map[string]bool{}
	for _, of := range s.ByShard() {
		p := newPlanner(of, c, limit, w)
		for _, name := range topicsOf(of) {
			if !planned[name] {
				planned[name] = true
				all = append(all, p.plan(byName[name]))
			}
		}
	}
	return all
}

// planner plans the topics of one shard, or of a Docket without shards.
type planner struct {
	settings    config.Settings
	wanted      Wanted
	limit       int64 // max.message.bytes of a topic without its own
	src         sources
	replication int
	source      kafka.Topic // of the default lane, as it is
}

func newPlanner(s config.Settings, c *kafka.Cluster, limit int64, w Wanted) planner {
	if limit < 0 {
		limit = kafkaMessageLimit
	}
	p := planner{settings: s, wanted: w, limit: limit, src: sourcesOf(s, c.Topics), replication: cmp.Or(w.Replication, newReplication)}
	if i := slices.IndexFunc(c.Topics, func(t kafka.Topic) bool { return t.Name == s.KafkaTopic }); i >= 0 {
		p.source = c.Topics[i]
	}
	if p.src.partitions == 0 {
		p.src.partitions = p.partitions()
	}
	if p.src.large < 0 {
		p.src.large = limit
	}
	p.src.largest = max(p.src.largest, p.src.large)
	return p
}

// ShardPartitions returns the number of partitions that the shards have together. 0: there are no shards.
func ShardPartitions(s config.Settings) int {
	n := 0
	for _, one := range s.Shards() {
		n = max(n, int(one.Ranges[len(one.Ranges)-1].Last)+1)
	}
	return n
}

// partitions returns the number of partitions of a new topic that nothing else decides.
func (p planner) partitions() int {
	return cmp.Or(p.wanted.Partitions, ShardPartitions(p.settings), newPartitions)
}

func (p planner) plan(t kafka.Topic) TopicPlan {
	one := TopicPlan{NewTopic: kafka.NewTopic{Name: t.Name}}
	r := report{what: "topic " + t.Name}
	var f *kafka.FaultError
	switch {
	case errors.As(t.Err, &f) && f.Reason == kafka.ReasonTopicMissing:
		one.Create, one.NewTopic = true, p.fresh(t)
		return one
	case errors.As(t.Err, &f) && f.Reason == kafka.ReasonAuthorization:
		one.Unknown = true
		r.add(Fail, "no permission to see it (DESCRIBE)", grant("topic", t.Name, "DESCRIBE"))
	case t.Err != nil:
		one.Unknown = true
		r.all = append(r.all, broken(r.what, t.Err))
	default:
		owned(p.settings, t, p.src, &r)
		p.asked(t, &r)
		fits(p.settings, t, p.src, &r)
	}
	one.Findings = r.results(describe(p.settings, t))
	return one
}

// asked compares a topic that exists with the wishes of the person. Docket never changes it.
func (p planner) asked(t kafka.Topic, r *report) {
	if w := p.wanted.Partitions; w > 0 && w != t.Partitions {
		r.add(Warn, fmt.Sprintf("%d partitions, not %d", t.Partitions, w), "partitions can only be added (kafka-topics.sh --alter --partitions), and then keys change their partition")
	}
	if w := p.wanted.Replication; w > 0 && w != t.Replication {
		r.add(Warn, fmt.Sprintf("replication %d, not %d", t.Replication, w), "change it with kafka-reassign-partitions.sh")
	}
}

// fresh returns the topic to create.
func (p planner) fresh(t kafka.Topic) kafka.NewTopic {
	n := kafka.NewTopic{Name: t.Name, Partitions: p.partitions(), Replication: p.replication, Settings: map[string]string{
		"cleanup.policy":      "delete",
		"min.insync.replicas": strconv.Itoa(max(p.replication-1, 1)),
	}}
	if isSource(p.settings, t) {
		n.Partitions = p.src.partitions
		if p.src.large != p.limit { // a lane takes what the default lane takes
			n.Settings["max.message.bytes"] = fmt.Sprint(p.src.large)
		}
		switch { // and keeps it as long
		case p.source.RetentionKnown && p.source.Retention < 0:
			n.Settings["retention.ms"] = "-1"
		case p.source.RetentionKnown:
			n.Settings["retention.ms"] = fmt.Sprint(p.source.Retention.Milliseconds())
		}
		return n
	}
	n.Settings["retention.ms"] = fmt.Sprint(max(newRetention, wanted(p.settings)).Milliseconds())
	n.Settings["retention.bytes"] = "-1"
	n.Settings["max.message.bytes"] = fmt.Sprint(p.src.largest + headerRoom)
	return n
}

// Describe returns the topic to create as one line.
func (p TopicPlan) Describe() string {
	text := fmt.Sprintf("%d partitions, replication %d", p.Partitions, p.Replication)
	for _, name := range slices.Sorted(maps.Keys(p.Settings)) {
		text += ", " + name + "=" + p.Settings[name]
	}
	return text
}

// CreateTopics has the brokers create the topics of a plan that do not exist. With dry they only check the requests. The
// results are one for each of these topics: ok, or fail with what to do. A topic that another process created meanwhile is
// described again: the plans that it returns have it as one that exists, and its findings are among the results.
func CreateTopics(ctx context.Context, s config.Settings, all []TopicPlan, w Wanted, dry bool) ([]TopicPlan, []Result) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	var missing []kafka.NewTopic
	for _, p := range all {
		if p.Create {
			missing = append(missing, p.NewTopic)
		}
	}
	if len(missing) == 0 {
		return all, nil
	}
	cfg, err := app.Kafka(s, "topics")
	if err != nil {
		return all, []Result{{Fail, "brokers", err.Error(), "correct the settings that are named"}}
	}
	answers, err := kafka.CreateTopics(ctx, cfg, missing, dry)
	if err != nil {
		return all, []Result{broken("brokers", err)}
	}
	var results []Result
	existed := map[string]bool{}
	for _, a := range answers {
		what := "topic " + a.Name
		switch {
		case a.Err != nil:
			results = append(results, broken(what, a.Err))
		case a.Existed:
			existed[a.Name] = true
			results = append(results, Result{OK, what, "exists: another process created it meanwhile", ""})
		case dry:
			results = append(results, Result{OK, what, "the brokers would create it", ""})
		default:
			results = append(results, Result{OK, what, "created", ""})
		}
	}
	if len(existed) == 0 {
		return all, results
	}
	all, findings := again(ctx, s, all, w, existed)
	return all, append(results, findings...)
}

// again describes the topics that others created meanwhile. It returns the plans with them, and the findings about them that
// are not ok.
func again(ctx context.Context, s config.Settings, all []TopicPlan, w Wanted, existed map[string]bool) ([]TopicPlan, []Result) {
	seen := map[string]TopicPlan{}
	now, _, err := look(ctx, s, w)
	for _, p := range now {
		seen[p.Name] = p
	}
	all = slices.Clone(all)
	var findings []Result
	for i, p := range all {
		if !existed[p.Name] {
			continue
		}
		what, is := "topic "+p.Name, seen[p.Name]
		switch {
		case err != nil:
			is = TopicPlan{NewTopic: kafka.NewTopic{Name: p.Name}, Unknown: true, Findings: []Result{broken(what, err)}}
		case is.Create: // the broker that was asked does not know of it yet
			is = TopicPlan{NewTopic: kafka.NewTopic{Name: p.Name}, Unknown: true, Findings: []Result{{Fail, what, "another process created it; the brokers do not describe it yet", "run the command again"}}}
		}
		all[i] = is
		for _, r := range is.Findings {
			if r.Level != OK {
				findings = append(findings, r)
			}
		}
	}
	return all, findings
}

// Unplanned returns the result for an error of [Topics].
func Unplanned(err error) Result {
	var few *fewBrokersError
	if errors.As(err, &few) {
		return Result{Fail, "brokers", few.Error(), few.hint()}
	}
	return broken("brokers", err)
}

// Alter returns the command that changes a setting of a topic.
func Alter(s config.Settings) string {
	return "kafka-configs.sh --bootstrap-server " + strings.Join(s.KafkaBrokers, ",") + " --alter --entity-type topics --entity-name TOPIC --add-config NAME=VALUE"
}
