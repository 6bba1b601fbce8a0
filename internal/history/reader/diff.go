package reader

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"docket/internal/record/subject"
)

// Change is one difference between two JSON values.
type Change struct {
	// Pointer is the place: in the new value, or for a removed value in the old one.
	Pointer string `json:"pointer"`
	Kind    string `json:"kind"` // added, removed or changed
	// Old and New are the values. A value of more than [MaxValueBytes] is replaced by the beginning of its JSON.
	Old    json.RawMessage `json:"old,omitempty"`
	New    json.RawMessage `json:"new,omitempty"`
	OldCut string          `json:"old_cut,omitempty"`
	NewCut string          `json:"new_cut,omitempty"`
}

// The kinds of [Change].
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Differences are the result of [Diff], in the order of the new value's keys.
type Differences struct {
	Changes []Change `json:"changes"`
	More    int      `json:"more"` // number of further changes
}

// DiffOptions choose the differences that count. The zero value is for two decisions.
type DiffOptions struct {
	// All includes fields that differ between any two decisions: decision_id, batch_decision_id, timestamp, req_id,
	// metrics, trace_id, span_id, and the port of requested_by.
	All bool
	// Most limits the changes; 0: [MaxChanges].
	Most int
}

const (
	// MaxChanges is the default limit of changes.
	MaxChanges = 100
	// MaxValueBytes is the longest JSON of a whole value.
	MaxValueBytes = 2 << 10
	// aligned limits the compared pairs of elements, so that aligning lists takes bounded time and memory.
	aligned = 1 << 20
)

// ErrNotJSON says that a value to compare is not JSON.
var ErrNotJSON = errors.New("not JSON")

// alwaysDifferent are the members that differ between any two decisions.
var alwaysDifferent = []string{"decision_id", "batch_decision_id", "timestamp", "req_id", "metrics", "trace_id", "span_id"}

// Diff returns the differences in b. Numbers are equal as JSON numbers: 1 is 1.0. Lists are aligned by their longest
// common subsequence, so that a missing element is one change. If as many elements were added as removed, they are
// compared in pairs. Lists too long for that are compared place by place.
func Diff(a, b json.RawMessage, o DiffOptions) (Differences, error) {
	old, now := parse(a), parse(b)
	if old == nil || now == nil {
		return Differences{}, ErrNotJSON
	}
	return diff(old, now, o), nil
}

func diff(old, now *node, o DiffOptions) Differences {
	d := differ{most: o.Most, left: aligned, found: Differences{Changes: []Change{}}}
	if d.most <= 0 {
		d.most = MaxChanges
	}
	if !o.All {
		d.skip = ignored(old, now)
	}
	d.diff("", old, now)
	return d.found
}

func ignored(old, now *node) []string {
	if !old.is(isObject) || !now.is(isObject) {
		return nil
	}
	skip := slices.Clone(alwaysDifferent)
	was, is := old.get("requested_by").str(), now.get("requested_by").str()
	if was != "" && is != "" && subject.Host(was) == subject.Host(is) {
		skip = append(skip, "requested_by")
	}
	return skip
}

type differ struct {
	most, left int
	skip       []string // keys of the outermost object
	found      Differences
}

func (d *differ) tell(at, kind string, old, now *node) {
	if len(d.found.Changes) >= d.most {
		d.found.More++
		return
	}
	was, is := old.cut(MaxValueBytes), now.cut(MaxValueBytes)
	d.found.Changes = append(d.found.Changes, Change{Pointer: at, Kind: kind, Old: was.JSON, New: is.JSON, OldCut: was.Text, NewCut: is.Text})
}

func (d *differ) diff(at string, old, now *node) {
	switch {
	case same(old, now):
	case old.kind == isObject && now.kind == isObject:
		d.objects(at, old, now)
	case old.kind == isArray && now.kind == isArray:
		d.arrays(at, old, now)
	default:
		d.tell(at, Changed, old, now)
	}
}

func (d *differ) objects(at string, old, now *node) {
	skip := d.skip
	d.skip = nil
	keys := slices.Concat(old.keys, now.keys)
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		was, is := old.get(key), now.get(key)
		switch {
		case slices.Contains(skip, key):
		case was == nil:
			d.tell(pointer(at, key), Added, nil, is)
		case is == nil:
			d.tell(pointer(at, key), Removed, was, nil)
		default:
			d.diff(pointer(at, key), was, is)
		}
	}
}

func (d *differ) arrays(at string, old, now *node) {
	a, b := old.kids, now.kids
	head := 0
	for head < len(a) && head < len(b) && same(a[head], b[head]) {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && same(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	from, to := [2]int{head, head}, [2]int{len(a) - tail, len(b) - tail}
	for _, pair := range d.common(a[head:to[0]], b[head:to[1]]) {
		next := [2]int{pair[0] + head, pair[1] + head}
		d.gap(at, a, b, from, next)
		from = [2]int{next[0] + 1, next[1] + 1}
	}
	d.gap(at, a, b, from, to)
}

// gap compares a stretch without common elements.
func (d *differ) gap(at string, a, b []*node, from, to [2]int) {
	n, m := to[0]-from[0], to[1]-from[1]
	if n == m {
		for i := range n {
			d.diff(pointer(at, strconv.Itoa(from[1]+i)), a[from[0]+i], b[from[1]+i])
		}
		return
	}
	for i := from[0]; i < to[0]; i++ {
		d.tell(pointer(at, strconv.Itoa(i)), Removed, a[i], nil)
	}
	for i := from[1]; i < to[1]; i++ {
		d.tell(pointer(at, strconv.Itoa(i)), Added, nil, b[i])
	}
}

// common returns the places of a longest common subsequence, or of equal places if the lists are too long.
func (d *differ) common(a, b []*node) [][2]int {
	var pairs [][2]int
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	if len(a) > d.left/len(b) {
		for i := range min(len(a), len(b)) {
			if same(a[i], b[i]) {
				pairs = append(pairs, [2]int{i, i})
			}
		}
		return pairs
	}
	d.left -= len(a) * len(b)
	width := len(b) + 1
	longest := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if same(a[i], b[j]) {
				longest[i*width+j] = longest[(i+1)*width+j+1] + 1
			} else {
				longest[i*width+j] = max(longest[(i+1)*width+j], longest[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case same(a[i], b[j]):
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case longest[(i+1)*width+j] >= longest[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}
