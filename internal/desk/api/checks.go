package api

import (
	"context"
	"net/http"
)

// Finding is one result of a check.
type Finding struct {
	Level  string `json:"level" enum:"ok,warn,fail"`
	What   string `json:"what"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty" doc:"Advice; it is missing where all is well"`
}

// Checked are the results of all checks.
type Checked struct {
	Failed bool      `json:"failed" doc:"At least one is fail"`
	Checks []Finding `json:"checks" nullable:"false"`
}

type checkOutput struct{ Body Checked }

// checks adds the check of what Docket relies on, as the desk sees it. An operator may ask for it: it asks the brokers and
// the database for a minute, and names hosts, logins and permissions.
func (s *api) checks() {
	if s.Check != nil {
		register(s, route{role: Operator, method: http.MethodGet, path: "/check", id: "check", long: true,
			summary: "Check brokers, topics, permissions, table and limits", text: "It takes a minute at most, and changes nothing. The desk checks with its own settings and logins. " +
				"It does not see the spools, which are on the hosts of other programs."}, s.check)
	}
}

func (s *api) check(ctx context.Context, _ caller, _ *nothing) (*checkOutput, error) {
	out := Checked{Checks: append([]Finding{}, s.Check(ctx)...)}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, f := range out.Checks {
		out.Failed = out.Failed || f.Level == "fail"
	}
	return &checkOutput{out}, nil
}
