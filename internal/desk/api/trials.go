package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
)

// Trial tries to store dead letters and keeps nothing; [*worker.Trial] is one. progress may be nil.
type Trial interface {
	Run(ctx context.Context, f ledger.Filter, limit int64, progress func(done, total int64)) (worker.TrialResult, error)
	RunIDs(ctx context.Context, ids []string, progress func(done, total int64)) (worker.TrialResult, error)
	RunValue(ctx context.Context, value []byte) (worker.TrialResult, error)
}

// maxTried limits a dry run without a limit, because a caller waits.
const maxTried = 10_000

// TrialRequest asks for a dry run.
type TrialRequest struct {
	Filter  *Filter  `json:"filter,omitempty" doc:"Or else ids, or a payload"`
	IDs     []string `json:"ids,omitempty" nullable:"false" minItems:"1" maxItems:"1000" pattern:"^[0-9a-f]{64}$" doc:"Whole; or else a filter, or a payload"`
	Limit   int64    `json:"limit,omitempty" minimum:"1" maximum:"100000" doc:"Most letters of the filter that are tried, 10,000 without it"`
	Payload *string  `json:"payload,omitempty" doc:"A payload that no letter has, as text; or else base64"`
	Base64  []byte   `json:"base64,omitempty" doc:"The same in base64; or else payload"`
}

// TrialFailure counts the letters with the same failure.
type TrialFailure struct {
	Code       string `json:"code" doc:"SQLSTATE, or a code of Docket's"`
	Constraint string `json:"constraint,omitempty"`
	Column     string `json:"column,omitempty"`
	Letters    int64  `json:"letters"`
}

// TrialResult is the predicted result of a retry. Each letter is counted once.
type TrialResult struct {
	Total         int64          `json:"total"`
	WouldBeStored int64          `json:"would_be_stored"`
	StoredAlready int64          `json:"stored_already" doc:"Their row is there with an equal payload: a retry ends well"`
	WouldFail     int64          `json:"would_fail"`
	Failures      []TrialFailure `json:"failures" nullable:"false" doc:"Of those that would fail, the most frequent first"`
	Unwell        string         `json:"unwell,omitempty" doc:"The code for which the table takes nothing just now, not even a known-good row; nothing is known of any letter then"`
	Hint          string         `json:"hint,omitempty" doc:"What to do about that"`
	Text          string         `json:"text" doc:"All of it in one line"`
}

func trialOf(r worker.TrialResult) TrialResult {
	out := TrialResult{Total: r.Total, WouldBeStored: r.Would, StoredAlready: r.There, WouldFail: r.Fails(), Failures: []TrialFailure{}, Text: r.String()}
	for _, f := range r.StillFail {
		out.Failures = append(out.Failures, TrialFailure{f.Code, f.Constraint, f.Column, f.Letters})
	}
	if r.Conflict > 0 {
		out.Failures = append(out.Failures, TrialFailure{Code: "id_conflict", Letters: r.Conflict})
	}
	for reason, n := range r.Undecodable {
		out.Failures = append(out.Failures, TrialFailure{Code: string(reason), Letters: n})
	}
	slices.SortFunc(out.Failures, func(a, b TrialFailure) int {
		if a.Letters != b.Letters {
			return int(min(1, max(-1, b.Letters-a.Letters)))
		}
		return strings.Compare(a.Code+"\x00"+a.Constraint+"\x00"+a.Column, b.Code+"\x00"+b.Constraint+"\x00"+b.Column)
	})
	if r.Unwell != nil {
		out.Unwell, out.Hint = r.Unwell.Code, r.Unwell.Hint
	}
	return out
}

type trialInput struct{ Body TrialRequest }
type trialOutput struct{ Body TrialResult }

func (s *api) trials() {
	if s.Trial == nil {
		return
	}
	register(s, route{role: Operator, method: http.MethodPost, path: "/trials", id: "try-dead-letters", long: true,
		payload: true, summary: "Say what would come of a retry, or of an edit", text: "Each letter, or the payload, is really inserted, in a transaction that is rolled back. Nothing is changed.",
		errors: refusals}, s.try)
}

func (s *api) try(ctx context.Context, _ caller, in *trialInput) (*trialOutput, error) {
	b := in.Body
	var r worker.TrialResult
	var err error
	written := b.Payload != nil || b.Base64 != nil
	switch {
	case b.Filter != nil && len(b.IDs) > 0, b.Filter == nil && len(b.IDs) == 0 && !written, written && (b.Filter != nil || len(b.IDs) > 0):
		return nil, faulty("body.filter", "a filter, ids or a payload, and one of them")
	case written:
		var value []byte
		if value, err = (EditRequest{Payload: b.Payload, Base64: b.Base64}).value(); err == nil {
			r, err = s.Trial.RunValue(ctx, value)
		}
	case b.Filter == nil:
		r, err = s.Trial.RunIDs(ctx, b.IDs, nil)
	default:
		limit := b.Limit
		if limit == 0 {
			limit = maxTried
		}
		r, err = s.Trial.Run(ctx, b.Filter.ledger(), limit, nil)
	}
	if err != nil {
		return nil, err
	}
	return &trialOutput{trialOf(r)}, nil
}
