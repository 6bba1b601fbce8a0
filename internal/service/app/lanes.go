package app

import (
	"time"

	"docket/internal/consumer/lanes"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
)

// lane is a lane of a program with its source.
type lane struct {
	config.Lane
	source Source
}

// lanesOf are the lanes that a program reads. The replayer reads one topic, whatever lanes its records came from: its
// writes are low.
func lanesOf(program config.Program, s config.Settings) []config.Lane {
	if program == config.Replayer {
		return []config.Lane{{
			Lane: lanes.Default, Topic: s.KafkaParkingTopic, Group: s.ParkingGroup, BatchRecords: s.BatchMaxRecords, BatchWait: s.BatchMaxWait,
		}}
	}
	return s.Lanes()
}

// needed are the topics that have to exist before a program reads, because failed records go there.
func needed(program config.Program, s config.Settings) []string {
	if program == config.Replayer {
		return []string{s.KafkaDLQTopic, s.KafkaParkingDLQTopic}
	}
	return []string{s.KafkaDLQTopic, s.KafkaParkingTopic}
}

// groupsOf are the consumer groups by the topic that they read.
func groupsOf(s config.Settings) map[string]string {
	groups := map[string]string{s.KafkaParkingTopic: s.ParkingGroup}
	for _, l := range s.Lanes() {
		groups[l.Topic] = l.Group
	}
	return groups
}

// turnsOf are the turns of a program with these lanes.
func turnsOf(n int) *lanes.Turns {
	if n == 1 {
		return lanes.New(lanes.Alone(turns))
	}
	return lanes.New(lanes.WithLanes())
}

// byLane tells of the lanes; nil if there is one.
func (p *Program) byLane() *telemetry.Lanes {
	if len(p.lanes) == 1 {
		return nil
	}
	known := map[string]lane{}
	t := &telemetry.Lanes{
		Of:       func(topic string) string { return p.settings.LaneOf(topic).Name() },
		Assigned: func(name string) int { return known[name].source.Assigned() },
		Turns:    func(name string) (held, waiting int) { return p.turns.Count(known[name].Lane.Lane) },
	}
	for _, l := range p.lanes {
		known[l.Name()] = l
		t.Names = append(t.Names, l.Name())
		if l.Lane.Lane == lanes.Urgent {
			t.Yielding = func() bool { return !p.yieldingSince().IsZero() }
		}
	}
	return t
}

// laneTopics are the topics by lane, for the log.
func (p *Program) laneTopics() map[string]string {
	topics := map[string]string{}
	for _, l := range p.lanes {
		topics[l.Name()] = l.Topic
	}
	return topics
}

// first says of which topics parked records are replayed first: of that of the urgent lane. nil: there is none.
func (p *Program) first() func(topic string) bool {
	s := p.settings
	for _, l := range s.Lanes() {
		if l.Lane == lanes.Urgent {
			return func(topic string) bool { return topic == l.Topic }
		}
	}
	return nil
}

// LaneState is a lane in the body of /readyz.
type LaneState struct {
	Lane     string `json:"lane"`
	Topic    string `json:"topic"`
	Group    string `json:"group"`
	Joined   bool   `json:"joined"`
	Assigned int    `json:"assigned"`
}

// laneStates are the lanes, none if there is only one.
func (p *Program) laneStates() (all []LaneState) {
	if len(p.lanes) == 1 {
		return nil
	}
	for _, l := range p.lanes {
		all = append(all, LaneState{l.Name(), l.Topic, l.Group, l.source.Joined(), l.source.Assigned()})
	}
	return all
}

// yieldingSince is when the low lanes began to yield; zero: they do not.
func (p *Program) yieldingSince() time.Time {
	if at := p.yielding.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
