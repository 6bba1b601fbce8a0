package columnar

import (
	"bytes"
	"strings"

	"docket/internal/record/decision"
)

// repeated are the members of a payload whose values columns have, too. They are in the order of jsonb: shorter names
// first, then by their bytes.
var repeated = []struct {
	member, column string
	kind           kind
}{
	{"path", "path", asText}, {"labels", "labels", asJSON}, {"req_id", "req_id", asInt64}, {"bundles", "bundles", asJSON}, {"timestamp", "ts", asTime},
	{"decision_id", "decision_id", asText}, {"requested_by", "requested_by", asText},
}

// Places in repeated.
const (
	bundlesMember     = 3
	timestampMember   = 4
	requestedByMember = 6
	repeatedCount     = 7
)

// shortened is a payload without the members that columns have.
type shortened struct {
	payload  []byte
	without  string
	nanos    int // of the timestamp, beyond microseconds
	has      [repeatedCount]bool
	hasError bool
	result   bool
	revision string // the member of old decisions
	bundles  []byte
}

// shorten leaves out what the cells of the row have.
func (w *Writer) shorten(raw []byte, cells [][]byte, micros int64) (s shortened) {
	s.payload = raw
	keep := append(w.payload[:0], '{')
	found := false
	f := form{raw: raw}
	in := decision.Into(raw, 0)
	for in.Next() {
		if in.Array() {
			return s
		}
		value := raw[in.Value:in.End]
		member := -1
		for m := range repeated {
			if in.Is(repeated[m].member) {
				member = m
			}
		}
		left := member >= 0 && w.isCell(member, value, cells, micros, &s)
		f.member(&in, member, left)
		if left {
			s.has[member], found = true, true
			continue
		}
		s.note(&in, value)
		if len(keep) > 1 {
			keep = append(keep, ", "...)
		}
		keep = append(keep, raw[in.Start:in.End]...)
	}
	if m := w.layout.members[bundlesMember]; s.has[bundlesMember] && m >= 0 {
		s.bundles = cells[m]
	}
	if in.Torn() || !found {
		return s
	}
	w.exact = w.exact && f.ended(&in)
	w.payload = append(keep, '}')
	s.payload, s.without = w.payload, w.names(s.has)
	return s
}

// note keeps what is derived from a member that stays in the payload.
func (s *shortened) note(in *decision.Inside, value []byte) {
	switch {
	case in.Is("error"):
		s.hasError = string(value) != "null"
	case in.Is("result"):
		s.result = string(value) != "null"
	case in.Is("revision") && value[0] == '"':
		s.revision = decision.Text(value)
	case in.Is("bundles"):
		s.bundles = value
	}
}

// isCell reports whether a column has the value of a member.
func (w *Writer) isCell(member int, value []byte, cells [][]byte, micros int64, s *shortened) bool {
	column := w.layout.members[member]
	if column < 0 || cells[column] == nil {
		return false
	}
	if member != timestampMember {
		return bytes.Equal(cells[column], value)
	}
	nanos, ok := beyond(value)
	if !ok {
		return false
	}
	w.scratch = quotedStamp(w.scratch[:0], micros, nanos)
	s.nanos = nanos
	return bytes.Equal(w.scratch, value)
}

// beyond returns the nanoseconds of a time beyond its microseconds.
func beyond(value []byte) (nanos int, ok bool) {
	const point, digits = len(`"2006-01-02T15:04:05`), 9
	if len(value) < point+2 || value[len(value)-2] != 'Z' {
		return 0, false
	}
	if len(value) < point+1 || value[point] != '.' {
		return 0, true
	}
	f := value[point+1 : len(value)-2]
	if len(f) > digits {
		return 0, false
	}
	for i := 6; i < digits; i++ {
		nanos *= 10
		if i < len(f) {
			nanos += int(f[i] - '0')
		}
	}
	return nanos, nanos >= 0 && nanos < 1000
}

// quotedStamp appends a time as OPA writes it.
func quotedStamp(to []byte, micros int64, nanos int) []byte {
	to = append(to, '"')
	if nanos == 0 {
		return append(stamp(to, micros), `Z"`...)
	}
	to = stamp(to, micros-micros%1e6)
	return append(fraction(to, int(micros%1e6)*1000+nanos, 9), `Z"`...)
}

// names joins the names of members that are left out. There are few different sets.
func (w *Writer) names(has [repeatedCount]bool) string {
	if text, ok := w.sets[has]; ok {
		return text
	}
	var names []string
	for m, is := range has {
		if is {
			names = append(names, repeated[m].member)
		}
	}
	text := strings.Join(names, ",")
	w.sets[has] = text
	return text
}

// left is the reverse of names: places in [repeated].
func left(without string) (members []int, ok bool) {
	if without == "" {
		return nil, true
	}
	for name := range strings.SplitSeq(without, ",") {
		found := -1
		for m := range repeated {
			if repeated[m].member == name {
				found = m
			}
		}
		if found < 0 || len(members) > 0 && found <= members[len(members)-1] { // each at most once, in order
			return nil, false
		}
		members = append(members, found)
	}
	return members, true
}

// before is the order of names in jsonb.
func before(a, b []byte) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return bytes.Compare(a, b) < 0
}

// lengthen appends the payload with the members that were left out. value appends the value of one. note gets those that
// stayed; nil: nobody. whole says that the payload is one object, if note got its members.
func lengthen(to, payload []byte, members []int, value func(to []byte, member int) []byte, note func(in *decision.Inside, value []byte)) (longer []byte, whole bool) {
	if len(members) == 0 && note == nil {
		return append(to, payload...), false
	}
	from := len(to)
	to = append(to, '{')
	first := true
	comma := func() {
		if !first {
			to = append(to, ", "...)
		}
		first = false
	}
	insert := func() {
		comma()
		to = append(append(append(to, '"'), repeated[members[0]].member...), `": `...)
		to = value(to, members[0])
		members = members[1:]
	}
	asIs := len(members) == 0
	in := decision.Into(payload, 0)
	for in.Next() {
		if note != nil {
			note(&in, payload[in.Value:in.End])
		}
		if asIs {
			continue
		}
		name := payload[in.Start+1 : max(bytes.LastIndexByte(payload[:in.Value], '"'), in.Start+1)]
		for len(members) > 0 && before([]byte(repeated[members[0]].member), name) {
			insert()
		}
		comma()
		to = append(to, payload[in.Start:in.End]...)
	}
	whole = !in.Torn() && !in.Array() && in.Behind() == len(payload)
	if asIs {
		return append(to[:from], payload...), whole
	}
	for len(members) > 0 {
		insert()
	}
	return append(to, '}'), whole
}
