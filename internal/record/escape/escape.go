// Package escape writes JSON so that it cannot steer a terminal.
package escape

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON escapes each unprintable character as \u, such as U+009B or U+202E. Inside strings the meaning is the same.
// Outside of strings JSON has only line feeds, which stay. The text must have no other white space than these and
// spaces. If nothing needs an escape, it returns text itself.
func JSON(text []byte) []byte {
	var out []byte
	done := 0
	for at := 0; at < len(text); {
		if b := text[at]; b >= ' ' && b <= '~' || b == '\n' {
			at++
			continue
		}
		r, n := utf8.DecodeRune(text[at:])
		if !unicode.IsPrint(r) || r == utf8.RuneError && n == 1 {
			out = appendRune(append(out, text[done:at]...), r)
			done = at + n
		}
		at += n
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

func appendRune(out []byte, r rune) []byte {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(out, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(out, `\u%04x`, r)
}

// Writer escapes the output of a JSON encoder. Each write must contain whole characters.
type Writer struct{ W io.Writer }

func (w Writer) Write(text []byte) (int, error) {
	if _, err := w.W.Write(JSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Encoder returns a JSON encoder with escaped output. Characters that only matter in HTML stay. Each value is one
// write.
func Encoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(Writer{w})
	e.SetEscapeHTML(false)
	return e
}
