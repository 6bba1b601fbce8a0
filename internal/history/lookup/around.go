package lookup

import (
	"context"
	"slices"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/record/commitnote"
)

// Quiet is what is known of the topics without a question to them.
type Quiet struct {
	// Until is a time: of what had reached the topics by then nothing waits there, if Nothing is true.
	Until   time.Time
	Nothing bool
	Slow    bool // Kafka is too slow for a request
	Spools  Noted
}

// Noted is what programs note of their spools: package commitnote. The zero value knows nothing.
type Noted struct {
	Note  commitnote.Note
	Known bool // each program that has a partition notes its own
}

// Around looks for other records with the id of a stored decision. It is All without a question to Kafka. If nothing
// waits there, or if the last scan is new enough and did not meet the id, the answer says up to when. If Kafka is slow, the
// answer names the topics as not searched. Otherwise Around returns false.
func (l *Look) Around(ctx context.Context, id string) (Answer, bool) {
	if l.Quiet == nil {
		return Answer{}, false
	}
	known := l.Quiet()
	waits := !known.Nothing && !known.Slow
	var last scanned // an earlier scan
	if waits {
		var scanned bool
		if last, scanned = l.seen.without(id, l.now()); !scanned {
			return Answer{}, false
		}
		known.Spools = last.spools
	}
	s := newSearch(l, []string{id})
	limits := l.Limits.withDefaults()
	within, cancel := context.WithTimeout(ctx, limits.Within)
	defer cancel()
	s.readSpools(within, limits)
	s.tellSpools(known.Spools)
	asking := s.watched(ctx)
	s.surplus(asking)
	if !known.Slow && slices.ContainsFunc(s.ranges, func(r ledger.Surplus) bool { return r.Open() > 0 }) {
		return Answer{}, false
	}
	switch ledger := s.letters(asking); {
	case !waits:
		s.quiet(ledger, known)
	case !ledger: // its topics would be searched from their start
		return Answer{}, false
	default:
		for _, p := range last.places {
			s.looked(p.Name, p.Note)
		}
	}
	s.archives(ctx, limits)
	s.rows(asking)
	limits.Within = min(limits.Within, aroundDays)
	s.days(ctx, limits)
	return s.done()[0], true
}

// aroundDays limits the reading of archived days for an id that has a row. Days with an index need less.
const aroundDays = 500 * time.Millisecond
