package console

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
)

// caring are the screens by which people look after dead letters.
func (c *Console) caring() []screen {
	return []screen{
		{pattern: "POST /dead-letters/{id}/assign", role: api.Operator, handle: (*Console).assign},
		{pattern: "POST /dead-letters/{id}/snooze", role: api.Operator, handle: (*Console).snooze},
		{pattern: "POST /dead-letters/{id}/reopen", role: api.Operator, handle: (*Console).reopen},
		{pattern: "POST /dead-letters/groups/{fingerprint}/assign", role: api.Operator, handle: (*Console).assignGroup},
		{pattern: "POST /dead-letters/groups/{fingerprint}/rules", role: api.Operator, handle: (*Console).addRule},
		{pattern: "POST /dead-letters/groups/{fingerprint}/count", role: api.Operator, handle: (*Console).countGroup},
		{pattern: "POST /dead-letters/groups/{fingerprint}/resolve", role: api.Operator, handle: (*Console).resolveGroup},
		{pattern: "POST /rules/{id}/approve", role: api.Operator, handle: (*Console).approveRule},
		{pattern: "POST /rules/{id}/remove", role: api.Operator, handle: (*Console).removeRule},
		{pattern: "POST /jobs/{id}/approve", role: api.Operator, handle: (*Console).approveJob},
		{pattern: "POST /dead-letters/{id}/edit", role: api.Operator, handle: (*Console).editForm},
		{pattern: "POST /dead-letters/{id}/edit/preview", role: api.Operator, handle: (*Console).editPreview},
		{pattern: "POST /dead-letters/{id}/edit/save", role: api.Operator, handle: (*Console).editSave},
		{pattern: "GET /proposals/{id}", role: api.Operator, handle: (*Console).proposal},
		{pattern: "POST /proposals/{id}/approve", role: api.Admin, handle: (*Console).approveEdit},
		{pattern: "POST /proposals/{id}/reject", role: api.Admin, handle: (*Console).rejectEdit},
	}
}

func noLetter() error {
	return &api.Problem{Status: http.StatusNotFound, Detail: "This desk has no such dead letter.", Hint: "Choose one from the list."}
}

// onLetter does something with the letter of a page, with a reason, and goes back to it.
func (c *Console) onLetter(in *request, field string, do func(id, reason string) error) (page, error) {
	id := in.PathValue("id")
	if !isHex(id) {
		return page{}, noLetter()
	}
	reason, err := reasonOf(in, field)
	if err == nil {
		err = do(id, reason)
	}
	return page{to: "/dead-letters/" + id}, err
}

func (c *Console) assign(in *request) (page, error) {
	return c.onLetter(in, "reason", func(id, reason string) error {
		to, err := personOf(in)
		if err == nil {
			_, err = c.ask.Assign(in.ctx(), in.who, id, to, reason)
		}
		return err
	})
}

// personOf is the name that a person typed.
func personOf(in *request) (string, error) {
	to := in.PostForm.Get("to")
	if len(to) > ledger.LongestName {
		return "", asking("to", "a name of at most 64 bytes")
	}
	return to, nil
}

func (c *Console) snooze(in *request) (page, error) {
	return c.onLetter(in, "reason", func(id, reason string) error {
		until, err := untilOf(in)
		if err == nil {
			_, err = c.ask.Snooze(in.ctx(), in.who, id, until, reason)
		}
		return err
	})
}

// spans are the lengths of snoozes and rules that a form offers. The first ends a snooze.
var spans = []struct {
	Name string
	Days float64
}{{"now", 0}, {"1 hour", 1.0 / 24}, {"8 hours", 8.0 / 24}, {"1 day", 1}, {"3 days", 3}, {"7 days", 7}, {"30 days", 30}, {"90 days", 90}}

// untilOf is the time that a person chose; zero: now.
func untilOf(in *request) (time.Time, error) {
	for _, s := range spans {
		if in.PostForm.Get("for") == s.Name {
			if s.Days == 0 {
				return time.Time{}, nil
			}
			return in.now.UTC().Add(time.Duration(s.Days * float64(24*time.Hour))).Truncate(time.Second), nil
		}
	}
	return time.Time{}, asking("for", "one of the lengths that the form offers")
}

func (c *Console) reopen(in *request) (page, error) {
	return c.onLetter(in, "note", func(id, note string) error {
		_, err := c.ask.Reopen(in.ctx(), in.who, id, note)
		return err
	})
}

// onGroup does something with the group of a page, with a reason, and goes back to it.
func (c *Console) onGroup(in *request, do func(fingerprint, reason string) error) (page, error) {
	fingerprint := in.PathValue("fingerprint")
	if len(fingerprint) != ledger.FingerprintLength || !isHex(fingerprint) {
		return page{}, &api.Problem{Status: http.StatusNotFound, Detail: "This desk has no such group.", Hint: "Choose one from the list of dead letters."}
	}
	reason, err := reasonOf(in, "reason")
	if err == nil {
		err = do(fingerprint, reason)
	}
	return page{to: groupURL(fingerprint)}, err
}

func (c *Console) assignGroup(in *request) (page, error) {
	return c.onGroup(in, func(fingerprint, reason string) error {
		to, err := personOf(in)
		if err != nil {
			return err
		}
		return c.ask.AssignGroup(in.ctx(), in.who, fingerprint, to, reason)
	})
}

func (c *Console) addRule(in *request) (page, error) {
	return c.onGroup(in, func(fingerprint, reason string) error {
		r := api.RuleRequest{Fingerprint: fingerprint, Topic: in.PostForm.Get("topic"), Act: api.RuleAct(in.PostForm.Get("act")), Reason: reason}
		if r.Act != api.RuleSnoozes && r.Act != api.RuleRetries && r.Act != api.RuleResolves {
			return asking("act", "snooze, retry or resolve")
		}
		var err error
		if r.Until, err = untilOf(in); err != nil {
			return err
		}
		for _, n := range []struct {
			field string
			most  float64
			set   func(float64)
		}{
			{"after", 525600, func(v float64) { r.AfterSeconds = 60 * v }}, {"rate", 1e6, func(v float64) { r.Rate = v }},
			{"most", ledger.MostActs, func(v float64) { r.Most = int64(v) }}, {"failures", 1000, func(v float64) { r.Failures = int(v) }},
		} {
			v, err := strconv.ParseFloat("0"+in.PostForm.Get(n.field), 64)
			if err != nil || v > n.most {
				return asking(n.field, "a number from 0 to "+count64(int64(n.most)))
			}
			n.set(v)
		}
		_, err = c.ask.AddRule(in.ctx(), in.who, r)
		return err
	})
}

// ruleBack goes back to the group that a form named, after a step of a rule.
func (c *Console) ruleBack(in *request, do func(id int64, reason string) (api.Rule, error)) (page, error) {
	id, err := numberOf(in.PathValue("id"))
	if err != nil || id == 0 {
		return page{}, &api.Problem{Status: http.StatusNotFound, Detail: "This desk has no such rule.", Hint: "The page of a group has its rules."}
	}
	reason, err := reasonOf(in, "reason")
	if err != nil {
		return page{}, err
	}
	r, err := do(id, reason)
	return page{to: groupURL(r.Fingerprint)}, err
}

func (c *Console) approveRule(in *request) (page, error) {
	return c.ruleBack(in, func(id int64, reason string) (api.Rule, error) {
		return c.ask.ApproveRule(in.ctx(), in.who, id, reason)
	})
}

func (c *Console) removeRule(in *request) (page, error) {
	return c.ruleBack(in, func(id int64, reason string) (api.Rule, error) { return c.ask.RemoveRule(in.ctx(), in.who, id, reason) })
}

func (c *Console) approveJob(in *request) (page, error) {
	id, err := jobID(in)
	if err != nil {
		return page{}, err
	}
	reason, err := reasonOf(in, "reason")
	if err == nil {
		_, err = c.ask.ApproveJob(in.ctx(), in.who, id, reason)
	}
	return page{to: "/jobs/" + count64(id)}, err
}

// countPage is the content of the page between a count and its resolve.
type countPage struct {
	Group  api.Group
	Count  int64
	At     time.Time
	Sealed string
	Most   int64 // for this role; 0: no limit
}

// countGroup freezes the filter of a resolve, as a dry run does for a retry.
func (c *Console) countGroup(in *request) (page, error) {
	at := in.now.UTC().Truncate(time.Microsecond)
	g, err := c.oneGroup(in, api.FilterQuery{Partition: -1, States: openStates, To: at})
	if err != nil {
		return page{}, err
	}
	f := frozen{By: in.who.Name, Act: ledger.Closed, Filter: ledger.Filter{Fingerprint: g.Fingerprint, States: openStates, To: at}, Count: g.Counts.Pending + g.Counts.Failed, Until: in.now.Add(dryRunLasts)}
	body := countPage{Group: g, Count: f.Count, At: at}
	if in.who.Role < api.Admin {
		body.Most = c.ask.OperatorLimit()
	}
	if f.Count > 0 {
		if body.Sealed, err = c.seal(in, f); err != nil {
			return page{}, err
		}
	}
	return page{name: "count", title: "Resolve a group", body: body}, nil
}

// resolveGroup makes a job of a count: its filter, and no more letters than it counted.
func (c *Console) resolveGroup(in *request) (page, error) {
	f, err := c.thawed(in, "count", ledger.Closed)
	if err != nil {
		return page{}, err
	}
	note, err := reasonOf(in, "note")
	if err != nil {
		return page{}, err
	}
	j, err := c.ask.CreateJob(in.ctx(), in.who, api.JobRequest{Act: api.JobResolves, Filter: api.Filtered(f.Filter), Limit: f.Count, Reason: note})
	if err != nil {
		return page{}, err
	}
	return page{to: "/jobs/" + count64(j.ID)}, nil
}

// thawed is the sealed filter of a form. It is that of the group of the page, and of no other act.
func (c *Console) thawed(in *request, field string, act ledger.Act) (frozen, error) {
	f, err := c.open(in, in.PostForm.Get(field))
	if errors.Is(err, errSeal) || err == nil && (f.Filter.Fingerprint != in.PathValue("fingerprint") || f.Act != act) {
		return frozen{}, &api.Problem{Status: http.StatusConflict, Detail: "The dry run is not known here, or older than 15 minutes.", Hint: "Go back to the group and make another."}
	}
	return f, err
}
