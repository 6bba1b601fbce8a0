package term

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"docket/internal/record/escape"
)

// Terminal says which standard streams are a terminal. The zero value has none: everything is a pipe or a file.
type Terminal struct {
	In, Out, Err bool // standard input, output, error are a terminal
	Width        int  // columns; 0: not known
	Height       int  // lines; 0: not known
}

// Screen is where a command prints, and where a person answers. It escapes each value that is printed, unless it is [Safe].
type Screen struct {
	Program  string    // the name in complaints
	Out, Err io.Writer // results; remarks
	In       io.Reader // answers
	Terminal Terminal
	Environ  []string         // as os.Environ has it
	Clock    func() time.Time // the time that ages are counted from
	Color    Colors           // when colours are used
	AsJSON   bool             // print JSON
	Wide     bool             // print whole ids and all columns
	Broken   bool             // something could not be written as JSON

	answers *bufio.Reader
}

// Now is the time in UTC.
func (s *Screen) Now() time.Time { return s.Clock().UTC() }

// Say prints a result, as [Fprintf] does.
func (s *Screen) Say(format string, args ...any) { Fprintf(s.Out, format, args...) }

// Tell prints a remark to standard error.
func (s *Screen) Tell(format string, args ...any) { Fprintf(s.Err, format, args...) }

// Raw writes bytes as they are, for a file or a pipe.
func (s *Screen) Raw(content []byte) { _, _ = s.Out.Write(content) }

// Print writes JSON. Names of fields are stable; nothing in it controls a terminal.
func (s *Screen) Print(v any) {
	var b bytes.Buffer
	e := escape.Encoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		s.Broken = true
		s.Tell("%s: write JSON: %v\n", s.Program, err)
		return
	}
	s.Raw(b.Bytes())
}

// Unwritten reports a value that could not be written as JSON. Postgres keeps it as jsonb, so this does not happen.
func (s *Screen) Unwritten(err error) {
	s.Broken = true
	s.Tell("%s: write JSON: %s\n", s.Program, fmt.Sprintf("%T", err))
}

// Width is how wide a line may be; 0: as wide as it gets.
func (s *Screen) Width() int {
	if !s.Terminal.Out {
		return 0
	}
	return s.terminalWidth()
}

// terminalWidth is how many columns the terminal has.
func (s *Screen) terminalWidth() int {
	if s.Terminal.Width > 0 {
		return s.Terminal.Width
	}
	if n, err := strconv.Atoi(Environment(s.Environ)["COLUMNS"]); err == nil && n > 0 {
		return n
	}
	return defaultWidth
}

const defaultWidth = 80

// Heading prints the title of a section.
func (s *Screen) Heading(text string) { s.Say("\n%s\n", s.Paint(Bold, text)) }

// Field prints a line of a section: a name and a text. It prints nothing where the text is empty.
func (s *Screen) Field(name, text string) { s.Painted(name, Safe(Line(text))) }

// Painted is [Screen.Field] for a text that has colours.
func (s *Screen) Painted(name string, text Safe) {
	if text == "" {
		return
	}
	const column = 16
	lines := strings.Split(fold(string(text), strings.Repeat(" ", column+2), s.Width()), "\n")
	s.Say("  %-*s%s\n", column, name, Safe(strings.TrimLeft(lines[0], " ")))
	for _, line := range lines[1:] {
		s.Say("%s\n", Safe(line))
	}
}

// Action is something that a person can do next.
type Action struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// Actions prints the commands that fit what was shown before.
func (s *Screen) Actions(all []Action) {
	s.Heading("What you can do now")
	for _, a := range all {
		s.Say("  %s\n    %s\n", a.Text, s.Paint(Cyan, a.Command))
	}
}

// Diff colours a unified diff.
func (s *Screen) Diff(text string) Safe {
	lines := strings.Split(strings.TrimSuffix(string(Lines(text)), "\n"), "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "+"):
			lines[i] = string(s.Paint(Green, line))
		case strings.HasPrefix(line, "-"):
			lines[i] = string(s.Paint(Red, line))
		case strings.HasPrefix(line, "@@"):
			lines[i] = string(s.Paint(Cyan, line))
		}
	}
	return Safe(strings.Join(lines, "\n"))
}
