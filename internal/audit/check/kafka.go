package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"docket/internal/kafka"
	"docket/internal/service/config"
)

// headerRoom is the most bytes that Docket's headers add to a record.
const headerRoom = 4 << 10

// deadLetterRetention is the time that people should have for a dead letter.
const deadLetterRetention = 7 * 24 * time.Hour

// broken is the result for an error with advice.
func broken(what string, err error) Result {
	var f *kafka.FaultError
	if !errors.As(err, &f) {
		return Result{Fail, what, err.Error(), "see the brokers' logs"}
	}
	detail := f.Act + ": " + string(f.Reason)
	if f.Code != "" {
		detail += " (" + f.Code + ")"
	}
	if f.Operation != "" {
		detail += ": no " + f.Operation + " on " + f.Resource
	}
	return Result{Fail, what, detail, f.Hint}
}

// judge compares the description of a cluster with Docket's needs.
func judge(s config.Settings, c *kafka.Cluster) []Result {
	all := brokers(s, c)
	src := sourcesOf(s, c.Topics)
	for _, t := range c.Topics {
		all = append(all, topic(s, t, src)...)
	}
	for _, g := range c.Groups {
		all = append(all, consumerGroup(g)...)
	}
	return all
}

// sources are facts about the source topics: there is one for each lane.
type sources struct {
	partitions int   // of the default lane's; 0: not known
	large      int64 // max.message.bytes of the default lane's; negative: not known
	largest    int64 // the largest of all lanes, which each home has to take; negative: not known
}

func sourcesOf(s config.Settings, topics []kafka.Topic) sources {
	src := sources{large: -1, largest: -1}
	for _, t := range topics {
		switch {
		case !isSource(s, t) || t.Err != nil:
			continue
		case t.Name == s.KafkaTopic:
			src.partitions, src.large = t.Partitions, t.MaxMessageBytes
		}
		src.largest = max(src.largest, t.MaxMessageBytes)
	}
	return src
}

// isSource reports whether a topic is that of a lane.
func isSource(s config.Settings, t kafka.Topic) bool {
	_, ours := s.Source(t.Name)
	return ours
}

func brokers(s config.Settings, c *kafka.Cluster) []Result {
	r := report{what: "brokers"}
	for _, b := range c.Brokers {
		if b.Err != nil {
			one := broken("brokers", b.Err)
			r.add(Warn, fmt.Sprintf("broker %d at %s does not answer", b.ID, b.Address), one.Hint)
		}
	}
	if s.KafkaSASLMechanism == "PLAIN" && !s.KafkaTLS {
		r.add(Warn, "the password crosses the network unencrypted (PLAIN without TLS)", "set DOCKET_KAFKA_TLS=true, or use SCRAM-SHA-512")
	}
	if len(c.Brokers) < 3 {
		r.add(Warn, fmt.Sprintf("only %d: a failure of one loses records or makes Docket hold", len(c.Brokers)), "use at least three brokers")
	}
	return r.results(fmt.Sprintf("%d answer, version %s", len(c.Brokers), c.Version))
}

func topic(s config.Settings, t kafka.Topic, src sources) []Result {
	r := report{what: "topic " + t.Name}
	if t.Err != nil {
		one := broken(r.what, t.Err)
		var f *kafka.FaultError
		if errors.As(t.Err, &f) && f.Reason == kafka.ReasonTopicMissing {
			one.Hint = create(s, t, src)
		}
		if errors.As(t.Err, &f) && f.Reason == kafka.ReasonAuthorization {
			one.Detail, one.Hint = "no permission to see it (DESCRIBE, which READ and WRITE include)", grant("topic", t.Name, needs(s, t)...)
		}
		return []Result{one}
	}
	owned(s, t, src, &r)
	permissions(s, t, &r)
	retries(s, t, &r)
	fits(s, t, src, &r)
	return r.results(describe(s, t))
}

// fits checks the settings of a topic that exists.
func fits(s config.Settings, t kafka.Topic, src sources, r *report) {
	durability(t, r)
	if isSource(s, t) && t.Partitions < src.partitions {
		r.add(Warn, fmt.Sprintf("%d partitions, fewer than the %d of %s: at most %d consumers share this lane", t.Partitions, src.partitions, s.KafkaTopic, t.Partitions),
			fmt.Sprintf("kafka-topics.sh --alter --topic %s --partitions %d", t.Name, src.partitions))
	}
	switch {
	case t.ConfigErr != nil:
		r.add(Warn, "no permission to read its settings, so they were not checked", grant("topic", t.Name, "DESCRIBE_CONFIGS"))
	default:
		kept(s, t, r)
		large(s, t, src, r)
	}
}

// create returns the command that creates a topic. That of a lane has as many partitions as that of the default lane,
// so that the same consumers can share it.
func create(s config.Settings, t kafka.Topic, src sources) string {
	partitions := 12
	if isSource(s, t) && src.partitions > 0 {
		partitions = src.partitions
	}
	text := fmt.Sprintf("create it: kafka-topics.sh --create --topic %s --partitions %d --replication-factor 3 --config min.insync.replicas=2", t.Name, partitions) + extra(s, t)
	if lane := s.LaneName(t.Name); lane != "" && t.Name != s.KafkaTopic {
		text += "; or remove " + lane + " from DOCKET_LANES"
	}
	return text + "; docket topics create makes all that are missing"
}

// extra returns settings for a new topic of this kind.
func extra(s config.Settings, t kafka.Topic) string {
	if isSource(s, t) {
		return ""
	}
	return " --config cleanup.policy=delete --config retention.ms=" + fmt.Sprint(max(deadLetterRetention, wanted(s)).Milliseconds())
}

func describe(s config.Settings, t kafka.Topic) string {
	text := ""
	if lane := s.LaneName(t.Name); lane != "" {
		text = "lane " + lane + ", "
	}
	text += fmt.Sprintf("%d partitions, replication %d", t.Partitions, t.Replication)
	if t.MinInSyncReplicas >= 0 {
		text += fmt.Sprintf(", min.insync.replicas %d", t.MinInSyncReplicas)
	}
	if t.RetentionKnown && t.Retention >= 0 {
		text += ", kept for " + t.Retention.String()
	}
	return text
}

// collects reports whether the settings are those of a collector, which reads nothing.
func collects(s config.Settings) bool { return s.CollectorAddr != "" }

// needs returns the ACL operations on a topic that the program of these settings needs.
func needs(s config.Settings, t kafka.Topic) []string {
	if collects(s) {
		return []string{"WRITE"}
	}
	var ops []string
	source := isSource(s, t)
	if source || t.Name == s.KafkaParkingTopic || s.DeskGroup != "" {
		ops = append(ops, "READ")
	}
	if !source || s.DeskGroup != "" {
		ops = append(ops, "WRITE")
	}
	return ops
}

// grant returns the command that gives ACLs to an unknown principal.
func grant(kind, name string, operations ...string) string {
	text := "grant the principal " + strings.Join(operations, " and ") + " on the " + kind + ": kafka-acls.sh --add --allow-principal User:NAME"
	for _, op := range operations {
		text += " --operation " + op
	}
	return text + " --" + kind + " " + name
}

func permissions(s config.Settings, t kafka.Topic, r *report) {
	for _, op := range needs(s, t) {
		switch {
		case op == "READ" && t.CanRead == kafka.Denied:
			r.add(Fail, "no permission to read it (READ)", grant("topic", t.Name, op))
		case op == "WRITE" && t.CanWrite == kafka.Denied && isSource(s, t) && !collects(s):
			r.add(Fail, "no permission to write to it (WRITE), so the desk cannot retry dead letters", grant("topic", t.Name, op))
		case op == "WRITE" && t.CanWrite == kafka.Denied:
			r.add(Fail, "no permission to write to it (WRITE)", grant("topic", t.Name, op))
		}
	}
}

// retries checks whether the desk may retry the dead letters of a lane.
func retries(s config.Settings, t kafka.Topic, r *report) {
	if lane := s.LaneName(t.Name); lane != "" && s.DeskGroup != "" && len(s.DeskRetryTopics) > 0 && !slices.Contains(s.DeskRetryTopics, t.Name) {
		r.add(Warn, "DOCKET_DESK_RETRY_TOPICS does not name it, so the desk refuses to retry dead letters of the lane "+lane, "add "+t.Name+" to DOCKET_DESK_RETRY_TOPICS, or remove that setting")
	}
}

func durability(t kafka.Topic, r *report) {
	if t.Leaderless > 0 {
		r.add(Fail, fmt.Sprintf("%d of %d partitions have no leader", t.Leaderless, t.Partitions), "check the brokers that had them")
	}
	if t.UncleanElection {
		r.add(Warn, "unclean.leader.election.enable: a broker that lacks acknowledged records may become the leader, and they are lost", "set unclean.leader.election.enable=false")
	}
	if t.Replication == 1 {
		r.add(Warn, "replication 1: if a broker loses its disk, the records are lost", "use replication 3")
		return
	}
	switch {
	case t.MinInSyncReplicas == 1:
		r.add(Warn, "min.insync.replicas 1: an acknowledged record may be on one disk only", "set min.insync.replicas=2")
	case t.MinInSyncReplicas >= int64(t.Replication):
		r.add(Warn, fmt.Sprintf("min.insync.replicas %d of %d replicas: writing stops when one broker stops", t.MinInSyncReplicas, t.Replication), "set it one below the replication")
	}
}

// wanted returns how long the parking topic must keep a record: all pauses to come, at their longest.
func wanted(s config.Settings) time.Duration {
	return s.ParkingMaxBackoff * time.Duration(s.ParkingMaxAttempts)
}

// kept checks how long a topic keeps its records, and whether it keeps all of them.
func kept(s config.Settings, t kafka.Topic, r *report) {
	home := !isSource(s, t)
	if strings.Contains(t.CleanupPolicy, "compact") {
		if home {
			r.add(Fail, "cleanup.policy "+t.CleanupPolicy+": records with the same key replace each other, so it cannot be a home", "set cleanup.policy=delete")
		} else {
			r.add(Warn, "cleanup.policy "+t.CleanupPolicy+": decisions with the same key replace each other before they are read", "set cleanup.policy=delete")
		}
	}
	if home && t.RetentionBytes >= 0 {
		r.add(Warn, fmt.Sprintf("retention.bytes %d: records of any age expire when it is full", t.RetentionBytes), "set retention.bytes=-1, or make sure that it is never reached")
	}
	if !t.RetentionKnown || t.Retention < 0 {
		return
	}
	switch {
	case t.Name == s.KafkaParkingTopic && t.Retention < 2*s.ParkingMaxBackoff:
		r.add(Fail, fmt.Sprintf("kept for %v: records may be deleted before they are due (DOCKET_PARKING_MAX_BACKOFF %v)", t.Retention, s.ParkingMaxBackoff),
			fmt.Sprintf("set retention.ms to %d or more", wanted(s).Milliseconds()))
	case t.Name == s.KafkaParkingTopic && t.Retention < wanted(s):
		r.add(Warn, fmt.Sprintf("kept for %v: less than %d waiting times of %v, so an outage of the replayer can lose records", t.Retention, s.ParkingMaxAttempts, s.ParkingMaxBackoff),
			fmt.Sprintf("set retention.ms to %d or more", wanted(s).Milliseconds()))
	case (t.Name == s.KafkaDLQTopic || t.Name == s.KafkaParkingDLQTopic) && t.Retention < deadLetterRetention:
		r.add(Warn, fmt.Sprintf("kept for %v: a dead letter may expire before anybody reads it", t.Retention), fmt.Sprintf("set retention.ms to %d or more", deadLetterRetention.Milliseconds()))
	}
}

// large checks whether the largest source record fits into the topic together with Docket's headers. It checks whether
// the topic of a lane takes what the default lane takes.
func large(s config.Settings, t kafka.Topic, src sources, r *report) {
	switch {
	case t.MaxMessageBytes < 0:
		return
	case isSource(s, t):
		largeLane(s, t, src, r)
		return
	case src.largest < 0:
		return
	}
	switch need := src.largest + headerRoom; {
	case t.MaxMessageBytes < src.largest:
		left := "large records would stay in the spool"
		if collects(s) {
			left = "an upload with a large decision that cannot be stored would always be answered 413"
		}
		r.add(Fail, fmt.Sprintf("max.message.bytes %d is less than the source's %d: %s", t.MaxMessageBytes, src.largest, left),
			fmt.Sprintf("set max.message.bytes to %d or more", need))
	case t.MaxMessageBytes < need:
		r.add(Warn, fmt.Sprintf("max.message.bytes %d leaves no room for headers above the source's %d: the largest records lose most of their headers", t.MaxMessageBytes, src.largest),
			fmt.Sprintf("set max.message.bytes to %d or more", need))
	}
}

// largeLane compares the topic of a lane with that of the default lane. The collector routes decisions of any size.
func largeLane(s config.Settings, t kafka.Topic, src sources, r *report) {
	if src.large < 0 || t.MaxMessageBytes >= src.large {
		return
	}
	level := Warn
	if collects(s) {
		level = Fail
	}
	r.add(level, fmt.Sprintf("max.message.bytes %d is less than the %d of %s: the broker refuses large decisions that a collector routes to this lane", t.MaxMessageBytes, src.large, s.KafkaTopic),
		fmt.Sprintf("set max.message.bytes to %d or more", src.large))
}

func consumerGroup(g kafka.Group) []Result {
	r := report{what: "group " + g.Name}
	switch {
	case errors.Is(g.Err, kerr.GroupIDNotFound): // the answer of brokers from 4.0 on
	case g.Err != nil:
		return []Result{broken(r.what, g.Err)}
	case g.CanRead == kafka.Denied:
		r.add(Fail, "no permission to join it (READ)", grant("group", g.Name, "READ"))
	}
	if g.State == "" || g.State == "Dead" {
		return r.results("does not exist yet; it is created at the first start")
	}
	members := "1 member"
	if g.Members != 1 {
		members = fmt.Sprintf("%d members", g.Members)
	}
	return r.results(g.State + ", " + members)
}
