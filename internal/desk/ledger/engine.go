package ledger

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Subject is what rules know of one letter.
type Subject struct {
	State        State
	Topic        string // original
	Attempts     int
	ChangedAt    time.Time
	SnoozedUntil time.Time // of the letter itself; zero: it is not snoozed
}

// Holds reports whether a rule is in force.
func (r Rule) Holds(now time.Time) bool { return r.State == RuleActive && now.Before(r.EndsAt) }

// Governing returns the rule that decides about a letter, of the rules of its group; none: a person or the schedule
// decides. Precedence: a snooze wins over all others, and a rule of the letter's topic over one of each topic.
func Governing(rules []Rule, s Subject, now time.Time) (r Rule, snoozed, found bool) {
	if s.State == Resolved {
		return Rule{}, false, false
	}
	own := slices.Clone(rules)
	own = slices.DeleteFunc(own, func(r Rule) bool { return !r.Holds(now) || r.Topic != "" && r.Topic != s.Topic })
	for _, r := range own {
		snoozed = snoozed || r.Act == Snoozed
	}
	if snoozed = snoozed || now.Before(s.SnoozedUntil); snoozed {
		return Rule{}, true, false
	}
	for _, candidate := range own {
		if !found || r.Topic == "" && candidate.Topic != "" {
			r, found = candidate, true
		}
	}
	return r, false, found
}

// Due reports whether a rule that governs a letter acts on it now. acted has the attempts of the letter at each earlier
// act. A rule retries once for each failure, and closes a letter once.
func (r Rule) Due(s Subject, acted []int, now time.Time) bool {
	if now.Sub(s.ChangedAt) < r.After {
		return false
	}
	switch r.Act {
	case Retried:
		return s.State == Pending && !slices.ContainsFunc(acted, func(attempts int) bool { return attempts >= s.Attempts })
	case Closed:
		return s.State.Decidable() && len(acted) == 0
	}
	return false
}

// LongestSaved limits the time for which a rule that did nothing may move letters at once, 1 minute. A slower rate has
// the time for one letter.
const LongestSaved = time.Minute

// Allows returns how many letters a rule may move now, at most n, by its rate and the number that it may move in all.
// A clock that went back allows none until it has caught up.
func (r Rule) Allows(now time.Time, n int) int {
	left := int(max(0, min(int64(n), r.Most-r.Acted)))
	if r.Rate <= 0 {
		return left
	}
	if r.ActedAt.IsZero() {
		return min(left, max(1, int(math.Ceil(r.Rate))))
	}
	saved := math.Max(LongestSaved.Seconds(), 1/r.Rate) // a slow rate needs longer for one letter
	earned := math.Floor(min(max(0, now.Sub(r.ActedAt).Seconds()), saved)*r.Rate + 1e-9)
	return int(min(float64(left), earned))
}

// Judge returns how many more retries a rule may begin, and why it stops. The ends of its last retries come newest
// first, and open counts those without one. Until one is stored, no more are begun than may fail.
func (r Rule) Judge(ends []SendingOutcome, open int) (room int, stop string) {
	failed := 0
	ends = slices.DeleteFunc(slices.Clone(ends), func(end SendingOutcome) bool { return end == SendingWithdrawn }) // it was never published
	for _, end := range ends {
		if end == SendingStored {
			break
		}
		failed++
	}
	if failed >= r.Failures {
		return 0, fmt.Sprintf("%d retries in a row were not stored", failed)
	}
	if failed == 0 && len(ends) > 0 {
		return math.MaxInt32, ""
	}
	return max(0, r.Failures-failed-open), ""
}
