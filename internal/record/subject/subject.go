// Package subject returns the subject of a decision: a setting names a place in decisions, and the value there is the
// subject.
//
// It imports no Kafka and no SQL. The collector keys records by subject. The reader finds decisions of the same
// subject.
package subject

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"docket/internal/record/decision"
)

// Kind is the kind of place that a [Spec] names.
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
	Label   string // for Label
	Pointer string // for Input, an RFC 6901 pointer into input
}

// ErrForm is wrapped by each error of [Parse].
var ErrForm = errors.New("want requested_by, requested_by:host, label:NAME, input:/POINTER or decision_id")

// Parse reads a Spec as in settings: requested_by, requested_by:host, label:NAME, input:/POINTER or decision_id.
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

// String returns the form that [Parse] reads.
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

// FullPointer returns the place as an RFC 6901 pointer from the decision's root.
func (s Spec) FullPointer() string {
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

// Of returns the value at the place in a decision that was decoded, or in its payload as jsonb writes it: the text of
// a string, or a number or boolean as written. ok is false for null, "", objects, arrays and missing values. If a
// name occurs twice in input or labels, its last value counts, as in jsonb.
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

// LabelOf returns the value of one label as [Spec.Of] does, from the labels of a decision: [decision.Log.Labels].
func LabelOf(labels []byte, name string) (value string, ok bool) { return scalar(last(labels, name)) }

// Host removes the port from an address, and the brackets of IPv6: 10.0.0.7:53022, [::1]:53022. A value without a
// port is returned as it is. A port has one to five digits.
func Host(address string) string {
	host := address
	if i := strings.LastIndexByte(address, ':'); i >= 0 && isPort(address[i+1:]) {
		// Without brackets ::1 only looks like an address with a port.
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

// top returns a member of the decision itself, where names are unique; nil if there is none.
func top(log []byte, name string) []byte {
	for in := decision.Into(log, 0); in.Next(); {
		if in.Is(name) {
			return log[in.Value:in.End]
		}
	}
	return nil
}

// last returns the last member of an object with this name; nil if there is none.
func last(object []byte, name string) (value []byte) {
	for in := decision.Into(object, 0); in.Next(); {
		if in.Is(name) {
			value = object[in.Value:in.End]
		}
	}
	return value
}

// scalar returns the text of a value that may name somebody.
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
