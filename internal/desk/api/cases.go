package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
)

// AssignRequest says who looks after a dead letter or a group.
type AssignRequest struct {
	To     string `json:"to" maxLength:"64" doc:"A name; empty: nobody"`
	Reason string `json:"reason" minLength:"1" maxLength:"1000" pattern:"\\S" doc:"Why, for the audit"`
}

// SnoozeRequest hides a dead letter for a time.
type SnoozeRequest struct {
	Until  *time.Time `json:"until,omitempty" doc:"At most 366 days from now; without it, its own snooze ends"`
	Reason string     `json:"reason" minLength:"1" maxLength:"1000" pattern:"\\S" doc:"Why, for the audit"`
}

// FingerprintPath names a group.
type FingerprintPath struct {
	Fingerprint string `path:"fingerprint" pattern:"^[0-9a-f]{16}$" doc:"The whole fingerprint"`
}

type assignInput struct {
	IDPath
	Body AssignRequest
}
type assignGroupInput struct {
	FingerprintPath
	Body AssignRequest
}
type snoozeInput struct {
	IDPath
	Body SnoozeRequest
}

// RuleAct is the act of a rule.
type RuleAct string

// The acts of rules.
const (
	RuleSnoozes  RuleAct = "snooze"
	RuleRetries  RuleAct = "retry"
	RuleResolves RuleAct = "resolve"
)

func (a RuleAct) ledger() ledger.Act {
	switch a {
	case RuleRetries:
		return ledger.Retried
	case RuleResolves:
		return ledger.Closed
	}
	return ledger.Snoozed
}

func ruleActOf(a ledger.Act) RuleAct {
	switch a {
	case ledger.Retried:
		return RuleRetries
	case ledger.Closed:
		return RuleResolves
	}
	return RuleSnoozes
}

// RuleRequest makes a rule.
type RuleRequest struct {
	Fingerprint  string    `json:"fingerprint" pattern:"^[0-9a-f]{16}$" doc:"The whole fingerprint of a group"`
	Topic        string    `json:"topic,omitempty" maxLength:"249" doc:"Original; without it, each"`
	Act          RuleAct   `json:"act" enum:"snooze,retry,resolve"`
	AfterSeconds float64   `json:"after_seconds,omitempty" minimum:"0" maximum:"31622400" doc:"How long a dead letter waits since it last changed"`
	Rate         float64   `json:"rate,omitempty" minimum:"0" maximum:"1000000" doc:"Letters a second; 0: as fast as it goes"`
	Most         int64     `json:"most,omitempty" minimum:"0" maximum:"1000000" doc:"Most letters in all; 0: 1000. Above the limit of an operator it needs the role admin"`
	Failures     int       `json:"failures,omitempty" minimum:"0" maximum:"1000" doc:"It stops itself after so many failed retries in a row; 0: 5"`
	Until        time.Time `json:"until" doc:"It holds until then, at most 366 days from now"`
	Reason       string    `json:"reason" minLength:"1" maxLength:"1000" pattern:"\\S" doc:"Why, for the audit; the note of each dead letter that it resolves"`
}

// Rule is a standing order for the dead letters of a group.
type Rule struct {
	ID           int64            `json:"id"`
	Fingerprint  string           `json:"fingerprint"`
	Topic        string           `json:"topic,omitempty" doc:"Original; without it, each"`
	Act          RuleAct          `json:"act" enum:"snooze,retry,resolve"`
	AfterSeconds float64          `json:"after_seconds"`
	Rate         float64          `json:"rate"`
	Most         int64            `json:"most"`
	Failures     int              `json:"failures"`
	State        ledger.RuleState `json:"state" enum:"PROPOSED,ACTIVE,OVER,STOPPED,REMOVED" doc:"STOPPED: it stopped itself, and ended_why says why"`
	By           string           `json:"by"`
	Why          string           `json:"why"`
	Vouched      bool             `json:"vouched" doc:"It came by the API, which knows by whom"`
	CreatedAt    time.Time        `json:"created_at"`
	Until        time.Time        `json:"until"`
	ApprovedBy   string           `json:"approved_by,omitempty"`
	ApprovedAt   *time.Time       `json:"approved_at,omitempty"`
	Acted        int64            `json:"acted" doc:"Dead letters that it moved"`
	ActedAt      *time.Time       `json:"acted_at,omitempty"`
	EndedBy      string           `json:"ended_by,omitempty"`
	EndedWhy     string           `json:"ended_why,omitempty"`
	EndedAt      *time.Time       `json:"ended_at,omitempty"`
}

func ruleOf(r ledger.Rule) Rule {
	return Rule{ID: r.ID, Fingerprint: r.Fingerprint, Topic: r.Topic, Act: ruleActOf(r.Act), AfterSeconds: r.After.Seconds(), Rate: r.Rate, Most: r.Most, Failures: r.Failures, State: r.State,
		By: r.By, Why: r.Why, Vouched: r.Vouched, CreatedAt: r.CreatedAt.UTC(), Until: r.EndsAt.UTC(), ApprovedBy: r.Approved.By, ApprovedAt: moment(r.Approved.At), Acted: r.Acted, ActedAt: moment(r.ActedAt),
		EndedBy: r.Ended.By, EndedWhy: r.Ended.Why, EndedAt: moment(r.Ended.At)}
}

// RuleList has the newest rules.
type RuleList struct {
	Rules []Rule `json:"rules" nullable:"false"`
}

// GroupEvent is one line of a group's audit.
type GroupEvent struct {
	ID   int64     `json:"audit_id"`
	At   time.Time `json:"at"`
	Act  string    `json:"act" enum:"assigned,snoozed,rule_added,rule_proposed,rule_approved,rule_stopped,rule_removed"`
	Rule int64     `json:"rule,omitempty"`
	By   string    `json:"by"`
	Why  string    `json:"why"`
	// The server's facts about the session.
	Login       string `json:"login" doc:"The database login that did it; by is what the program said"`
	Application string `json:"application,omitempty" doc:"The application_name of the session, which the program chooses"`
	Client      string `json:"client,omitempty" doc:"The address that the session came from; without it, a local socket"`
}

// GroupHistory is the audit of a group, the newest first.
type GroupHistory struct {
	Fingerprint string       `json:"fingerprint"`
	Events      []GroupEvent `json:"events" nullable:"false"`
}

type ruleInput struct{ Body RuleRequest }

// RulePath names a rule.
type RulePath struct {
	ID int64 `path:"id" minimum:"1"`
}
type ruleReasonInput struct {
	RulePath
	Body RetryRequest
}
type rulesInput struct {
	Fingerprint string `query:"fingerprint" pattern:"^[0-9a-f]{16}$" doc:"The whole fingerprint of a group"`
	All         bool   `query:"all" doc:"Also those that ended"`
	Limit       int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}
type ruleOutput struct{ Body Rule }
type rulesOutput struct{ Body RuleList }
type groupHistoryInput struct {
	FingerprintPath
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}
type groupHistoryOutput struct{ Body GroupHistory }

func (s *api) cases() {
	register(s, route{role: Operator, method: http.MethodPost, path: "/dead-letters/{id}/assign", id: "assign-dead-letter",
		summary: "Say who looks after a dead letter", errors: refusals}, s.assign)
	register(s, route{role: Operator, method: http.MethodPost, path: "/dead-letters/{id}/snooze", id: "snooze-dead-letter",
		summary: "Hide a dead letter from the open ones until a time", text: "It must be PENDING or FAILED. It stays in every total, and comes back by itself.", errors: refusals}, s.snooze)
	register(s, route{role: Operator, method: http.MethodPost, path: "/dead-letters/{id}/reopen", id: "reopen-dead-letter",
		summary: "Say that a dead letter that was resolved by hand is not done", text: "It is PENDING then. One that is stored, or that an archive has, stays RESOLVED.", errors: refusals}, s.reopen)
	register(s, route{role: Operator, method: http.MethodPost, path: "/groups/{fingerprint}/assign", id: "assign-group",
		summary: "Say who looks after a group", errors: refusals}, s.assignGroup)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/groups/{fingerprint}/history", id: "show-group-history",
		summary: "Show what happened to a group and to its rules", errors: []int{http.StatusNotFound}}, s.groupHistory)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/rules", id: "list-rules", summary: "List the rules of groups, the newest first"}, s.listRules)
	register(s, route{role: Operator, method: http.MethodPost, path: "/rules", id: "add-rule", status: http.StatusCreated, summary: "Add a rule for a group",
		text: "It snoozes, retries or resolves the dead letters of a group until a time. With DOCKET_DESK_FOUR_EYES another person approves one that retries or resolves.", errors: refusals}, s.addRule)
	register(s, route{role: Operator, method: http.MethodPost, path: "/rules/{id}/approve", id: "approve-rule", summary: "Approve a rule that another person made", errors: refusals}, s.approveRule)
	register(s, route{role: Operator, method: http.MethodPost, path: "/rules/{id}/remove", id: "remove-rule", summary: "End a rule",
		text: "Its acts stay. One that ended before stays as it is.", errors: refusals}, s.removeRule)
	register(s, route{role: Operator, method: http.MethodPost, path: "/jobs/{id}/approve", id: "approve-job", summary: "Approve a job that another person made",
		text: "It needs the role that may make such a job.", errors: refusals}, s.approveJob)
}

func (s *api) assign(ctx context.Context, c caller, in *assignInput) (*letterOutput, error) {
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	id, err := s.whole(ctx, in.ID)
	if err == nil {
		err = s.Book.Assign(ctx, id, line(in.Body.To), by)
	}
	return s.looked(ctx, c, id, ledger.Assigned, err)
}

// looked answers with a dead letter after a change that left its state.
func (s *api) looked(ctx context.Context, c caller, id string, act ledger.Act, err error) (*letterOutput, error) {
	if err != nil {
		return nil, err
	}
	s.log.Info().Str("operator", c.Name).Str("dead_letter", id).Str("act", string(act)).Msg("dead letter changed by API")
	return s.show(ctx, c, &IDPath{id})
}

func (s *api) snooze(ctx context.Context, c caller, in *snoozeInput) (*letterOutput, error) {
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	id, err := s.whole(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	var until time.Time
	if in.Body.Until != nil {
		until = *in.Body.Until
	}
	outcomes, err := s.Book.Snooze(ctx, []string{id}, until, by)
	for _, o := range outcomes {
		err = errors.Join(err, o.Err)
	}
	return s.looked(ctx, c, id, ledger.Snoozed, err)
}

func (s *api) reopen(ctx context.Context, c caller, in *resolveInput) (*movedOutput, error) {
	by, err := actor(c, "body.note", in.Body.Note)
	if err != nil {
		return nil, err
	}
	id, err := s.whole(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	outcomes, err := s.Book.Reopen(ctx, []string{id}, by)
	return s.moved(c, id, ledger.Pending, ledger.Reopened, outcomes, err)
}

func (s *api) assignGroup(ctx context.Context, c caller, in *assignGroupInput) (*groupHistoryOutput, error) {
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err == nil {
		err = s.Book.AssignGroup(ctx, in.Fingerprint, line(in.Body.To), by)
	}
	if err != nil {
		return nil, err
	}
	s.log.Info().Str("operator", c.Name).Str("fingerprint", in.Fingerprint).Str("act", string(ledger.Assigned)).Msg("group changed by API")
	return s.groupHistory(ctx, c, &groupHistoryInput{in.FingerprintPath, 1})
}

func (s *api) groupHistory(ctx context.Context, _ caller, in *groupHistoryInput) (*groupHistoryOutput, error) {
	events, err := s.Book.GroupHistory(ctx, in.Fingerprint, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &groupHistoryOutput{GroupHistory{Fingerprint: in.Fingerprint, Events: make([]GroupEvent, 0, len(events))}}
	for _, e := range events {
		out.Body.Events = append(out.Body.Events, GroupEvent{ID: e.ID, At: e.At.UTC(), Act: e.Act, Rule: e.Rule, By: e.By, Why: e.Why, Login: e.Login, Application: e.Program, Client: e.FromHost})
	}
	return out, nil
}

func (s *api) listRules(ctx context.Context, _ caller, in *rulesInput) (*rulesOutput, error) {
	found, err := s.Book.Rules(ctx, in.Fingerprint, in.All, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &rulesOutput{RuleList{make([]Rule, 0, len(found))}}
	for _, r := range found {
		out.Body.Rules = append(out.Body.Rules, ruleOf(r))
	}
	return out, nil
}

func (s *api) addRule(ctx context.Context, c caller, in *ruleInput) (*ruleOutput, error) {
	b := in.Body
	by, err := actor(c, "body.reason", b.Reason)
	if err != nil {
		return nil, err
	}
	r := ledger.Rule{Fingerprint: b.Fingerprint, Topic: b.Topic, Act: b.Act.ledger(), After: time.Duration(b.AfterSeconds * float64(time.Second)), Rate: b.Rate, Most: b.Most, Failures: b.Failures, EndsAt: b.Until}
	if r.Act != ledger.Snoozed {
		if r.Most == 0 {
			r.Most = ledger.DefaultActs
		}
		if r.Failures == 0 {
			r.Failures = ledger.DefaultFailures
		}
		if err := s.within(c, r.Most); err != nil {
			return nil, err
		}
	}
	r, err = s.Book.AddRule(ctx, r, by)
	return s.rule(c, "added", r, err)
}

func (s *api) approveRule(ctx context.Context, c caller, in *ruleReasonInput) (*ruleOutput, error) {
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	all, err := s.Book.Rules(ctx, "", false, mostApproved)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if r.ID == in.ID {
			if err := s.within(c, r.Most); err != nil {
				return nil, err
			}
		}
	}
	r, err := s.Book.ApproveRule(ctx, in.ID, by)
	return s.rule(c, "approved", r, err)
}

// mostApproved is how many rules are looked through for the one that is approved; the database looks at each again.
const mostApproved = 100_000

func (s *api) removeRule(ctx context.Context, c caller, in *ruleReasonInput) (*ruleOutput, error) {
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	r, err := s.Book.RemoveRule(ctx, in.ID, by)
	return s.rule(c, "removed", r, err)
}

// rule answers and logs a step of a rule.
func (s *api) rule(c caller, what string, r ledger.Rule, err error) (*ruleOutput, error) {
	if err := speaks(err); err != nil {
		return nil, err
	}
	s.log.Info().Str("operator", c.Name).Int64("rule", r.ID).Str("fingerprint", r.Fingerprint).Str("act", what).Msg("rule changed by API")
	return &ruleOutput{ruleOf(r)}, nil
}

// speaks returns the problem where the desk's login may not name the persons for whom it works, and other errors as they are.
func speaks(err error) error {
	if errclass.Classify(err).Code == "42501" {
		return problem(http.StatusServiceUnavailable, "the desk's login may not do this for others (42501)", "grant docket_desk_api to the login of the desk: docs/desk-grants.sql").later(retryAfter)
	}
	return err
}

func (s *api) approveJob(ctx context.Context, c caller, in *jobReasonInput) (*jobOutput, error) {
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	j, err := s.Book.Job(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.within(c, j.Limit); err != nil {
		return nil, err
	}
	j, err = s.Book.ApproveJob(ctx, in.ID, by)
	return s.job(c, "approved", j, speaks(err))
}
