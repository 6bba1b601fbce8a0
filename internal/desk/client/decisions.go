package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/reader"
	"docket/internal/record/escape"
)

// Decisions is a [reader.Store] of a desk. It asks for payloads; see [Decisions.Columns].
type Decisions struct {
	client  *Client
	columns bool
	last    *last
}

// last is what the last answer said.
type last struct {
	mu   sync.Mutex
	why  string // the edits of it may be incomplete
	away bool   // a request that follows had none
}

// Decisions returns the stored decisions of the desk.
func (c *Client) Decisions() Decisions { return Decisions{c, false, &last{}} }

// Columns returns the same decisions, found by id without their payloads. That needs a lower role, and no look is logged.
func (d Decisions) Columns() reader.Store {
	d.columns = true
	return d
}

// flag is a query parameter that is true.
const flag = "true"

func instant(t time.Time) string { return escape.Instant(t) }

// rangeQuery are the parameters of a range.
func rangeQuery(since, until time.Time, paths, services []string) url.Values {
	q := url.Values{}
	if !since.IsZero() {
		q.Set("since", instant(since))
	}
	if !until.IsZero() {
		q.Set("until", instant(until))
	}
	add(q, "path", paths)
	add(q, "service", services)
	return q
}

func add(q url.Values, name string, values []string) {
	for _, v := range values {
		q.Add(name, v)
	}
}

// filterQuery are the parameters of a filter.
func filterQuery(f reader.Filter, payload bool) url.Values {
	q := rangeQuery(f.Since, f.Until, f.Paths, f.Services)
	for _, v := range f.Verdicts {
		q.Add("verdict", string(v))
	}
	add(q, "requested_by", f.RequestedBy)
	for name, value := range f.Labels {
		q.Add("label", name+"="+value)
	}
	for _, m := range f.Matches {
		q.Add("match", m.Text())
	}
	if payload {
		q.Set("payload", flag)
	}
	return q
}

// Search asks for a page of decisions.
func (d Decisions) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	q := filterQuery(f, p.Payload)
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.After != "" {
		q.Set("after", p.After)
	}
	if p.Oldest {
		q.Set("order", "oldest")
	}
	var list api.DecisionList
	if err := d.client.ask(ctx, get("/decisions", q), &list); err != nil {
		return reader.Found{}, cursorOf(err, "query.after")
	}
	d.last.note(list.EditsUnknown)
	found := reader.Found{Decisions: decisionsOf(list.Decisions), Next: list.Next, NotLooked: gapsOf(list.Gaps), Archives: true}
	if list.Reached != nil {
		found.Reached = *list.Reached
	}
	return found, partly(ctx, list.Partly)
}

// cursorOf returns [reader.ErrCursor] for a cursor that the desk does not know.
func cursorOf(err error, location string) error {
	if faultAt(err, location) {
		return errors.Join(reader.ErrCursor, err)
	}
	return err
}

// ByID asks for the decisions of an id, with their payloads but for [Decisions.Columns].
func (d Decisions) ByID(ctx context.Context, id string) ([]reader.Decision, error) {
	q := url.Values{"id": {id}}
	if !d.columns {
		q.Set("payload", flag)
	}
	rows, err := d.rows(ctx, q)
	if err != nil {
		return nil, err
	}
	d.last.note(rows.EditsUnknown)
	return decisionsOf(rows.Decisions), partly(ctx, rows.Partly)
}

// Begins asks for decisions whose ids begin with prefix.
func (d Decisions) Begins(ctx context.Context, prefix string, limit int) ([]reader.Decision, error) {
	rows, err := d.rows(ctx, url.Values{"prefix": {prefix}, "limit": {strconv.Itoa(limit)}})
	if err != nil {
		return nil, err
	}
	if !rows.Whole {
		return nil, reader.ErrWhole
	}
	return decisionsOf(rows.Decisions), partly(ctx, rows.Partly)
}

func (d Decisions) rows(ctx context.Context, q url.Values) (rows api.Rows, err error) {
	return rows, older(d.client.ask(ctx, get("/rows", q), &rows))
}

// Stats asks for counts.
func (d Decisions) Stats(ctx context.Context, s reader.StatsQuery) ([]reader.Stats, error) {
	q := rangeQuery(s.Since, s.Until, s.Paths, s.Services)
	q.Set("step", fmt.Sprintf("%dm", int64(s.Step/time.Minute)))
	if s.Step%(24*time.Hour) == 0 {
		q.Set("step", fmt.Sprintf("%dd", int64(s.Step/(24*time.Hour))))
	}
	if q.Set("by", "service"); s.ByPath {
		q.Set("by", "path")
	}
	var rates api.Rates
	if err := d.client.ask(ctx, get("/decisions/stats", q), &rates); err != nil {
		return nil, err
	}
	var lines []reader.Stats
	for _, l := range rates.Lines {
		counts := map[reader.Verdict]int64{}
		for verdict, n := range map[reader.Verdict]int64{reader.Allowed: l.Counts.Allowed, reader.Denied: l.Counts.Denied, reader.Undefined: l.Counts.Undefined, reader.Error: l.Counts.Error, reader.Other: l.Counts.Other} {
			if n > 0 {
				counts[verdict] = n
			}
		}
		lines = append(lines, reader.Stats{From: l.From, Name: l.Name, Counts: counts})
	}
	return lines, partly(ctx, rates.Partly)
}

// Edits returns no edits, as decisions of a desk have them. The error says why those of the last answer may be incomplete.
func (d Decisions) Edits(context.Context, []reader.Decision, bool) (map[int]reader.Edit, error) {
	d.last.mu.Lock()
	defer d.last.mu.Unlock()
	switch d.last.why {
	case "":
		return nil, nil
	case reader.ErrEdits.Error():
		return nil, reader.ErrEdits
	}
	return nil, errors.New(d.last.why)
}

func (u *last) failed(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.away = err != nil
}

func (u *last) note(why string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.why = why
}

// Why asks for the explanation of a decision. subject is as in --subject; empty: as the desk is set.
func (c *Client) Why(ctx context.Context, d reader.Decision, q reader.Question, subject string) (reader.Explanation, error) {
	query := url.Values{"timestamp": {instant(d.Time)}, "neighbours": {strconv.Itoa(q.Neighbours)}, "elsewhere": {"false"}}
	if q.SameInput {
		query.Set("same_input", flag)
	}
	if subject != "" {
		query.Set("subject", subject)
	}
	var x api.Explained
	if err := c.ask(ctx, get("/decisions/"+segment(d.ID)+"/why", query), &x); err != nil {
		return reader.Explanation{}, err
	}
	x.Explanation.Incomplete = x.Incomplete
	return x.Explanation, partly(ctx, x.Partly)
}

// partly returns the [reader.PartialError] of an answer that lacks shards or places. The caller may collect them instead.
func partly(ctx context.Context, p api.Partly) error {
	var missed []reader.Missed
	for _, shard := range p.ShardsNotAsked {
		missed = append(missed, reader.Missed{Shard: shard, Err: errNotAsked})
	}
	for _, text := range p.NotRead {
		place, why, _ := strings.Cut(text, ": ")
		missed = append(missed, reader.Missed{Place: place, Err: errors.New(why)})
	}
	if len(missed) == 0 {
		return nil
	}
	return reader.Told(ctx, &reader.PartialError{Missed: missed})
}

// errNotAsked says why a shard was not asked. A desk tells no more.
var errNotAsked = errors.New("the desk could not ask it, and its log says why")
