package columnar

import (
	"strconv"

	"github.com/parquet-go/parquet-go"

	"docket/internal/record/decision"
)

// builder makes lines out of values.
type builder struct {
	layout *layout
	values []parquet.Value
	sets   map[string][]int // members by the text of raw_without
	notes  *notes           // nil: nothing is noted
}

// notes is what a builder sees of a payload.
type notes struct {
	shortened
	whole    bool // the payload is one object
	twice    bool // it has a member that was left out
	from, to int  // the place of the payload in the line
}

// note keeps what is derived from a member of the payload.
func (n *notes) note(in *decision.Inside, value []byte) {
	n.shortened.note(in, value)
	for m, left := range n.has {
		n.twice = n.twice || left && in.Is(repeated[m].member)
	}
}

// row returns an empty row, which is valid until the next call.
func (b *builder) row(n int) []parquet.Value {
	if b.values == nil {
		b.values = make([]parquet.Value, n)
	}
	clear(b.values)
	return b.values
}

// line appends the line of a row.
func (b *builder) line(to []byte, row []parquet.Value) ([]byte, error) {
	l := b.layout
	if exact := row[l.added[Line]]; !exact.IsNull() {
		return append(to, exact.ByteArray()...), nil
	}
	to = append(to, '{')
	start := len(to)
	for i := range l.columns {
		if row[i].IsNull() {
			continue
		}
		if len(to) > start {
			to = append(to, ',')
		}
		to = append(to, l.columns[i].label...)
		if i == l.raw {
			var ok bool
			from := len(to)
			if to, ok = b.whole(to, row); !ok {
				return nil, &DamageError{"has a payload without members that are not known"}
			}
			if b.notes != nil {
				b.notes.from, b.notes.to = from, len(to)
			}
			continue
		}
		to = b.cell(to, i, row[i])
	}
	return append(to, '}'), nil
}

// cell appends a value as a line has it.
func (b *builder) cell(to []byte, i int, v parquet.Value) []byte {
	switch b.layout.columns[i].kind {
	case asText:
		return quoted(to, v.ByteArray())
	case asJSON:
		return append(to, v.ByteArray()...)
	case asBool:
		return strconv.AppendBool(to, v.Boolean())
	case asInt32:
		return strconv.AppendInt(to, int64(v.Int32()), 10)
	case asInt64:
		return strconv.AppendInt(to, v.Int64(), 10)
	case asTime:
		return quotedTime(to, v.Int64())
	case asBytes:
		return quotedBytes(to, v.ByteArray())
	}
	return to
}

// whole appends the payload with the members that were left out of it.
func (b *builder) whole(to []byte, row []parquet.Value) ([]byte, bool) {
	l := b.layout
	members, ok := b.members(row[l.added[Without]])
	if !ok {
		return nil, false
	}
	var note func(in *decision.Inside, value []byte)
	if b.notes != nil {
		for _, m := range members {
			b.notes.has[m] = true
		}
		note = b.notes.note
	}
	to, whole := lengthen(to, row[l.raw].ByteArray(), members, func(to []byte, m int) []byte {
		i := l.members[m]
		switch {
		case i < 0 || row[i].IsNull():
			return append(to, "null"...)
		case m != timestampMember:
			return b.cell(to, i, row[i])
		}
		nanos := 0
		if n := row[l.added[Nanos]]; !n.IsNull() {
			nanos = int(n.Int32())
		}
		return quotedStamp(to, row[i].Int64(), nanos)
	}, note)
	if b.notes != nil {
		b.notes.whole = whole
	}
	return to, true
}

// members returns the places in [repeated] that were left out.
func (b *builder) members(without parquet.Value) ([]int, bool) {
	if without.IsNull() {
		return nil, true
	}
	if members, ok := b.sets[string(without.ByteArray())]; ok {
		return members, true
	}
	members, ok := left(string(without.ByteArray()))
	if !ok {
		return nil, false
	}
	if b.sets == nil {
		b.sets = map[string][]int{}
	}
	if len(b.sets) < 1000 {
		b.sets[string(without.ByteArray())] = members
	}
	return members, true
}
