package deskcli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
)

// plain keeps what a stranger wrote from steering a terminal, short and on one line.
func plain(text string) string {
	const most = 200
	if len(text) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "..."
	}
	return plainAll(text)
}

// plainAll is plain at any length.
func plainAll(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unicode.IsPrint(r):
			b.WriteString(text[:n])
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[n:]
	}
	return b.String()
}

// plainLines is plainAll for text whose lines and tabs are to stay.
func plainLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = plainAll(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// quoted shows an argument, short and on one line.
func quoted(arg string) string { return `"` + plain(arg) + `"` }

const stampLayout = "2006-01-02 15:04:05Z"

// stamped is a time as people and tables have it.
func stamped(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(stampLayout)
}

// moment is a time and how long ago it was.
func moment(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return stamped(t) + " (" + ago(t, now) + ")"
}

// ago is how long before now a time was, or how long after it it will be.
func ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "-"
	case d <= -time.Second:
		return "in " + long(-d)
	case d < time.Second:
		return "just now"
	default:
		return long(d) + " ago"
	}
}

// long is a duration in its largest unit.
func long(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d/day))
}

// counted is a number of things.
func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return cli.Grouped(n) + " " + what + "s"
}

// states are counts by state, in the order of a dead letter's life.
func states(counts map[ledger.State]int64) string {
	var parts []string
	for _, state := range ledger.States() {
		if n := counts[state]; n > 0 {
			parts = append(parts, string(state)+" "+cli.Grouped(n))
		}
	}
	return strings.Join(parts, ", ")
}

// shell quotes a word where a shell would not take it as it is.
func shell(word string) string {
	fine := word != ""
	for _, r := range word {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,", r) {
			fine = false
		}
	}
	if fine {
		return word
	}
	if plainAll(word) != word {
		return escapedWord(word)
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// escapedWord writes what no terminal should be shown as bash, zsh and ksh read it.
func escapedWord(word string) string {
	var b strings.Builder
	b.WriteString("$'")
	for len(word) > 0 {
		r, n := utf8.DecodeRuneInString(word)
		switch {
		case r == utf8.RuneError && n <= 1 || !unicode.IsPrint(r):
			for i := range n {
				fmt.Fprintf(&b, `\x%02x`, word[i])
			}
			if n < len(word) && isHex(word[n]) {
				b.WriteString("'$'") // a shell may take more than two digits
			}
		case r == '\'' || r == '\\':
			b.WriteString(`\` + word[:n])
		default:
			b.WriteString(word[:n])
		}
		word = word[n:]
	}
	b.WriteString("'")
	return b.String()
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// folded breaks text into lines of at most width, each after the indent.
func folded(text, indent string, width int) string {
	if width == 0 {
		return indent + text
	}
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

func grouped(n int64) string { return cli.Grouped(n) }
