package columnar

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/uncompressed"
	"github.com/parquet-go/parquet-go/encoding"
)

// Column is a column of the table, in the table's order.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // in the form of Postgres's format_type
}

// Names of columns that the table does not have. A column of the table that is called so keeps its values, and has
// another name in the file.
const (
	// Line is the exact line of a row that its columns do not give back. NULL in other rows.
	Line = "docket_line"
	// Without names the members that are left out of raw, as their values are in columns. They are joined by commas.
	Without = "raw_without"
	// Nanos are the nanoseconds of the member timestamp beyond the microseconds of ts, 1 to 999. NULL: none.
	Nanos = "raw_nanos"
	// Subject is the subject by the setting at the time of writing. NULL: the decision has none.
	Subject = "subject"
	// Verdict is how the decision ended.
	Verdict = "verdict"
	// Revision lists the bundles of the decision: name@revision. NULL: it names none.
	Revision = "revision"

	idColumn   = "decision_id"
	timeColumn = "ts"
	// dayColumn is the folder's name in the layout of Hive. Engines add it as a column.
	dayColumn = "day"
)

// Keys of a file's metadata.
const (
	keyColumns = "docket.columns"
	keySubject = "docket.subject"
)

// kind says how the values of a column are kept.
type kind uint8

const (
	asText  kind = iota // the text of a JSON string
	asJSON              // jsonb, as Postgres prints it
	asBool              // boolean
	asInt32             // smallint, integer
	asInt64             // bigint
	asTime              // timestamptz, microseconds UTC
	asBytes             // bytea
)

func kindOf(typ string) kind {
	switch typ {
	case "jsonb":
		return asJSON
	case "boolean":
		return asBool
	case "smallint", "integer":
		return asInt32
	case "bigint":
		return asInt64
	case "timestamp with time zone":
		return asTime
	case "bytea":
		return asBytes
	}
	return asText
}

// stored is a column of a file.
type stored struct {
	Column
	As    string `json:"as"` // its name in the file
	kind  kind
	label []byte // in a line: "name":
}

// layout is the columns of a file: those of the table, then those that are added.
type layout struct {
	columns []stored
	id, ts  int
	raw     int   // -1: none
	members []int // by the place in [repeated]: the column with its value, -1: none
	allowed int   // -1: none
	schema  *parquet.Schema
	added   map[string]int // places of added columns, from the first of the file
	leaves  int
	derived []int // added columns that answers rely on and lines do not have
	all     []int
}

// ErrColumns says that columns cannot be those of decisions.
var ErrColumns = errors.New("the columns have no decision_id or no ts, or one of them twice")

// newLayout lays out the columns of a table.
func newLayout(columns []Column) (*layout, error) {
	l := &layout{id: -1, ts: -1, raw: -1, allowed: -1, added: map[string]int{}}
	taken := map[string]bool{dayColumn: true}
	for _, name := range addedNames {
		taken[name] = true
	}
	for i, c := range columns {
		s := stored{Column: c, As: free(taken, c.Name), kind: kindOf(c.Type)}
		taken[strings.ToLower(s.As)] = true
		s.init()
		l.columns = append(l.columns, s)
		l.note(i)
	}
	return l, l.finish()
}

var addedNames = []string{Line, Without, Nanos, Subject, Verdict, Revision}

// free returns a name for a column that no other has. Engines do not tell upper from lower case.
func free(taken map[string]bool, name string) string {
	for n, as := 2, name; ; n++ {
		if as != "" && !taken[strings.ToLower(as)] {
			return as
		}
		as = fmt.Sprintf("%s_%d", name, n)
	}
}

func (s *stored) init() {
	s.kind = kindOf(s.Type)
	s.label = append(quoted(nil, []byte(s.Name)), ':')
}

// note keeps the places of columns with a meaning.
func (l *layout) note(i int) {
	switch c := l.columns[i]; {
	case c.Name == idColumn && c.kind == asText:
		l.id = i
	case c.Name == timeColumn && c.kind == asTime:
		l.ts = i
	case c.Name == "raw" && c.kind == asJSON:
		l.raw = i
	case c.Name == "allowed" && c.kind == asBool:
		l.allowed = i
	}
}

func (l *layout) finish() error {
	if l.id < 0 || l.ts < 0 {
		return ErrColumns
	}
	l.members = make([]int, len(repeated))
	for m, of := range repeated {
		l.members[m] = -1
		for i, c := range l.columns {
			if c.Name == of.column && c.kind == of.kind {
				l.members[m] = i
			}
		}
	}
	fields := make([]parquet.Field, 0, len(l.columns)+len(addedNames))
	for i, c := range l.columns {
		fields = append(fields, &field{l.node(i), c.As})
	}
	for _, name := range addedNames {
		l.added[name] = len(fields)
		node := coded(parquet.String(), &parquet.RLEDictionary)
		switch name {
		case Line:
			node = coded(parquet.String(), &parquet.DeltaLengthByteArray)
		case Nanos:
			node = coded(parquet.Int(32), &parquet.Plain)
		case Subject:
			node = coded(parquet.String(), &parquet.DeltaLengthByteArray)
		}
		fields = append(fields, &field{parquet.Optional(node), name})
	}
	l.leaves = len(fields)
	l.derived = []int{l.added[Verdict], l.added[Subject], l.added[Revision]}
	for i := range fields {
		l.all = append(l.all, i)
	}
	l.schema = parquet.NewSchema("decisions", &group{Group: parquet.Group{}, fields: fields})
	return nil
}

var plain = &uncompressed.Codec{}

// repeats are columns with few values.
var repeats = map[string]bool{
	"path": true, "service": true, "opa_id": true, "opa_version": true, "labels": true, "bundles": true, "source_topic": true, "uploaded_by": true, "unfaithful": true,
	"source_partition": true, "source_index": true, "stored_at": true,
}

func coded(n parquet.Node, e encoding.Encoding) parquet.Node { return packed(n, e, better) }

func packed(n parquet.Node, e encoding.Encoding, by compress.Codec) parquet.Node {
	return parquet.Compressed(parquet.Encoded(n, e), by)
}

// node is the type and the encoding of a column. Identity and time are in every row.
func (l *layout) node(i int) parquet.Node {
	c := l.columns[i]
	var n parquet.Node
	var e encoding.Encoding = &parquet.DeltaLengthByteArray
	switch c.kind {
	case asText, asJSON:
		n = parquet.String()
	case asBytes:
		n = parquet.Leaf(parquet.ByteArrayType)
	case asBool:
		n, e = parquet.Leaf(parquet.BooleanType), &parquet.Plain
	case asInt32:
		n, e = parquet.Int(32), &parquet.DeltaBinaryPacked
	case asInt64:
		n, e = parquet.Int(64), &parquet.DeltaBinaryPacked
	case asTime:
		n, e = parquet.Timestamp(parquet.Microsecond), &parquet.DeltaBinaryPacked
	}
	if repeats[c.Name] {
		e = &parquet.RLEDictionary
	}
	codec := compress.Codec(better)
	if c.Name == "raw_sha256" { // nothing compresses it
		codec = plain
	}
	if n = packed(n, e, codec); i == l.id || i == l.ts {
		return n
	}
	return parquet.Optional(n)
}

// group is a group whose fields keep their order.
type group struct {
	parquet.Group
	fields []parquet.Field
}

func (g *group) Fields() []parquet.Field { return g.fields }

func (g *group) String() string { return fmt.Sprintf("%d columns", len(g.fields)) }

// describe writes the columns for a file's metadata.
func (l *layout) describe() (string, error) {
	b, err := json.Marshal(l.columns)
	return string(b), err
}

// described reads what describe wrote.
func described(text string) (*layout, error) {
	l := &layout{id: -1, ts: -1, raw: -1, allowed: -1, added: map[string]int{}}
	if err := json.Unmarshal([]byte(text), &l.columns); err != nil {
		return nil, ErrColumns
	}
	names := map[string]bool{}
	for i := range l.columns {
		if names[l.columns[i].Name] {
			return l, ErrColumns
		}
		names[l.columns[i].Name] = true
		l.columns[i].init()
		l.note(i)
	}
	return l, l.finish()
}
