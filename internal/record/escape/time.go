package escape

import "time"

// almostDay is the widest offset of RFC 3339.
const almostDay = 24*time.Hour - time.Minute

var west, east = time.FixedZone("", int(-almostDay.Seconds())), time.FixedZone("", int(almostDay.Seconds()))

// Time is a time as JSON and RFC 3339 can have it: in UTC, if its year there has four digits. An offset moves timestamps with
// such years a day further. These get the widest offset. Times beyond that, as Kafka may have, become the nearest one that
// can be written.
func Time(t time.Time) time.Time {
	t = t.UTC()
	switch y := t.Year(); {
	case y > 9999:
		if t = t.In(west); t.Year() > 9999 {
			return time.Date(9999, 12, 31, 23, 59, 59, 999999999, west)
		}
	case y < 0:
		if t = t.In(east); t.Year() < 0 {
			return time.Date(0, 1, 1, 0, 0, 0, 0, east)
		}
	}
	return t
}

// Instant is a time as RFC 3339 has it, by [Time].
func Instant(t time.Time) string { return Time(t).Format(time.RFC3339Nano) }
