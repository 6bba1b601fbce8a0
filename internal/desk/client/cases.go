package client

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
)

// Assign says who looks after a dead letter.
func (b Book) Assign(ctx context.Context, id, to string, by ledger.Actor) error {
	if err := b.by(ctx, by); err != nil {
		return err
	}
	var l api.Letter
	return ofLetter(b.client.ask(ctx, post("/dead-letters/"+url.PathEscape(id)+"/assign", api.AssignRequest{To: to, Reason: by.Why}), &l))
}

// AssignGroup says who looks after a group.
func (b Book) AssignGroup(ctx context.Context, fingerprint, to string, by ledger.Actor) error {
	if err := b.by(ctx, by); err != nil {
		return err
	}
	var h api.GroupHistory
	return ofLetter(b.client.ask(ctx, post("/groups/"+url.PathEscape(fingerprint)+"/assign", api.AssignRequest{To: to, Reason: by.Why}), &h))
}

// Snooze snoozes dead letters, one after another.
func (b Book) Snooze(ctx context.Context, ids []string, until time.Time, by ledger.Actor) ([]ledger.Outcome, error) {
	body := api.SnoozeRequest{Reason: by.Why}
	if !until.IsZero() {
		body.Until = &until
	}
	return b.each(ctx, ids, "/snooze", by, body)
}

// Reopen reopens dead letters, one after another.
func (b Book) Reopen(ctx context.Context, ids []string, by ledger.Actor) ([]ledger.Outcome, error) {
	return b.each(ctx, ids, "/reopen", by, api.ResolveRequest{Note: by.Why})
}

// Snoozed adds up the snoozed letters of all groups.
func (b Book) Snoozed(ctx context.Context) (n int64, err error) {
	groups, err := b.Groups(ctx, ledger.Filter{})
	for _, g := range groups {
		n += g.Snoozed
	}
	return n, err
}

var actsOfRules = map[ledger.Act]api.RuleAct{ledger.Snoozed: api.RuleSnoozes, ledger.Retried: api.RuleRetries, ledger.Closed: api.RuleResolves}

// AddRule adds a rule.
func (b Book) AddRule(ctx context.Context, r ledger.Rule, by ledger.Actor) (ledger.Rule, error) {
	if err := b.by(ctx, by); err != nil {
		return ledger.Rule{}, err
	}
	return b.rule(ctx, "/rules", api.RuleRequest{
		Fingerprint: r.Fingerprint, Topic: r.Topic, Act: actsOfRules[r.Act], AfterSeconds: r.After.Seconds(), Rate: r.Rate, Most: r.Most, Failures: r.Failures, Until: r.EndsAt, Reason: by.Why,
	})
}

// ApproveRule approves a rule.
func (b Book) ApproveRule(ctx context.Context, id int64, by ledger.Actor) (ledger.Rule, error) {
	if err := b.by(ctx, by); err != nil {
		return ledger.Rule{}, err
	}
	return b.rule(ctx, "/rules/"+strconv.FormatInt(id, 10)+"/approve", api.RetryRequest{Reason: by.Why})
}

// RemoveRule ends a rule.
func (b Book) RemoveRule(ctx context.Context, id int64, by ledger.Actor) (ledger.Rule, error) {
	if err := b.by(ctx, by); err != nil {
		return ledger.Rule{}, err
	}
	return b.rule(ctx, "/rules/"+strconv.FormatInt(id, 10)+"/remove", api.RetryRequest{Reason: by.Why})
}

func (b Book) rule(ctx context.Context, path string, body any) (ledger.Rule, error) {
	var r api.Rule
	err := b.client.ask(ctx, post(path, body), &r)
	return ruleOf(r), ofLetter(err)
}

func ruleOf(r api.Rule) ledger.Rule {
	out := ledger.Rule{
		ID: r.ID, Fingerprint: r.Fingerprint, Topic: r.Topic, After: time.Duration(r.AfterSeconds * float64(time.Second)), Rate: r.Rate, Most: r.Most, Failures: r.Failures, State: r.State,
		By: r.By, Why: r.Why, Vouched: r.Vouched, CreatedAt: r.CreatedAt, EndsAt: r.Until, Approved: ledger.Decided{By: r.ApprovedBy, At: at(r.ApprovedAt)}, Acted: r.Acted, ActedAt: at(r.ActedAt),
		Ended: ledger.Decided{By: r.EndedBy, Why: r.EndedWhy, At: at(r.EndedAt)},
	}
	for act, name := range actsOfRules {
		if name == r.Act {
			out.Act = act
		}
	}
	return out
}

// Rules asks for the newest rules. A desk gives at most 1000.
func (b Book) Rules(ctx context.Context, fingerprint string, all bool, n int) ([]ledger.Rule, error) {
	q := url.Values{"limit": {strconv.Itoa(min(max(n, 1), ledger.MaxPage))}}
	if fingerprint != "" {
		q.Set("fingerprint", strings.ToLower(fingerprint))
	}
	if all {
		q.Set("all", flag)
	}
	var list api.RuleList
	if err := b.client.ask(ctx, get("/rules", q), &list); err != nil {
		return nil, older(err)
	}
	var out []ledger.Rule
	for _, r := range list.Rules {
		out = append(out, ruleOf(r))
	}
	return out, nil
}

// ActRule is the desk's.
func (b Book) ActRule(context.Context, int64, ledger.Turn) (ledger.Acting, error) {
	return ledger.Acting{}, ErrOnDatabase
}

// GroupHistory asks for the audit of a group.
func (b Book) GroupHistory(ctx context.Context, fingerprint string, n int) ([]ledger.GroupEvent, error) {
	var h api.GroupHistory
	if err := b.client.ask(ctx, get("/groups/"+url.PathEscape(fingerprint)+"/history", url.Values{"limit": {strconv.Itoa(n)}}), &h); err != nil {
		return nil, ofLetter(err)
	}
	var out []ledger.GroupEvent
	for _, e := range h.Events {
		out = append(out, ledger.GroupEvent{ID: e.ID, At: e.At, Act: e.Act, Rule: e.Rule, By: e.By, Why: e.Why, Login: e.Login, Program: e.Application, FromHost: e.Client})
	}
	return out, nil
}

// ApproveJob approves a job.
func (b Book) ApproveJob(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
	if err := b.by(ctx, by); err != nil {
		return ledger.Job{}, err
	}
	var j api.Job
	err := b.client.ask(ctx, post("/jobs/"+strconv.FormatInt(id, 10)+"/approve", api.RetryRequest{Reason: by.Why}), &j)
	return jobOf(j), ofLetter(err)
}
