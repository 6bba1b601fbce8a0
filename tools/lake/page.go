package main

import (
	"fmt"
	"strings"
)

// String says what was written.
func (w *written) String() string {
	return fmt.Sprintf("%s decisions written in %d files, %s bytes each, in %.0f s: %s a second, read back and compared",
		thousands(w.rows), w.files, fmt.Sprintf("%.1f", float64(w.bytes)/float64(max(w.rows, 1))), w.took.Seconds(), thousands(int64(float64(w.rows)/w.took.Seconds())))
}

// titles say what each question asks.
var titles = map[string]string{
	"days":     "decisions a day",
	"rates":    "deny rate by path and month",
	"flips":    "flips by subject",
	"rules":    "rules that denied most",
	"payloads": "methods in a day's payloads",
}

// pageOf is a table in Markdown: the answers side by side, with their times. Equal answers have equal digests.
func pageOf(w *written, asked []*answers) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n| question | rows |", w)
	for _, a := range asked {
		fmt.Fprintf(&b, " %s |", a.Engine)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(asked)) + "\n")
	for _, question := range questions {
		fmt.Fprintf(&b, "| %s | %d |", titles[question], len(asked[0].rows[question]))
		for _, a := range asked {
			b.WriteString(" " + a.digest(question))
			if s, ok := a.Seconds[question]; ok {
				fmt.Fprintf(&b, ", %.1f s", s)
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	b.WriteString("| all | |")
	for _, a := range asked {
		fmt.Fprintf(&b, " %.1f s |", a.took.Seconds())
	}
	b.WriteString("\n\nThe rules that denied most, with denials, subjects, and the first and the last denial in microseconds:\n\n")
	for _, row := range asked[0].rows["rules"] {
		fmt.Fprintf(&b, "    %s\n", row)
	}
	return b.String()
}

// thousands writes a number with commas.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
