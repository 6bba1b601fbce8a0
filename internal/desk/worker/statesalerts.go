package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/notify"
	"docket/internal/history/state"
)

// StateNews is what alerts about states are made of.
type StateNews interface {
	Flips(ctx context.Context, q state.FlipQuery) ([]state.Flip, state.Mark, error)
	// Denials returns first denials of paths that were not told, at most limit.
	Denials(ctx context.Context, limit int) ([]state.Denial, error)
	ToldDenials(ctx context.Context, paths []string) error
	// Revisions returns revisions that nobody was told of, at most limit: those with as many decisions as least, and
	// again each time they have twice as many.
	Revisions(ctx context.Context, least int64, limit int) ([]state.Comparison, error)
	JudgedRevisions(ctx context.Context, all []state.Judgement) error
}

// Notes remembers texts. Each [ledger.Upkeep] is one.
type Notes interface {
	Remembered(ctx context.Context, name string) (text string, at time.Time, err error)
	Remember(ctx context.Context, name, text string) error
}

// StateAlerts tells people about first denials, flips of watched subjects and paths, and revisions that deny more. Each
// is told at least once. A text names a subject only if the setting names it, as a subject may be a part of a payload.
type StateAlerts struct {
	watch state.Watch
	every time.Duration
	news  StateNews
	notes Notes
	to    Deliverer
	next  time.Time
	kinds []*newsOutbox
}

// NewStateAlerts makes alerts. every is the pause between two checks.
func NewStateAlerts(watch state.Watch, every time.Duration, news StateNews, notes Notes, to Deliverer) *StateAlerts {
	a := &StateAlerts{watch: watch, every: every, news: news, notes: notes, to: to}
	a.kinds = []*newsOutbox{{key: "states:flips", look: a.flips}, {key: "states:first-denial", look: a.denials}, {key: "states:deny-rate", look: a.revisions}}
	return a
}

const (
	// newsAge is how old news may be while states begin. They begin with years of decisions, and older ones would raise
	// alerts of all of them. Once the states were that close to the present, all that is stored from then on is told,
	// however late.
	newsAge = time.Hour
	// namedNews limits the lines of a message.
	namedNews = 10
	newsPage  = 1000
	// A revision is compared once it has so many decisions on a path, with the one before it that had as many. It is told
	// if it denies so much more of them.
	leastDecisions = 100
	moreDenied     = 0.2
	flipsNote      = "states:flips"
	freshNote      = "states:fresh"
	freshAgain     = 10 * time.Minute // between two notes of how far the states are
)

// check tells what is new. It never waits for a channel.
func (a *StateAlerts) check(ctx context.Context, now time.Time) error {
	var from time.Time
	look := !now.Before(a.next)
	if look {
		a.next = now.Add(a.every)
		var err error
		if from, err = a.fresh(ctx, now); err != nil {
			return err
		}
	}
	for _, o := range a.kinds {
		if err := a.tell(ctx, o, look, from, now); err != nil {
			return err
		}
	}
	return nil
}

// freshness is what is noted of how far the states were.
type freshness struct {
	Seen time.Time `json:"seen"`          // all that was stored before was in them
	By   string    `json:"by"`            // the settings by which subjects were found
	From time.Time `json:"from,omitzero"` // news stored since is told; zero: they were never close to the present
}

// fresh returns from when on what was stored is told.
func (a *StateAlerts) fresh(ctx context.Context, now time.Time) (time.Time, error) {
	_, mark, err := a.news.Flips(ctx, state.FlipQuery{Limit: 1})
	if err != nil && !errors.Is(err, state.ErrNone) {
		return time.Time{}, err
	}
	text, _, err := a.notes.Remembered(ctx, freshNote)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return time.Time{}, err
	}
	var noted freshness
	if json.Unmarshal([]byte(text), &noted) != nil {
		noted = freshness{} // as if nothing was noted
	}
	is := freshness{mark.StoredBefore, mark.SubjectsBy, noted.From}
	again := is.Seen.Before(noted.Seen) || is.By != noted.By // the states began again
	if again {
		is.From = time.Time{}
	}
	if is.From.IsZero() && now.Sub(is.Seen) <= newsAge {
		is.From = now.Add(-newsAge)
	}
	if !is.From.Equal(noted.From) || again || is.Seen.Sub(noted.Seen) >= freshAgain {
		line, err := json.Marshal(is)
		if err != nil {
			return time.Time{}, err
		}
		if err := a.notes.Remember(ctx, freshNote, string(line)); err != nil {
			return time.Time{}, err
		}
	}
	if is.From.IsZero() {
		return now.Add(-newsAge), nil
	}
	return is.From, nil
}

func (a *StateAlerts) flips(ctx context.Context, from, now time.Time) (*notify.Message, mark, error) {
	text, _, err := a.notes.Remembered(ctx, flipsNote)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return nil, nil, err
	}
	noted := func(is string) mark {
		if is == text {
			return nil
		}
		return func(ctx context.Context) error { return a.notes.Remember(ctx, flipsNote, is) }
	}
	if len(a.watch.Subjects)+len(a.watch.Paths) == 0 {
		return nil, noted(""), nil // a later watch tells what comes then
	}
	if began := now.Add(-newsAge); text == "" && from.Before(began) {
		from = began
	}
	last, _ := strconv.ParseInt(text, 10, 64) // an unreadable text begins again
	if last == 0 {
		if last, err = a.before(ctx, from); err != nil {
			return nil, nil, err
		}
	}
	lines, more := []string{}, 0
	for {
		found, _, err := a.news.Flips(ctx, state.FlipQuery{After: last, Limit: newsPage})
		if errors.Is(err, state.ErrNone) {
			break // nothing was stored yet
		}
		if err != nil {
			return nil, nil, err
		}
		for i := range found {
			f := &found[i]
			last = f.ID
			switch line := a.flipLine(f); {
			case line == "" || f.StoredAt.Before(from):
			case len(lines) < namedNews:
				lines = append(lines, line)
			default:
				more++
			}
		}
		if len(found) < newsPage {
			break
		}
	}
	title := "1 verdict that is watched changed"
	if n := len(lines) + more; n > 1 {
		title = fmt.Sprintf("%s verdicts that are watched changed", thousands(int64(n)))
	}
	return news(title, lines, more, "docket flips lists them."), noted(strconv.FormatInt(last, 10)), nil
}

// before returns the number up to which flips were stored before from. Their numbers are in the order of storing. A first watch
// begins there: to read the flips of years takes longer than this desk has the duty.
func (a *StateAlerts) before(ctx context.Context, from time.Time) (low int64, err error) {
	newest, _, err := a.news.Flips(ctx, state.FlipQuery{Limit: 1, Backward: true})
	if errors.Is(err, state.ErrNone) {
		return 0, nil // nothing was stored yet
	}
	if err != nil || len(newest) == 0 {
		return 0, err
	}
	for high := newest[0].ID; low < high; {
		middle := low + (high-low)/2
		next, _, err := a.news.Flips(ctx, state.FlipQuery{After: middle, Limit: 1})
		switch {
		case err != nil:
			return 0, err
		case len(next) == 0 || !next[0].StoredAt.Before(from):
			high = middle
		default:
			low = next[0].ID
		}
	}
	return low, nil
}

// flipLine is empty where the flip is not watched.
func (a *StateAlerts) flipLine(f *state.Flip) string {
	who := ""
	switch {
	case a.watch.Subject(f.Key):
		who = "subject " + notify.Plain(f.Subject, 60) + ", "
	case !a.watch.Path(f.Key):
		return ""
	}
	late := ""
	if f.Late {
		late = ", stored late"
	}
	return fmt.Sprintf("%spath %s: %s, and %s before, decision %s%s", who, notify.Plain(f.Path, 60), f.Verdict, f.Was, notify.Plain(f.Version.ID, 60), late)
}

func (a *StateAlerts) denials(ctx context.Context, from, _ time.Time) (*notify.Message, mark, error) {
	found, err := a.news.Denials(ctx, newsPage)
	if err != nil || len(found) == 0 {
		return nil, nil, err
	}
	var lines, paths []string
	more := 0
	for _, d := range found {
		paths = append(paths, d.Path)
		switch {
		case d.StoredAt.Before(from):
		case len(lines) < namedNews:
			lines = append(lines, fmt.Sprintf("path %s, decision %s", notify.Plain(d.Path, 60), notify.Plain(d.ID, 60)))
		default:
			more++
		}
	}
	title, end := "First denial on a path", "docket why explains the decision."
	if n := len(lines) + more; n > 1 {
		title, end = fmt.Sprintf("First denials on %s paths", thousands(int64(n))), "docket why explains a decision."
	}
	return news(title, lines, more, end), func(ctx context.Context) error { return a.news.ToldDenials(ctx, paths) }, nil
}

func (a *StateAlerts) revisions(ctx context.Context, from, _ time.Time) (*notify.Message, mark, error) {
	found, err := a.news.Revisions(ctx, leastDecisions, newsPage)
	if err != nil || len(found) == 0 {
		return nil, nil, err
	}
	var lines []string
	var judged []state.Judgement
	more := 0
	for i := range found {
		c := &found[i]
		since := c.Since()
		worse := c.Before != nil && since.DenyRate()-c.Before.DenyRate() >= moreDenied && !c.Last.Before(from)
		judged = append(judged, state.Judgement{PathRevision: c.PathRevision, Allowed: c.Allowed, Denied: c.Denied, Told: worse})
		switch {
		case !worse:
		case len(lines) < namedNews:
			lines = append(lines, fmt.Sprintf("path %s: revision %s denies %.0f %% of %s decisions, and %s before it denied %.0f %%", notify.Plain(c.Path, 60),
				notify.Plain(c.Revision, 60), 100*since.DenyRate(), thousands(since.Allowed+since.Denied), notify.Plain(c.Before.Revision, 60), 100*c.Before.DenyRate()))
		default:
			more++
		}
	}
	mark := func(ctx context.Context) error { return a.news.JudgedRevisions(ctx, judged) }
	return news("A new revision of the policies denies more", lines, more, "docket stats --steps shows the rates."), mark, nil
}

// news makes a message; nil: there is nothing to tell.
func news(title string, lines []string, more int, end string) *notify.Message {
	if len(lines) == 0 {
		return nil
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %s more", thousands(int64(more))))
	}
	return &notify.Message{Kind: notify.Alert, Title: title, Lines: append(lines, end), Severity: notify.Warning}
}
