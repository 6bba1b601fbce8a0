package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/record/decision"
)

// lettersPage is the content of the page of groups.
type lettersPage struct {
	Groups  []api.Group
	All     bool           // also groups that are resolved
	Snoozed bool           // only those that are snoozed
	Asleep  int64          // snoozed letters of all groups
	Person  string         // only groups of this person
	Waiting []api.Proposal // edits that wait for a second person
	Open    int64
	Jobs    []api.Job
	Surplus []api.Surplus
	// MoreSurplus says that there are more than those in Surplus.
	MoreSurplus bool
	// The pages of its three lists.
	GroupPages, JobPages, ProposalPages listPages
}

// listPages lead from a part of a list to others; empty: there are none.
type listPages struct{ First, Next string }

// Parameters with the places of the lists of one page.
const (
	afterGroup, afterJob, afterProposal = "after", "jobs", "proposals"
)

// pagesOf keeps the places of the other lists of the page. There is a way to the first part from every later one.
func pagesOf(in *request, parameter, next, place string) (p listPages) {
	to := func(after string) string {
		q := in.URL.Query()
		if q.Del(parameter); after != "" {
			q.Set(parameter, after)
		}
		if len(q) == 0 {
			return in.URL.Path + place
		}
		return in.URL.Path + "?" + q.Encode() + place
	}
	if in.URL.Query().Get(parameter) != "" {
		p.First = to("")
	}
	if next != "" {
		p.Next = to(next)
	}
	return p
}

const (
	// maxJobs is the number of jobs, and of proposals, on the page of groups.
	maxJobs = 10
	// maxProposals is the number of proposals on the page of a letter.
	maxProposals = 50
)

var openStates = []ledger.State{ledger.Pending, ledger.Failed}

func (c *Console) deadLetters(in *request) (page, error) {
	groups, err := c.ask.Groups(in.ctx(), in.who, api.FilterQuery{Partition: -1})
	if err != nil {
		return page{}, err
	}
	body := lettersPage{All: in.URL.Query().Get("all") != "", Snoozed: in.URL.Query().Get("snoozed") != "", Person: in.URL.Query().Get("assigned")}
	for _, g := range groups.Groups {
		body.Open += g.Open
		body.Asleep += g.Snoozed
		if body.shows(g) {
			body.Groups = append(body.Groups, g)
		}
	}
	var next string
	if body.Groups, next, err = ledger.PageOfGroups(body.Groups, placeOf, in.URL.Query().Get(afterGroup), pageSize); err != nil {
		return page{}, asking(afterGroup, "the next of the page before")
	}
	body.GroupPages = pagesOf(in, afterGroup, next, "")
	jobs, err := c.ask.Jobs(in.ctx(), in.who, in.URL.Query().Get(afterJob), maxJobs)
	if err != nil {
		return page{}, err
	}
	first, err := c.ask.Letters(in.ctx(), in.who, api.ListQuery{FilterQuery: api.FilterQuery{Partition: -1}, Limit: 1})
	if err != nil {
		return page{}, err
	}
	waiting, err := c.ask.Proposals(in.ctx(), in.who, "", in.URL.Query().Get(afterProposal), maxJobs)
	if err != nil {
		return page{}, err
	}
	body.Waiting, body.ProposalPages = waiting.Proposals, pagesOf(in, afterProposal, waiting.Next, "#proposals")
	body.Jobs, body.JobPages = jobs.Jobs, pagesOf(in, afterJob, jobs.Next, "#jobs")
	body.Surplus, body.MoreSurplus = first.Surplus, first.MoreSurplus
	return page{name: "letters", title: "Dead letters", body: body}, nil
}

func placeOf(g api.Group) ledger.GroupPlace {
	p := ledger.GroupPlace{Open: g.Open, Fingerprint: g.Fingerprint}
	if g.Newest != nil {
		p.Newest = *g.Newest
	}
	return p
}

// shows reports whether a group is in the list. One that is snoozed in part is in both lists.
func (p *lettersPage) shows(g api.Group) bool {
	switch {
	case p.Person == ledger.Nobody && g.Assigned != "", p.Person != "" && p.Person != ledger.Nobody && g.Assigned != p.Person:
		return false
	case p.Snoozed:
		return g.Snoozed > 0
	}
	return p.All || g.Open > g.Snoozed
}

// groupPage is the content of the page of one group.
type groupPage struct {
	Group   api.Group
	Code    *api.Verdict
	Letters api.LetterList
	Older   string
	Tries   bool // a dry run is possible
	Wrong   string
	Rules   []api.Rule
	History []api.GroupEvent
	Spans   []string
	Snoozed bool // only letters that are snoozed are listed
}

// oneGroup finds a group by its whole fingerprint.
func (c *Console) oneGroup(in *request, q api.FilterQuery) (api.Group, error) {
	q.Fingerprint = in.PathValue("fingerprint")
	if len(q.Fingerprint) != ledger.FingerprintLength {
		return api.Group{}, &api.Problem{Status: http.StatusNotFound, Detail: "This desk has no such group.", Hint: "Choose one from the list of dead letters."}
	}
	found, err := c.ask.Groups(in.ctx(), in.who, q)
	if err != nil {
		return api.Group{}, err
	}
	for _, g := range found.Groups {
		if g.Fingerprint == q.Fingerprint {
			return g, nil
		}
	}
	return api.Group{Fingerprint: q.Fingerprint}, nil
}

func (c *Console) group(in *request) (page, error) {
	g, err := c.oneGroup(in, api.FilterQuery{Partition: -1})
	if err != nil {
		return page{}, err
	}
	if g.Code == "" {
		return page{}, &api.Problem{Status: http.StatusNotFound, Detail: "This desk has no such group.", Hint: "Choose one from the list of dead letters."}
	}
	after := in.URL.Query().Get("after")
	if len(after) > 512 {
		return page{}, asking("after", "the next of the page before")
	}
	states, err := statesOf(in)
	if err != nil {
		return page{}, err
	}
	snoozed := in.URL.Query().Get("snoozed")
	if snoozed != "" {
		snoozed = string(ledger.OnlySnoozed)
	}
	filter := api.FilterQuery{Fingerprint: g.Fingerprint, Partition: -1, States: states, Snoozed: snoozed}
	list, err := c.ask.Letters(in.ctx(), in.who, api.ListQuery{FilterQuery: filter, After: after, Limit: pageSize})
	if err != nil {
		return page{}, err
	}
	body := groupPage{Group: g, Letters: list, Tries: c.ask.Has("try-dead-letters"), Code: c.explained(in, g.Code), Snoozed: snoozed != ""}
	if list.Next != "" {
		q := in.URL.Query()
		q.Set("after", list.Next)
		body.Older = groupURL(g.Fingerprint) + "?" + q.Encode()
	}
	rules, err := c.ask.Rules(in.ctx(), in.who, g.Fingerprint, true, maxRules)
	if err != nil {
		return page{}, err
	}
	history, err := c.ask.GroupHistory(in.ctx(), in.who, g.Fingerprint, maxRules)
	if err != nil {
		return page{}, err
	}
	body.Rules, body.History = rules.Rules, history.Events
	for _, s := range spans[1:] {
		body.Spans = append(body.Spans, s.Name)
	}
	return page{name: "group", title: "Dead letters alike", body: body}, nil
}

// maxRules is how many rules and lines of history the page of a group shows.
const maxRules = 20

// statesOf are the states that an address chooses; none: all.
func statesOf(in *request) (states []ledger.State, err error) {
	for _, name := range in.URL.Query()["state"] {
		if !slices.Contains(ledger.States(), ledger.State(name)) {
			return nil, asking("state", "PENDING, PROCESSING, FAILED or RESOLVED")
		}
		states = append(states, ledger.State(name))
	}
	return states, nil
}

func groupURL(fingerprint string) string {
	return "/dead-letters/groups/" + url.PathEscape(fingerprint)
}

// explained says what a code means; nil where it is not known.
func (c *Console) explained(in *request, code string) *api.Verdict {
	v, err := c.ask.Classify(in.ctx(), in.who, code)
	if err != nil {
		return nil
	}
	return &v
}

// letterPage is the content of the page of one dead letter.
type letterPage struct {
	Letter  api.Letter
	Code    *api.Verdict
	History api.History
	Payload *payloadView
	Open    bool // a person can decide on it
	Closed  bool // a person or a rule closed it, so that it can be reopened
	Spans   []string
	Waiting []api.Proposal // edits of it that wait for a second person, the newest first
	More    bool           // and others
	Unknown bool           // which edits wait is not known
}

// payloadView is a payload as text.
type payloadView struct {
	Tree      *tree
	Text, Cut string
	Key       string
	Headers   []headerView
	Zip       string // a sentence about gzip; empty: the record is shown as it is
	None      bool
}

type headerView struct{ Key, Value string }

func (c *Console) letter(in *request) (page, error) {
	id := in.PathValue("id")
	if !isHex(id) {
		return page{}, &api.Problem{Status: http.StatusNotFound, Detail: "This desk has no such dead letter.", Hint: "An id has 6 to 64 of 0-9 and a-f."}
	}
	l, err := c.ask.Letter(in.ctx(), in.who, id)
	if err != nil {
		return page{}, err
	}
	h, err := c.ask.History(in.ctx(), in.who, l.ID)
	if err != nil {
		return page{}, err
	}
	body := letterPage{Letter: l, History: h, Code: c.explained(in, l.Code), Open: l.State == ledger.Pending || l.State == ledger.Failed}
	if n := len(h.Events); n > 0 {
		body.Closed = l.State == ledger.Resolved && l.ArchivedIn == "" && lastMove(h.Events).Act == ledger.Closed
	}
	for _, s := range spans {
		body.Spans = append(body.Spans, s.Name)
	}
	if body.Open {
		waiting, err := c.ask.Proposals(in.ctx(), in.who, l.ID, "", maxProposals)
		if err != nil { // the page is for the letter
			c.log.Warn().Err(err).Msg("proposals not read")
			body.Unknown = true
		}
		body.Waiting, body.More = waiting.Proposals, waiting.Next != ""
	}
	if in.URL.Query().Get("payload") != "" {
		p, err := c.ask.LetterPayload(in.ctx(), in.who, l.ID)
		if err != nil {
			return page{}, err
		}
		body.Payload = payloadOf(p)
	}
	return page{name: "letter", title: "Dead letter", body: body}, nil
}

// lastMove is the last event that changed the state.
func lastMove(events []api.Event) api.Event {
	for i := len(events) - 1; i > 0; i-- {
		if events[i].From != events[i].To {
			return events[i]
		}
	}
	return events[0]
}

func isHex(id string) bool {
	if len(id) < 6 || len(id) > 64 {
		return false
	}
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}

func payloadOf(p api.Payload) *payloadView {
	raw := bytesText(p.Value)
	v := &payloadView{None: p.Value.Null, Key: clipped(bytesText(p.Key))}
	for _, h := range p.Headers {
		v.Headers = append(v.Headers, headerView{clipped(bytesText(h.Key)), clipped(bytesText(h.Value))})
	}
	if decision.IsGzip(raw) {
		v.Zip = "The record is gzip. This is its content."
		content, err := inflated(raw)
		if raw = content; err != nil {
			v.Zip = "The record is gzip, and this is not all of its content: it is damaged, or has more than 16 MiB."
		}
	}
	if t := treeOf(raw, "", nil); len(t.Lines) > 0 && json.Valid(raw) { // a part of a broken one would look like all of it
		v.Tree = &t
	} else {
		v.Text, v.Cut = textOf(raw)
	}
	return v
}

// mostInflated limits the content of gzip in memory.
const mostInflated = 16 << 20

var errInflated = errors.New("more than is shown")

// inflated is the content of gzip. With an error it is as much as could be read.
func inflated(raw []byte) ([]byte, error) {
	r, err := decision.Inflate(raw)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, mostInflated+1))
	if err == nil && len(content) > mostInflated {
		content, err = content[:mostInflated], errInflated
	}
	return content, err
}

func bytesText(b api.Bytes) []byte {
	if b.Text != nil {
		return []byte(*b.Text)
	}
	return b.Base64
}

// clipped is a key or a header, as far as it is shown.
func clipped(raw []byte) string {
	if len(raw) > maxValue {
		return shown(string(raw[:maxValue])) + "…"
	}
	return shown(string(raw))
}

// dryRunPage is the content of the page between a dry run and its retry.
type dryRunPage struct {
	Group  api.Group
	Result api.TrialResult
	Count  int64
	At     time.Time
	Sealed string
	Most   int64 // for this role; 0: no limit
}

// dryRun freezes the filter. Letters that fail from now on are not in it.
func (c *Console) dryRun(in *request) (page, error) {
	at := in.now.UTC().Truncate(time.Microsecond)
	g, err := c.oneGroup(in, api.FilterQuery{Partition: -1, States: openStates, To: at})
	if err != nil {
		return page{}, err
	}
	f := frozen{By: in.who.Name, Act: ledger.Retried, Filter: ledger.Filter{Fingerprint: g.Fingerprint, States: openStates, To: at}, Count: g.Counts.Pending + g.Counts.Failed, Until: in.now.Add(dryRunLasts)}
	body := dryRunPage{Group: g, Count: f.Count, At: at}
	if in.who.Role < api.Admin {
		body.Most = c.ask.OperatorLimit()
	}
	if f.Count > 0 {
		if body.Result, err = c.ask.Try(in.ctx(), in.who, f.Filter); err != nil {
			return page{}, err
		}
		if body.Sealed, err = c.seal(in, f); err != nil {
			return page{}, err
		}
	}
	return page{name: "dryrun", title: "Dry run", body: body}, nil
}

// retry makes a job of a dry run: its filter, and no more letters than it counted.
func (c *Console) retry(in *request) (page, error) {
	f, err := c.thawed(in, "dry_run", ledger.Retried)
	if err != nil {
		return page{}, err
	}
	rate, err := strconv.ParseFloat("0"+in.PostForm.Get("rate"), 64)
	if err != nil || rate > 1e6 {
		return page{}, asking("rate", "letters a second, 0 to 1,000,000")
	}
	reason, err := reasonOf(in, "reason")
	if err != nil {
		return page{}, err
	}
	j, err := c.ask.CreateJob(in.ctx(), in.who, api.JobRequest{Act: api.JobRetries, Filter: api.Filtered(f.Filter), Limit: f.Count, Rate: rate, Reason: reason})
	if err != nil {
		return page{}, err
	}
	return page{to: "/jobs/" + count64(j.ID)}, nil
}

func (c *Console) resolve(in *request) (page, error) { return c.moveLetter(in, "note", c.ask.Resolve) }

// retryLetter puts one letter back, without a dry run: its page tells how that ends.
func (c *Console) retryLetter(in *request) (page, error) {
	return c.moveLetter(in, "reason", c.ask.Retry)
}

// moveLetter does an act with a letter, and leads back to its page. field has the reason.
func (c *Console) moveLetter(in *request, field string, do func(ctx context.Context, who api.Caller, id, why string) (api.Moved, error)) (page, error) {
	if !isHex(in.PathValue("id")) {
		return page{}, &api.Problem{Status: http.StatusNotFound, Detail: "This desk has no such dead letter.", Hint: "Choose one from the list."}
	}
	why, err := reasonOf(in, field)
	if err != nil {
		return page{}, err
	}
	moved, err := do(in.ctx(), in.who, in.PathValue("id"), why)
	if err != nil {
		return page{}, err
	}
	return page{to: "/dead-letters/" + moved.ID}, nil
}

// jobPage is the content of the page of a job.
type jobPage struct {
	Job     api.Job
	Ended   bool // nothing changes any more
	Percent int
	Most    int64
}

func (c *Console) job(in *request) (page, error) {
	id, err := jobID(in)
	if err != nil {
		return page{}, err
	}
	j, err := c.ask.Job(in.ctx(), in.who, id)
	if err != nil {
		return page{}, err
	}
	body := jobPage{Job: j, Ended: (j.State == ledger.JobDone || j.State == ledger.JobStopped) && j.Open == 0, Most: j.Matched}
	if j.Limit > 0 {
		body.Most = min(j.Matched, j.Limit)
	}
	if body.Most > 0 {
		body.Percent = int(100 * min(j.Sent, body.Most) / body.Most)
	}
	return page{name: "job", title: "Job " + count64(j.ID), part: "live", body: body}, nil
}

func jobID(in *request) (int64, error) {
	id, err := numberOf(in.PathValue("id"))
	if err != nil || id == 0 {
		return 0, &api.Problem{Status: http.StatusNotFound, Detail: "This desk has no such job.", Hint: "The newest jobs are on the page of dead letters."}
	}
	return id, nil
}

func (c *Console) stopJob(in *request) (page, error) {
	id, err := jobID(in)
	if err != nil {
		return page{}, err
	}
	reason, err := reasonOf(in, "reason")
	if err == nil {
		_, err = c.ask.StopJob(in.ctx(), in.who, id, reason)
	}
	return page{to: "/jobs/" + count64(id)}, err
}

func (c *Console) resumeJob(in *request) (page, error) {
	id, err := jobID(in)
	if err != nil {
		return page{}, err
	}
	reason, err := reasonOf(in, "reason")
	if err == nil {
		_, err = c.ask.ResumeJob(in.ctx(), in.who, id, reason)
	}
	return page{to: "/jobs/" + count64(id)}, err
}

// maxReason is the longest reason or note in characters, as in the API's document.
const maxReason = 1000

func reasonOf(in *request, field string) (string, error) {
	text := in.PostForm.Get(field)
	if n := utf8.RuneCountInString(text); n > maxReason {
		return "", asking(field, "at most 1,000 characters")
	}
	return text, nil
}
