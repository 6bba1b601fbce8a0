package subject

import (
	"errors"
	"strings"

	"docket/internal/record/decision"
)

var (
	errStart = errors.New("a JSON pointer starts with /")
	errTilde = errors.New("~ in a JSON pointer is ~0, and / is ~1")
)

// checkPointer returns an error if the pointer is not valid in RFC 6901.
func checkPointer(pointer string) error {
	if !strings.HasPrefix(pointer, "/") {
		return errStart
	}
	for rest := pointer; ; {
		_, after, found := strings.Cut(rest, "~")
		if !found {
			return nil
		}
		if after == "" || after[0] != '0' && after[0] != '1' {
			return errTilde
		}
		rest = after
	}
}

// unescape undoes ~1 first, as RFC 6901 says, so that ~01 is ~1.
func unescape(segment string) string {
	if !strings.Contains(segment, "~") {
		return segment
	}
	return strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
}

// at follows a checked pointer; nil if there is no value.
func at(value []byte, pointer string) []byte {
	for pointer != "" && value != nil {
		segment, _, more := strings.Cut(pointer[1:], "/")
		if pointer = pointer[1+len(segment):]; !more {
			pointer = ""
		}
		value = step(value, unescape(segment))
	}
	return value
}

// step returns a member by its name or an element by its index.
func step(value []byte, segment string) []byte {
	if len(value) == 0 || value[0] != '[' {
		return last(value, segment)
	}
	index, ok := indexOf(segment)
	if !ok {
		return nil
	}
	for in := decision.Into(value, 0); in.Next(); {
		if in.Index == index {
			return value[in.Value:in.End]
		}
	}
	return nil
}

// indexOf reads an array index: digits without leading zeros. No array reaches an index of more than nine digits.
func indexOf(segment string) (index int, ok bool) {
	if segment == "" || len(segment) > 9 || segment[0] == '0' && len(segment) > 1 {
		return 0, false
	}
	for _, c := range []byte(segment) {
		if c < '0' || c > '9' {
			return 0, false
		}
		index = index*10 + int(c-'0')
	}
	return index, true
}
