package term

import "strings"

// Style is a colour or weight of text on a terminal.
type Style string

// The styles. Nothing is said by colour alone.
const (
	Bold   Style = "\x1b[1m"
	Red    Style = "\x1b[31m"
	Green  Style = "\x1b[32m"
	Yellow Style = "\x1b[33m"
	Cyan   Style = "\x1b[36m"
)

// Colors says when colours are used.
type Colors string

// The choices. The zero value is Auto.
const (
	Auto   Colors = "auto" // on a terminal, unless NO_COLOR or TERM=dumb is set
	Always Colors = "always"
	Never  Colors = "never"
)

func (s *Screen) colored() bool {
	switch s.Color {
	case Always:
		return !s.AsJSON
	case Never:
		return false
	case Auto, "":
	}
	if !s.Terminal.Out {
		return false
	}
	values := Environment(s.Environ)
	return values["NO_COLOR"] == "" && values["TERM"] != "dumb"
}

// Paint escapes a text and gives it a style, where the terminal shows colours.
func (s *Screen) Paint(with Style, text string) Safe {
	safe := Safe(Line(text))
	if with == "" || text == "" || !s.colored() {
		return safe
	}
	return Safe(with) + safe + "\x1b[0m"
}

// Environment is os.Environ as a map.
func Environment(environ []string) map[string]string {
	values := make(map[string]string, len(environ))
	for _, one := range environ {
		name, value, _ := strings.Cut(one, "=")
		values[name] = value
	}
	return values
}
