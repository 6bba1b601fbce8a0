package console

import (
	"math"
	"strconv"
	"time"
)

func numberOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && n < 0 {
		err = strconv.ErrRange
	}
	return n, err
}

func count64(n int64) string { return strconv.FormatInt(n, 10) }

// ageText is a duration in its largest unit.
func ageText(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return "less than 1 s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.FormatFloat(d.Hours(), 'f', 1, 64) + " h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " d"
}

// seconds is a number of seconds of another program. It may be any number.
func seconds(s float64) time.Duration {
	return time.Duration(min(max(s, 0), 1e9) * float64(time.Second))
}

// whole is a number of another program without its fraction.
func whole(n float64) string { return count(int64(min(max(n, -1e15), 1e15))) }

// paceText is a number a second, with one digit behind the point where it is small.
func paceText(n float64) string {
	if n < 10 && n != math.Trunc(n) {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return whole(math.Round(n))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
