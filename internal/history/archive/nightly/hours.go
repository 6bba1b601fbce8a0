package nightly

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a container has no zones of its own
)

// Hours is a span of the day in a zone, such as 01:00 to 05:00. The zero value is the whole day.
type Hours struct {
	from, to int // minutes of the day; to is not included, and may be before from
	zone     *time.Location
}

// minutesOfDay is the number of minutes of a day without a change of the clock.
const minutesOfDay = 24 * 60

var (
	errHours = errors.New("is not a span of hours; write it like 01:00-05:00 or 22:30-04:00 Europe/Berlin")
	errNever = errors.New("begins and ends at the same minute; leave it empty for the whole day")
	errZone  = errors.New("names a zone that is not known; write it like Europe/Berlin, or leave it out for UTC")
)

// ParseHours reads a span like 01:00-05:00 or 22:30-04:00 Europe/Berlin. Without a zone it is UTC. An empty text is the
// whole day.
func ParseHours(text string) (Hours, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return Hours{}, nil
	}
	from, to, ok := strings.Cut(fields[0], "-")
	if !ok || len(fields) > 2 {
		return Hours{}, errHours
	}
	h := Hours{zone: time.UTC}
	var wrong error
	if h.from, wrong = minuteOf(from); wrong != nil || h.from == minutesOfDay {
		return Hours{}, errHours
	}
	if h.to, wrong = minuteOf(to); wrong != nil {
		return Hours{}, errHours
	}
	if h.from == h.to%minutesOfDay {
		return Hours{}, errNever
	}
	if len(fields) == 2 {
		zone, err := time.LoadLocation(fields[1])
		if err != nil || fields[1] == "Local" {
			return Hours{}, errZone
		}
		h.zone = zone
	}
	return h, nil
}

// minuteOf reads HH:MM, from 00:00 to 24:00.
func minuteOf(text string) (int, error) {
	hour, minute, _ := strings.Cut(text, ":")
	if len(hour) != 2 || len(minute) != 2 {
		return 0, errHours
	}
	h, wrongHour := strconv.ParseUint(hour, 10, 8)
	m, wrongMinute := strconv.ParseUint(minute, 10, 8)
	n := int(h)*60 + int(m)
	if wrongHour != nil || wrongMinute != nil || m > 59 || n > minutesOfDay {
		return 0, errHours
	}
	return n, nil
}

// Always reports whether it is the whole day.
func (h Hours) Always() bool { return h.zone == nil }

// Open reports whether a time is within the hours. The clock on a wall of the zone decides: an hour that comes twice
// counts twice, and one that a change of the clock skips does not come.
func (h Hours) Open(at time.Time) bool {
	if h.Always() {
		return true
	}
	hour, minute, _ := at.In(h.zone).Clock()
	now := hour*60 + minute
	if h.from < h.to {
		return h.from <= now && now < h.to
	}
	return h.from <= now || now < h.to
}

// farthest is how far [Hours.Next] looks. Hours that a change of the clock skips come a day later.
const farthest = 3 * minutesOfDay

// Next returns the first time from at on that is within the hours. It is at itself if that is.
func (h Hours) Next(at time.Time) time.Time {
	if h.Open(at) {
		return at
	}
	next := at.Truncate(time.Minute)
	for range farthest { // by the minute, so that each change of the clock is met
		if next = next.Add(time.Minute); h.Open(next) {
			return next
		}
	}
	return next
}

func (h Hours) String() string {
	if h.Always() {
		return "any time"
	}
	return fmt.Sprintf("%02d:%02d-%02d:%02d %s", h.from/60, h.from%60, h.to/60, h.to%60, h.zone)
}
