package pgmodel

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxDepth is approximately the depth that a server reads. Its stack decides, which depends on the build and on
// max_stack_depth.
const maxDepth = 14_500

// document is JSON in a normal form: two are equal as jsonb if and only if their bytes are.
type document []byte

// checkJSON returns the server's failure for text that is not valid jsonb.
func checkJSON(b []byte) *failure {
	p := jsonReader{src: b, check: true}
	_, f := p.document(nil)
	return f
}

// normalize returns the normal form.
func normalize(b []byte) (document, *failure) {
	p := jsonReader{src: b}
	return p.document(make([]byte, 0, len(b)+len(b)/4))
}

// equals reports whether raw equals the tuple's as jsonb.
func (t *tuple) equals(raw []byte) (bool, *failure) {
	if raw == nil {
		return false, nil // raw of a stored row is never NULL
	}
	if f := checkJSON(raw); f != nil {
		return false, f
	}
	if bytes.Equal(t.Raw, raw) {
		return true, nil
	}
	is, f := normalize(raw)
	if f != nil {
		return false, f
	}
	was, f := normalize(t.Raw)
	return bytes.Equal(is, was), f
}

// jsonReader reads one document by the server's rules. It appends the normal form unless it only checks.
type jsonReader struct {
	src   []byte
	pos   int
	depth int
	check bool
}

func (p *jsonReader) syntax() *failure {
	f := fail("22P02", "invalid input syntax for type json")
	f.detail = "Token is invalid: " + string(p.src[min(p.pos, len(p.src)):])
	return f
}

func (p *jsonReader) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *jsonReader) blanks() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *jsonReader) document(out []byte) (document, *failure) {
	out, f := p.value(out)
	if f != nil {
		return nil, f
	}
	if p.blanks(); p.pos < len(p.src) {
		return nil, p.syntax()
	}
	return out, nil
}

func (p *jsonReader) value(out []byte) ([]byte, *failure) {
	p.blanks()
	switch c := p.peek(); {
	case c == '{':
		return p.nested(out, p.object)
	case c == '[':
		return p.nested(out, p.array)
	case c == '"':
		return p.string(out)
	case c == '-' || c-'0' <= 9:
		return p.number(out)
	}
	for _, word := range []string{"null", "true", "false"} {
		if bytes.HasPrefix(p.src[p.pos:], []byte(word)) {
			p.pos += len(word)
			return p.emit(out, word[0]), nil
		}
	}
	return nil, p.syntax()
}

func (p *jsonReader) emit(out []byte, b ...byte) []byte {
	if p.check {
		return out
	}
	return append(out, b...)
}

func (p *jsonReader) nested(out []byte, read func([]byte) ([]byte, *failure)) ([]byte, *failure) {
	if p.depth++; p.depth > maxDepth {
		return nil, fail("54001", "stack depth limit exceeded")
	}
	p.pos++
	out, f := read(out)
	p.depth--
	return out, f
}

func (p *jsonReader) array(out []byte) ([]byte, *failure) {
	out = p.emit(out, '[')
	if p.blanks(); p.peek() == ']' {
		p.pos++
		return p.emit(out, ']'), nil
	}
	for {
		var f *failure
		if out, f = p.value(out); f != nil {
			return nil, f
		}
		p.blanks()
		switch p.peek() {
		case ',':
			p.pos++
		case ']':
			p.pos++
			return p.emit(out, ']'), nil
		default:
			return nil, p.syntax()
		}
	}
}

// member is a key with its value, both in normal form, as places in one buffer.
type member struct{ key, value []byte }

func (p *jsonReader) object(out []byte) ([]byte, *failure) {
	out = p.emit(out, '{')
	var members []member
	if p.blanks(); p.peek() == '}' {
		p.pos++
		return p.emit(out, '}'), nil
	}
	for {
		m, f := p.member()
		if f != nil {
			return nil, f
		}
		if !p.check {
			members = append(members, m)
		}
		p.blanks()
		switch p.peek() {
		case ',':
			p.pos++
			p.blanks()
		case '}':
			p.pos++
			for _, m := range lastWins(members) {
				out = append(append(out, m.key...), m.value...)
			}
			return p.emit(out, '}'), nil
		default:
			return nil, p.syntax()
		}
	}
}

func (p *jsonReader) member() (m member, f *failure) {
	if p.peek() != '"' {
		return m, p.syntax()
	}
	if m.key, f = p.string(nil); f != nil {
		return m, f
	}
	if p.blanks(); p.peek() != ':' {
		return m, p.syntax()
	}
	p.pos++
	m.value, f = p.value(nil)
	return m, f
}

// lastWins sorts by key and keeps the last of each.
func lastWins(members []member) []member {
	slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	kept := members[:0]
	for i, m := range members {
		if i+1 == len(members) || !bytes.Equal(m.key, members[i+1].key) {
			kept = append(kept, m)
		}
	}
	return kept
}

// string reads a string. Its normal form is its length and its meaning.
func (p *jsonReader) string(out []byte) ([]byte, *failure) {
	p.pos++
	var s []byte
	for {
		if p.pos >= len(p.src) {
			return nil, p.syntax()
		}
		c := p.src[p.pos]
		switch {
		case c == '"':
			p.pos++
			out = p.emit(out, '"')
			if !p.check {
				out = append(binary.BigEndian.AppendUint32(out, uint32(len(s))), s...)
			}
			return out, nil
		case c < ' ':
			return nil, p.syntax()
		case c == '\\':
			r, f := p.escape()
			if f != nil {
				return nil, f
			}
			if !p.check {
				s = utf8.AppendRune(s, r)
			}
		default:
			if p.pos++; !p.check {
				s = append(s, c)
			}
		}
	}
}

var escapes = map[byte]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (p *jsonReader) escape() (rune, *failure) {
	p.pos++
	if p.peek() != 'u' {
		r, ok := escapes[p.peek()]
		if !ok {
			return 0, p.syntax()
		}
		p.pos++
		return r, nil
	}
	r, f := p.unit()
	switch {
	case f != nil:
		return 0, f
	case r == 0:
		f := fail("22P05", "unsupported Unicode escape sequence")
		f.detail = "\\u0000 cannot be converted to text."
		return 0, f
	case r >= 0xDC00 && r <= 0xDFFF:
		return 0, p.surrogate("low surrogate must follow a high surrogate")
	case r < 0xD800 || r > 0xDBFF:
		return r, nil
	}
	if !bytes.HasPrefix(p.src[p.pos:], []byte(`\u`)) {
		return 0, p.surrogate("low surrogate must follow a high surrogate")
	}
	p.pos++
	low, f := p.unit()
	switch {
	case f != nil:
		return 0, f
	case low < 0xDC00 || low > 0xDFFF:
		return 0, p.surrogate("low surrogate must follow a high surrogate")
	}
	return (r-0xD800)<<10 + (low - 0xDC00) + 0x10000, nil
}

func (p *jsonReader) surrogate(detail string) *failure {
	f := p.syntax()
	f.detail = "Unicode " + detail + "."
	return f
}

// unit reads u and four hexadecimal digits.
func (p *jsonReader) unit() (rune, *failure) {
	if p.pos+5 > len(p.src) {
		return 0, p.syntax()
	}
	n, err := strconv.ParseUint(string(p.src[p.pos+1:p.pos+5]), 16, 16)
	if err != nil {
		return 0, p.syntax()
	}
	p.pos += 5
	return rune(n), nil
}
