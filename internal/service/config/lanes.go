package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"docket/internal/consumer/lanes"
)

// Lane is the source of one lane, and the batches that are read from it.
type Lane struct {
	lanes.Lane

	Topic, Group string
	// BatchRecords and BatchWait are DOCKET_BATCH_MAX_RECORDS and DOCKET_BATCH_MAX_WAIT, or those of the lane.
	BatchRecords int
	BatchWait    time.Duration
}

// Lanes returns the lanes that the settings name: the default lane first, then urgent and bulk.
func (s Settings) Lanes() []Lane {
	all := []Lane{{lanes.Default, s.KafkaTopic, s.KafkaGroup, s.BatchMaxRecords, s.BatchMaxWait}}
	if s.hasLane(lanes.Urgent) {
		all = append(all, Lane{lanes.Urgent, orBehind(s.KafkaUrgentTopic, s.KafkaTopic, lanes.Urgent), orBehind(s.UrgentGroup, s.KafkaGroup, lanes.Urgent), s.UrgentBatchMaxRecords, s.UrgentBatchMaxWait})
	}
	if s.hasLane(lanes.Bulk) {
		all = append(all, Lane{lanes.Bulk, orBehind(s.KafkaBulkTopic, s.KafkaTopic, lanes.Bulk), orBehind(s.BulkGroup, s.KafkaGroup, lanes.Bulk), s.BatchMaxRecords, s.BatchMaxWait})
	}
	return all
}

// LaneOf returns the lane whose topic this is. A topic of no lane belongs to the default one.
func (s Settings) LaneOf(topic string) lanes.Lane {
	for _, l := range s.Lanes() {
		if l.Topic == topic {
			return l.Lane
		}
	}
	return lanes.Default
}

// Source returns the lane whose topic this is. It returns false and the default lane for a topic of no lane.
func (s Settings) Source(topic string) (Lane, bool) {
	all := s.Lanes()
	for _, l := range all {
		if l.Topic == topic {
			return l, true
		}
	}
	return all[0], false
}

// LaneName returns the name of the lane whose topic this is. It returns "" for a topic of no lane, and if there is only
// the default lane.
func (s Settings) LaneName(topic string) string {
	l, ours := s.Source(topic)
	if !ours || len(s.LaneNames) == 0 {
		return ""
	}
	return l.Name()
}

// SourceTopics returns the topics of all lanes, in the order of [Settings.Lanes].
func (s Settings) SourceTopics() []string {
	var topics []string
	for _, l := range s.Lanes() {
		topics = append(topics, l.Topic)
	}
	return topics
}

func (s Settings) hasLane(l lanes.Lane) bool { return slices.Contains(s.LaneNames, l.Name()) }

// orBehind returns the name, or the base with that of the lane behind it if there is none.
func orBehind(name, base string, l lanes.Lane) string {
	if name != "" {
		return name
	}
	return base + "-" + l.Name()
}

// laneVariable returns the variable of a lane; form has %s in the place of the lane's name.
func laneVariable(form string, l lanes.Lane) string {
	return fmt.Sprintf(form, strings.ToUpper(l.Name()))
}

// lanes looks at which lanes there are, and whether a setting belongs to one that is not.
func (l *loader) lanes() {
	const variable = "DOCKET_LANES"
	known := []string{lanes.Urgent.Name(), lanes.Bulk.Name()}
	s := l.settings
	named := map[string]int{}
	for _, name := range s.LaneNames {
		named[name]++
		switch isLane := slices.Contains(known, name); {
		case !isLane && named[name] == 1:
			l.complain(variable, "%s is not a lane; allowed: urgent, bulk or both", quote(name))
		case isLane && named[name] == 2:
			l.complain(variable, "names %s twice", quote(name))
		}
	}
	if !l.lanesRead() {
		return
	}
	for _, of := range []struct{ variable, value, lane string }{
		{"DOCKET_KAFKA_URGENT_TOPIC", s.KafkaUrgentTopic, known[0]}, {"DOCKET_URGENT_GROUP", s.UrgentGroup, known[0]},
		{"DOCKET_COLLECTOR_URGENT", s.CollectorUrgent, known[0]},
		{"DOCKET_KAFKA_BULK_TOPIC", s.KafkaBulkTopic, known[1]}, {"DOCKET_BULK_GROUP", s.BulkGroup, known[1]},
	} {
		if of.value != "" && l.fine(of.variable) && !slices.Contains(s.LaneNames, of.lane) {
			l.complain(of.variable, "is set and %s does not name %s; add it, or remove this setting", variable, of.lane)
		}
	}
}

// lanesRead reports whether the names of the lanes could be read. They may be wrong.
func (l *loader) lanesRead() bool { return len(l.settings.LaneNames) > 0 || l.fine("DOCKET_LANES") }
