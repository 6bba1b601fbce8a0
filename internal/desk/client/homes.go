package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/complete"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
)

// Homes asks for every place of an id. The desk says how long it looks. Without payload decisions have columns alone.
func (c *Client) Homes(ctx context.Context, id string, payload bool) (lookup.Answer, error) {
	q := url.Values{"id": {id}}
	if payload {
		q.Set("payload", flag)
	}
	var h api.Homes
	if err := c.ask(ctx, get("/homes", q), &h); err != nil {
		return lookup.Answer{}, older(err)
	}
	a := lookup.Answer{ID: h.ID, At: h.At, Rows: decisionsOf(h.Rows), Archived: decisionsOf(h.Archived), Letters: entriesOf(h.Letters), MoreLetters: h.MoreLetters, More: h.More, NotLooked: gapsOf(h.NotLooked)}
	for _, f := range h.Found {
		a.Found = append(a.Found, placeOf(f))
	}
	for _, p := range h.Looked {
		a.Looked = append(a.Looked, lookup.Searched{Name: p.Place, Note: p.Note})
	}
	return a, partly(ctx, h.Partly)
}

func placeOf(f api.FoundPlace) lookup.Found {
	out := lookup.Found{
		Where: f.Home, Name: f.Name, Partition: f.Partition, Offset: f.Offset, Time: at(f.Timestamp), Lane: f.Lane, Kind: f.Kind, Code: f.Code, FailedAt: at(f.FailedAt),
		Attempt: f.Attempt, NotBefore: at(f.NotBefore), To: f.To, Letter: f.Letter, Day: f.Day, Unproven: f.Unproven, Left: f.Left, Same: f.Same,
	}
	if f.Origin != nil {
		out.Origin = originOf(*f.Origin)
	}
	return out
}

// Complete returns answers about how complete answers of the desk are. now is the clock of the caller.
func (c *Client) Complete(now func() time.Time) *complete.Answers {
	return &complete.Answers{Asked: func(ctx context.Context, r complete.Range) (reader.Completeness, error) {
		var out api.RangeCompleteness
		err := c.ask(ctx, get("/completeness", rangeQuery(r.Since, r.Until, r.Paths, r.Services)), &out)
		return out.Completeness, older(err)
	}, Now: now}
}

// Check has the desk check what Docket relies on, which takes a minute at most.
func (c *Client) Check(ctx context.Context) (api.Checked, error) {
	var found api.Checked
	return found, older(c.ask(ctx, request{method: http.MethodGet, path: "/check", long: true}, &found))
}

// PlaceError says that the desk does not know a place to verify from.
type PlaceError struct{ err error }

func (e *PlaceError) Error() string { return e.err.Error() }

// Unwrap returns the answer of the desk.
func (e *PlaceError) Unwrap() error { return e.err }

// WrongUse reports that the command line was wrong.
func (*PlaceError) WrongUse() bool { return true }

// Verify has the desk check that no record was lost, which takes minutes. Without a time the desk chooses one. A place that is
// not in a source topic is a [*PlaceError].
func (c *Client) Verify(ctx context.Context, since time.Time, from []string, settled bool) (api.Verification, error) {
	q := url.Values{}
	if len(from) > 0 {
		q["from"] = from
	}
	if !since.IsZero() {
		q.Set("since", instant(since))
	}
	if settled {
		q.Set("settled", flag)
	}
	var found api.Verification
	err := c.ask(ctx, request{method: http.MethodGet, path: "/verify", query: q, long: true}, &found)
	if faultAt(err, "query.from") {
		return found, &PlaceError{err}
	}
	return found, older(err)
}

// WhereIs asks where a record is, which takes as long as the desk needs to read its topics.
func (c *Client) WhereIs(ctx context.Context, query string) (api.Whereabouts, error) {
	var w api.Whereabouts
	return w, c.ask(ctx, request{method: http.MethodGet, path: "/where-is", query: url.Values{"q": {query}}, long: true}, &w)
}
