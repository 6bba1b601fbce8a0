package ledgermodel

import (
	"context"
	"slices"
	"time"

	"docket/internal/desk/ledger"
)

// Cases is the part of a ledger that looks after letters, for tests with letters of their own. Its rules do nothing by
// themselves.
type Cases struct {
	// Begin locks the ledger; an error ends the call.
	Begin func() (end func(), err error)
	// Letter finds a letter by its whole id; nil: there is none.
	Letter func(id string) *ledger.Entry
	// Group reports whether there is a group of that fingerprint.
	Group func(fingerprint string) bool
	// Job finds a job; nil: there is none.
	Job func(id int64) *ledger.Job
	// Now is the time of the ledger; nil: the present.
	Now func() time.Time
	// Two says that rules which move letters need two persons.
	Two bool

	rules    []ledger.Rule
	events   map[string][]ledger.GroupEvent // newest first
	assigned map[string]string              // by fingerprint
}

var _ ledger.Cases = (*Cases)(nil)

func (c *Cases) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

func (c *Cases) note(fingerprint, act string, rule int64, by ledger.Actor) {
	if c.events == nil {
		c.events = map[string][]ledger.GroupEvent{}
	}
	of := c.events[fingerprint]
	c.events[fingerprint] = slices.Insert(of, 0, ledger.GroupEvent{ID: int64(len(of) + 1), At: c.now(), Act: act, Rule: rule, By: by.Name, Why: by.Why, Login: "docket"})
}

// Assign implements [ledger.Cases].
func (c *Cases) Assign(_ context.Context, id, to string, _ ledger.Actor) error {
	end, err := c.Begin()
	defer end()
	if err != nil {
		return err
	}
	e := c.Letter(id)
	if e == nil {
		return ledger.ErrNotFound
	}
	e.Assigned = to
	return nil
}

// AssignGroup implements [ledger.Cases].
func (c *Cases) AssignGroup(_ context.Context, fingerprint, to string, by ledger.Actor) error {
	end, err := c.Begin()
	defer end()
	switch {
	case err != nil:
		return err
	case !c.Group(fingerprint):
		return ledger.ErrNotFound
	}
	if c.assigned == nil {
		c.assigned = map[string]string{}
	}
	c.assigned[fingerprint] = to
	c.note(fingerprint, "assigned", 0, ledger.Actor{Name: by.Name, Why: "to " + to + ": " + by.Why})
	return nil
}

// Snooze implements [ledger.Cases].
func (c *Cases) Snooze(_ context.Context, ids []string, until time.Time, _ ledger.Actor) (all []ledger.Outcome, err error) {
	return c.each(ids, func(e *ledger.Entry) error {
		if !e.State.Decidable() {
			return refused(e)
		}
		if !until.IsZero() {
			if err := ledger.Holdable(until, c.now()); err != nil {
				return err
			}
		}
		e.SnoozedUntil = until
		return nil
	})
}

// Reopen implements [ledger.Cases].
func (c *Cases) Reopen(_ context.Context, ids []string, by ledger.Actor) ([]ledger.Outcome, error) {
	return c.each(ids, func(e *ledger.Entry) error {
		if e.State != ledger.Resolved || e.ArchivedIn != "" {
			return refused(e)
		}
		e.State, e.ChangedBy, e.Why = ledger.Pending, by.Name, by.Why
		return nil
	})
}

func refused(e *ledger.Entry) error {
	return &ledger.RefusedError{ID: e.ID, State: e.State, By: e.ChangedBy, At: e.ChangedAt}
}

func (c *Cases) each(ids []string, do func(*ledger.Entry) error) (all []ledger.Outcome, err error) {
	end, err := c.Begin()
	defer end()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		o := ledger.Outcome{ID: id, Err: ledger.ErrNotFound}
		if e := c.Letter(id); e != nil {
			o.Err = do(e)
		}
		all = append(all, o)
	}
	return all, nil
}

// Snoozed implements [ledger.Cases]. It counts no letters.
func (c *Cases) Snoozed(context.Context) (int64, error) {
	end, err := c.Begin()
	defer end()
	return 0, err
}

// Described adds who looks after a group, and until when it is snoozed.
func (c *Cases) Described(g ledger.Group) ledger.Group {
	g.Assigned = c.assigned[g.Fingerprint]
	for i := range c.rules {
		if r := &c.rules[i]; r.Fingerprint == g.Fingerprint && r.Act == ledger.Snoozed && r.Topic == "" && r.Holds(c.now()) {
			g.SnoozedUntil, g.Snoozed = r.EndsAt, g.Open()
		}
	}
	return g
}

// AddRule implements [ledger.Cases].
func (c *Cases) AddRule(_ context.Context, r ledger.Rule, by ledger.Actor) (ledger.Rule, error) {
	end, err := c.Begin()
	defer end()
	if err == nil {
		err = r.Validate(c.now())
	}
	switch {
	case err != nil:
		return ledger.Rule{}, err
	case !c.Group(r.Fingerprint):
		return ledger.Rule{}, ledger.ErrNotFound
	}
	for i := range c.rules {
		o := &c.rules[i]
		if o.Fingerprint != r.Fingerprint || o.Topic != r.Topic || o.State != ledger.RuleActive && o.State != ledger.RuleProposed || (o.Act == ledger.Snoozed) != (r.Act == ledger.Snoozed) {
			continue
		}
		if r.Act != ledger.Snoozed {
			return ledger.Rule{}, &ledger.RuleExistsError{ID: o.ID}
		}
		o.State, o.Ended = ledger.RuleRemoved, ledger.Decided{By: by.Name, Why: "another snooze took its place", At: c.now()}
	}
	r.ID, r.By, r.Why, r.Vouched, r.State, r.CreatedAt = int64(len(c.rules)+1), by.Name, by.Why, by.Vouched, ledger.RuleActive, c.now()
	act := "rule_added"
	switch {
	case r.Act == ledger.Snoozed:
		act = "snoozed"
	case c.Two:
		r.State, act = ledger.RuleProposed, "rule_proposed"
	}
	c.rules = append(c.rules, r)
	c.note(r.Fingerprint, act, r.ID, by)
	return r, nil
}

func (c *Cases) onRule(id int64, do func(*ledger.Rule) error) (ledger.Rule, error) {
	end, err := c.Begin()
	defer end()
	if err != nil {
		return ledger.Rule{}, err
	}
	if id < 1 || int(id) > len(c.rules) {
		return ledger.Rule{}, ledger.ErrNotFound
	}
	err = do(&c.rules[id-1])
	if err != nil {
		return ledger.Rule{}, err
	}
	return c.rules[id-1], nil
}

// ApproveRule implements [ledger.Cases]. It goes by names alone.
func (c *Cases) ApproveRule(_ context.Context, id int64, by ledger.Actor) (ledger.Rule, error) {
	return c.onRule(id, func(r *ledger.Rule) error {
		switch {
		case r.State != ledger.RuleProposed:
			return &ledger.ProposalError{ID: id, Because: ledger.BecauseEnded, Of: "rule"}
		case ledger.SamePerson(r.By, by.Name):
			return &ledger.ProposalError{ID: id, Because: ledger.BecauseName, Of: "rule"}
		}
		r.State, r.Approved = ledger.RuleActive, ledger.Decided{By: by.Name, Why: by.Why, At: c.now()}
		c.note(r.Fingerprint, "rule_approved", id, by)
		return nil
	})
}

// RemoveRule implements [ledger.Cases].
func (c *Cases) RemoveRule(_ context.Context, id int64, by ledger.Actor) (ledger.Rule, error) {
	return c.onRule(id, func(r *ledger.Rule) error {
		if r.State == ledger.RuleActive || r.State == ledger.RuleProposed {
			r.State, r.Ended = ledger.RuleRemoved, ledger.Decided{By: by.Name, Why: by.Why, At: c.now()}
			c.note(r.Fingerprint, "rule_removed", id, by)
		}
		return nil
	})
}

// Rules implements [ledger.Cases].
func (c *Cases) Rules(_ context.Context, fingerprint string, all bool, n int) (list []ledger.Rule, err error) {
	end, err := c.Begin()
	defer end()
	if err != nil {
		return nil, err
	}
	for i := len(c.rules) - 1; i >= 0 && len(list) < n; i-- {
		r := c.rules[i]
		if (fingerprint == "" || r.Fingerprint == fingerprint) && (all || (r.State == ledger.RuleActive || r.State == ledger.RuleProposed) && c.now().Before(r.EndsAt)) {
			list = append(list, r)
		}
	}
	return list, nil
}

// ActRule implements [ledger.Cases]. It moves nothing.
func (c *Cases) ActRule(context.Context, int64, ledger.Turn) (ledger.Acting, error) {
	return ledger.Acting{}, nil
}

// GroupHistory implements [ledger.Cases].
func (c *Cases) GroupHistory(_ context.Context, fingerprint string, n int) ([]ledger.GroupEvent, error) {
	end, err := c.Begin()
	defer end()
	switch {
	case err != nil:
		return nil, err
	case !c.Group(fingerprint):
		return nil, ledger.ErrNotFound
	}
	of := c.events[fingerprint]
	return slices.Clone(of[:min(n, len(of))]), nil
}

// ApproveJob implements [ledger.Cases]. It goes by names alone.
func (c *Cases) ApproveJob(_ context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
	end, err := c.Begin()
	defer end()
	if err != nil {
		return ledger.Job{}, err
	}
	j := c.Job(id)
	switch {
	case j == nil:
		return ledger.Job{}, ledger.ErrNotFound
	case j.State != ledger.JobProposed:
		return ledger.Job{}, &ledger.ProposalError{ID: id, Because: ledger.BecauseEnded, Of: "job"}
	case ledger.SamePerson(j.Operator, by.Name):
		return ledger.Job{}, &ledger.ProposalError{ID: id, Because: ledger.BecauseName, Of: "job"}
	}
	j.State, j.ApprovedBy = ledger.JobWaiting, by.Name
	return *j, nil
}
