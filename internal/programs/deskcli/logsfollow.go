package deskcli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"docket/internal/errclass"
	"docket/internal/history/reader"
)

// followed shows the last decisions and then what is stored from now on, until a signal. A database that goes away is waited
// for; what was stored meanwhile is shown then.
func (s *session) followed(ctx context.Context, f reader.Filter, o logsFlags) error {
	// The place comes first: what is stored between it and the search is in both, and is shown once.
	_, tail, err := s.sys.Decisions.Follow(ctx, f, reader.Tail{}, 1, false)
	if err != nil {
		return err
	}
	shown, err := s.lastOnes(ctx, f, o)
	if err != nil {
		return err
	}
	away := false
	for {
		found, next, err := s.sys.Decisions.Follow(ctx, f, tail, reader.MaxLimit, o.full)
		more := len(found) == reader.MaxLimit
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // following ends when it is told to
		case err != nil && errclass.Classify(err).Class != errclass.Transient:
			return err
		case err != nil:
			if !away {
				away = true
				s.tell("the database does not answer (%s); waiting\n", plain(errclass.Classify(err).Code))
			}
		default:
			if away {
				away = false
				s.tell("the database answers again\n")
			}
			tail = next
			found = slices.DeleteFunc(found, func(d reader.Decision) bool { return shown[same(d)] })
			s.tellEdits(s.edits(ctx, found, o.full))
			s.flow(found, o)
		}
		if !more && !sleep(ctx, o.every) {
			return nil
		}
	}
}

// same is what makes two decisions one.
func same(d reader.Decision) string { return d.ID + "\x00" + d.Time.UTC().Format(time.RFC3339Nano) }

// lastOnes shows the newest decisions that are stored already, the newest last.
func (s *session) lastOnes(ctx context.Context, f reader.Filter, o logsFlags) (map[string]bool, error) {
	var all []reader.Decision
	shown := map[string]bool{}
	after, began := "", s.now()
	bounded, _ := reader.Bound(f, false, began)
	for len(all) < o.limit && s.now().Sub(began) < searchingTime {
		found, err := s.sys.Decisions.Search(ctx, bounded, reader.Page{Limit: min(o.limit-len(all), reader.MaxLimit), After: after, Payload: o.full})
		if err != nil {
			return nil, err
		}
		all = append(all, found.Decisions...)
		if after = found.Next; after == "" {
			break
		}
	}
	slices.Reverse(all)
	for _, d := range all {
		shown[same(d)] = true
	}
	s.tellEdits(s.edits(ctx, all, o.full))
	s.flow(all, o)
	return shown, nil
}

// flow shows decisions one by one: the widths of a table would change with each look.
func (s *session) flow(decisions []reader.Decision, o logsFlags) {
	switch {
	case s.asJSON || o.lines:
		s.decisionLines(decisions)
		return
	case o.full:
		s.decisionTexts(decisions)
		return
	}
	width := s.width()
	if s.wide {
		width = 0
	}
	for _, d := range decisions {
		when := d.Time.UTC().Format(instant)
		if width > 0 && width < 120 {
			when = d.Time.UTC().Format("15:04:05Z")
			s.day(d.Time)
		}
		head := fmt.Sprintf("%s  %-9s  %s", when, plain(verdictOf(d)), plainAll(d.ID))
		rest := strings.Join([]string{or(d.Path, "-"), or(d.RequestedBy, "-"), or(d.Service, "-")}, "  ")
		if room := width - text.StringWidth(head) - gap; width > 0 {
			rest = text.Snip(rest, max(room, 1), "…")
		}
		s.say("%s  %s  %s  %s\n", when, s.paintVerdict(fmt.Sprintf("%-9s", plain(verdictOf(d)))), plainAll(d.ID), rest)
	}
}

// day shows the day of a decision where lines have none and that before it was made on another one. The order is that of
// storing, so a day can come again.
func (s *session) day(of time.Time) {
	if day := of.UTC().Format(time.DateOnly); day != s.flowing {
		s.flowing = day
		s.say("%s\n", s.paint(bold, day))
	}
}
