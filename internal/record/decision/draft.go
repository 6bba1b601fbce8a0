package decision

// field is a top-level field that Docket reads; the zero field is any other.
type field int

const (
	otherField field = iota
	fieldID
	fieldTimestamp
	fieldPath
	fieldRequestedBy
	fieldReqID
	fieldLabels
	fieldBundles
	fieldResult
	// Fields in labels and in the result, if these are objects.
	fieldOPAID
	fieldOPAVersion
	fieldAllow
	fieldAllowed
	fieldCount
)

var fieldNames = [fieldCount]string{
	"", "decision_id", "timestamp", "path", "requested_by", "req_id", "labels", "bundles", "result", "", "", "", "",
}

func fieldOf(name []byte) field {
	switch string(name) {
	case "decision_id":
		return fieldID
	case "timestamp":
		return fieldTimestamp
	case "path":
		return fieldPath
	case "requested_by":
		return fieldRequestedBy
	case "req_id":
		return fieldReqID
	case "labels":
		return fieldLabels
	case "bundles":
		return fieldBundles
	case "result":
		return fieldResult
	default:
		return otherField
	}
}

// innerOf returns the field of a key inside labels or the result.
func innerOf(outer field, name []byte) field {
	switch string(name) {
	case "id":
		if outer == fieldLabels {
			return fieldOPAID
		}
	case "version":
		if outer == fieldLabels {
			return fieldOPAVersion
		}
	case "allow":
		if outer == fieldResult {
			return fieldAllow
		}
	case "allowed":
		if outer == fieldResult {
			return fieldAllowed
		}
	}
	return otherField
}

// outer returns the field that contains an inner one, otherField if there is none.
func (f field) outer() field {
	switch {
	case f >= fieldAllow:
		return fieldResult
	case f >= fieldOPAID:
		return fieldLabels
	default:
		return otherField
	}
}

// fieldAt is the place of a field on the tape, and of the node behind it.
type fieldAt struct {
	field      field
	node, next uint32
}

// draft has the facts that a walk over a decision collects: the places of its fields, and the first faults except
// syntax. An empty span is a missing field.
type draft struct {
	values        [fieldCount]span
	first         [fieldCount]byte // of each value, 0 if there is none
	others        names
	repeated      uint32 // place of a known field that occurs again, or 0
	repeatedField field
	seen          uint16 // a bit for each field
	found         [fieldCount]fieldAt
	count         int    // of those
	known, fresh  *shape // the decision's shape, or the one to be made of it
}

// scan reads the object at s.pos; false is a syntax error at s.pos.
func (d *draft) scan(s *scanner) bool {
	s.beyond, s.expanded, s.escapes = -1, 0, false
	if !s.walk() {
		return false
	}
	d.reset()
	nodes := s.tape.nodes
	if len(nodes) == 0 {
		return true
	}
	if d.known, d.fresh = s.shapes.find(s.src, nodes); d.known != nil {
		d.take(s, d.known.fields)
	} else {
		d.take(s, d.find(s.src, nodes))
	}
	return true
}

// reset clears the draft.
func (d *draft) reset() {
	d.values, d.first, d.seen = [fieldCount]span{}, [fieldCount]byte{}, 0
	d.repeated, d.repeatedField = 0, otherField
	d.known, d.fresh = nil, nil
	d.others.reset()
}

// take reads fields off the tape.
func (d *draft) take(s *scanner, fields []fieldAt) {
	for _, at := range fields {
		f := at.field
		if outer := f.outer(); outer != otherField && d.first[outer] != '{' {
			continue // on the tape an object in an array looks like the object alone
		}
		value := valueOf(s.src, s.tape.nodes[at.node], s.tape.nodes[at.next])
		d.values[f], d.first[f] = value, s.src[value.start]
		d.seen |= 1 << f
	}
}

// find looks at the names of a decision that is on the tape.
func (d *draft) find(src []byte, nodes []node) []fieldAt {
	count := 0
	for i := 1; nodes[i].end != closed; {
		next := after(nodes, i+1)
		if f := d.name(src, nodes[i]); f != otherField && d.repeatedField == otherField {
			d.found[count] = fieldAt{f, uint32(i), uint32(next)}
			count++
			if (f == fieldLabels || f == fieldResult) && next > i+1 {
				count = d.inside(src, nodes, i+1, f, count)
			}
		}
		i = next
	}
	d.count = count
	return d.found[:count]
}

// inside looks at the names of the object that node i opens. If a name occurs twice, its last value counts, as in
// jsonb.
func (d *draft) inside(src []byte, nodes []node, i int, outer field, count int) int {
	first := count
	for i++; nodes[i].end != closed; {
		next := after(nodes, i+1)
		if f := innerOf(outer, nameOf(src, nodes[i])); f != otherField {
			at := first
			for at < count && d.found[at].field != f {
				at++
			}
			d.found[at] = fieldAt{f, uint32(i), uint32(next)}
			count = max(count, at+1)
		}
		i = next
	}
	return count
}

// nameOf returns a key with its escapes undone.
func nameOf(src []byte, n node) []byte {
	key := n.key()
	raw := src[key.start:key.end]
	if n.isEscaped() {
		return appendText(nil, raw)
	}
	return raw
}

// name finds the field that a key names and remembers the key.
func (d *draft) name(src []byte, n node) field {
	name := nameOf(src, n)
	f := fieldOf(name)
	if f == otherField {
		d.others.add(n.key(), name, n.isEscaped())
		return f
	}
	if d.seen>>f&1 != 0 && d.repeated == 0 {
		d.repeated, d.repeatedField = n.at, f
	}
	d.seen |= 1 << f
	return f
}

// valueOf returns the place of a member's value. next is the node behind the member.
func valueOf(src []byte, member, next node) span {
	start := member.end&^escaped + 1
	if src[start] != ':' || src[start+1] <= ' ' {
		start = uint32(spaces(src, int(start)))
		start = uint32(spaces(src, int(start)+1)) - 1
	}
	return span{start + 1, memberEnd(src, next)}
}

// memberEnd returns the end of the member before next.
func memberEnd(src []byte, next node) uint32 {
	end := next.at
	if next.end != closed { // next to the key are its quote and the comma
		for end -= 2; src[end] != ','; {
			end--
		}
	}
	for src[end-1] <= ' ' {
		end--
	}
	return end
}
