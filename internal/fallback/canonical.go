package fallback

import (
	"bytes"
	"encoding/base64"

	"github.com/twmb/franz-go/pkg/kgo"
)

// canonical reads a line in exactly the form that appendLine writes: these names in this order, without white space.
// It rejects all other lines, and the general reader reads those. For accepted lines both return the same result. It
// is a short cut and not the format, because lines of other writers may look different.
type canonical struct {
	rest []byte
	slab []byte // the decoded texts; as long as the line, so it never moves
}

// readCanonical reads a line that is valid UTF-8.
func readCanonical(line []byte) (Line, bool) {
	c := canonical{rest: bytes.TrimSuffix(line, []byte("\n")), slab: make([]byte, 0, len(line))}
	r := new(kgo.Record)
	l := Line{Record: r}
	topic, ok := c.field(`{"topic":`, `,"topic_encoding":`)
	if !ok || len(topic) == 0 {
		return Line{}, false
	}
	r.Topic = string(topic)
	if r.Key, ok = c.field(`,"key":`, `,"key_encoding":`); !ok {
		return Line{}, false
	}
	if r.Value, ok = c.field(`,"value":`, `,"value_encoding":`); !ok {
		return Line{}, false
	}
	if r.Headers, ok = c.headers(); !ok || !c.time(r) {
		return Line{}, false
	}
	l.Oversize = c.literal(`,"oversize":true`)
	return l, c.literal(`}`) && len(c.rest) == 0
}

func (c *canonical) literal(s string) bool {
	if len(c.rest) < len(s) || string(c.rest[:len(s)]) != s {
		return false
	}
	c.rest = c.rest[len(s):]
	return true
}

// field reads a name, its text and the mark of base64, if there is one. A nil text is null.
func (c *canonical) field(name, mark string) (text []byte, ok bool) {
	if !c.literal(name) {
		return nil, false
	}
	if c.literal("null") {
		return nil, true
	}
	if text, ok = c.text(); !ok || !c.literal(mark) {
		return text, ok
	}
	if !c.literal(`"base64"`) {
		return nil, false
	}
	n, err := base64.StdEncoding.Strict().Decode(text, text)
	return text[:n:n], err == nil
}

func (c *canonical) headers() ([]kgo.RecordHeader, bool) {
	if !c.literal(`,"headers":[`) {
		return nil, false
	}
	if c.literal("]") {
		return nil, true
	}
	headers := make([]kgo.RecordHeader, 0, 12)
	for {
		name, ok := c.field(`{"key":`, `,"key_encoding":`)
		if !ok || name == nil {
			return nil, false
		}
		value, ok := c.field(`,"value":`, `,"encoding":`)
		if !ok || !c.literal("}") {
			return nil, false
		}
		headers = append(headers, kgo.RecordHeader{Key: string(name), Value: value})
		if c.literal("]") {
			return headers, true
		}
		if !c.literal(",") {
			return nil, false
		}
	}
}

func (c *canonical) time(r *kgo.Record) bool {
	if !c.literal(`,"timestamp":`) {
		return false
	}
	if c.literal("null") {
		return true
	}
	text, ok := c.text()
	if !ok {
		return false
	}
	s, encoding := string(text), ""
	if c.literal(`,"timestamp_encoding":"unix"`) {
		encoding = encodingUnix
	}
	at, err := fromTime(&s, encoding)
	r.Timestamp = at
	return err == nil
}

// text reads a JSON string into the slab. Surrogates are left to the general reader.
func (c *canonical) text() ([]byte, bool) {
	if !c.literal(`"`) {
		return nil, false
	}
	start := len(c.slab)
	for {
		n := bytes.IndexByte(c.rest, '"')
		if n < 0 {
			return nil, false
		}
		escape := bytes.IndexByte(c.rest[:n], '\\')
		part := c.rest[:n]
		if escape >= 0 {
			part = part[:escape]
		}
		for _, b := range part {
			if b < 0x20 {
				return nil, false
			}
		}
		c.slab = append(c.slab, part...)
		if escape < 0 {
			c.rest = c.rest[n+1:]
			return c.slab[start:len(c.slab):len(c.slab)], true
		}
		c.rest = c.rest[escape:]
		if !c.escape() {
			return nil, false
		}
	}
}

// unescaped maps the byte after a backslash to its meaning, except for \u.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (c *canonical) escape() bool {
	if len(c.rest) < 2 {
		return false
	}
	if b := unescaped[c.rest[1]]; b != 0 {
		c.slab = append(c.slab, b)
		c.rest = c.rest[2:]
		return true
	}
	// appendQuoted escapes two characters beyond ASCII, and control characters.
	switch {
	case c.literal(`\u2028`):
		c.slab = append(c.slab, "\u2028"...)
	case c.literal(`\u2029`):
		c.slab = append(c.slab, "\u2029"...)
	case c.literal(`\u00`) && len(c.rest) >= 2:
		high := bytes.IndexByte([]byte("01"), c.rest[0])
		low := bytes.IndexByte([]byte(hexDigits), c.rest[1])
		if high < 0 || low < 0 {
			return false
		}
		c.slab = append(c.slab, byte(high<<4|low))
		c.rest = c.rest[2:]
	default:
		return false
	}
	return true
}
