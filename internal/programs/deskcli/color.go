package deskcli

import (
	"strings"

	"docket/internal/desk/ledger"
)

// style is what a terminal is told before a text.
type style string

// The styles. Nothing is said by colour alone.
const (
	bold   style = "\x1b[1m"
	dim    style = "\x1b[2m"
	red    style = "\x1b[31m"
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
	cyan   style = "\x1b[36m"
)

func (s *session) colored() bool {
	if !s.o.Terminal.Out {
		return false
	}
	values := environment(s.env.Environ)
	return values["NO_COLOR"] == "" && values["TERM"] != "dumb"
}

func (s *session) paint(with style, text string) string {
	if with == "" || text == "" || !s.colored() {
		return text
	}
	return string(with) + text + "\x1b[0m"
}

func (s *session) paintState(text string) string {
	return s.paint(map[string]style{
		string(ledger.Pending): yellow, string(ledger.Processing): cyan, string(ledger.Failed): red, string(ledger.Resolved): green,
		string(ledger.JobRunning): cyan, string(ledger.JobWaiting): yellow, string(ledger.JobStopped): red, string(ledger.JobDone): green,
		string(ledger.ProposalOpen): yellow, string(ledger.ProposalApproved): green, string(ledger.ProposalRejected): red,
	}[text], text)
}

// environment is os.Environ as a map.
func environment(environ []string) map[string]string {
	values := make(map[string]string, len(environ))
	for _, one := range environ {
		name, value, _ := strings.Cut(one, "=")
		values[name] = value
	}
	return values
}
