package reader

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type nodeKind byte

const (
	isNull nodeKind = iota + 1
	isBool
	isNumber
	isString
	isArray
	isObject
)

// node is a JSON value. A payload may have a million of them, so checksums are made only where values are compared. It is
// not safe for concurrent use.
type node struct {
	kind nodeKind
	text string             // of a string; of a number and a boolean as written
	keys []string           // of an object, sorted; kids are their values
	kids []*node            // of an array or an object
	sum  *[sha256.Size]byte // nil until it is asked for
}

// longNumber is the length from which on a number is shown in its shortest form.
const longNumber = 40

// sumOf is the checksum of a value: equal values have equal ones.
func (n *node) sumOf() [sha256.Size]byte {
	if n.sum != nil {
		return *n.sum
	}
	text := n.text
	if n.kind == isNumber {
		text = canonical(text)
	}
	h := sha256.New()
	own := append([]byte{byte(n.kind)}, text...)
	h.Write(own)
	for i, kid := range n.kids {
		own = own[:0]
		if n.kind == isObject {
			own = binary.AppendUvarint(own, uint64(len(n.keys[i])))
			own = append(own, n.keys[i]...)
		}
		sum := kid.sumOf()
		h.Write(append(own, sum[:]...))
	}
	n.sum = new([sha256.Size]byte)
	h.Sum(n.sum[:0])
	return *n.sum
}

// canonical returns the same text for equal numbers, so that 1, 1.0 and 10e-1 are equal without arithmetic.
func canonical(number string) string {
	text, negative := strings.CutPrefix(number, "-")
	mantissa, power := text, int64(0)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		mantissa = text[:i]
		if power, err = strconv.ParseInt(text[i+1:], 10, 32); err != nil {
			return number // larger than any that Postgres stores
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	power -= int64(len(fraction))
	trimmed := strings.TrimRight(digits, "0")
	power += int64(len(digits) - len(trimmed))
	switch {
	case trimmed == "":
		return "0"
	case negative:
		return "-" + trimmed + "e" + strconv.FormatInt(power, 10)
	}
	return trimmed + "e" + strconv.FormatInt(power, 10)
}

func same(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.sumOf() == b.sumOf()
}

// get returns a member of an object, nil if there is none.
func (n *node) get(key string) *node {
	if n == nil || n.kind != isObject {
		return nil
	}
	if i, ok := slices.BinarySearch(n.keys, key); ok {
		return n.kids[i]
	}
	return nil
}

// at follows the steps of a pointer, nil if there is no value.
func (n *node) at(steps ...string) *node {
	for _, step := range steps {
		if n != nil && n.kind == isArray {
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(n.kids) || strconv.Itoa(i) != step {
				return nil
			}
			n = n.kids[i]
			continue
		}
		n = n.get(step)
	}
	return n
}

// there reports whether there is a value that is not null.
func (n *node) there() bool { return n != nil && n.kind != isNull }

func (n *node) is(kind nodeKind) bool { return n != nil && n.kind == kind }

// boolean returns the value of a boolean.
func (n *node) boolean() (value, ok bool) { return n.is(isBool) && n.text == "true", n.is(isBool) }

// str returns the text of a string, "" for other values.
func (n *node) str() string {
	if n.is(isString) {
		return n.text
	}
	return ""
}

// scalar returns the text of a string, a number or a boolean.
func (n *node) scalar() string {
	if n.is(isString) || n.is(isNumber) || n.is(isBool) {
		return n.text
	}
	return ""
}

// strs returns the strings of a list.
func (n *node) strs() []string {
	var out []string
	if n.is(isArray) {
		for _, kid := range n.kids {
			if kid.kind == isString {
				out = append(out, kid.text)
			}
		}
	}
	return out
}

// empty reports whether a string, a list or an object is empty.
func (n *node) empty() bool { return n.text == "" && len(n.kids) == 0 }

// json writes a value, or only its first bytes if it has more than most. whole reports whether that was all.
func (n *node) json(most int) (text []byte, whole bool) {
	w := writer{most: most}
	w.write(n)
	if len(w.out) <= most {
		return w.out, true
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(w.out[cut]) {
		cut--
	}
	return w.out[:cut], false
}

// writer stops soon after most bytes.
type writer struct {
	out  []byte
	most int
}

func (w *writer) write(n *node) {
	switch {
	case len(w.out) > w.most:
	case n == nil || n.kind == isNull:
		w.out = append(w.out, "null"...)
	case n.kind == isString:
		w.str(n.text)
	case n.kind == isArray || n.kind == isObject:
		open, end := byte('['), byte(']')
		if n.kind == isObject {
			open, end = '{', '}'
		}
		w.out = append(w.out, open)
		for i, kid := range n.kids {
			if len(w.out) > w.most {
				return
			}
			if i > 0 {
				w.out = append(w.out, ',')
			}
			if n.kind == isObject {
				w.str(n.keys[i])
				w.out = append(w.out, ':')
			}
			w.write(kid)
		}
		w.out = append(w.out, end)
	default:
		w.out = append(w.out, n.text...)
	}
}

func (w *writer) str(text string) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) == nil { // a string gives no error
		w.out = append(w.out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
	}
}

// Cut is a value that may be too long: it has either its JSON, or the beginning of its text.
type Cut struct {
	JSON json.RawMessage
	Text string // the beginning of the value's JSON, if that is longer
}

func (n *node) cut(most int) Cut {
	if n == nil {
		return Cut{}
	}
	text, whole := n.json(most)
	if whole {
		return Cut{JSON: text}
	}
	return Cut{Text: string(text)}
}

// pointer adds steps to a pointer.
func pointer(base string, steps ...string) string {
	for _, step := range steps {
		base += "/" + strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1")
	}
	return base
}
