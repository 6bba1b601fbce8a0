package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"docket/internal/errclass"
	"docket/internal/history/reader"
)

// VerifyScope is the part of the source topics to verify.
type VerifyScope struct {
	Since   time.Time // zero: as the desk chooses
	From    []string  // TOPIC/PARTITION/OFFSET; none: all partitions
	Settled bool      // records that wait are faults, too
}

// PlaceError says that a place to verify from is not one of a source topic. It quotes no value of the request.
type PlaceError struct{ Expected string }

func (e *PlaceError) Error() string { return "a place to verify from is not " + e.Expected }

// Verification is the result of a verification.
type Verification struct {
	Broken bool            `json:"broken" doc:"At least one invariant is broken"`
	Text   string          `json:"text" doc:"All of it for people, in lines"`
	Report json.RawMessage `json:"report" doc:"All of it as docket verify --json prints it"`
}

type verifyInput struct {
	Since   string   `query:"since" maxLength:"40" doc:"Records since then: how long ago (2h, 7d), a day or RFC 3339; 1h without it. It does not count with from"`
	From    []string `query:"from,explode" nullable:"false" maxItems:"100" doc:"Only these partitions, each from TOPIC/PARTITION/OFFSET on"`
	Settled bool     `query:"settled" doc:"It is a fault, too, if a record is still unread, parked or spooled"`
}
type verifyOutput struct{ Body Verification }

// verifications adds the verification of the system, as the desk sees it. An operator may ask for it: it reads topics for
// minutes, and shows the places and ids of records.
func (s *api) verifications() {
	if s.Verify != nil {
		register(s, route{role: Operator, method: http.MethodGet, path: "/verify", id: "verify", long: true, many: []string{"from"}, errors: []int{http.StatusConflict},
			summary: "Check that no record was lost", text: fmt.Sprintf("It changes nothing. There is one verification at a time. It ends after %s, or with its request. "+
				"The desk sees its own spool alone: a record in another one counts as lost.", s.LongTimeout)}, s.verified)
	}
}

// verifying takes the only place of a verification. done gives it back.
func (s *api) verifying() (done func(), err error) {
	select {
	case s.verify <- struct{}{}:
		return func() { <-s.verify }, nil
	default:
		return nil, problem(http.StatusServiceUnavailable, "another verification runs", "try again when that has ended").later(retryAfter)
	}
}

func (s *api) verified(ctx context.Context, _ caller, in *verifyInput) (*verifyOutput, error) {
	scope := VerifyScope{From: in.From, Settled: in.Settled}
	if in.Since != "" {
		var err error
		if scope.Since, err = reader.ParseTime(in.Since, s.Now()); err != nil {
			return nil, faulty("query.since", "2h, 3d, a date, or RFC 3339")
		}
	}
	done, err := s.verifying()
	if err != nil {
		return nil, err
	}
	defer done()
	out, err := s.Verify(ctx, scope)
	var place *PlaceError
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, problem(http.StatusServiceUnavailable, fmt.Sprintf("the verification did not end within %s", s.LongTimeout),
			"verify less: a later time with since, or one partition with from; or run docket verify beside the brokers").later(retryAfter)
	case errors.As(err, &place):
		return nil, faulty("query.from", place.Expected)
	case err != nil:
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError { // it need not be the database
			code := errclass.Classify(err).Code
			p.Detail, p.Hint = "Kafka, the database or the spool cannot be read ("+code+")", "GET /api/v1/classify/"+code+" explains the code; run docket check by the desk"
		}
		return nil, p
	}
	return &verifyOutput{out}, nil
}
