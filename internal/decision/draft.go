package decision

// field is a top-level field of a decision that we read; the zero field is any other.
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
	fieldCount
)

var fieldNames = [fieldCount]string{
	"", "decision_id", "timestamp", "path", "requested_by", "req_id", "labels", "bundles", "result",
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

// draft is what one scan over a decision has seen: where its fields stand, and the first faults but syntax. A span
// of zero length is a field that is not there.
type draft struct {
	values            [fieldCount]span
	opaID, opaVersion span
	allow, allowed    span
	others            names
	repeated          int // where a field of ours stands again, or 0
	repeatedField     field
	beyondField       field // the field that scanner.beyond lies in
	seen              [fieldCount]bool
}

// scan goes over the object at s.pos; false is a syntax error at s.pos.
func (d *draft) scan(s *scanner) bool {
	d.reset()
	s.beyond = -1
	s.pos++
	s.space()
	if s.peek() == '}' {
		s.pos++
		return true
	}
	for {
		key, ok := s.key()
		if !ok {
			return false
		}
		f := d.name(s.src, key, s.escaped)
		start := s.pos
		inRange := s.beyond < 0
		if !d.member(s, f) {
			return false
		}
		d.values[f] = span{start, s.pos}
		if inRange && s.beyond >= 0 {
			d.beyondField = f
		}
		more, ok := s.next(true)
		if !more {
			return ok
		}
	}
}

// reset forgets what was seen. The names are most of a draft, and of them only the count matters.
func (d *draft) reset() {
	d.values, d.seen = [fieldCount]span{}, [fieldCount]bool{}
	d.opaID, d.opaVersion, d.allow, d.allowed = span{}, span{}, span{}, span{}
	d.repeated, d.repeatedField, d.beyondField = 0, otherField, otherField
	d.others.count, d.others.many, d.others.escaped = 0, nil, false
}

// name finds the field that a key names and remembers the key.
func (d *draft) name(src []byte, key span, escaped bool) field {
	raw := src[key.start:key.end]
	f := fieldOf(raw)
	if escaped {
		f = fieldOf(appendText(nil, raw))
	}
	switch {
	case f == otherField:
		d.others.add(key, escaped)
	case d.seen[f] && d.repeated == 0:
		d.repeated, d.repeatedField = key.start, f
	}
	d.seen[f] = true
	return f
}

// member scans a field's value and looks into those objects of which we read more than the bytes.
func (d *draft) member(s *scanner, f field) (ok bool) {
	if s.peek() == '{' {
		switch f {
		case fieldLabels:
			d.opaID, d.opaVersion, ok = s.pair("id", "version")
			return ok
		case fieldResult:
			d.allow, d.allowed, ok = s.pair("allow", "allowed")
			return ok
		}
	}
	return s.value(1)
}

// pair scans an object inside a decision and returns where the values of two of its names stand. A name that stands
// there twice is its last value, as in jsonb.
func (s *scanner) pair(first, second string) (a, b span, ok bool) {
	s.pos++
	s.space()
	if s.peek() == '}' {
		s.pos++
		return a, b, true
	}
	for {
		key, ok := s.key()
		if !ok {
			return a, b, false
		}
		raw := s.src[key.start:key.end]
		if s.escaped {
			raw = appendText(nil, raw)
		}
		start := s.pos
		if !s.value(2) {
			return a, b, false
		}
		switch string(raw) {
		case first:
			a = span{start, s.pos}
		case second:
			b = span{start, s.pos}
		}
		more, ok := s.next(true)
		if !more {
			return a, b, ok
		}
	}
}
