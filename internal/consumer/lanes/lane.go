package lanes

// Lane is one of the three lanes. Its zero value is [Default].
type Lane uint8

const (
	// Default is the lane of everything that no rule sends elsewhere. It always exists.
	Default Lane = iota
	// Urgent is the lane of decisions that somebody may ask about now.
	Urgent
	// Bulk is the lane of senders that exceed their share.
	Bulk
)

const laneCount = 3

// Name returns the name of the lane in settings, metrics and log lines: "default", "urgent" or "bulk".
func (l Lane) Name() string { return [laneCount]string{"default", "urgent", "bulk"}[l] }

// Low reports whether the lane yields to the urgent one. Default and Bulk do.
func (l Lane) Low() bool { return l != Urgent }
