package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"docket/internal/desk/api"
	"docket/internal/errclass"
)

// ProblemError is the answer of a desk that did not do what it was asked.
type ProblemError struct {
	api.Problem
	Server  string // host and port
	foreign bool   // of something between, so its status says nothing about what was asked for
}

// Error says in one line what the desk answered.
func (e *ProblemError) Error() string {
	text := fmt.Sprintf("the desk at %s: %s", e.Server, e.Detail)
	for _, f := range e.Faults {
		text += "; " + strings.TrimPrefix(f.Location+": "+f.Message, ": ")
	}
	return text
}

// Hint returns what to do next.
func (e *ProblemError) Hint() string {
	switch e.Status {
	case http.StatusUnauthorized:
		return "check the token: DOCKET_TOKEN_FILE, --token-file or `docket context list`; it may have expired"
	case http.StatusForbidden:
		return e.Problem.Hint + "; `docket context list` shows whose token is used"
	}
	return e.Problem.Hint
}

// MayBeDone reports whether the desk may have done what it was asked, although it says that it failed.
func (e *ProblemError) MayBeDone() bool {
	return e.Status >= http.StatusInternalServerError || e.Status < http.StatusMultipleChoices
}

// UnansweredError says that the desk did not answer.
type UnansweredError struct {
	Server string
	err    error
	sent   bool // the request may have reached the desk
}

// MayBeDone reports whether the desk may have done what it was asked.
func (e *UnansweredError) MayBeDone() bool { return e.sent }

func (e *UnansweredError) Error() string {
	if errors.Is(e.err, context.DeadlineExceeded) {
		return fmt.Sprintf("the desk at %s did not answer in time", e.Server)
	}
	return fmt.Sprintf("the desk at %s does not answer: %v", e.Server, e.err)
}

// Unwrap returns the error of the connection.
func (e *UnansweredError) Unwrap() error { return e.err }

// Hint returns what to do next.
func (e *UnansweredError) Hint() string {
	return "check the URL (--server, DOCKET_SERVER or `docket context list`) and that the desk runs; where a change was asked for, look first: it may have been done"
}

// stoppedError says that the caller did not wait for an answer.
type stoppedError struct {
	server string
	sent   bool
}

func (e *stoppedError) Error() string {
	return "ask the desk at " + e.server + ": " + context.Canceled.Error()
}

// Unwrap returns [context.Canceled].
func (*stoppedError) Unwrap() error { return context.Canceled }

// MayBeDone is [UnansweredError.MayBeDone].
func (e *stoppedError) MayBeDone() bool { return e.sent }

// unanswered is the error of a request without an answer. sent says that it may have reached the desk. The cause of the caller,
// like a signal, wins.
func (c *Client) unanswered(ctx context.Context, err error, sent bool) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return &stoppedError{c.base.Host, sent}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = context.DeadlineExceeded
	}
	var inner interface{ Unwrap() error }
	if errors.As(err, &inner) && inner.Unwrap() != nil { // the URL of the request may hold an id, so it is not shown
		err = inner.Unwrap()
	}
	return &UnansweredError{c.base.Host, err, sent}
}

// mostProblem limits the bytes of a problem that are read.
const mostProblem = 1 << 20

// refused reads a problem. An answer in another form is not of a desk: its text is not shown.
func (c *Client) refused(answer *http.Response) error {
	e := &ProblemError{Server: c.base.Host}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")) // none is another one
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostProblem))
	if err != nil || kind != "application/problem+json" || !marked(answer.Header, text) || json.Unmarshal(text, &e.Problem) != nil {
		e.foreign = true
		e.Problem = api.Problem{Detail: fmt.Sprintf("HTTP %d, and the answer is not that of a desk", answer.StatusCode), Hint: "check the URL of the server, and what is between"}
		if answer.StatusCode >= 300 && answer.StatusCode < 400 {
			e.Detail, e.Problem.Hint = fmt.Sprintf("HTTP %d: it leads elsewhere, and the token is not sent there", answer.StatusCode), "give the URL that it leads to as the server"
		}
	}
	if e.Status = answer.StatusCode; !e.foreign {
		c.judge(answer.Header)
	}
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return errclass.As(e, errclass.CodeNetwork) // a later request may be answered
	}
	return e
}

// marked reports whether a problem has the mark of a desk: its header, or the member hint that no standard has. Desks from
// before the header have the member alone. A proxy writes problems, too, and its 404 does not mean that a letter is gone.
func marked(h http.Header, text []byte) bool {
	if h.Get(api.LevelHeader) != "" {
		return true
	}
	var mark struct {
		Detail, Hint *string
	}
	return json.Unmarshal(text, &mark) == nil && mark.Detail != nil && mark.Hint != nil
}

// problemOf returns the answer of a desk with one of the statuses; nil: the error is another one.
func problemOf(err error, statuses ...int) *ProblemError {
	var p *ProblemError
	if !errors.As(err, &p) || p.foreign {
		return nil
	}
	for _, s := range statuses {
		if p.Status == s {
			return p
		}
	}
	return nil
}

// faultAt reports whether a desk refused one place of a request, like query.after.
func faultAt(err error, location string) bool {
	p := problemOf(err, http.StatusUnprocessableEntity, http.StatusConflict)
	if p == nil {
		return false
	}
	for _, f := range p.Faults {
		if f.Location == location {
			return true
		}
	}
	return false
}

// older adds to a 404 of a route that answers no 404 itself.
func older(err error) error {
	if p := problemOf(err, http.StatusNotFound, http.StatusMethodNotAllowed); p != nil {
		p.Detail, p.Problem.Hint = "it does not have this question", "the desk is older than this program, or the URL is not that of a desk: upgrade the desk"
	}
	return err
}
