package api

import (
	"context"
	"net/http"

	"docket/internal/desk/ledger"
)

// RetryRequest asks for a retry.
type RetryRequest struct {
	Reason string `json:"reason" minLength:"1" maxLength:"1000" pattern:"\\S" doc:"Why, for the audit"`
}

// ResolveRequest resolves a dead letter by hand.
type ResolveRequest struct {
	Note string `json:"note" minLength:"1" maxLength:"1000" pattern:"\\S" doc:"Why nothing is left to do; it stays for ever"`
}

type retryInput struct {
	IDPath
	Body RetryRequest
}

type resolveInput struct {
	IDPath
	Body ResolveRequest
}

// Moved is the result for a dead letter.
type Moved struct {
	ID    string       `json:"id"`
	State ledger.State `json:"state" enum:"PENDING,PROCESSING,FAILED,RESOLVED"`
	Act   ledger.Act   `json:"act" enum:"retried,closed,edited,reopened"`
	By    string       `json:"by" doc:"Your name, as the audit has it"`
}

type movedOutput struct{ Body Moved }

// refusals are the problems of routes that change one dead letter.
var refusals = []int{http.StatusNotFound, http.StatusConflict}

func (s *api) moves() {
	register(s, route{role: Operator, method: http.MethodPost, path: "/dead-letters/{id}/retry", id: "retry-dead-letter",
		summary: "Put a dead letter back on its original topic", text: "It must be PENDING or FAILED. How that ends shows in its history.",
		errors: refusals}, s.retry)
	register(s, route{role: Operator, method: http.MethodPost, path: "/dead-letters/{id}/resolve", id: "resolve-dead-letter",
		summary: "Say that nothing is left to do about a dead letter", text: "It must be PENDING or FAILED.", errors: refusals}, s.resolve)
}

func (s *api) retry(ctx context.Context, c caller, in *retryInput) (*movedOutput, error) {
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	id, err := s.whole(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	outcomes, err := s.Book.Retry(ctx, []string{id}, s.Lease, by)
	return s.moved(c, id, ledger.Processing, ledger.Retried, outcomes, err)
}

func (s *api) resolve(ctx context.Context, c caller, in *resolveInput) (*movedOutput, error) {
	by, err := actor(c, "body.note", in.Body.Note)
	if err != nil {
		return nil, err
	}
	id, err := s.whole(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	outcomes, err := s.Book.Resolve(ctx, []string{id}, by)
	return s.moved(c, id, ledger.Resolved, ledger.Closed, outcomes, err)
}

// moved answers and logs the change of one letter.
func (s *api) moved(c caller, id string, to ledger.State, act ledger.Act, outcomes []ledger.Outcome, err error) (*movedOutput, error) {
	if err != nil {
		return nil, err
	}
	for _, o := range outcomes {
		if o.Err != nil {
			return nil, o.Err
		}
	}
	if len(outcomes) == 0 {
		return nil, ledger.ErrNotFound
	}
	s.log.Info().Str("operator", c.Name).Str("dead_letter", id).Str("act", string(act)).Msg("dead letter changed by API")
	return &movedOutput{Moved{id, to, act, c.Name}}, nil
}

// actor returns the caller as an actor, with a reason on one line.
func actor(c caller, location, why string) (ledger.Actor, error) {
	why = line(why)
	if why == "" {
		return ledger.Actor{}, faulty(location, "some words that can be read")
	}
	return ledger.Actor{Name: c.Name, Why: why, Vouched: true}, nil
}
