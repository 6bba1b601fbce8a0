package limit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Calendar has low limits for hours of the day. The zero value has none. No two entries share an hour.
type Calendar []Hours

// Hours is a low limit for some hours of each day, in UTC: from the start of the hour From to the start of the hour To.
// From is at most 23 and To at most 24. If To is not later than From, it is on the next day.
type Hours struct {
	From, To int
	Low      int // rows a second, at least 1
}

var hoursForm = regexp.MustCompile(`^(\d{1,2})-(\d{1,2})=low:(\d{1,10})$`)

// ParseCalendar reads entries like 19-23=low:150, by comma. wrong has a complaint for each entry that cannot be used,
// in order.
func ParseCalendar(text string) (c Calendar, wrong []error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		h, err := parseHours(entry)
		if err == nil {
			err = c.free(h)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%.40q %w", entry, err))
			continue
		}
		c = append(c, h)
	}
	return c, wrong
}

func parseHours(entry string) (h Hours, err error) {
	parts := hoursForm.FindStringSubmatch(entry)
	if parts == nil {
		return h, fmt.Errorf("is not HOUR-HOUR=low:ROWS; write it like 19-23=low:150")
	}
	for i, to := range []*int{&h.From, &h.To, &h.Low} {
		if *to, err = strconv.Atoi(parts[i+1]); err != nil {
			return h, fmt.Errorf("has a number that is too large")
		}
	}
	switch {
	case h.From > 23 || h.To > 24:
		return h, fmt.Errorf("has no hour of the day; hours are 0 to 24")
	case h.From == h.To:
		return h, fmt.Errorf("has no hour; for the whole day set DOCKET_LIMIT_LOW_ROWS")
	case h.Low < 1:
		return h, fmt.Errorf("leaves the low lanes nothing; the least is 1")
	}
	return h, nil
}

// free returns an error if an entry has one of these hours.
func (c Calendar) free(h Hours) error {
	for hour := range 24 {
		for _, other := range c {
			if h.has(hour) && other.has(hour) {
				return fmt.Errorf("has the hour %d, which %d-%d has, too", hour, other.From, other.To)
			}
		}
	}
	return nil
}

// has reports whether an hour of the day, 0 to 23, belongs to these.
func (h Hours) has(hour int) bool {
	if h.From < h.To {
		return h.From <= hour && hour < h.To
	}
	return hour >= h.From || hour < h.To
}

// At returns the low limit of an entry, in rows a second, if there is one for this time.
func (c Calendar) At(t time.Time) (low int, ok bool) {
	hour := t.UTC().Hour()
	for _, h := range c {
		if h.has(hour) {
			return h.Low, true
		}
	}
	return 0, false
}
