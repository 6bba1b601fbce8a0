package conservation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// sample is a real decision log with two gaps, for another id and time.
type sample struct {
	parts  [3][]byte // around the two gaps
	idLast bool      // the time comes before the id
}

var errSample = errors.New("sample is not a JSON object with a decision_id and a timestamp that are strings")

// parseSample finds the two values to replace. Only the top level counts, because inputs have timestamps too.
func parseSample(raw []byte) (sample, error) {
	raw = bytes.TrimSpace(raw)
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return sample{}, errSample
	}
	var id, at [2]int
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return sample{}, errSample
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return sample{}, errSample
		}
		end := int(dec.InputOffset())
		span := [2]int{end - len(value), end}
		isText := len(value) > 0 && value[0] == '"'
		switch {
		case name == "decision_id" && isText:
			id = span
		case name == "timestamp" && isText:
			at = span
		}
	}
	if id[1] == 0 || at[1] == 0 {
		return sample{}, errSample
	}
	s := sample{idLast: at[0] < id[0]}
	if s.idLast {
		id, at = at, id
	}
	s.parts = [3][]byte{raw[:id[0]], raw[id[1]:at[0]], raw[at[1]:]}
	return s, nil
}

// with fills the gaps. front has members to put before all others, as in `"a":1,`, or is empty.
func (s sample) with(id string, at time.Time, front string) []byte {
	first, second := quote(id), quote(at.Format(time.RFC3339Nano))
	if s.idLast {
		first, second = second, first
	}
	out := make([]byte, 0, len(s.parts[0])+len(s.parts[1])+len(s.parts[2])+len(first)+len(second)+len(front))
	out = append(out, '{')
	out = append(out, front...)
	out = append(out, s.parts[0][1:]...)
	out = append(out, first...)
	out = append(out, s.parts[1]...)
	out = append(out, second...)
	return append(out, s.parts[2]...)
}

func quote(s string) string { return `"` + s + `"` }

func parseSamples(raw [][]byte) ([]sample, error) {
	samples := make([]sample, 0, len(raw))
	for i, r := range raw {
		s, err := parseSample(r)
		if err != nil {
			return nil, fmt.Errorf("sample %d: %w", i, err)
		}
		samples = append(samples, s)
	}
	if len(samples) == 0 {
		return nil, errors.New("no samples to make decision logs of")
	}
	return samples, nil
}
