package term

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Safe is text that is printed as it is: the program wrote it, or it was escaped before.
type Safe string

// Fprintf prints a text. It escapes each value that is not [Safe]; the format is the program's own. Errors of the writer are ignored:
// nobody reads any more.
func Fprintf(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, escaped(args)...)
}

// escaped makes values fit for a terminal. It leaves [Safe] text, numbers and booleans as they are. An error keeps its lines.
func escaped(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case Safe:
			out[i] = string(v)
		case error:
			out[i] = string(Lines(v.Error()))
		case []byte:
			out[i] = Line(string(v))
		case interface{ String() string }:
			out[i] = Line(v.String())
		default:
			out[i] = arg
			if r := reflect.ValueOf(arg); r.Kind() == reflect.String {
				out[i] = Line(r.String())
			}
		}
	}
	return out
}

// Brief shortens a text and escapes it on one line, so that it cannot control a terminal.
func Brief(text string) string {
	const most = 200
	if len(text) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "..."
	}
	return Line(text)
}

// Line escapes a text of any length on one line. Text that was escaped before stays as it is.
func Line(text string) string {
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

// Lines is Line for a text that keeps its lines; a tab becomes four spaces.
func Lines(text string) Safe {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Line(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    "))
	}
	return Safe(strings.Join(lines, "\n"))
}

// Quoted shows an argument, short and on one line.
func Quoted(arg string) string { return `"` + Brief(arg) + `"` }
