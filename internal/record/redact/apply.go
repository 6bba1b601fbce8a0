package redact

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"unsafe"

	"docket/internal/record/decision"
)

// Mask replaces a masked value.
const Mask = "**REDACTED**"

const quotedMask = `"` + Mask + `"`

// ErrNoObject is the error for input that is not a JSON object. Pointers find nothing in it, so a caller with rules
// must not pass it on unchanged.
var ErrNoObject = errors.New("redact: not a JSON object")

// Apply returns a copy of the decision with the rules applied, or the decision itself if no rule matched. Equal bytes
// give equal bytes. It expects JSON that was read before. It returns ErrNoObject for input that is not an object or
// ends in the middle.
//
// It appends to existing arrays erased and masked. null there becomes an array, and any other value its first
// element.
func (r Rules) Apply(log []byte) ([]byte, error) {
	if r.Empty() {
		return log, nil
	}
	w := work{src: log, rules: r.rules, hit: make([]bool, len(r.rules)), active: make([]int, len(r.rules), 4*len(r.rules))}
	for i := range r.rules {
		w.active[i] = i
	}
	behind, ok := w.inside(0, 0, 0)
	if !ok || log[behind-1] != '}' || !blank(log[behind:]) {
		return nil, ErrNoObject
	}
	if !slices.Contains(w.hit, true) {
		return log, nil
	}
	w.tell(behind - 1)
	return w.applied(), nil
}

// Outlay returns the most bytes that Apply takes: for the decision that it returns, and for its work. Masks can be
// longer than the values, so both can be many times the input.
func (r Rules) Outlay(log []byte) (stays, passing int64) {
	if r.Empty() {
		return 0, 0
	}
	// Each value follows a comma or is the first in its container.
	values := int64(bytes.Count(log, []byte{','}) + bytes.Count(log, []byte{'{'}) + bytes.Count(log, []byte{'['}))
	stays = int64(len(log)) + values*int64(len(quotedMask)) + int64(len(`,"erased":[],"masked":[]`))
	for i := range r.rules {
		stays += int64(len(r.rules[i].quoted) + 1)
	}
	return stays, values * editBytes
}

// editBytes is the memory of an edit while the list of them grows: before and after, and a quarter of unused room.
const editBytes = 3 * int64(unsafe.Sizeof(edit{}))

func blank(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != ' ' && c != '\t' && c != '\n' && c != '\r' })
}

// edit replaces a stretch of the decision by text.
type edit struct {
	start, end int
	text       string
}

// work applies the rules to one decision.
type work struct {
	src    []byte
	rules  []rule
	hit    []bool // for each rule
	active []int  // a stack: the rules that match the containers on the path, innermost last
	edits  []edit
	size   int        // of all texts
	told   [2]stretch // erased and masked
	kept   bool       // some top-level member stays
}

// inside redacts in the container at pos. The rules in active from first on match up to depth. It returns the place
// behind the container; false is another value, or a torn one. It goes as deep as the longest pointer.
func (w *work) inside(pos, first, depth int) (behind int, ok bool) {
	kept, before, leading := false, 0, -1 // leading: start of dropped members before any kept one
	in := decision.Into(w.src, pos)
	last := len(w.active)
	for in.Next() {
		if leading >= 0 {
			w.cut(leading, in.Start)
			leading = -1
		}
		if depth == 0 {
			w.spot(&in)
		}
		act := w.match(&in, first, last, depth)
		switch {
		case act == drop && kept:
			w.cut(before, in.End)
		case act == drop:
			leading = in.Start
		case act == mask:
			w.mask(in.Value, in.End)
		case len(w.active) > last && (w.src[in.Value] == '{' || w.src[in.Value] == '['):
			if _, ok := w.inside(in.Value, last, depth+1); !ok {
				return 0, false
			}
		}
		w.active = w.active[:last]
		kept = kept || act != drop
		before = in.End
	}
	if leading >= 0 {
		w.cut(leading, before)
	}
	w.kept = kept // of the outermost container, which ends last
	return in.Behind(), !in.Torn()
}

type act int

const (
	look act = iota
	mask
	drop
)

// match pushes the rules that continue inside the member or element, and returns what becomes of it as a whole. Rules
// that end here are reported only if no other rule drops it.
func (w *work) match(in *decision.Inside, first, last, depth int) act {
	done := look
	for _, i := range w.active[first:last] {
		segments := w.rules[i].segments
		if !matches(in, segments[depth]) {
			continue
		}
		switch {
		case depth+1 < len(segments):
			w.active = append(w.active, i)
		case w.rules[i].drop: // these come first
			w.hit[i], done = true, drop
		case done != drop:
			w.hit[i], done = true, mask
		}
	}
	return done
}

func matches(in *decision.Inside, s segment) bool {
	switch {
	case s.name == every:
		return true
	case in.Array():
		return in.Index == s.index
	default:
		return in.Is(s.name)
	}
}

func (w *work) cut(start, end int) { w.edits = append(w.edits, edit{start, end, ""}) }

func (w *work) mask(start, end int) {
	if string(w.src[start:end]) != quotedMask {
		w.put(start, end, quotedMask)
	}
}

func (w *work) put(start, end int, text string) {
	w.edits = append(w.edits, edit{start, end, text})
	w.size += len(text)
}

// applied puts all edits into a copy. They do not overlap.
func (w *work) applied() []byte {
	if len(w.edits) == 0 {
		return w.src
	}
	slices.SortStableFunc(w.edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	out, from := make([]byte, 0, len(w.src)+w.size), 0
	for _, e := range w.edits {
		out = append(out, w.src[from:e.start]...)
		out = append(out, e.text...)
		from = e.end
	}
	return append(out, w.src[from:]...)
}
