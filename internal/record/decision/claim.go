package decision

import (
	"io"
	"iter"
	"time"
	"unicode/utf8"
)

// mostClaimed limits the inflated bytes that are read for a claim. OPA writes decision_id and timestamp first, before
// data that its callers choose.
const mostClaimed = 1 << 20

// Claim is the identity that a value claims, as far as it can be read.
type Claim struct {
	ID      string    // decision_id as text in UTF-8, with U+FFFD for characters outside UTF-8; empty: unreadable
	Escaped []byte    // the id as written between its quotes
	Time    time.Time // its timestamp; zero: unreadable
}

// ClaimOf reads decision_id and timestamp of a JSON object that the decoder may refuse, even if the object is broken
// behind them. If one occurs twice, the first counts. It reads nothing from an array or from several lines, because
// these are several decisions.
func ClaimOf(value []byte) Claim {
	if IsGzip(value) {
		in, err := Inflate(value)
		if err != nil {
			return Claim{}
		}
		defer in.Close()
		value, _ = io.ReadAll(io.LimitReader(in, mostClaimed)) // everything before an error counts
	}
	c := claimReader{src: value}
	return c.read()
}

// ClaimsOf reads what [ClaimOf] reads of each element of an array that the decoder refuses as a whole. Each comes with its
// place, as far as the array can be read. Elements without a readable id are left out, and so is everything behind maxBytes
// inflated bytes. Of other values it reads nothing.
func ClaimsOf(value []byte, maxBytes int64) iter.Seq2[int, Claim] {
	return func(yield func(int, Claim) bool) {
		src := value
		if IsGzip(value) {
			in, err := Inflate(value)
			if err != nil {
				return
			}
			defer in.Close()
			src, _ = io.ReadAll(io.LimitReader(in, maxBytes)) // everything before an error counts
		}
		c := claimReader{src: src[:min(int64(len(src)), maxBytes)]}
		for place := 0; c.next("[,"[min(place, 1)]) && place < MaxDecisions; place++ {
			element := c
			if claim := element.read(); claim.ID != "" && !yield(place, claim) {
				return
			}
			c.skip()
		}
	}
}

// claimReader reads the members of one object, without checking their values.
type claimReader struct {
	src []byte
	pos int
}

func (c *claimReader) read() (found Claim) {
	if !c.next('{') {
		return found
	}
	for {
		key, ok := c.text()
		if !ok || !c.next(':') {
			return found
		}
		c.space()
		switch string(key) {
		case "decision_id":
			if text, ok := c.peekText(); ok && found.Escaped == nil {
				found.Escaped, found.ID = text, storableText(text)
			}
		case "timestamp":
			if text, ok := c.peekText(); ok && found.Time.IsZero() {
				found.Time, _ = parseTime(appendText(nil, text))
			}
		}
		if !c.skip() || !c.next(',') {
			return found
		}
	}
}

func storableText(raw []byte) string {
	raw, _ = appendStorable(make([]byte, 0, len(raw)), raw)
	return string(appendText(nil, raw))
}

func (c *claimReader) space() {
	for c.pos < len(c.src) && isSpace(c.src[c.pos]) {
		c.pos++
	}
}

// next passes over white space and this character.
func (c *claimReader) next(b byte) bool {
	if c.space(); c.pos == len(c.src) || c.src[c.pos] != b {
		return false
	}
	c.pos++
	return true
}

// text passes over a string, and returns the bytes between its quotes if JSON allows them.
func (c *claimReader) text() (raw []byte, ok bool) {
	if !c.next('"') {
		return nil, false
	}
	start := c.pos
	for c.pos < len(c.src) {
		switch b := c.src[c.pos]; {
		case b == '"':
			raw = c.src[start:c.pos:c.pos]
			c.pos++
			return raw, utf8.Valid(raw)
		case b < ' ':
			return nil, false
		case b == '\\':
			size := 2
			if _, unit := hexUnit(c.src[c.pos:]); unit {
				size = 6
			} else if c.pos+1 == len(c.src) || unescaped[c.src[c.pos+1]] == 0 {
				return nil, false
			}
			c.pos += size
		default:
			c.pos++
		}
	}
	return nil, false
}

// peekText is text for a value that skip passes over next.
func (c *claimReader) peekText() ([]byte, bool) {
	at := *c
	return at.text()
}

// skip passes over a value.
func (c *claimReader) skip() bool {
	for depth := 0; c.pos < len(c.src); {
		switch c.src[c.pos] {
		case '"':
			if _, ok := c.text(); !ok {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return false
			}
			depth--
		case ',':
			if depth == 0 {
				return true
			}
		}
		c.pos++
	}
	return false
}
