package reader

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// deepest is the depth of JSON that encoding/json reads, too.
const deepest = 10_000

// slabNodes limits the nodes that are allocated together.
const slabNodes = 4096

// parse reads a JSON value, nil if it is invalid. A repeated key has its last value. It reads what encoding/json reads, and
// makes the nodes at once: a payload may have a million names while a person waits for the page.
func parse(raw []byte) *node {
	p := parser{src: string(raw)}
	n := p.node()
	p.space()
	if !p.value(n) {
		return nil
	}
	if p.space(); p.pos != len(p.src) {
		return nil
	}
	return n
}

// parser reads JSON. Texts without escapes are parts of src, which the nodes keep.
type parser struct {
	src   string
	pos   int
	depth int
	slab  []node
	taken int // nodes so far
	open  []member
}

// member is a value of a container that is being read.
type member struct {
	key string
	kid *node
}

func (p *parser) node() *node {
	if len(p.slab) == 0 {
		p.slab = make([]node, min(max(p.taken, 4), slabNodes))
	}
	n := &p.slab[0]
	p.slab = p.slab[1:]
	p.taken++
	return n
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\n', '\r', '\t':
			p.pos++
		default:
			return
		}
	}
}

// next passes over one byte, if it is this one.
func (p *parser) next(b byte) bool {
	if p.pos < len(p.src) && p.src[p.pos] == b {
		p.pos++
		return true
	}
	return false
}

// value reads a value into n. Without one it returns false.
func (p *parser) value(n *node) bool {
	if p.pos == len(p.src) {
		return false
	}
	var ok bool
	switch p.src[p.pos] {
	case '{':
		return p.container(n, isObject, '}')
	case '[':
		return p.container(n, isArray, ']')
	case '"':
		n.kind = isString
		n.text, ok = p.text()
	case 't':
		n.kind, n.text = isBool, "true"
		ok = p.word(n.text)
	case 'f':
		n.kind, n.text = isBool, "false"
		ok = p.word(n.text)
	case 'n':
		n.kind = isNull
		ok = p.word("null")
	default:
		n.kind = isNumber
		n.text, ok = p.number()
	}
	return ok
}

func (p *parser) word(word string) bool {
	ok := strings.HasPrefix(p.src[p.pos:], word)
	p.pos += len(word)
	return ok
}

// container reads the members of an object, or the elements of an array.
func (p *parser) container(n *node, kind nodeKind, closing byte) bool {
	if p.depth++; p.depth > deepest {
		return false
	}
	n.kind = kind
	p.pos++
	from := len(p.open)
	for p.space(); !p.next(closing); p.space() {
		if len(p.open) > from {
			if !p.next(',') {
				return false
			}
			p.space()
		}
		m := member{kid: p.node()}
		if kind == isObject {
			var ok bool
			if m.key, ok = p.text(); !ok {
				return false
			}
			p.space()
			if !p.next(':') {
				return false
			}
			p.space()
		}
		if !p.value(m.kid) {
			return false
		}
		p.open = append(p.open, m)
	}
	p.depth--
	n.fill(p.open[from:])
	clear(p.open[from:])
	p.open = p.open[:from]
	return true
}

// fill gives a container its members.
func (n *node) fill(all []member) {
	if n.kind == isObject {
		all = sorted(all)
		n.keys = make([]string, len(all))
	}
	n.kids = make([]*node, len(all))
	for i, m := range all {
		n.kids[i] = m.kid
		if n.kind == isObject {
			n.keys[i] = m.key
		}
	}
}

// sorted sorts members by key. Of equal keys it keeps the last. jsonb has its keys by length and then by bytes. So a large
// object is a few runs that are in order, and sorted merges these.
func sorted(all []member) []member {
	runs := []int{0} // where each begins
	twice := false
	for i := 1; i < len(all); i++ {
		switch c := strings.Compare(all[i-1].key, all[i].key); {
		case c > 0:
			runs = append(runs, i)
		case c == 0:
			twice = true
		}
	}
	from, to := all, []member(nil)
	for len(runs) > 1 {
		if to == nil {
			to = make([]member, len(all))
		}
		var merged []int
		for i := 0; i < len(runs); i += 2 {
			begin, middle, end := runs[i], len(from), len(from)
			if i+1 < len(runs) {
				middle = runs[i+1]
			}
			if i+2 < len(runs) {
				end = runs[i+2]
			}
			twice = merge(to[begin:end], from[begin:middle], from[middle:end]) || twice
			merged = append(merged, begin)
		}
		runs, from, to = merged, to, from
	}
	if !twice {
		return from
	}
	last := from[:0:0]
	for i, m := range from {
		if i+1 == len(from) || from[i+1].key != m.key {
			last = append(last, m)
		}
	}
	return last
}

// merge merges two runs. Of equal keys those of the first come first. It reports whether there were any.
func merge(to, a, b []member) (twice bool) {
	for i := range to {
		c := -1
		switch {
		case len(a) == 0:
			c = 1
		case len(b) > 0:
			c = strings.Compare(a[0].key, b[0].key)
			twice = twice || c == 0
		}
		if c <= 0 {
			to[i], a = a[0], a[1:]
		} else {
			to[i], b = b[0], b[1:]
		}
	}
	return twice
}

// text reads a string.
func (p *parser) text() (string, bool) {
	begin := p.pos
	if !p.next('"') {
		return "", false
	}
	plain := true
	for ; p.pos < len(p.src); p.pos++ {
		switch b := p.src[p.pos]; {
		case b == '"':
			p.pos++
			if inside := p.src[begin+1 : p.pos-1]; plain && utf8.ValidString(inside) {
				return inside, true
			}
			var text string
			err := json.Unmarshal([]byte(p.src[begin:p.pos]), &text)
			return text, err == nil
		case b == '\\':
			plain = false
			p.pos++
		case b < ' ':
			return "", false
		}
	}
	return "", false
}

// number reads a number.
func (p *parser) number() (string, bool) {
	begin := p.pos
	p.next('-')
	ok := p.next('0') || p.digits()
	if p.next('.') {
		ok = p.digits() && ok
	}
	if p.next('e') || p.next('E') {
		_ = p.next('+') || p.next('-')
		ok = p.digits() && ok
	}
	return shortest(p.src[begin:p.pos]), ok
}

// shortest returns a long number in its shortest form, as jsonb writes 1e-300 with all its zeros.
func shortest(number string) string {
	if len(number) > longNumber {
		if short := canonical(number); len(short) < longNumber {
			return short
		}
	}
	return number
}

// digits passes over one digit or more.
func (p *parser) digits() bool {
	begin := p.pos
	for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > begin
}
