package demo

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"
)

// screen is where the demo writes. On a terminal progress is one line at the bottom that changes; elsewhere every
// progress is a line. It is safe for concurrent use.
type screen struct {
	mu    sync.Mutex
	out   io.Writer
	live  bool
	width int // of the live line on the screen
}

func newScreen(out io.Writer, live bool) *screen { return &screen{out: out, live: live} }

// say writes a line that stays.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintf(s.out, format+"\n", args...)
}

// progress writes how far it is.
func (s *screen) progress(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live {
		fmt.Fprintln(s.out, line)
		return
	}
	s.clear()
	fmt.Fprint(s.out, "\x1b[?7l"+line+"\x1b[?7h") // a line that is too long for the terminal is cut, not wrapped
	s.width = utf8.RuneCountInString(line)
}

func (s *screen) clear() {
	if s.width > 0 {
		fmt.Fprint(s.out, "\r\x1b[2K")
		s.width = 0
	}
}

// number writes n with a comma between thousands.
func number[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	start := len(digits) % 3
	if n < 0 {
		return "-" + number(-n)
	}
	out := digits[:start]
	for i := start; i < len(digits); i += 3 {
		if out != "" {
			out += ","
		}
		out += digits[i : i+3]
	}
	return out
}
