// Package subject says who a decision was about: a setting that names a place in a decision, and what stands there.
//
// It stays free of Kafka and SQL. The collector keys records by it, the reader finds decisions of the same subject by it.
package subject

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"docket/internal/record/decision"
)

// Kind is what sort of place a [Spec] names.
type Kind uint8

// The kinds of place.
const (
	RequestedBy     Kind = iota // requested_by, whole: in stock OPA address and port of the client's connection
	RequestedByHost             // requested_by without the port
	Label                       // labels.NAME
	Input                       // a JSON pointer into input
	DecisionID                  // decision_id: every decision is its own subject
)

// Spec names a place in a decision. The zero value is RequestedBy.
type Spec struct {
	Kind    Kind
	Label   string // of Label
	Pointer string // of Input, an RFC 6901 pointer into input
}

// ErrForm is under each error of [Parse].
var ErrForm = errors.New("want requested_by, requested_by:host, label:NAME, input:/POINTER or decision_id")

// Parse reads a Spec as settings have it: requested_by, requested_by:host, label:NAME, input:/POINTER or decision_id.
func Parse(text string) (Spec, error) {
	switch text {
	case "requested_by":
		return Spec{Kind: RequestedBy}, nil
	case "requested_by:host":
		return Spec{Kind: RequestedByHost}, nil
	case "decision_id":
		return Spec{Kind: DecisionID}, nil
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return Spec{}, fmt.Errorf("subject %q: not text, or with control characters: %w", text, ErrForm)
	}
	if name, ok := strings.CutPrefix(text, "label:"); ok && name != "" {
		return Spec{Kind: Label, Label: name}, nil
	}
	pointer, ok := strings.CutPrefix(text, "input:")
	if !ok || pointer == "" {
		return Spec{}, fmt.Errorf("subject %q: %w", text, ErrForm)
	}
	if err := checkPointer(pointer); err != nil {
		return Spec{}, fmt.Errorf("subject %q: %w: %w", text, err, ErrForm)
	}
	return Spec{Kind: Input, Pointer: pointer}, nil
}

// String is the form that [Parse] reads.
func (s Spec) String() string {
	switch s.Kind {
	case RequestedByHost:
		return "requested_by:host"
	case Label:
		return "label:" + s.Label
	case Input:
		return "input:" + s.Pointer
	case DecisionID:
		return "decision_id"
	default:
		return "requested_by"
	}
}

// Place is the place as an RFC 6901 pointer from the decision's root.
func (s Spec) Place() string {
	switch s.Kind {
	case Label:
		return "/labels/" + strings.ReplaceAll(strings.ReplaceAll(s.Label, "~", "~0"), "/", "~1")
	case Input:
		return "/input" + s.Pointer
	case DecisionID:
		return "/decision_id"
	default:
		return "/requested_by"
	}
}

// Of returns what stands at the place in a decision that internal/record/decision took, or in its payload as jsonb writes it: what a
// string says, a number or boolean as it is written. Not ok is what names nobody: nothing there, null, "", an object, an array.
// Where input or labels have a name twice its last value counts, as in jsonb.
func (s Spec) Of(log []byte) (value string, ok bool) {
	switch s.Kind {
	case RequestedByHost:
		whole, ok := scalar(top(log, "requested_by"))
		if !ok {
			return "", false
		}
		value = Host(whole)
		return value, value != ""
	case Label:
		return scalar(last(top(log, "labels"), s.Label))
	case Input:
		return scalar(at(top(log, "input"), s.Pointer))
	case DecisionID:
		return scalar(top(log, "decision_id"))
	default:
		return scalar(top(log, "requested_by"))
	}
}

// Host strips the port off an address, and the brackets of IPv6: 10.0.0.7:53022, [::1]:53022. A value without a port is its own
// host. A port is one to five digits.
func Host(address string) string {
	host := address
	if i := strings.LastIndexByte(address, ':'); i >= 0 && isPort(address[i+1:]) {
		// Without brackets ::1 ends like a port, and is none.
		if before := address[:i]; !strings.Contains(before, ":") || bracketed(before) {
			host = before
		}
	}
	if bracketed(host) {
		return host[1 : len(host)-1]
	}
	return host
}

func bracketed(s string) bool { return len(s) > 1 && s[0] == '[' && s[len(s)-1] == ']' }

func isPort(s string) bool {
	return len(s) > 0 && len(s) <= 5 && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// top finds a member of the decision itself, where no name stands twice; nil where there is none.
func top(log []byte, name string) []byte {
	for in := decision.Into(log, 0); in.Next(); {
		if in.Is(name) {
			return log[in.Value:in.End]
		}
	}
	return nil
}

// last finds the last member of an object that has the name; nil where there is none.
func last(object []byte, name string) (value []byte) {
	for in := decision.Into(object, 0); in.Next(); {
		if in.Is(name) {
			value = object[in.Value:in.End]
		}
	}
	return value
}

// scalar returns what a value says that may name somebody.
func scalar(raw []byte) (value string, ok bool) {
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case 'n', '{', '[':
		return "", false
	case '"':
		value = decision.Text(raw)
		return value, value != ""
	default:
		return string(raw), true
	}
}
