package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
)

// ProposalRequest proposes another payload for a dead letter.
type ProposalRequest struct {
	Payload *string `json:"payload,omitempty" doc:"As text; or else base64"`
	Base64  []byte  `json:"base64,omitempty" doc:"In base64; or else payload"`
	Reason  string  `json:"reason" minLength:"1" maxLength:"1000" pattern:"\\S" doc:"Why, for the audit"`
	Retry   bool    `json:"retry,omitempty" doc:"Retry it once it is approved, in the same transaction"`
	Seen    string  `json:"seen,omitempty" pattern:"^([0-9a-f]{64}|none)$" doc:"The SHA-256 of the payload that you edited, in hex; none if it was null. If the dead letter has another by now, the proposal is refused with 409"`
}

// Proposal is an edit that needs a second person.
type Proposal struct {
	ID         int64                `json:"id"`
	State      ledger.ProposalState `json:"state" enum:"OPEN,APPROVED,REJECTED,EXPIRED,VOID" doc:"VOID: the payload or the state of the dead letter is another by now"`
	DeadLetter string               `json:"dead_letter"`
	Members    []string             `json:"members" nullable:"false" doc:"The members that it changes: decision_id, timestamp, path, result, input"`
	Retry      bool                 `json:"retry" doc:"The dead letter is retried once it is approved"`
	By         string               `json:"by" doc:"Who proposed it"`
	Why        string               `json:"why"`
	Login      string               `json:"login" doc:"The database login that it came from: of a desk, or of the command line"`
	Vouched    bool                 `json:"vouched" doc:"It came by the API, where by is who logged in. Only such a one is approved here"`
	CreatedAt  time.Time            `json:"created_at"`
	ExpiresAt  time.Time            `json:"expires_at"`
	DecidedBy  string               `json:"decided_by,omitempty" doc:"Who approved or rejected it"`
	DecidedWhy string               `json:"decided_why,omitempty"`
	DecidedLog string               `json:"decided_login,omitempty" doc:"The database login that it came from"`
	DecidedAt  *time.Time           `json:"decided_at,omitempty"`
}

// ProposalList is a part of the list of proposals, the newest first.
type ProposalList struct {
	Proposals []Proposal `json:"proposals" nullable:"false"`
	Next      string     `json:"next,omitempty" doc:"Give it as after to get the next page; it is missing on the last page"`
}

// ProposalPayload is a proposal with its new value. It may be personal data.
type ProposalPayload struct {
	Proposal
	Value Bytes  `json:"value" doc:"The payload that it would be"`
	Diff  string `json:"diff,omitempty" doc:"The change of the payload that is there; only of an open proposal"`
}

// ProposalPath names a proposal.
type ProposalPath struct {
	ID int64 `path:"id" minimum:"1"`
}

type proposeInput struct {
	IDPath
	Body ProposalRequest
}
type decideInput struct {
	ProposalPath
	Body RetryRequest
}
type proposalsInput struct {
	All        bool   `query:"all" doc:"Also those that were decided, have expired or are void"`
	DeadLetter string `query:"dead_letter" pattern:"^[0-9a-f]{64}$" doc:"Only those of this dead letter: its whole id"`
	After      string `query:"after" maxLength:"512" doc:"The next of the page before"`
	Limit      int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}
type proposalOutput struct{ Body Proposal }
type proposalsOutput struct{ Body ProposalList }
type proposalPayloadOutput struct{ Body ProposalPayload }

func proposalOf(p ledger.Proposal) Proposal {
	return Proposal{ID: p.ID, State: p.State, DeadLetter: p.LetterID, Members: append([]string{}, p.Members...), Retry: p.Retry, By: p.By, Why: p.Why, Login: p.Login, Vouched: p.Vouched,
		CreatedAt: p.CreatedAt.UTC(), ExpiresAt: p.ExpiresAt.UTC(), DecidedBy: p.Decided.By, DecidedWhy: p.Decided.Why, DecidedLog: p.Decided.Login, DecidedAt: moment(p.Decided.At)}
}

func (s *api) proposals() {
	register(s, route{role: Viewer, method: http.MethodGet, path: "/proposals", id: "list-proposals", summary: "List edits that wait for a second person, the newest first"}, s.listProposals)
	register(s, route{role: Operator, method: http.MethodGet, path: "/proposals/{id}", id: "show-proposal", summary: "Show an edit that was proposed, with its payload",
		text: "It may be personal data: each look is logged with your name. Do not cache it.", errors: refusals}, s.showProposal)
	register(s, route{role: Admin, method: http.MethodPost, path: "/dead-letters/{id}/proposals", id: "propose-edit", status: http.StatusCreated,
		summary: "Propose another payload for a dead letter", text: "Another admin approves it within 7 days. It must be PENDING or FAILED, and change decision_id, timestamp, path, result or input.",
		errors: refusals, payload: true}, s.propose)
	register(s, route{role: Admin, method: http.MethodPost, path: "/proposals/{id}/approve", id: "approve-edit",
		summary: "Approve an edit that another admin proposed, and make it", errors: refusals}, s.approveEdit)
	register(s, route{role: Admin, method: http.MethodPost, path: "/proposals/{id}/reject", id: "reject-edit",
		summary: "Reject an edit that was proposed, or withdraw your own", errors: refusals}, s.rejectEdit)
}

func (s *api) listProposals(ctx context.Context, _ caller, in *proposalsInput) (*proposalsOutput, error) {
	before, err := ledger.NumberAfter(in.After)
	if err != nil {
		return nil, err
	}
	list, err := s.Book.ListProposals(ctx, ledger.ProposalQuery{All: in.All, LetterID: in.DeadLetter, Before: before}, in.Limit+1)
	if err != nil {
		return nil, err
	}
	list, next := ledger.NextNumber(list, in.Limit, func(p ledger.Proposal) int64 { return p.ID })
	out := &proposalsOutput{ProposalList{make([]Proposal, 0, len(list)), next}}
	for _, p := range list {
		out.Body.Proposals = append(out.Body.Proposals, proposalOf(p))
	}
	return out, nil
}

func (s *api) showProposal(ctx context.Context, c caller, in *ProposalPath) (*proposalPayloadOutput, error) {
	p, diff, err := s.proposal(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	s.metrics.looks.Inc()
	s.log.Info().Str("operator", c.Name).Str("dead_letter", p.LetterID).Int64("proposal", p.ID).Msg("payload read")
	return &proposalPayloadOutput{ProposalPayload{proposalOf(p), bytesOf(p.Value), diff}}, nil
}

// proposal returns a proposal. For an open one it also returns the difference to the present payload.
func (s *api) proposal(ctx context.Context, id int64) (p ledger.Proposal, diff string, err error) {
	p, err = s.Book.Proposal(ctx, id)
	if err != nil || p.State != ledger.ProposalOpen {
		return p, "", err
	}
	e, err := s.Book.Show(ctx, p.LetterID)
	return p, difference(e.Value, p.Value), err
}

func (s *api) propose(ctx context.Context, c caller, in *proposeInput) (*proposalOutput, error) {
	value, err := (EditRequest{Payload: in.Body.Payload, Base64: in.Body.Base64}).value()
	if err != nil {
		return nil, err
	}
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	e, err := s.Book.Show(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if err := unedited(e, in.Body.Seen); err != nil {
		return nil, err
	}
	members, _, err := s.Book.Touched(ctx, e.ID, value)
	switch {
	case err != nil:
		return nil, err
	case len(members) == 0:
		return nil, faulty("body.payload", "a payload that changes "+strings.Join(ledger.Evidence(), ", ")+"; for another, PUT …/payload")
	}
	p, err := s.Book.Propose(ctx, ledger.Draft{LetterID: e.ID, Before: e.Value, Value: value, Retry: in.Body.Retry}, by)
	return s.decided(c, p, ledger.Proposed, err)
}

func (s *api) approveEdit(ctx context.Context, c caller, in *decideInput) (*proposalOutput, error) {
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	_, diff, err := s.proposal(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	p, err := s.Book.Approve(ctx, in.ID, diff, s.Lease, by)
	return s.decided(c, p, ledger.Approved, err)
}

func (s *api) rejectEdit(ctx context.Context, c caller, in *decideInput) (*proposalOutput, error) {
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	p, err := s.Book.Reject(ctx, in.ID, by)
	return s.decided(c, p, ledger.Rejected, err)
}

// decided answers and logs a step of a proposal.
func (s *api) decided(c caller, p ledger.Proposal, act ledger.Act, err error) (*proposalOutput, error) {
	if errclass.Classify(err).Code == "42501" {
		return nil, problem(http.StatusServiceUnavailable, "the desk's login may not do this for others (42501)", "grant docket_desk_api to the login of the desk: docs/desk-grants.sql").later(retryAfter)
	}
	if err != nil {
		return nil, err
	}
	s.log.Info().Str("operator", c.Name).Str("dead_letter", p.LetterID).Str("act", string(act)).Int64("proposal", p.ID).Msg("dead letter changed by API")
	return &proposalOutput{proposalOf(p)}, nil
}

// alone returns a problem if the edit needs a second person.
func (s *api) alone(ctx context.Context, c caller, id string, value []byte) error {
	members, second, err := s.Book.Touched(ctx, id, value)
	switch {
	case err != nil || len(members) == 0:
		return err
	case c.Role < Admin:
		s.log.Warn().Str("operator", c.Name).Str("role", c.Role.String()).Str("route", "edit-payload").
			Str("hint", "give this operator a higher role if the request was intended").Msg("request refused by role")
		return problem(http.StatusForbidden, "this changes "+strings.Join(members, ", ")+" and needs the role admin; yours is "+c.Role.String(), "ask somebody with that role, or for that role")
	case second:
		return &ledger.SecondPersonError{ID: id}
	}
	return nil
}

// secondPerson returns the problem for an error about a second person, nil for other errors.
func secondPerson(err error) *Problem {
	var alone *ledger.SecondPersonError
	var edited *ledger.EditedError
	var refused *ledger.ProposalError
	switch {
	case errors.As(err, &edited):
		return problem(http.StatusConflict, edited.Error(), "look at the payload that it has now, then edit it again")
	case errors.As(err, &alone):
		return problem(http.StatusConflict, "this edit changes what a second person has to approve", "POST /api/v1/dead-letters/{id}/proposals, and have another admin approve it")
	case errors.As(err, &refused) && refused.Of != "":
		return problem(http.StatusConflict, refused.Error(), "another person approves it, in the way in which it was made: by the API, or by the command line")
	case errors.As(err, &refused):
		return problem(http.StatusConflict, refused.Error(), map[ledger.Because]string{
			ledger.BecauseEnded: "GET /api/v1/proposals?all=true shows by whom", ledger.BecauseExpired: "propose the edit again", ledger.BecauseVoid: "look at the dead letter, then propose the edit again",
			ledger.BecauseName: "POST …/reject withdraws it; another admin approves it", ledger.BecauseLogin: "approve it with a token of another admin",
			ledger.BecauseOtherWay: "it came by the command line: approve it there, with docket dlq approve",
		}[refused.Because])
	}
	return nil
}
