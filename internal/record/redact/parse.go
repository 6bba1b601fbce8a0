package redact

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rules say which values are dropped and which are masked. The zero value redacts nothing. They are safe for
// concurrent use.
type Rules struct {
	rules []rule
}

// rule is one pointer.
type rule struct {
	segments []segment
	drop     bool   // else mask
	pointer  string // as it was set
	quoted   string // as JSON
}

// segment is one step of a pointer.
type segment struct {
	name  string
	index int // in an array; -1 if the name is not an index
}

const every = "*"

var (
	errText      = errors.New("not UTF-8, or with control characters")
	errStart     = errors.New("a JSON pointer starts with /, and the decision as a whole stays")
	errEmpty     = errors.New("an empty segment: two / in a row, or one at the end")
	errTilde     = errors.New("~ in a JSON pointer is written ~0, and / in a name ~1")
	errEvery     = errors.New("* cannot be the first segment: decision_id and timestamp stay")
	errProtected = errors.New("decision_id, timestamp, erased and masked stay as they are")
	errTyped     = errors.New("labels, bundles and req_id cannot be masked as a whole, because they are not texts: drop them, or mask values inside")
)

// Parse reads the pointers of values to drop and to mask. The error names every refused entry. A pointer in both
// lists is dropped.
func Parse(drop, mask []string) (Rules, error) {
	var rules []rule
	var wrong []error
	add := func(act, pointer string) {
		if slices.ContainsFunc(rules, func(r rule) bool { return r.pointer == pointer }) {
			return
		}
		r, err := parse(pointer, act == "drop")
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s %q: %w", act, pointer, err))
			return
		}
		rules = append(rules, r)
	}
	for _, pointer := range drop {
		add("drop", pointer)
	}
	for _, pointer := range mask {
		add("mask", pointer)
	}
	if err := errors.Join(wrong...); err != nil {
		return Rules{}, err
	}
	return Rules{rules}, nil
}

func parse(pointer string, drop bool) (rule, error) {
	if !utf8.ValidString(pointer) || strings.ContainsFunc(pointer, unicode.IsControl) {
		return rule{}, errText
	}
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return rule{}, errStart
	}
	var segments []segment
	for text := range strings.SplitSeq(rest, "/") {
		if text == "" {
			return rule{}, errEmpty
		}
		for i, c := range text {
			if c == '~' && (i+1 == len(text) || text[i+1] != '0' && text[i+1] != '1') {
				return rule{}, errTilde
			}
		}
		name := unescaped(text)
		segments = append(segments, segment{name, indexOf(name)})
	}
	switch segments[0].name {
	case every:
		return rule{}, errEvery
	case "decision_id", "timestamp", erased, masked:
		return rule{}, errProtected
	case "labels", "bundles", "req_id":
		if !drop && len(segments) == 1 {
			return rule{}, errTyped
		}
	}
	quoted, err := json.Marshal(pointer)
	if err != nil {
		return rule{}, fmt.Errorf("write as JSON: %w", err)
	}
	return rule{segments: segments, drop: drop, pointer: pointer, quoted: string(quoted)}, nil
}

// indexOf returns the array index of a segment: digits without leading zeros.
func indexOf(name string) int {
	index, err := strconv.Atoi(name)
	if err != nil || strconv.Itoa(index) != name {
		return -1
	}
	return index
}

// Empty reports whether there are no rules.
func (r Rules) Empty() bool { return len(r.rules) == 0 }

// Covers reports whether the value at a pointer (RFC 6901, from the decision's root) is dropped or masked, itself or
// with a value around it.
func (r Rules) Covers(pointer string) bool {
	at := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	return slices.ContainsFunc(r.rules, func(r rule) bool {
		if len(r.segments) > len(at) {
			return false
		}
		for i, s := range r.segments {
			if s.name != every && s.name != unescaped(at[i]) {
				return false
			}
		}
		return true
	})
}

// unescaped undoes ~1 first, as RFC 6901 says, so that ~01 is ~1.
func unescaped(segment string) string {
	return strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
}

// The fields in which OPA lists redacted values.
const (
	erased = "erased"
	masked = "masked"
)
