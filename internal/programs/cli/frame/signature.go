package frame

import (
	"strings"

	"github.com/spf13/pflag"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/term"
)

// OperatorText explains --operator.
const OperatorText = "your `NAME` for the audit log (required, unless DOCKET_OPERATOR is set)"

// maxReason is how many bytes a reason may have.
const maxReason = 1000

// Signature says who decides, and why. Both go into the audit log.
type Signature struct{ Operator, Reason string }

// Declare adds --operator and --reason, with the help of the latter.
func (g *Signature) Declare(flags *pflag.FlagSet, reason string) {
	flags.StringVar(&g.Operator, "operator", "", OperatorText)
	flags.StringVar(&g.Reason, "reason", "", reason)
}

// ReasonText explains a --reason that is required.
const ReasonText = "why you do this: `TEXT` for the audit log (required)"

// Actor is who decides and why. Without otherwise the reason is required.
func (call Call) Actor(g Signature, otherwise string) (ledger.Actor, error) {
	name, err := call.OperatorName(g.Operator)
	if err != nil {
		return ledger.Actor{}, err
	}
	why, err := oneLine("--reason", g.Reason, maxReason)
	if err != nil {
		return ledger.Actor{}, err
	}
	if why == "" {
		why = otherwise
	}
	if why == "" {
		return ledger.Actor{}, Misuse("no reason: give --reason 'TEXT'; it stays in the audit log")
	}
	return ledger.Actor{Name: name, Why: why}, nil
}

// OperatorName is the name of who decides, by a flag or by the settings.
func (call Call) OperatorName(flag string) (string, error) {
	name := strings.TrimSpace(flag)
	if target, err := call.Target(); err != nil || target != nil && name == "" {
		return "", err // a desk knows it by the token
	}
	if name == "" {
		name = strings.TrimSpace(call.Setting("DOCKET_OPERATOR"))
	}
	if name == "" {
		return "", Misuse("no operator: give --operator NAME, or set DOCKET_OPERATOR; the name goes into the audit log")
	}
	return oneLine("--operator", name, 100)
}

// OperatorFlag names the operator in a command that is to be pasted. It is empty where the settings name one.
func (call Call) OperatorFlag() string {
	if call.Setting("DOCKET_OPERATOR") != "" || call.Sys != nil && call.Sys.Desk != nil {
		return ""
	}
	return "--operator YOU"
}

// oneLine refuses a text that does not fit the audit log.
func oneLine(flag, text string, most int) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case len(text) > most:
		return "", Misuse("%s has %d bytes; at most %d are allowed", flag, len(text), most)
	case text != term.Line(text):
		return "", Misuse("%s must be one line of printable text", flag)
	}
	return text, nil
}
