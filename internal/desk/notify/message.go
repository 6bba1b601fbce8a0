package notify

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind is the kind of a message.
type Kind string

// The kinds.
const (
	Alert    Kind = "alert"
	Resolved Kind = "resolved" // a reported alert is over
	Report   Kind = "report"
)

// Severity is the urgency of a message.
type Severity string

// The severities.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Error   Severity = "error" // data is being lost
)

// Message is a message to people.
type Message struct {
	Kind     Kind
	Key      string // the subject: an alert and its resolved have the same
	Title    string // one line
	Lines    []string
	Severity Severity

	id     string    // made by Send
	at     time.Time // time of Send
	result *result   // of Deliver
}

// Limits of a message, in bytes. A chat shows a text of this size at once.
const (
	maxTitle = 200
	maxLine  = 500
	maxText  = 3500
)

// Plain makes a name from outside safe for a chat. Letters, digits, / _ and - stay; other characters become ·. So
// nothing in it is a link, a mention or formatting. It is cut to at most n characters.
func Plain(name string, n int) string {
	var b strings.Builder
	for _, r := range name {
		if n == 0 {
			return b.String() + "…"
		}
		n--
		if unicode.IsLetter(r) && r != utf8.RuneError || unicode.IsDigit(r) || strings.ContainsRune("/_-", r) {
			b.WriteRune(r)
		} else {
			b.WriteRune('·')
		}
	}
	return b.String()
}

// tidy returns the message without control characters and invisible ones, cut to the limits.
func (m Message) tidy() Message {
	m.Title = line(m.Title, maxTitle)
	lines := make([]string, len(m.Lines))
	for i, l := range m.Lines {
		lines[i] = line(l, maxLine)
	}
	m.Lines = lines
	return m
}

func line(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// text returns the lines as one text, cut at the end of a line if it is too long.
func (m Message) text() string {
	var b strings.Builder
	for i, l := range m.Lines {
		if b.Len()+len(l) > maxText {
			b.WriteString("… and ")
			b.WriteString(count(len(m.Lines) - i))
			break
		}
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}
