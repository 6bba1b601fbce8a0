package term

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const stampLayout = "2006-01-02 15:04:05Z"

// Stamp is a time as people and tables have it.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(stampLayout)
}

// Moment is a time and how long ago it was.
func Moment(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return Stamp(t) + " (" + Ago(t, now) + ")"
}

// Ago is how long before now a time was, or how long after it it will be.
func Ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "-"
	case d <= -time.Second:
		return "in " + Span(-d)
	case d < time.Second:
		return "just now"
	default:
		return Span(d) + " ago"
	}
}

// Span is a duration in its largest unit.
func Span(d time.Duration) string {
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

// Counted is a number of things.
func Counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Grouped(n) + " " + what + "s"
}

// ShellWord quotes a word where a shell would not take it as it is.
func ShellWord(word string) string {
	fine := word != ""
	for _, r := range word {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,", r) {
			fine = false
		}
	}
	if fine {
		return word
	}
	if Line(word) != word {
		return escapedWord(word)
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Command writes a command for a shell. Its flags are written already. They come before an argument that looks like one.
func Command(name string, args []string, flags ...string) string {
	words := make([]string, len(args))
	dashed := false
	for i, arg := range args {
		words[i] = ShellWord(arg)
		dashed = dashed || strings.HasPrefix(arg, "-")
	}
	if dashed {
		return strings.Join(slices.Concat([]string{name}, flags, []string{"--"}, words), " ")
	}
	return strings.Join(slices.Concat([]string{name}, words, flags), " ")
}

// escapedWord writes a hostile word in the way that bash, zsh and ksh read.
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

// Folded escapes a text and breaks it into lines of at most width, each after the indent.
func Folded(text, indent string, width int) Safe { return Safe(fold(Line(text), indent, width)) }

func fold(text, indent string, width int) string {
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

// Grouped writes 12034 as 12,034.
func Grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Cut is a text without its end, where that is longer than n bytes.
func Cut(text string, n int) string {
	if len(text) > n {
		return text[:n]
	}
	return text
}

// Join puts words side by side, without gaps for those that are empty.
func Join(words ...string) string {
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}
