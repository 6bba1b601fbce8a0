package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/history/reader"
	"docket/internal/record/escape"
)

// Fault is one error of a request. It does not repeat the request's values.
type Fault struct {
	Location string `json:"location,omitempty" doc:"Where, as body.filter.code or query.limit"`
	Message  string `json:"message" doc:"What is expected there"`
}

// Problem is an error answer in the form of RFC 9457.
type Problem struct {
	Type   string  `json:"type" doc:"about:blank: the title says it all"`
	Title  string  `json:"title" doc:"The status in words"`
	Status int     `json:"status" minimum:"400" maximum:"599"`
	Detail string  `json:"detail" doc:"What happened"`
	Hint   string  `json:"hint" doc:"What to do next"`
	Faults []Fault `json:"faults,omitempty" nullable:"false" doc:"What is wrong with the request"`
	// For a refused change.
	ID    string     `json:"id,omitempty" doc:"The dead letter or job that was not moved"`
	State string     `json:"state,omitempty" enum:"PENDING,PROCESSING,FAILED,RESOLVED,PROPOSED,WAITING,RUNNING,STOPPED,DONE" doc:"The state in which it is"`
	By    string     `json:"by,omitempty" doc:"Who moved it there"`
	Since *time.Time `json:"since,omitempty" doc:"When"`
	// For an id that is cut short.
	Candidates []string `json:"candidates,omitempty" nullable:"false" doc:"The first whole ids that begin like the one that was asked for"`
	// For a decision id without a row.
	*Elsewhere
	Completeness *reader.Completeness `json:"completeness,omitempty" doc:"How complete this answer is"`

	header http.Header
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns headers besides those of every answer.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType returns that of problems.
func (p *Problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

func problem(status int, detail, hint string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Hint: hint}
}

// later adds the header Retry-After.
func (p *Problem) later(d time.Duration) *Problem {
	p.header = http.Header{"Retry-After": {strconv.Itoa(max(1, int(d.Seconds())))}}
	return p
}

func (p *Problem) write(w http.ResponseWriter) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = escape.Encoder(w).Encode(p) // the client is gone
}

// The form of errors is a variable of package huma. Huma's own form repeats values of the request, and so payloads.
// Names must be exactly those of the document.
func init() {
	huma.ValidateStrictCasing = true
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		p := problem(status, message, hintOf(status))
		if status >= http.StatusInternalServerError {
			p.Detail = "something went wrong here"
			return p
		}
		for _, err := range errs {
			var d huma.ErrorDetailer
			if errors.As(err, &d) {
				e := d.ErrorDetail()
				p.Faults = append(p.Faults, Fault{Location: withoutValues(e.Location), Message: wording(e)})
			}
		}
		return p
	}
}

// wording returns the validator's message about the schema, but not a parser's message about the body.
func wording(e *huma.ErrorDetail) string {
	if e.Location == "body" && e.Value != nil {
		if _, raw := e.Value.(string); raw {
			return "is not the JSON that is expected there"
		}
	}
	return e.Message
}

// withoutValues returns a location without names outside the schema, because a client may have put a payload there.
func withoutValues(location string) string {
	parts := strings.Split(location, ".")
	for i, part := range parts {
		name, _, _ := strings.Cut(part, "[")
		if !fieldNames[name] {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, ".")
}

func hintOf(status int) string {
	switch {
	case status >= http.StatusInternalServerError:
		return "look at the desk's log, then try again"
	case status == http.StatusRequestEntityTooLarge:
		return "send less; very large payloads are edited with the command line"
	default:
		return "see faults and /api/v1/openapi.json for what is expected"
	}
}

// retryAfter is the pause for clients while the database is away.
const retryAfter = 5 * time.Second

// UnableError says why this desk cannot do what it was asked, whoever asks. Both texts are of this program.
type UnableError struct{ Why, Do string }

func (e *UnableError) Error() string { return e.Why }

// problemOf turns an error of the ledger into a problem. It passes no text on, because a server's text could quote a
// row.
func problemOf(err error) *Problem {
	var p *Problem
	var refused *ledger.RefusedError
	var unable *UnableError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &unable):
		return problem(http.StatusConflict, unable.Why, unable.Do)
	case errors.As(err, &refused):
		return refusal(refused)
	case errors.Is(err, ledger.ErrNotFound):
		return problem(http.StatusNotFound, "there is none of that name in the ledger",
			"GET /api/v1/dead-letters lists what there is; of what was resolved long ago only the history is left")
	case errors.Is(err, ledger.ErrAmbiguous):
		p := problem(http.StatusConflict, "more than one dead letter begins like that", "give more characters of the id")
		p.Faults = []Fault{{"path.id", "more characters"}}
		var ambiguous *ledger.AmbiguousError
		if errors.As(err, &ambiguous) {
			p.Candidates = ambiguous.IDs
		}
		return p
	case errors.Is(err, ledger.ErrBadPage):
		p := faulty("query.after", "the next of the page before")
		p.Hint = "list again from the start"
		return p
	case len(invalid(err)) > 0:
		p := faulty("", "")
		p.Faults = invalid(err)
		return p
	case errors.Is(err, ledger.ErrLost):
		return problem(http.StatusConflict, "it has another owner now", "look at it again before you decide")
	}
	var exists *ledger.RuleExistsError
	if errors.As(err, &exists) {
		return problem(http.StatusConflict, exists.Error(), "GET /api/v1/rules lists it; POST …/remove ends it")
	}
	if p := secondPerson(err); p != nil {
		return p
	}
	failure := errclass.Classify(err)
	switch {
	case failure.OfTheMoment(), errors.Is(err, context.DeadlineExceeded), failure.Class == errclass.Cancelled:
		return problem(http.StatusServiceUnavailable, "the database does not answer ("+failure.Code+")",
			"try again; where you asked for a change, look first: it may have been done").later(retryAfter)
	case failure.Class == errclass.Systemic:
		return problem(http.StatusServiceUnavailable, "the database is not set up for this ("+failure.Code+")",
			"GET /api/v1/classify/"+failure.Code+" explains the code; the desk's log has the place").later(retryAfter)
	}
	return problem(http.StatusInternalServerError, "something went wrong here ("+failure.Code+")", hintOf(http.StatusInternalServerError))
}

// invalid returns the invalid fields, in the ledger's words.
func invalid(err error) []Fault {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case *ledger.InvalidError:
		return []Fault{{withoutValues(e.Field), e.Problem}}
	case interface{ Unwrap() error }:
		return invalid(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []Fault
		for _, inner := range e.Unwrap() {
			all = append(all, invalid(inner)...)
		}
		return all
	}
	return nil
}

func refusal(r *ledger.RefusedError) *Problem {
	hint := "look at its history, then decide again"
	switch r.State {
	case ledger.Processing:
		hint = "it is being retried: wait for how that ends"
	case ledger.Resolved:
		hint = "nothing is left to do"
	}
	p := problem(http.StatusConflict, "the dead letter is "+string(r.State)+" and was not changed", hint)
	at := r.At.UTC()
	p.ID, p.State, p.By, p.Since = r.ID, string(r.State), r.By, &at
	return p
}
