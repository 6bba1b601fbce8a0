package chaos

import "hash/fnv"

// The lanes of a campaign with lanes, by their number.
const (
	defaultLane = iota
	urgentLane
	bulkLane
	laneCount
)

// laneNames are behind the names of a topic and a group, by the number of the lane.
var laneNames = [laneCount]string{urgentLane: "-urgent", bulkLane: "-bulk"}

// LaneOf chooses the lane of a record by its key, so that the order of a key holds: a quarter of the keys goes to the
// urgent lane, a quarter to the bulk lane.
func LaneOf(key []byte) int {
	h := fnv.New32a()
	_, _ = h.Write(key) // it never fails
	switch h.Sum32() % 4 {
	case 0:
		return urgentLane
	case 1:
		return bulkLane
	default:
		return defaultLane
	}
}
