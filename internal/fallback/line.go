package fallback

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Line is one record to publish, with the spool's own facts about it.
type Line struct {
	// Record is the record to publish. Topic, key, value, headers and timestamp are kept. Fields that a broker
	// assigns (partition, offset, producer) are not.
	Record *kgo.Record
	// Oversize says that the broker refused the record as too large even with only the necessary headers. It waits in
	// a file of its own.
	Oversize bool
}

const (
	encodingBase64 = "base64" // for bytes that are not valid UTF-8, or long in quotes
	encodingUnix   = "unix"   // for a timestamp beyond the years of RFC 3339
)

// jsonLine is the line as written and read. Null stays null and empty stays empty.
type jsonLine struct {
	Topic             string       `json:"topic"`
	TopicEncoding     string       `json:"topic_encoding,omitempty"`
	Key               *string      `json:"key"`
	KeyEncoding       string       `json:"key_encoding,omitempty"`
	Value             *string      `json:"value"`
	ValueEncoding     string       `json:"value_encoding,omitempty"`
	Headers           []jsonHeader `json:"headers"`
	Timestamp         *string      `json:"timestamp"`
	TimestampEncoding string       `json:"timestamp_encoding,omitempty"`
	Oversize          bool         `json:"oversize,omitempty"`
}

type jsonHeader struct {
	Key         string  `json:"key"`
	KeyEncoding string  `json:"key_encoding,omitempty"`
	Value       *string `json:"value"`
	Encoding    string  `json:"encoding,omitempty"` // of the value
}

// errNotARecord replaces every error of an unreadable line, because the text of a JSON error quotes the line.
var errNotARecord = errors.New("line is not a record")

// appendLine appends a line and its newline, in the form of [jsonLine].
func appendLine(dst []byte, l Line) ([]byte, error) {
	if l.Record == nil {
		return dst, errors.New("line has no record")
	}
	r := l.Record
	dst = append(dst, '{')
	dst = appendField(dst, `"topic":`, []byte(r.Topic), true, `,"topic_encoding":`)
	dst = appendField(dst, `,"key":`, r.Key, r.Key != nil, `,"key_encoding":`)
	dst = appendField(dst, `,"value":`, r.Value, r.Value != nil, `,"value_encoding":`)
	dst = append(dst, `,"headers":[`...)
	for i, h := range r.Headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		dst = appendField(dst, `"key":`, []byte(h.Key), true, `,"key_encoding":`)
		dst = appendField(dst, `,"value":`, h.Value, h.Value != nil, `,"encoding":`)
		dst = append(dst, '}')
	}
	dst = append(dst, `],"timestamp":`...)
	dst = appendTime(dst, r.Timestamp)
	if l.Oversize {
		dst = append(dst, `,"oversize":true`...)
	}
	return append(dst, '}', '\n'), nil
}

// appendField appends a name and bytes as text, null if there are none, and the mark of base64 if it was needed.
func appendField(dst []byte, name string, b []byte, there bool, mark string) []byte {
	dst = append(dst, name...)
	switch {
	case !there:
		return append(dst, "null"...)
	case utf8.Valid(b) && !longInQuotes(b):
		return appendQuoted(dst, b)
	}
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	dst = append(dst, '"')
	dst = append(dst, mark...)
	return append(dst, `"base64"`...)
}

// decodeLine reads a line of appendLine, or returns errNotARecord. It is strict, because an unknown field could
// matter to its writer.
func decodeLine(line []byte) (Line, error) {
	if !utf8.Valid(line) {
		return Line{}, errNotARecord
	}
	if l, ok := readCanonical(line); ok {
		return l, nil
	}
	return decodeAny(line)
}

// decodeAny reads a line in any order of fields and with any white space that JSON allows.
func decodeAny(line []byte) (Line, error) {
	var in jsonLine
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return Line{}, errNotARecord
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Line{}, errNotARecord
	}
	r, err := in.record()
	if err != nil {
		return Line{}, errNotARecord
	}
	return Line{Record: r, Oversize: in.Oversize}, nil
}

func (in *jsonLine) record() (*kgo.Record, error) {
	topic, errTopic := fromText(&in.Topic, in.TopicEncoding)
	key, errKey := fromText(in.Key, in.KeyEncoding)
	value, errValue := fromText(in.Value, in.ValueEncoding)
	at, errTime := fromTime(in.Timestamp, in.TimestampEncoding)
	if err := errors.Join(errTopic, errKey, errValue, errTime); err != nil {
		return nil, err
	}
	if len(topic) == 0 {
		return nil, errNotARecord
	}
	r := &kgo.Record{Topic: string(topic), Key: key, Value: value, Timestamp: at}
	for _, h := range in.Headers {
		name, errName := fromText(&h.Key, h.KeyEncoding)
		content, errContent := fromText(h.Value, h.Encoding)
		if err := errors.Join(errName, errContent); err != nil {
			return nil, err
		}
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: string(name), Value: content})
	}
	return r, nil
}

func fromText(text *string, encoding string) ([]byte, error) {
	switch {
	case text == nil && encoding == "":
		return nil, nil
	case text == nil:
		return nil, errNotARecord
	case encoding == "":
		return []byte(*text), nil
	case encoding == encodingBase64:
		return base64.StdEncoding.Strict().DecodeString(*text)
	}
	return nil, errNotARecord
}

// appendTime appends RFC 3339 in UTC, null for the zero time. For a year outside RFC 3339 it appends Unix seconds
// with nine decimals.
func appendTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(dst, "null"...)
	}
	t = t.UTC()
	dst = append(dst, '"')
	if y := t.Year(); y < 0 || y > 9999 {
		dst = fmt.Appendf(dst, "%d.%09d", t.Unix(), t.Nanosecond())
		return append(dst, `","timestamp_encoding":"unix"`...)
	}
	return append(t.AppendFormat(dst, time.RFC3339Nano), '"')
}

func fromTime(text *string, encoding string) (time.Time, error) {
	switch {
	case text == nil && encoding == "":
		return time.Time{}, nil
	case text == nil:
		return time.Time{}, errNotARecord
	case encoding == "":
		t, err := time.Parse(time.RFC3339Nano, *text)
		return t.UTC(), err
	case encoding == encodingUnix:
		return fromUnix(*text)
	}
	return time.Time{}, errNotARecord
}

func fromUnix(text string) (time.Time, error) {
	whole, decimals, ok := strings.Cut(text, ".")
	if !ok || len(decimals) != 9 {
		return time.Time{}, errNotARecord
	}
	sec, err := strconv.ParseInt(whole, 10, 64)
	nsec, errDecimals := strconv.ParseUint(decimals, 10, 32)
	return time.Unix(sec, int64(nsec)).UTC(), errors.Join(err, errDecimals)
}
