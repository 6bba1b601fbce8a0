//go:build synctests

package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"docket/internal/audit/verify"
)

// lane is a source topic with its group.
type lane struct{ topic, group string }

// lanesOf returns the lanes of a schedule; the default lane is the first.
func lanesOf(names []string) []lane {
	all := []lane{{source, consumers}}
	for _, name := range names {
		all = append(all, lane{source + "-" + name, consumers + "-" + name})
	}
	return all
}

// sources returns the topics of the lanes.
func (w *world) sources() (topics []string) {
	for _, l := range w.lanes {
		topics = append(topics, l.topic)
	}
	return topics
}

// groupOf returns the group that reads a source topic, or "" for another topic.
func (w *world) groupOf(topic string) string {
	for _, l := range w.lanes {
		if l.topic == topic {
			return l.group
		}
	}
	return ""
}

// topicOf returns the topic that a group reads.
func (w *world) topicOf(group string) string {
	for _, l := range w.lanes {
		if l.group == group {
			return l.topic
		}
	}
	return parked
}

// laneFor returns the topic of a lane for an event about the source.
func (w *world) laneFor(e event) string {
	if e.Arg != source {
		return e.Arg
	}
	return w.lanes[e.N%len(w.lanes)].topic
}

// committedIn returns the committed offsets of each lane, by topic.
func (w *world) committedIn() map[string]map[int32]int64 {
	all := map[string]map[int32]int64{}
	for _, l := range w.lanes {
		all[l.topic] = committed(w.kafka.Cluster, l.group, l.topic)
	}
	return all
}

// lanesDrawn gives half of the schedules lanes beside the default one, and spreads their records. It has dice of its
// own, so that everything else of a seed is as it was without lanes.
func (s *schedule) lanesDrawn() {
	d := dice{rand.New(rand.NewPCG(s.Seed, 0x1a9e5))}
	s.Lanes = one(d, nil, nil, []string{"urgent"}, []string{"urgent", "bulk"}, []string{"urgent", "bulk"}, []string{"bulk"})
	if len(s.Lanes) == 0 {
		return
	}
	s.Settings = append(s.Settings, "DOCKET_LANES="+strings.Join(s.Lanes, ","),
		"DOCKET_URGENT_BATCH_MAX_RECORDS="+one(d, "1", "5", "20"), "DOCKET_URGENT_BATCH_MAX_WAIT="+one(d, "1ms", "20ms"))
	for i := range s.Arrivals {
		s.Arrivals[i].Lane = d.IntN(len(s.Lanes) + 1)
	}
}

// limitDrawn limits the rows of a third of the schedules, with and without lanes. They are so few that writes wait in the
// middle of other faults. It has dice of its own, as lanes have.
func (s *schedule) limitDrawn() {
	d := dice{rand.New(rand.NewPCG(s.Seed, 0x11317))}
	if s.Limited = d.IntN(3) == 0; !s.Limited {
		return
	}
	rows := one(d, 400, 800)
	s.Settings = append(s.Settings, fmt.Sprintf("DOCKET_LIMIT_ROWS=%d", rows), fmt.Sprintf("DOCKET_LIMIT_LOW_ROWS=%d", rows/2),
		fmt.Sprintf("DOCKET_LIMIT_BURST=%d", one(d, 1, 3, rows/10)))
}

// offsetsOf adds the offsets of all lanes.
func offsetsOf(by map[string]map[int32]int64) verify.Offsets {
	all := verify.Offsets{}
	for topic, of := range by {
		all.Add(topic, of)
	}
	return all
}
