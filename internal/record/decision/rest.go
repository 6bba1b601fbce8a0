package decision

import (
	"bytes"
	"io"
	"iter"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// A rest is an upload of the refused decisions of one upload that share a dead letter. It has the form of that
// upload, so the decoder can read it, and every decision has its exact bytes. The space between two decisions keeps
// their places. In an array a comma is one step, and each line break one more. On lines each line break is one step.
// A rest is never larger than the upload.

// AppendRest appends a rest of decisions by their place. Places rise, from 1 on.
func AppendRest(to []byte, onLines bool, held iter.Seq2[int, []byte]) []byte {
	if !onLines {
		to = append(to, '[')
	}
	at, first := 0, true
	for place, value := range held {
		if !first && !onLines {
			to = append(to, ',')
			at++
		}
		for ; at < place; at++ {
			to = append(to, '\n')
		}
		to, first = append(to, value...), false
	}
	if !onLines {
		to = append(to, ']')
	}
	return to
}

// RestBytes returns the length of the output of [AppendRest].
func RestBytes(onLines bool, held iter.Seq2[int, []byte]) int {
	n, last := 0, 0
	for place, value := range held {
		n += len(value)
		last = place
	}
	if !onLines {
		n += len("[]")
	}
	return n + last
}

var zippers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// Zip gzips a value. Equal values give equal bytes.
func Zip(value []byte) []byte {
	out := bytes.NewBuffer(make([]byte, 0, len(value)/4+64))
	z := zippers.Get().(*gzip.Writer) //nolint:forcetypeassert // the pool holds nothing else
	defer zippers.Put(z)
	z.Reset(out)
	_, _ = z.Write(value) // writing to memory cannot fail
	_ = z.Close()
	z.Reset(io.Discard) // the pool must not keep the bytes alive
	return out.Bytes()
}

// Rest reads the output of [AppendRest], plain or gzipped. It returns each decision with its place in the upload,
// decoded again. ok is false if value is not a rest. The result is valid until the next [Decoder.Begin].
func (d *Decoder) Rest(value []byte, maxBytes int64) (parts []Part, ok bool) {
	s := &d.scanner
	if IsGzip(value) {
		plain, refusal := gunzip(value, min(maxBytes, mostBytes))
		if refusal != nil {
			return nil, false
		}
		value = plain
	}
	s.src, s.pos, s.inflated, s.slab.before = value, 0, 0, len(s.slab.pieces)
	if len(value) > 0 && value[0] == '[' {
		parts, ok = s.restArray()
	} else {
		parts, ok = s.restLines()
	}
	if !ok {
		_, _ = s.refuse(parts, Refusal{}) // gives the room of the parts back
		return nil, false
	}
	return s.record(parts, len(parts)).Parts, true
}

// restArray reads a rest with elements of an array.
func (s *scanner) restArray() (parts []Part, ok bool) {
	s.pos++
	parts = s.room()
	for place := 0; ; {
		for s.pos < len(s.src) && s.src[s.pos] == '\n' {
			s.pos++
			place++
		}
		if place == 0 || place >= MaxDecisions || s.pos == len(s.src) {
			return parts, false
		}
		parts = append(parts, Part{Index: place})
		if !s.part(&parts[len(parts)-1]) || s.pos == len(s.src) {
			return parts, false
		}
		s.pos++
		place++
		switch s.src[s.pos-1] {
		case ']':
			return parts, s.pos == len(s.src)
		case ',':
		default:
			return parts, false
		}
	}
}

// restLines reads a rest of lines.
func (s *scanner) restLines() (parts []Part, ok bool) {
	parts = s.room()
	place := 0
	for line := range bytes.Lines(s.src) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) > 0 {
			if place == 0 || place >= MaxDecisions {
				return parts, false
			}
			parts = append(parts, Part{Index: place, Value: line[:len(line):len(line)]})
			if part := &parts[len(parts)-1]; !s.line(part) {
				part.Value, part.Log, part.Err = line, Log{}, &Refusal{Reason: Syntax, Offset: s.pos}
			}
		}
		place++
	}
	return parts, len(parts) > 0
}

// line reads the value of part as a decision; false is a syntax error at s.pos.
func (s *scanner) line(part *Part) bool {
	whole := s.src
	s.src, s.pos = part.Value, 0
	ok := s.document(part)
	s.src = whole
	return ok
}
