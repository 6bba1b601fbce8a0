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

// JSON writes each character that cannot be printed as \u, such as U+009B or U+202E. Inside strings that means the same, and
// outside of them JSON has none but line feeds, which stay; text must have no other white space than those and spaces. It
// returns text itself where nothing is to be escaped.
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

// Writer escapes what an encoder of JSON writes to it. Each write must hold whole characters.
type Writer struct{ W io.Writer }

func (w Writer) Write(text []byte) (int, error) {
	if _, err := w.W.Write(JSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Encoder is an encoder of JSON whose text is escaped. It leaves what only HTML would read as it is. It writes a value by one
// write.
func Encoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(Writer{w})
	e.SetEscapeHTML(false)
	return e
}
