package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
)

// Book is the ledger of a desk, as commands need it. The desk knows the author of a change by the token, so names are not
// sent; a change by another name is refused.
type Book struct{ client *Client }

// Book returns the ledger of the desk.
func (c *Client) Book() Book { return Book{c} }

// ErrOnDatabase says that only a command on the database can do this.
var ErrOnDatabase = errors.New("a desk cannot do this; it needs DOCKET_DATABASE_URL")

// AnotherNameError says that a person gave another name than the one that the desk knows.
type AnotherNameError struct{ Given, Known string }

func (e *AnotherNameError) Error() string {
	return fmt.Sprintf("the desk knows you as %q by your token, and not as %q: leave --operator away", e.Known, e.Given)
}

// by checks the name of an author, if there is one.
func (b Book) by(ctx context.Context, a ledger.Actor) error {
	if a.Name == "" {
		return nil
	}
	me, err := b.client.Whoami(ctx)
	if err == nil && me.Name != a.Name {
		return &AnotherNameError{a.Name, me.Name}
	}
	return err
}

func lettersQuery(f ledger.Filter) url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"fingerprint": strings.ToLower(f.Fingerprint), "kind": string(f.Kind), "code": f.Code, "path": f.Path, "topic": f.Topic} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(f.States) > 0 {
		names := make([]string, len(f.States))
		for i, s := range f.States {
			names[i] = string(s)
		}
		q.Set("states", strings.Join(names, ","))
	}
	if !f.From.IsZero() {
		q.Set("from", instant(f.From))
	}
	if !f.To.IsZero() {
		q.Set("to", instant(f.To))
	}
	if f.Partition != nil {
		q.Set("partition", strconv.Itoa(int(*f.Partition)))
	}
	if f.Snoozed != ledger.SnoozedToo {
		q.Set("snoozed", string(f.Snoozed))
	}
	if f.Assigned != "" {
		q.Set("assigned", f.Assigned)
	}
	return q
}

func filterOf(f ledger.Filter) api.Filter {
	out := api.Filter{Fingerprint: strings.ToLower(f.Fingerprint), Kind: f.Kind, Code: f.Code, Path: f.Path, States: f.States, Topic: f.Topic, Partition: f.Partition}
	if !f.From.IsZero() {
		out.From = &f.From
	}
	if !f.To.IsZero() {
		out.To = &f.To
	}
	return out
}

func chosen(f api.Filter) ledger.Filter {
	return ledger.Filter{Fingerprint: f.Fingerprint, Kind: f.Kind, Code: f.Code, Path: f.Path, States: f.States, From: at(f.From), To: at(f.To), Topic: f.Topic, Partition: f.Partition}
}

// asked asks for letters. An older desk refuses the word for snoozed ones. It has none, so nothing has to be left out.
func (b Book) asked(ctx context.Context, path string, q url.Values, out any) error {
	err := b.client.ask(ctx, get(path, q), out)
	if q.Get("snoozed") == string(ledger.NotSnoozed) && faultAt(err, "query.snoozed") {
		q.Del("snoozed")
		err = b.client.ask(ctx, get(path, q), out)
	}
	return err
}

// List asks for a page of dead letters.
func (b Book) List(ctx context.Context, f ledger.Filter, p ledger.Page) (ledger.List, error) {
	q := lettersQuery(f)
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.After != "" {
		q.Set("after", p.After)
	}
	var list api.LetterList
	if err := b.asked(ctx, "/dead-letters", q, &list); err != nil {
		if faultAt(err, "query.after") {
			err = errors.Join(ledger.ErrBadPage, err)
		}
		return ledger.List{}, err
	}
	return ledger.List{Entries: entriesOf(list.Letters), Next: list.Next}, nil
}

// Show asks for a dead letter without its payload; see [Book.Payload].
func (b Book) Show(ctx context.Context, id string) (ledger.Entry, error) {
	var l api.Letter
	if err := b.client.ask(ctx, get("/dead-letters/"+url.PathEscape(id), nil), &l); err != nil {
		return ledger.Entry{}, ofLetter(err)
	}
	e := entryOf(l)
	e.Withheld = l.PayloadBytes
	return e, nil
}

// Payload adds key, headers and payload to a dead letter. The desk logs that look.
func (b Book) Payload(ctx context.Context, e ledger.Entry) (ledger.Entry, error) {
	var p api.Payload
	if err := b.client.ask(ctx, get("/dead-letters/"+url.PathEscape(e.ID)+"/payload", nil), &p); err != nil {
		return e, ofLetter(err)
	}
	e.Withheld, e.Key, e.Value, e.Edited = nil, bytesOf(p.Key), bytesOf(p.Value), p.Edited
	for _, h := range p.Headers {
		e.Headers = append(e.Headers, ledger.Header{Key: string(bytesOf(h.Key)), Value: bytesOf(h.Value)})
	}
	return e, nil
}

func bytesOf(b api.Bytes) []byte {
	switch {
	case b.Null:
		return nil
	case b.Text != nil:
		return []byte(*b.Text)
	case b.Base64 == nil:
		return []byte{}
	}
	return b.Base64
}

// ofLetter returns the ledger's error for the answer about one dead letter, job or proposal.
func ofLetter(err error) error {
	p := problemOf(err, http.StatusNotFound, http.StatusConflict)
	switch {
	case p == nil:
		return err
	case p.Status == http.StatusNotFound:
		return ledger.ErrNotFound
	case faultAt(err, "path.id"):
		return &ledger.AmbiguousError{IDs: p.Candidates}
	case p.State != "" && p.ID != "":
		return &ledger.RefusedError{ID: p.ID, State: ledger.State(p.State), By: p.By, At: at(p.Since)}
	}
	return err
}

// History asks for the audit and the retries of a dead letter, without payloads; see [Book.Past].
func (b Book) History(ctx context.Context, id string) ([]ledger.Audit, []ledger.Sending, error) {
	return b.past(ctx, id, nil)
}

// Past is History with the payloads before changes. The desk logs that look.
func (b Book) Past(ctx context.Context, id string) ([]ledger.Audit, []ledger.Sending, error) {
	return b.past(ctx, id, url.Values{"payload": {flag}})
}

func (b Book) past(ctx context.Context, id string, q url.Values) ([]ledger.Audit, []ledger.Sending, error) {
	var h api.History
	if err := b.client.ask(ctx, get("/dead-letters/"+url.PathEscape(id)+"/history", q), &h); err != nil {
		if err = ofLetter(err); errors.Is(err, ledger.ErrNotFound) {
			return nil, nil, nil // as the ledger answers
		}
		return nil, nil, err
	}
	var audits []ledger.Audit
	for _, e := range h.Events {
		a := ledger.Audit{ID: e.ID, At: e.At, LetterID: h.ID, Act: e.Act, From: e.From, To: e.To, By: e.By, Why: e.Why, Attempts: e.Attempts, Job: e.Job, Login: e.Login,
			Application: e.Application, Client: e.Client, Columns: e.Columns, Diff: e.Diff}
		if e.Was != nil {
			a.Was = e.Was
		}
		if e.Original != nil {
			a.Original = bytesOf(*e.Original)
		}
		switch {
		case e.Changed && a.Diff == "" && a.Original == nil:
			a.Withheld = true
		case len(e.Columns) > 0 && a.Was == nil:
			a.Was, a.Withheld = []byte("{}"), true // they are there, and are not shown
		}
		audits = append(audits, a)
	}
	var sendings []ledger.Sending
	for _, r := range h.Retries {
		s := ledger.Sending{ID: r.ID, LetterID: h.ID, Topic: r.Topic, Tries: r.Tries, By: r.By, Job: r.Job, CreatedAt: r.At, Outcome: r.Outcome, EndedAt: at(r.EndedAt), Code: r.Code}
		if r.Published != nil {
			s.Published = foundOf(*r.Published)
		}
		sendings = append(sendings, s)
	}
	return audits, sendings, nil
}

// Groups asks for dead letters by fingerprint.
func (b Book) Groups(ctx context.Context, f ledger.Filter) ([]ledger.Group, error) {
	var found api.Groups
	if err := b.asked(ctx, "/groups", lettersQuery(f), &found); err != nil {
		return nil, err
	}
	var all []ledger.Group
	for _, g := range found.Groups {
		all = append(all, ledger.Group{
			Fingerprint: g.Fingerprint, Kind: g.Kind, Code: g.Code, Table: g.Table, Column: g.Column, Constraint: g.Constraint, Message: g.Message, Counts: countsOf(g.Counts),
			Paths: g.Paths, FirstSeen: at(g.FirstSeen), Oldest: at(g.Oldest), Newest: at(g.Newest),
			Assigned: g.Assigned, SnoozedUntil: at(g.SnoozedUntil), Snoozed: g.Snoozed,
		})
	}
	return all, nil
}

func countsOf(c api.Counts) map[ledger.State]int64 {
	counts := map[ledger.State]int64{}
	for state, n := range map[ledger.State]int64{ledger.Pending: c.Pending, ledger.Processing: c.Processing, ledger.Failed: c.Failed, ledger.Resolved: c.Resolved} {
		if n > 0 {
			counts[state] = n
		}
	}
	return counts
}

// Counts asks how many dead letters match, by their state.
func (b Book) Counts(ctx context.Context, f ledger.Filter) (map[ledger.State]int64, error) {
	groups, err := b.Groups(ctx, f)
	counts := map[ledger.State]int64{}
	for _, g := range groups {
		for state, n := range g.Counts {
			counts[state] += n
		}
	}
	return counts, err
}

// Report asks for what is unresolved.
func (b Book) Report(ctx context.Context) ([]ledger.ReportLine, error) {
	var r api.Report
	if err := b.client.ask(ctx, get("/report", nil), &r); err != nil {
		return nil, err
	}
	var lines []ledger.ReportLine
	for _, l := range r.Lines {
		lines = append(lines, ledger.ReportLine{Kind: l.Kind, Code: l.Code, Path: l.Path, Counts: countsOf(l.Counts), Oldest: at(l.Oldest)})
	}
	return lines, nil
}

// Retry retries dead letters, one after another.
func (b Book) Retry(ctx context.Context, ids []string, _ time.Duration, by ledger.Actor) ([]ledger.Outcome, error) {
	return b.each(ctx, ids, "/retry", by, api.RetryRequest{Reason: by.Why})
}

// Resolve resolves dead letters, one after another.
func (b Book) Resolve(ctx context.Context, ids []string, by ledger.Actor) ([]ledger.Outcome, error) {
	return b.each(ctx, ids, "/resolve", by, api.ResolveRequest{Note: by.Why})
}

// each changes dead letters. If one of several fails for another reason than its state, its outcome says so, as others
// were changed.
func (b Book) each(ctx context.Context, ids []string, act string, by ledger.Actor, body any) ([]ledger.Outcome, error) {
	if err := b.by(ctx, by); err != nil {
		return nil, err
	}
	var all []ledger.Outcome
	for i, id := range ids {
		var moved api.Moved
		err := ofLetter(b.client.ask(ctx, post("/dead-letters/"+url.PathEscape(id)+act, body), &moved))
		var refused *ledger.RefusedError
		if i == 0 && err != nil && !errors.Is(err, ledger.ErrNotFound) && !errors.As(err, &refused) {
			return nil, err
		}
		all = append(all, ledger.Outcome{ID: id, Err: err})
	}
	return all, nil
}

// RetryMatching is a part of a job, and the desk's.
func (b Book) RetryMatching(context.Context, ledger.Filter, time.Time, int, time.Duration, ledger.Actor) ([]int64, error) {
	return nil, ErrOnDatabase
}

// ResolveMatching is a part of a job, and the desk's.
func (b Book) ResolveMatching(context.Context, ledger.Filter, time.Time, int, ledger.Actor) (int, error) {
	return 0, ErrOnDatabase
}

// Values are not read over the network: POST /trials tries them where they are.
func (b Book) Values(context.Context, ledger.Filter, int, int, func([]ledger.Entry) error) error {
	return ErrOnDatabase
}

// OldestFound is a part of the horizon, which the desk tells.
func (b Book) OldestFound(context.Context) (map[string]time.Time, error) { return nil, ErrOnDatabase }

// Remembered are notes of a desk to itself.
func (b Book) Remembered(context.Context, string) (string, time.Time, error) {
	return "", time.Time{}, ErrOnDatabase
}

// Claims are a part of [Client.Homes].
func (b Book) Claims(context.Context, string, int) ([]ledger.Entry, error) {
	return nil, ErrOnDatabase
}
