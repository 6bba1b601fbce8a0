package frame

import (
	"regexp"
	"strconv"
	"time"

	"docket/internal/programs/cli/term"
)

// AheadText explains a flag for a time in the future.
const AheadText = "until this `TIME`: 2h, 3d, 1w, 2026-12-01, RFC 3339"

var spans = regexp.MustCompile(`^([0-9]{1,4})(m|h|d|w)$`)

// Ahead reads a time in the future: a span from now, a day, or RFC 3339.
func Ahead(flag, text string, now time.Time) (time.Time, error) {
	var at time.Time
	if m := spans.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // at most four digits
		at = now.Add(time.Duration(n) * map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[m[2]])
	} else {
		var err error
		if at, err = time.Parse(time.RFC3339, text); err != nil {
			if at, err = time.Parse(time.DateOnly, text); err != nil {
				return at, Misuse("%s %s is not a time: give 2h, 3d, 1w, 2026-12-01 (UTC) or RFC 3339", flag, term.Quoted(text))
			}
		}
	}
	if !at.After(now) {
		return at, Misuse("%s %s is not in the future", flag, term.Quoted(text))
	}
	return at.UTC(), nil
}
