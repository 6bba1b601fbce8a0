package output

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
)

// Stream writes items in CSV or as ids while they come, as JSON with a line for each. So an answer of any length takes the
// memory of a line. Lines that hold no object, as those of help, are written as they are. It is not safe for concurrent use.
type Stream struct {
	out     io.Writer
	format  Format
	columns []string
	csv     *csv.Writer // nil: no row is written
	rest    []byte      // of a line that has no end yet
	err     error       // the first one; nothing is written after it
}

// NewStream makes a stream. The columns are those of CSV; other members of an item are an error.
func NewStream(out io.Writer, f Format, columns []string) *Stream {
	return &Stream{out: out, format: f, columns: columns}
}

// Write takes a part of the lines.
func (s *Stream) Write(text []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.rest = append(s.rest, text...)
	for {
		line, rest, whole := bytes.Cut(s.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		if s.err = s.item(line); s.err != nil {
			return 0, s.err
		}
		s.rest = append(s.rest[:0], rest...)
	}
}

// Close writes what has no end of a line. It returns the first error.
func (s *Stream) Close() error {
	if s.err == nil && len(s.rest) > 0 {
		_, s.err = s.out.Write(s.rest)
	}
	return s.err
}

func (s *Stream) item(line []byte) error {
	document, err := read(line)
	o, is := document.(object)
	if err != nil || !is {
		_, err := s.out.Write(append(slices.Clone(line), '\n'))
		return err
	}
	if s.format == ID {
		return named(s.out, []any{o})
	}
	if s.csv == nil {
		s.csv = csv.NewWriter(s.out)
		_ = s.csv.Write(s.columns) // Flush tells
	}
	for _, m := range o {
		if !slices.Contains(s.columns, m.name) {
			return fmt.Errorf("write CSV: there is no column %s", m.name)
		}
	}
	row, err := rowOf(o, s.columns)
	if err != nil {
		return err
	}
	_ = s.csv.Write(row) // Flush tells
	s.csv.Flush()
	return s.csv.Error()
}
