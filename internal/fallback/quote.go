package fallback

const hexDigits = "0123456789abcdef"

// plainInQuotes marks the bytes that need no escape in a JSON string. Beyond ASCII these are all of valid UTF-8
// except U+2028 and U+2029, which some programs take for the end of a line.
var plainInQuotes = func() (plain [256]bool) {
	for c := range plain {
		plain[c] = c >= 0x20 && c != '"' && c != '\\' && c != 0xe2
	}
	return plain
}()

// appendQuoted appends valid UTF-8 as a JSON string, byte for byte like encoding/json without HTML escaping.
func appendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if plainInQuotes[c] {
			i++
			continue
		}
		if c == 0xe2 && (text[i+1] != 0x80 || text[i+2]&^1 != 0xa8) {
			i += 3
			continue
		}
		dst = append(dst, text[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case 0xe2:
			dst = append(dst, `\u202`...)
			dst = append(dst, hexDigits[text[i+2]&0xf])
			i += 2
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hexDigits[c>>4], hexDigits[c&0xf])
		}
		i++
		from = i
	}
	dst = append(dst, text[from:]...)
	return append(dst, '"')
}

// longInQuotes reports whether valid UTF-8 takes more than twice its bytes as a JSON string, without the quotes. Only
// control characters do, with six bytes each. Text with many quotes and line ends does not, so JSON stays readable.
func longInQuotes(text []byte) bool {
	more := 0
	for i, c := range text {
		switch {
		case plainInQuotes[c]:
		case c == 0xe2:
			if text[i+1] == 0x80 && text[i+2]&^1 == 0xa8 {
				more += 3
			}
		case c == '"', c == '\\', c == '\b', c == '\f', c == '\n', c == '\r', c == '\t':
			more++
		default:
			more += 5
		}
	}
	return more > len(text)
}
