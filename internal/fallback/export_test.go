package fallback

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Exports for the tests outside the package.
var (
	AppendLine    = appendLine
	DecodeLine    = decodeLine
	DecodeAny     = decodeAny
	ReadCanonical = readCanonical
)

// LineByJSON encodes a line with encoding/json, to compare with AppendLine.
func LineByJSON(l Line) []byte {
	r := l.Record
	out := jsonLine{Headers: make([]jsonHeader, len(r.Headers)), Oversize: l.Oversize}
	topic, name := text([]byte(r.Topic))
	out.Topic, out.TopicEncoding = *topic, name
	out.Key, out.KeyEncoding = text(r.Key)
	out.Value, out.ValueEncoding = text(r.Value)
	for i, h := range r.Headers {
		key, name := text([]byte(h.Key))
		out.Headers[i].Key, out.Headers[i].KeyEncoding = *key, name
		out.Headers[i].Value, out.Headers[i].Encoding = text(h.Value)
	}
	if y := r.Timestamp.UTC().Year(); y < 0 || y > 9999 {
		s := fmt.Sprintf("%d.%09d", r.Timestamp.Unix(), r.Timestamp.Nanosecond())
		out.Timestamp, out.TimestampEncoding = &s, encodingUnix
	} else if !r.Timestamp.IsZero() {
		s := r.Timestamp.UTC().Format(time.RFC3339Nano)
		out.Timestamp = &s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func text(b []byte) (*string, string) {
	if b == nil {
		return nil, ""
	}
	s, encoding := string(b), ""
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err)
	}
	if !utf8.Valid(b) || quoted.Len()-len("\"\"\n") > 2*len(b) {
		s, encoding = base64.StdEncoding.EncodeToString(b), encodingBase64
	}
	return &s, encoding
}

// SetLimits sets low limits, so that small files are too large.
func (s *Spool) SetLimits(line int, total int64) { s.lim = limits{line: line, total: total} }

// SetMemory sets how many bytes of a file stay in memory until they are published, and how many are published at a time.
func (s *Spool) SetMemory(held, chunk int) { s.held, s.chunk = held, chunk }

// ImageOf returns a data file and its meta as Append would write them.
func ImageOf(lines []Line) (data, meta []byte, err error) {
	w, err := newImageWriter(len(lines), defaultLimits)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range lines {
		if err := w.add(l); err != nil {
			return nil, nil, err
		}
	}
	im, err := w.finish(stem{}, time.Unix(0, 0))
	if err != nil {
		return nil, nil, err
	}
	return im.data, im.meta, nil
}

// Inspect returns the fault of a data file and its number of lines.
func Inspect(data []byte) (string, int) {
	found, err := inspect(bytes.NewReader(data), defaultLimits, 0)
	if err != nil {
		return err.Error(), 0
	}
	return string(found.fault), found.lines
}

// SyncingOS is OS with another function to sync the parent directories.
func SyncingOS(dir string, sync func(string) error) FS {
	return &osFS{dir: dir, sync: sync}
}

// SyncPath is the function that OS uses.
func SyncPath(dir string) error { return syncPath(dir) }
