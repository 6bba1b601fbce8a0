package term

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"docket/internal/record/escape"
)

// harmless fails where a text could control a terminal.
func harmless(t *testing.T, text string) {
	t.Helper()
	for i, r := range text {
		if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			t.Errorf("byte %d is %U: %q", i, r, text[max(0, i-20):min(len(text), i+20)])
			return
		}
	}
}

// TestEscape_Random: no text controls a terminal, whatever it is.
func TestEscape_Random(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")) + rapid.String().Draw(rt, "text") + "\u009b\u202e"
		harmless(t, Brief(text)+Line(text)+string(Lines(text)))
		j, err := json.Marshal(text)
		if err != nil {
			rt.Fatal(err)
		}
		safe := escape.JSON(j)
		harmless(t, string(safe))
		var back, was string
		if json.Unmarshal(safe, &back) != nil || json.Unmarshal(j, &was) != nil || back != was || !utf8.Valid(safe) {
			rt.Fatalf("%q is %q", was, back)
		}
	})
}

// TestScreen_EscapesByDefault prints a text that controls a terminal in each way that a screen has.
func TestScreen_EscapesByDefault(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b[31mred\u009b\u202e\n\rx"
	type kind string
	for name, print := range map[string]func(s *Screen){
		"say":     func(s *Screen) { s.Say("%s\n", hostile) },
		"tell":    func(s *Screen) { s.Tell("%v\n", hostile) },
		"error":   func(s *Screen) { s.Say("%v\n", fmt.Errorf("wrapped: %w", errors.New(hostile))) },
		"bytes":   func(s *Screen) { s.Say("%s\n", []byte(hostile)) },
		"kind":    func(s *Screen) { s.Say("%s\n", kind(hostile)) },
		"field":   func(s *Screen) { s.Field("name", hostile) },
		"heading": func(s *Screen) { s.Heading(hostile) },
		"diff":    func(s *Screen) { s.Say("%s\n", s.Diff("+"+hostile)) },
		"actions": func(s *Screen) { s.Actions([]Action{{hostile, hostile}}) },
		"folded":  func(s *Screen) { s.Say("%s\n", Folded(hostile, "  ", 20)) },
		"table": func(s *Screen) {
			s.Table([]Column{{Title: "a", Rank: 1, Least: 4}, {Title: "b"}}, [][]Cell{{{Full: hostile, Brief: hostile}, {Full: hostile}}}, "")
		},
		"print": func(s *Screen) { s.Print(map[string]string{"a": hostile}) },
	} {
		for _, terminal := range []Terminal{{}, {Out: true, Err: true, Width: 40}} {
			t.Run(fmt.Sprint(name, " ", terminal.Out), func(t *testing.T) {
				t.Parallel()
				var out bytes.Buffer
				print(&Screen{Out: &out, Err: &out, Terminal: terminal, Environ: []string{"NO_COLOR=1"}, Clock: time.Now})
				if !strings.Contains(out.String(), `31m`) {
					t.Errorf("the text is missing: %q", out.String())
				}
				harmless(t, out.String())
			})
		}
	}
}

// TestScreen_PaintsOnlyItsOwn prints a hostile text in a colour: only the colour of the program is left.
func TestScreen_PaintsOnlyItsOwn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &Screen{Out: &out, Terminal: Terminal{Out: true, Width: 80}}
	s.Say("%s|%s\n", s.Paint(Red, "\x1b[32mx"), "\x1b[33my")
	if got := out.String(); got != "\x1b[31m\\x1b[32mx\x1b[0m|\\x1b[33my\n" {
		t.Errorf("%q", got)
	}
}
