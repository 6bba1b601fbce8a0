package collector

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"docket/internal/record/decision"
)

// crossSite knows the requests that a browser sends for a page of another site.
var crossSite = http.NewCrossOriginProtection()

// isJSON says whether an upload's Content-Type is JSON, which no form of a page of another site can send.
func isJSON(h http.Header) bool {
	values := h.Values("Content-Type")
	if len(values) != 1 {
		return false
	}
	of, _, err := mime.ParseMediaType(values[0])
	return err == nil && (of == "application/json" || of == "application/x-ndjson" || strings.HasPrefix(of, "application/") && strings.HasSuffix(of, "+json"))
}

// encoded reports whether an upload's Content-Encoding is known. The first bytes of the body tell whether it is gzip.
func encoded(h http.Header) bool {
	switch values := h.Values("Content-Encoding"); len(values) {
	case 0:
		return true
	case 1:
		name := strings.ToLower(strings.TrimSpace(values[0]))
		return name == "" || name == "identity" || name == "gzip" || name == "x-gzip"
	default:
		return false
	}
}

// readBody reads the body as it comes, at most so many bytes. Room is made for what has come, never for what a header says.
func readBody(from io.Reader, s *share, most int64) ([]byte, *refusal) {
	b, r := s.buffer(leastBuffer)
	if r != nil {
		return nil, r
	}
	return fill(from, b, s, most, refuse(reasonUploadBytes, 0), unread)
}

// fill reads to the end. Of what is more than most bytes it reads one.
func fill(from io.Reader, b []byte, s *share, most int64, over *refusal, failed func(error) *refusal) ([]byte, *refusal) {
	for {
		if len(b) == cap(b) {
			var r *refusal
			if b, r = s.grow(b, 0, most+1); r != nil {
				return b, r
			}
		}
		n, err := from.Read(b[len(b):min(int64(cap(b)), most+1)])
		b = b[:len(b)+n]
		switch {
		case int64(len(b)) > most:
			return b, over
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return b, failed(err)
		}
	}
}

func unread(err error) *refusal {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(reasonBodyTimeout, 0)
	}
	return refuse(reasonBodyBroken, 0)
}

const (
	// usualRatio is how far decision logs are inflated as a rule, highRatio what is believed of one that says more.
	usualRatio, highRatio = 8, 32
)

// roomFor guesses what an upload is inflated to, from what its last four bytes say (RFC 1952, ISIZE).
func roomFor(zipped []byte, most int64) int64 {
	n := int64(len(zipped))
	if n < 18 {
		return leastBuffer
	}
	says := int64(binary.LittleEndian.Uint32(zipped[n-4:])) + 1 // one more shows that it ends there
	if says > highRatio*n {
		says = usualRatio * n
	}
	return max(leastBuffer, min(says, most+1))
}

// inflate gunzips an upload, at most to so many bytes.
func inflate(zipped []byte, s *share, most int64) ([]byte, *refusal) {
	in, err := decision.Inflate(zipped)
	if err != nil {
		return nil, refuse(reasonGzip, 0)
	}
	defer in.Close()
	b, r := s.buffer(roomFor(zipped, most))
	if r != nil {
		return nil, r
	}
	b, r = fill(in, b, s, most, refuse(reasonInflatedBytes, 0), func(error) *refusal { return refuse(reasonGzip, 0) })
	if r != nil {
		if r.reason == reasonGzip {
			r.offset = len(b)
		}
		return b, r
	}
	if decision.IsGzip(b) {
		return b, refuse(reasonSyntax, 0) // zipped twice; the decoder would inflate it once more, into memory that nobody counts
	}
	return b, nil
}

// outlay is what there will be to decode in an upload: how many decisions at most, and how many keys and braces the one has
// that has most.
type outlay struct{ decisions, nodes int }

// fewNodes are as many as a decoder has room for in any case.
const fewNodes = 512

// bytes is what decoding and publishing take beside the upload's own bytes.
func (o outlay) bytes() int64 {
	n := eachDecision * int64(min(o.decisions, decision.MaxDecisions)) // the decoder stops there
	if o.nodes > fewNodes {
		n += eachNode * int64(o.nodes)
	}
	return n
}

// looseOutlay is never below [outlayOf] and costs a small part of it, but counts every comma for a decision.
func looseOutlay(value []byte) outlay {
	return outlay{1 + bytes.Count(value, []byte{','}) + bytes.Count(value, []byte{'\n'}),
		bytes.Count(value, []byte{':'}) + bytes.Count(value, []byte{'{'}) + bytes.Count(value, []byte{'}'})}
}

// outlayOf counts over value, so that the memory of decoding is known before decoding begins. It judges nothing. If
// value is JSON only up to some place, it counts the bytes before that place.
func outlayOf(value []byte) outlay {
	value = bytes.TrimLeft(value, " \t\r\n")
	if len(value) == 0 {
		return outlay{}
	}
	o, nodes, depth := outlay{decisions: 1}, 0, 0
	if decision.MayBeLines(value) { // or one decision over many lines
		o = outlay{1 + bytes.Count(value, []byte{'\n'}),
			bytes.Count(value, []byte{':'}) + bytes.Count(value, []byte{'{'}) + bytes.Count(value, []byte{'}'})}
		if value[0] != '[' {
			return o
		}
	}
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"':
			for i++; i < len(value) && value[i] != '"'; i++ {
				if value[i] == '\\' {
					i++
				}
			}
		case '[':
			depth++
		case ']':
			depth--
		case '{':
			depth++
			nodes++
		case '}':
			depth--
			nodes++
		case ':':
			nodes++
		case ',':
			if depth == 1 {
				o.decisions++
				o.nodes, nodes = max(o.nodes, nodes), 0
			}
		}
	}
	o.nodes = max(o.nodes, nodes)
	return o
}
