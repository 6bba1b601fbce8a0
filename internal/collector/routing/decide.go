package routing

import "docket/internal/consumer/lanes"

// Decide returns the lane of a decision. A rule says that it is urgent. Its sender is over its share in the urgent lane, or
// over its share. The urgent lane has its own share, so an urgent decision within it is urgent, however much else its
// sender uploads: that keeps the denials of a noisy service in time. Beyond it the rule has no effect.
//
//	urgent  over urgent share  over share  lane
//	no      any                no          default
//	no      any                yes         bulk
//	yes     no                 any         urgent
//	yes     yes                no          default
//	yes     yes                yes         bulk
func Decide(urgent, overUrgent, overShare bool) lanes.Lane {
	switch {
	case urgent && !overUrgent:
		return lanes.Urgent
	case overShare:
		return lanes.Bulk
	}
	return lanes.Default
}
