package reader

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"docket/internal/record/verdict"
)

// WordError says why a value of a filter is invalid. Its text is safe to show; it does not contain the value.
type WordError struct{ text string }

func (e *WordError) Error() string { return e.text }

func wrong(format string, args ...any) error { return &WordError{fmt.Sprintf(format, args...)} }

// Verdicts returns all verdicts in their usual order.
func Verdicts() []Verdict { return verdict.All() }

// ParseVerdict reads a verdict's name, in upper or lower case.
func ParseVerdict(text string) (Verdict, error) {
	if v := Verdict(strings.ToLower(strings.TrimSpace(text))); slices.Contains(Verdicts(), v) {
		return v, nil
	}
	var names []string
	for _, v := range Verdicts() {
		names = append(names, string(v))
	}
	return "", wrong("unknown verdict (choose from %s)", strings.Join(names, ", "))
}

// ParseLabel reads NAME=VALUE, cut at the first equals sign.
func ParseLabel(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", "", wrong("a label must be NAME=VALUE, like app=checkout")
	}
	if !storable(name) || !storable(value) {
		return "", "", wrong("a label must be UTF-8 without U+0000")
	}
	return name, value, nil
}

// ParseTime reads a time: how long before now (90s, 2h, 7d, 2w), a day, RFC 3339, or "now". A day is 2026-11-21,
// today, yesterday, or the last monday to sunday, which may be today. A day means its beginning. Days and the result
// are in UTC, of the years 1 to 9999.
func ParseTime(text string, now time.Time) (time.Time, error) {
	t, ok := time.Time{}, false
	if d, fits := ago(text); fits {
		t, ok = now.Add(-d), true
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			t, ok = at, true
		}
	}
	if day, fits := dayOf(text, now); fits {
		t, ok = day, true
	}
	if text == "now" {
		t, ok = now, true
	}
	if t = t.UTC(); !ok || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, wrong("give a time ago (90m, 2h, 7d), a day (yesterday, monday, 2026-11-21) or a time (2026-11-21T20:15:00Z)")
	}
	return t, nil
}

// dayOf reads the name of a day.
func dayOf(text string, now time.Time) (time.Time, bool) {
	now = now.UTC()
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	switch strings.ToLower(text) {
	case "today":
		return today, true
	case "yesterday":
		return today.AddDate(0, 0, -1), true
	}
	for n := range 7 {
		if day := today.AddDate(0, 0, -n); strings.EqualFold(text, day.Weekday().String()) {
			return day, true
		}
	}
	return time.Time{}, false
}

// ago reads a duration before now. Unlike Go's durations it may have days.
func ago(text string) (time.Duration, bool) {
	for unit, long := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			n, err := strconv.ParseFloat(number, 64)
			ns := n * float64(long)
			return time.Duration(ns), err == nil && ns >= 0 && ns < math.MaxInt64
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}

// MaxMatchBytes limits the value of a Match.
const MaxMatchBytes = 64 << 10

// ParseMatch reads IN:/POINTER=VALUE. IN is input, result or raw (the whole decision). The pointer is RFC 6901. VALUE
// is JSON, or else a string. Without =VALUE any value matches, null included. Without :/POINTER it is all of IN. A
// pointer with an equals sign is written as a JSON string: input:"/a=b"=1.
func ParseMatch(text string) (Match, error) {
	n := strings.IndexAny(text, ":=")
	if n < 0 {
		n = len(text)
	}
	m, rest := Match{In: text[:n]}, text[n:]
	if m.In != "input" && m.In != "result" && m.In != "raw" {
		return Match{}, wrong("a match must begin with input, result or raw, like input:/user=alice")
	}
	if after, ok := strings.CutPrefix(rest, ":"); ok {
		var err error
		if m.Pointer, rest, err = cutPointer(after); err != nil {
			return Match{}, err
		}
		if _, err := ParsePointer(m.Pointer); err != nil {
			return Match{}, err
		}
	}
	if rest == "" {
		return m, nil
	}
	value, ok := strings.CutPrefix(rest, "=")
	if !ok {
		return Match{}, wrong("after the pointer comes =VALUE, or nothing")
	}
	var err error
	m.Value, err = jsonOf(value)
	return m, err
}

// cutPointer takes a pointer from the beginning of text, quoted or up to the first equals sign.
func cutPointer(text string) (pointer, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		n := strings.IndexByte(text, '=')
		if n < 0 {
			n = len(text)
		}
		return text[:n], text[n:], nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&pointer); err != nil {
		return "", "", wrong("a pointer in quotes must be a JSON string")
	}
	return pointer, text[d.InputOffset():], nil
}

// jsonOf returns a value as JSON. It refuses values that Postgres's jsonb refuses, because no stored decision has
// them.
func jsonOf(text string) (json.RawMessage, error) {
	switch {
	case len(text) > MaxMatchBytes:
		return nil, wrong("a value may have at most %d bytes", MaxMatchBytes)
	case !json.Valid([]byte(text)):
		if !storable(text) {
			return nil, wrong("a value must be UTF-8 without U+0000")
		}
		quoted, err := json.Marshal(text)
		return quoted, err
	case !storableJSON(text):
		return nil, wrong("Postgres cannot store such a value: U+0000, half a surrogate pair, a number out of range or too deep nesting")
	}
	return json.RawMessage(strings.TrimSpace(text)), nil
}

// ParsePointer reads a JSON pointer (RFC 6901) into its steps; "" has none and means all.
func ParsePointer(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, wrong("a JSON pointer must begin with /")
	}
	if len(text) > maxPointerBytes || !storable(text) {
		return nil, wrong("a JSON pointer must be UTF-8 without U+0000, with at most %d bytes", maxPointerBytes)
	}
	steps := strings.Split(text[1:], "/")
	for i, step := range steps {
		for j := 0; j < len(step); j++ {
			if step[j] == '~' && (j+1 == len(step) || step[j+1] != '0' && step[j+1] != '1') {
				return nil, wrong("in a JSON pointer write ~0 for ~ and ~1 for /")
			}
		}
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
	}
	return steps, nil
}

const maxPointerBytes = 4 << 10

// IsWord reports whether an error is a [WordError].
func IsWord(err error) bool {
	var w *WordError
	return errors.As(err, &w)
}
