package columnar

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"testing"

	"docket/internal/record/subject"
)

// exactly takes a line apart. known: the writer says that its values give it back. same: they do.
func exactly(w *Writer, line []byte) (known, same, ok bool) {
	w.arena = w.arena[:0]
	row, err := w.values(line)
	if err != nil {
		return false, false, false
	}
	known = w.exact
	made, err := w.builder.line(nil, row)
	return known, err == nil && bytes.Equal(made, line), true
}

func exactWriter(t testing.TB) *Writer {
	t.Helper()
	w, err := NewWriter(io.Discard, Options{Columns: table(), Subject: subject.Spec{}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestExact_Lines: usual lines are known to come back, and are not made again. No line that differs is.
func TestExact_Lines(t *testing.T) {
	t.Parallel()
	w := exactWriter(t)
	all := lines(t, 2000, 3)
	known := 0
	for _, line := range all {
		is, same, ok := exactly(w, line)
		if !ok || !same {
			t.Fatalf("%s does not come back", line)
		}
		if is {
			known++
		}
	}
	if known < len(all)*9/10 {
		t.Errorf("%d of %d lines are known to come back", known, len(all))
	}
	for _, line := range oddPayloads() {
		if is, same, ok := exactly(w, line); ok && is && !same {
			t.Errorf("%s is known to come back, and does not", line)
		}
	}
}

// TestExact_Changed: a line with a change anywhere is never known to come back if it does not.
func TestExact_Changed(t *testing.T) {
	t.Parallel()
	w := exactWriter(t)
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"", " ", ",", ", ", ": ", `"`, `\`, `\\`, `\"`, `\u0041`, `\/`, "{", "}", "{}", "[]", "[", "null", "true", "false", "0", "00", "-0", "+1", "1e3", ".5", "\n", "\x01", "\x7f", "é", "\xff", "A", "x",
		`"path": "a", `, `"labels": {}, `, `"timestamp": "2026-11-16T12:00:00Z", `, `"decision_id"`, `,"path":"a"`, "+00:00", "Z", "ABCDEF", "T", "2026"}
	kept, differ := 0, 0
	for _, line := range lines(t, 30, 3) {
		for range 1500 {
			at, cut := random.IntN(len(line)+1), 0
			if random.IntN(2) == 0 {
				cut = min(random.IntN(4), len(line)-at)
			}
			changed := append(append(bytes.Clone(line[:at]), pieces[random.IntN(len(pieces))]...), line[at+cut:]...)
			if !json.Valid(changed) {
				continue
			}
			known, same, ok := exactly(w, changed)
			switch {
			case !ok:
			case known && !same:
				t.Fatalf("%s\nis known to come back, and does not", changed)
			case same:
				kept++
			default:
				differ++
			}
		}
	}
	if kept < 100 || differ < 100 {
		t.Errorf("%d lines come back and %d do not: too few to tell", kept, differ)
	}
}
