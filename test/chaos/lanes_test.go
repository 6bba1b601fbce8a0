//go:build integration

package chaos

import (
	"testing"

	"docket/internal/audit/conservation"
	"docket/internal/testkit/testenv"
)

// addLanes gives the places their lanes, and the topics of the lanes their partitions.
func (c *campaign) addLanes(t *testing.T, topics map[string]int32) {
	t.Helper()
	if !c.lanes {
		return
	}
	for lane, partitions := range [laneCount]int32{urgentLane: 3, bulkLane: 4} {
		if lane == defaultLane {
			continue
		}
		l := conservation.Lane{Topic: c.places.Topic + laneNames[lane], Group: c.places.Group + laneNames[lane]}
		c.places.Lanes, topics[l.Topic] = append(c.places.Lanes, l), partitions
	}
}

// sources are the topics of all lanes with their groups, by the number of the lane.
func (c *campaign) sources() []conservation.Lane {
	return append([]conservation.Lane{{Topic: c.places.Topic, Group: c.places.Group}}, c.places.Lanes...)
}

// topics are those of all lanes.
func (c *campaign) topics() []string {
	var all []string
	for _, l := range c.sources() {
		all = append(all, l.Topic)
	}
	return all
}

// topicOf is where a record with this key belongs.
func (c *campaign) topicOf(key []byte) string {
	if !c.lanes {
		return c.places.Topic
	}
	return c.topics()[LaneOf(key)]
}

// laneSettings are the settings of lanes that every program has.
func (c *campaign) laneSettings() []string {
	if !c.lanes {
		return nil
	}
	return []string{"DOCKET_LANES=urgent,bulk"}
}

// startRedis starts the server that counts the limits, behind a wire. It gives back the settings that the programs have
// with lanes.
func (c *campaign) startRedis(t *testing.T) []string {
	t.Helper()
	if !c.lanes {
		return nil
	}
	c.redis = testenv.OwnRedis(t, "--maxmemory-policy", "noeviction", "--requirepass", password)
	wire, addr, err := c.wires.before("redis", c.redis.Addr())
	check(t, err)
	c.wires.redis = wire
	// The limits are above what the load brings, and below the pace at which a backlog would be worked off without them.
	return append(c.laneSettings(), "DOCKET_LIMIT_ROWS=2000", "DOCKET_LIMIT_LOW_ROWS=1500", "DOCKET_REDIS_URL=redis://:"+password+"@"+addr)
}
