package console

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"docket/internal/desk/api"
)

const (
	// tailEvery is between two looks of a live tail.
	tailEvery = time.Second
	// tailRows is the number of rows of one look that are shown. The others are counted.
	tailRows = 20
	// tailRead is the number of decisions that one look reads.
	tailRead = 500
	// tailBehind is how many looks in a row may end with more to read. Then the tail skips to now.
	tailBehind = 3
	// tailAway is between two looks while the database is away.
	tailAway = 5 * time.Second
)

// liveView is the switch of the live tail, and where its events come from.
type liveView struct {
	On           bool
	To           string // the page with the switch turned
	Events, Last string
}

// liveOf is the switch for a search; nil: this desk cannot follow. The place to follow from is read before the search, so
// that no decision is between the two.
func (c *Console) liveOf(in *request, s *search) *liveView {
	if !c.ask.Has("follow-decisions") || s.After != "" {
		return nil
	}
	to := s.with("until", "", "order", "")
	v := &liveView{On: in.URL.Query().Get("live") == "1", To: to}
	if !v.On {
		v.To = joined(to, "live=1")
		return v
	}
	v.Events = streamsPrefix + to
	if begun, err := c.ask.Follow(in.ctx(), in.who, followOf(s, "", 1)); err == nil {
		v.Last = begun.Tail
	}
	return v
}

// joined adds a parameter to an address.
func joined(to, parameter string) string {
	if strings.Contains(to, "?") {
		return to + "&" + parameter
	}
	return to + "?" + parameter
}

// followOf is a search as a question for what is stored from a place on. It asks for no payload.
func followOf(s *search, tail string, limit int) api.FollowQuery {
	q := api.FollowQuery{DecisionQuery: s.question(0).DecisionQuery, Tail: tail, Limit: limit}
	q.Until, q.Payload = "", false
	return q
}

// tailing is a live tail.
type tailing struct {
	c      *Console
	in     *request
	search search
	place  string
	behind int
	away   string     // the reason why the desk does not answer; empty: it answers
	said   api.Partly // shards and places that the last note names
}

// tailPart is what a look of a tail shows.
type tailPart struct {
	Rows    []api.Decision
	More    int
	Skipped *time.Time
	Away    string // the reason why the desk does not answer
	Edits   string
	Partly  api.Partly
}

// Lacks names the shards and places that were not looked at.
func (p tailPart) Lacks() []string { return lacking(nil, p.Partly) }

// tail streams the decisions that fit a search, as they are stored.
func (c *Console) tail(in *request) (page, error) {
	s, err := searchOf(in.URL.Query())
	if err != nil {
		return page{}, err
	}
	t := &tailing{c: c, in: in, search: s}
	if t.place, err = t.begin(in.ctx()); err != nil { // it also says whether the role may ask that
		return page{}, err
	}
	return page{stream: &stream{step: t.step}}, nil
}

// begin opens a place at now.
func (t *tailing) begin(ctx context.Context) (string, error) {
	begun, err := t.c.ask.Follow(ctx, t.in.who, followOf(&t.search, "", 1))
	return begun.Tail, err
}

// step looks once. The first look of a connection takes back the note of the one before.
func (t *tailing) step(ctx context.Context, e *events) (time.Duration, error) {
	resumes := e.last != ""
	if resumes { // where the browser was before
		t.place, e.last = e.last, ""
	}
	found, err := t.c.ask.Follow(ctx, t.in.who, followOf(&t.search, t.place, tailRead))
	if p, is := asProblem(err); is && p.Status == http.StatusUnprocessableEntity { // a place that this desk cannot read
		at := t.c.Now()
		if t.place, err = t.begin(ctx); err == nil {
			return tailEvery, t.send(e, tailPart{Skipped: &at})
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return 0, err
		}
		return t.waits(e, err)
	}
	t.place = found.Tail
	part := tailPart{Rows: found.Decisions, Edits: sentence(found.EditsUnknown), Partly: found.Partly}
	if t.behind++; !found.More {
		t.behind = 0
	}
	if t.behind >= tailBehind {
		place, err := t.begin(ctx)
		if err != nil {
			return t.waits(e, err)
		}
		at := t.c.Now()
		t.place, t.behind, part.Skipped = place, 0, &at
	}
	slices.Reverse(part.Rows)
	if len(part.Rows) > tailRows {
		part.Rows, part.More = part.Rows[:tailRows], len(part.Rows)-tailRows
	}
	if len(part.Rows) == 0 && part.Skipped == nil && !resumes && t.away == "" && t.says(part.Partly) {
		return tailEvery, e.sign(t.c.Now())
	}
	t.away = ""
	return tailEvery, t.send(e, part)
}

// says reports whether the last note names what an answer lacks, and no other shard. Decisions of a shard come once it answers
// again. A place is named by one look alone, so its note stays.
func (t *tailing) says(lacks api.Partly) bool {
	return slices.Equal(lacks.ShardsNotAsked, t.said.ShardsNotAsked) && (len(lacks.NotRead) == 0 || slices.Equal(lacks.NotRead, t.said.NotRead))
}

// waits says once why there is no answer. The place stays.
func (t *tailing) waits(e *events, err error) (time.Duration, error) {
	why := "The desk could not look."
	if p, is := asProblem(err); is {
		why = sentence(p.Detail)
	}
	if t.away == why {
		return tailAway, nil
	}
	t.away = why
	return tailAway, t.send(e, tailPart{Away: why})
}

// send sends the rows, and then what is to be said of them.
func (t *tailing) send(e *events, p tailPart) error {
	t.said = p.Partly
	for _, one := range []struct{ event, template, id string }{{"rows", "tailrows", t.place}, {"note", "tailnote", ""}} {
		if one.event == "rows" && len(p.Rows) == 0 {
			continue
		}
		var out bytes.Buffer
		f := t.c.frame(t.in, page{body: p})
		f.At = t.c.Now().UTC()
		if err := t.c.pages["decisions"].ExecuteTemplate(&out, one.template, f); err != nil {
			return fmt.Errorf("render %s: %w", one.template, err)
		}
		if !e.send(one.event, one.id, visible(out.Bytes())) {
			return errGone
		}
	}
	return e.sign(t.c.Now())
}

// sign says that the page is as of now.
func (e *events) sign(now time.Time) error {
	if !e.send("asof", "", []byte(now.UTC().Format(time.RFC3339Nano))) {
		return errGone
	}
	return nil
}
