package console

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// visible writes each character that cannot be seen, or that turns the order of others, as its code. A page holds
// text of strangers everywhere, so the whole page passes here. Line feeds stay. The code of a character has none that matters
// in HTML, so the markup stays the same.
//
// The value of a field is sent back by its form, so a character of it stays the same: it is written as a reference. Only
// characters that turn the order of others are shown by their codes, where a person sees the value.
func visible(text []byte) []byte { return visibly(text, true) }

func visibly(text []byte, markup bool) []byte {
	var out []byte
	done, quote := 0, -1
	for at := 0; at < len(text); {
		if b := text[at]; b >= ' ' && b <= '~' || b == '\n' {
			if markup && b == '"' {
				quote = at
			}
			at++
			continue
		}
		r, n := utf8.DecodeRune(text[at:])
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			out = append(out, text[done:at]...)
			if sent, seen := inValue(text, quote); sent && refers(r, n) && !(seen && unicode.Is(unicode.Bidi_Control, r)) {
				out = fmt.Appendf(out, "&#x%X;", r)
			} else {
				out = append(out, codeOf(r, n)...)
			}
			done = at + n
		}
		at += n
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

// inValue reports whether the text behind the last quotation mark is the value of a field, and whether a person sees it.
// Only markup has a mark: within values and between tags the templates write a reference for it.
func inValue(text []byte, quote int) (sent, seen bool) {
	if quote < 0 || !bytes.HasSuffix(text[:quote], []byte(" value=")) {
		return false, false
	}
	tag := text[bytes.LastIndexByte(text[:quote], '<')+1 : quote]
	return true, bytes.HasPrefix(tag, []byte("input ")) && !bytes.Contains(tag, []byte(`type="hidden"`))
}

// refers reports whether HTML has a reference for a character. It has none for U+0000, and reads those from U+0080 to
// U+009F as others.
func refers(r rune, n int) bool {
	return r != 0 && (r < 0x80 || r > 0x9f) && (r != utf8.RuneError || n > 1)
}

func codeOf(r rune, n int) string {
	if r == utf8.RuneError && n == 1 {
		return "⟨not UTF-8⟩"
	}
	return fmt.Sprintf("⟨U+%04X⟩", r)
}

// shown is visible for text that a template escapes later. A template would replace U+0000 by another character.
func shown(text string) string { return string(visibly([]byte(text), false)) }
