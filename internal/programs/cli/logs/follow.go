package logs

import (
	"context"
	"slices"
	"time"

	"docket/internal/errclass"
	"docket/internal/history/reader"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// followed prints the last decisions, and then new ones as they are stored, until a signal. While the database is away it waits.
func (l *search) followed(ctx context.Context, f reader.Filter) error {
	// The position is read first. A decision that is stored before the search is in both, and is printed once.
	_, tail, err := l.Sys.Decisions.Follow(ctx, f, reader.Tail{}, 1, false)
	if err = l.parts.Pass(err); err != nil {
		return err
	}
	shown, err := l.lastOnes(ctx, f)
	if err != nil {
		return err
	}
	l.tellPartial()
	lacking := l.parts.Err()
	away := false
	for {
		found, next, err := l.Sys.Decisions.Follow(ctx, f, tail, reader.MaxLimit, l.full)
		more := len(found) == reader.MaxLimit
		if partial := reader.AsPartial(err); ctx.Err() == nil && (err == nil || partial != nil) {
			lacking, err = l.lack(lacking, err), nil
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // following ends when it is told to
		case err != nil && !errclass.Classify(err).OfTheMoment():
			return err
		case err != nil:
			if !away {
				away = true
				l.Tell("%s does not answer (%s); waiting\n", l.Source(), term.Brief(errclass.Classify(err).Code))
			}
		default:
			if away {
				away = false
				l.Tell("%s answers again\n", l.Source())
			}
			tail = next
			found = slices.DeleteFunc(found, func(d reader.Decision) bool { return shown[same(d)] })
			l.tellEdits(l.edits(ctx, found, l.full))
			l.flow(found, l.view)
		}
		if l.Lost() || !more && !frame.Sleep(ctx, l.every) {
			return nil
		}
	}
}

// lack prints which shards do not answer and which days are not read, if that has changed. Decisions of shards come when they
// answer again.
func (l *printer) lack(before, now error) error {
	l.parts = reader.Parts{}
	_ = l.parts.Pass(now) // nothing else comes here
	names, places := lacks(now)
	was, wasPlaces := lacks(before)
	switch {
	case slices.Equal(names, was) && (len(places) == 0 || slices.Equal(places, wasPlaces)):
	case len(names)+len(places) > 0:
		l.tellPartial()
	case len(was) > 0:
		l.Tell("all shards answer again\n")
	}
	return now
}

// lacks returns the shards and the places that an answer lacks.
func lacks(err error) (shards, places []string) {
	partial := reader.AsPartial(err)
	if partial == nil {
		return nil, nil
	}
	for _, m := range partial.Missed {
		if m.Shard == "" {
			places = append(places, m.Place)
		}
	}
	return partial.Missing(), places
}

// same is what makes two decisions one.
func same(d reader.Decision) string {
	return d.ID + "\x00" + d.Shard + "\x00" + d.Time.UTC().Format(time.RFC3339Nano)
}

// lastOnes shows the newest decisions that are stored already, the newest last.
func (l *search) lastOnes(ctx context.Context, f reader.Filter) (map[string]bool, error) {
	var all []reader.Decision
	shown := map[string]bool{}
	after, began := "", l.Now()
	bounded, _ := reader.Bound(f, false, began)
	var gaps []reader.Gap
	for len(all) < l.limit && l.Now().Sub(began) < searchingTime {
		found, err := l.Sys.Decisions.Search(ctx, bounded, reader.Page{Limit: min(l.limit-len(all), reader.MaxLimit), After: after, Payload: l.full})
		if err = l.parts.Pass(err); err != nil {
			return nil, err
		}
		all = append(all, found.Decisions...)
		gaps = withGaps(gaps, found.NotLooked)
		if after = found.Next; after == "" {
			break
		}
	}
	slices.Reverse(all)
	for _, d := range all {
		shown[same(d)] = true
	}
	l.tellEdits(l.edits(ctx, all, l.full))
	l.flow(all, l.view)
	for _, gap := range reader.GapTexts(gaps) {
		l.Tell("not looked at completely: %s\n", gap)
	}
	return shown, nil
}
