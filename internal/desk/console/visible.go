package console

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// visible writes each character that cannot be seen, or that turns the order of others, as its code. A page holds
// text of strangers everywhere, so the whole page passes here. Line feeds stay. The code of a character has none that matters
// in HTML, so the markup stays the same.
func visible(text []byte) []byte {
	var out []byte
	done := 0
	for at := 0; at < len(text); {
		if b := text[at]; b >= ' ' && b <= '~' || b == '\n' {
			at++
			continue
		}
		r, n := utf8.DecodeRune(text[at:])
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			out = append(out, text[done:at]...)
			out = append(out, codeOf(r, n)...)
			done = at + n
		}
		at += n
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

func codeOf(r rune, n int) string {
	if r == utf8.RuneError && n == 1 {
		return "⟨not UTF-8⟩"
	}
	return fmt.Sprintf("⟨U+%04X⟩", r)
}

// shown is visible for text that a template escapes later. A template would replace U+0000 by another character.
func shown(text string) string { return string(visible([]byte(text))) }
