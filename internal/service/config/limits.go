package config

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"docket/internal/consumer/limit"
)

// Limited reports whether there is a limit on rows.
func (s Settings) Limited() bool { return s.LimitRows > 0 }

// Limits returns the limits on rows. The settings were loaded and [Settings.Limited] is true.
func (s Settings) Limits() limit.Plan {
	calendar, _ := limit.ParseCalendar(s.LimitCalendar)
	return limit.NewPlan(s.LimitRows, s.LimitLowRows, s.LimitBurst, calendar)
}

// limits looks at whether the limits agree with each other. A URL of Redis is accepted without any use: a consumer may
// share its environment with a desk that has Redis for claims alone.
func (l *loader) limits() {
	const all, low, burst, calendar, redis = "DOCKET_LIMIT_ROWS", "DOCKET_LIMIT_LOW_ROWS", "DOCKET_LIMIT_BURST", "DOCKET_LIMIT_CALENDAR", "DOCKET_REDIS_URL"
	s := l.settings
	entries, wrong := limit.ParseCalendar(s.LimitCalendar)
	for _, err := range wrong {
		l.complain(calendar, "%v", err)
	}
	if l.fine(redis) && s.RedisURL != "" {
		if wrong := judgeRedis(s.RedisURL.Reveal()); wrong != "" {
			l.complain(redis, "%s; write it like redis://user:password@host:6379/0, or rediss:// for TLS", wrong)
		}
	}
	if !l.fine(all) {
		return
	}
	if s.LimitRows == 0 {
		for variable, set := range map[string]bool{low: s.LimitLowRows > 0, burst: s.LimitBurst > 0, calendar: s.LimitCalendar != ""} {
			if set && l.fine(variable) {
				l.complain(variable, "is set without %s; there is nothing to limit", all)
			}
		}
		return
	}
	if s.LimitRows < limit.Least && s.LimitLowRows == 0 {
		l.complain(all, "%d leaves no row for the urgent lane; set at least %d, or 0 for no limit", s.LimitRows, limit.Least)
	}
	if l.fine(low) && s.LimitLowRows >= s.LimitRows {
		l.complain(low, "%d is not lower than %s (%d); the difference is what the urgent lane can always use", s.LimitLowRows, all, s.LimitRows)
	}
	if l.fine(burst) && s.LimitBurst > s.LimitRows {
		l.complain(burst, "%d is more than %s (%d)", s.LimitBurst, all, s.LimitRows)
	}
	for _, hours := range entries {
		if hours.Low >= s.LimitRows {
			l.complain(calendar, "the low limit %d from %d to %d is not lower than %s (%d)", hours.Low, hours.From, hours.To, all, s.LimitRows)
		}
	}
}

var databaseNumber = regexp.MustCompile(`^/?\d{0,5}$`)

// judgeRedis returns the complaint about a URL of Redis, or "". It shows nothing of the URL, as it may have a password.
func judgeRedis(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "is not a URL"
	case u.Scheme != "redis" && u.Scheme != "rediss":
		return "has no scheme that Docket knows"
	case u.Host == "" || u.Hostname() == "" || !numbered(u.Port()):
		return "names no host, or a wrong port"
	case !databaseNumber.MatchString(u.Path):
		return "has a path that is not the number of a database"
	case u.Fragment != "":
		return "has a # in it; write %23 if the password has one"
	}
	more, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "has a wrong part behind the ?"
	}
	for name, values := range more {
		if name != "addr" {
			return "has an option other than addr behind the ?"
		}
		for _, addr := range values {
			if !hostPort(addr, 1) {
				return "has an addr that is not host:port"
			}
		}
	}
	if len(more) > 0 && strings.Trim(u.Path, "/0") != "" {
		return "names a database of a cluster, which has only 0"
	}
	return ""
}

// numbered reports whether this is a port, or empty.
func numbered(port string) bool {
	n, err := strconv.Atoi(port)
	return port == "" || err == nil && n > 0 && n <= 65535
}
