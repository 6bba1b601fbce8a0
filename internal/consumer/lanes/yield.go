package lanes

import "time"

// The low lanes yield while the urgent lane is more than this behind, see contract section 12.
const (
	YieldRecords = 1000
	YieldAge     = 3 * time.Second
)

// Calm is how long the urgent lane stays below half of both bounds before the low lanes stop yielding. Without it they
// would start and stop with each batch.
const Calm = 3 * time.Second

// Behind says how far the urgent lane is behind.
type Behind struct {
	// Records are those between what is committed and the end of the log.
	Records int64
	// Age is that of the oldest record that was fetched and is not committed.
	Age time.Duration
}

// Yielding decides whether the low lanes yield. Its zero value does not.
type Yielding struct {
	yields bool
	calm   time.Time // since when both are below half of their bounds; zero: they are not
}

// Yields reports the decision.
func (y Yielding) Yields() bool { return y.yields }

// Next returns the decision after the urgent lane was seen this far behind. now never goes back.
func (y Yielding) Next(now time.Time, b Behind) Yielding {
	switch {
	case b.Records > YieldRecords || b.Age > YieldAge:
		return Yielding{yields: true}
	case !y.yields:
		return y
	case b.Records >= YieldRecords/2 || b.Age >= YieldAge/2:
		y.calm = time.Time{}
	case y.calm.IsZero():
		y.calm = now
	case now.Sub(y.calm) >= Calm:
		return Yielding{}
	}
	return y
}
