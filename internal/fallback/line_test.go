package fallback_test

import (
	"bytes"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"docket/internal/fallback"
)

var sameRecord = cmp.Options{cmpopts.IgnoreUnexported(kgo.Record{}), cmpopts.EquateComparable(kgo.RecordAttrs{}), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })}

func roundTrip(t interface{ Fatalf(string, ...any) }, in fallback.Line) {
	line, err := fallback.AppendLine(nil, in)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	if byJSON := fallback.LineByJSON(in); !bytes.Equal(line, byJSON) {
		t.Fatalf("wrote %q, encoding/json writes %q", line, byJSON)
	}
	for name, decode := range map[string]func([]byte) (fallback.Line, error){"short cut": fallback.DecodeLine, "by JSON": fallback.DecodeAny} {
		out, err := decode(line)
		if err != nil {
			t.Fatalf("%s: decode %q: %v", name, line, err)
		}
		if diff := cmp.Diff(in, out, sameRecord); diff != "" {
			t.Fatalf("%s: changed on the way (-in +out):\n%s", name, diff)
		}
	}
}

func TestLine_AnyRecordSurvives(t *testing.T) {
	t.Parallel()
	content := rapid.OneOf(
		rapid.Just[[]byte](nil), rapid.Just([]byte{}),
		rapid.SliceOfN(rapid.Byte(), 0, 40),
		rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
		rapid.SliceOfN(rapid.SampledFrom([]byte("\x00\x1f\x7f\n\"\\ab")), 0, 12),
		rapid.SampledFrom([][]byte{[]byte("\u2028\u2029<>&\x00\ufffd\""), {0xff, 0xfe}, []byte("\xed\xa0\x80")}),
	)
	text := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 12), func(b []byte) string { return string(b) })
	rapid.Check(t, func(rt *rapid.T) {
		r := &kgo.Record{
			Topic: rapid.OneOf(rapid.SampledFrom([]string{"decision-logs-dlq"}), rapid.Map(text, func(s string) string { return "t" + s })).Draw(rt, "topic"),
			Key:   content.Draw(rt, "key"), Value: content.Draw(rt, "value"),
			Timestamp: time.Unix(rapid.Int64Range(-1<<55, 1<<55).Draw(rt, "sec"), rapid.Int64Range(0, 999999999).Draw(rt, "nsec")).UTC(),
		}
		if rapid.Bool().Draw(rt, "ordinary year") {
			r.Timestamp = time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(rt, "ms")).UTC()
		}
		for range rapid.IntRange(0, 4).Draw(rt, "headers") {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: rapid.OneOf(text, rapid.Just("x-a")).Draw(rt, "name"), Value: content.Draw(rt, "content")})
		}
		roundTrip(rt, fallback.Line{Record: r, Oversize: rapid.Bool().Draw(rt, "oversize")})
	})
}

func FuzzLine_AnyRecordSurvives(f *testing.F) {
	f.Add([]byte("k"), []byte("v\xff"), "h", []byte("\u2028"), int64(1700000000), int64(5))
	f.Fuzz(func(t *testing.T, key, value []byte, name string, content []byte, sec, nsec int64) {
		at := time.Unix(sec%(1<<55), nsec&(1<<29-1)).UTC()
		roundTrip(t, fallback.Line{Record: &kgo.Record{Topic: "t", Key: key, Value: value, Timestamp: at,
			Headers: []kgo.RecordHeader{{Key: name, Value: content}, {Key: name}}}})
	})
}

// FuzzDecodeLine_NeverPanics also checks that the short cut reads lines like the general reader.
func FuzzDecodeLine_NeverPanics(f *testing.F) {
	f.Add([]byte(`{"topic":"t","key":null,"value":"v","headers":[],"timestamp":null}`))
	f.Add([]byte(`{"topic":"t","key":"","value":"\u2028\u001f\b\f\n\r\t\/\"\\","headers":[{"key":"x-a","value":null},{"key":"/w==","key_encoding":"base64","value":"/w==","encoding":"base64"}],"timestamp":"2026-01-02T03:04:05.000000006Z","oversize":true}` + "\n"))
	f.Add([]byte(`{"topic":"/w==","topic_encoding":"base64","key":"/w==","key_encoding":"base64","value":"/w==","value_encoding":"base64","headers":[],"timestamp":"-99999999999.000000001","timestamp_encoding":"unix"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if short, ok := fallback.ReadCanonical(b); ok && utf8.Valid(b) {
			if long, err := fallback.DecodeAny(b); err != nil || cmp.Diff(long, short, sameRecord) != "" {
				t.Fatalf("the short cut takes %q: %v\n%s", b, err, cmp.Diff(long, short, sameRecord))
			}
		}
		if l, err := fallback.DecodeLine(b); err == nil {
			roundTrip(t, l)
		}
	})
}

func TestLine_Format(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for name, c := range map[string]struct {
		line fallback.Line
		want string
	}{
		"text": {fallback.Line{Record: &kgo.Record{Topic: "t", Key: []byte("k"), Value: []byte("<v>"), Timestamp: at,
			Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}, {Key: "h"}}}},
			`{"topic":"t","key":"k","value":"<v>","headers":[{"key":"h","value":"x"},{"key":"h","value":null}],"timestamp":"2026-01-02T03:04:05.000000006Z"}`},
		"null and empty": {fallback.Line{Record: &kgo.Record{Topic: "t", Value: []byte{}, Timestamp: at}},
			`{"topic":"t","key":null,"value":"","headers":[],"timestamp":"2026-01-02T03:04:05.000000006Z"}`},
		"bytes": {fallback.Line{Oversize: true, Record: &kgo.Record{Topic: "t", Key: []byte{0xff}, Value: []byte{0xfe}, Timestamp: at,
			Headers: []kgo.RecordHeader{{Key: "\xff", Value: []byte{0xff}}}}},
			`{"topic":"t","key":"/w==","key_encoding":"base64","value":"/g==","value_encoding":"base64","headers":[{"key":"/w==","key_encoding":"base64","value":"/w==","encoding":"base64"}],"timestamp":"2026-01-02T03:04:05.000000006Z","oversize":true}`},
		"long in quotes": {fallback.Line{Record: &kgo.Record{Topic: "t", Key: []byte("\x01a\x01a"), Value: []byte("\x01\x01\x01"), Timestamp: at,
			Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("\x01\u2028\u2028")}, {Key: "\"\\\n", Value: []byte("\x01abcd")}}}},
			`{"topic":"t","key":"AWEBYQ==","key_encoding":"base64","value":"AQEB","value_encoding":"base64","headers":[{"key":"h","value":"AeKAqOKAqA==","encoding":"base64"},{"key":"\"\\\n","value":"\u0001abcd"}],"timestamp":"2026-01-02T03:04:05.000000006Z"}`},
		"no timestamp": {fallback.Line{Record: &kgo.Record{Topic: "t"}},
			`{"topic":"t","key":null,"value":null,"headers":[],"timestamp":null}`},
		"timestamp beyond RFC 3339": {fallback.Line{Record: &kgo.Record{Topic: "t", Timestamp: time.UnixMilli(9e15)}},
			`{"topic":"t","key":null,"value":null,"headers":[],"timestamp":"9000000000000.000000000","timestamp_encoding":"unix"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line, err := fallback.AppendLine(nil, c.line)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(line); got != c.want+"\n" {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if _, ok := fallback.ReadCanonical(line); !ok {
				t.Error("the short cut does not take what was written")
			}
			roundTrip(t, c.line)
		})
	}
}

func TestDecodeLine_ErrorQuotesNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `x`, `[]`, `null`, `{}`, `{"topic":""}`, `{"topic":"t"} {}`, `{"topic":"t","secret":1}`,
		`{"topic":"t","key":"*","key_encoding":"base64"}`, `{"topic":"t","key":"x","key_encoding":"rot13"}`,
		`{"topic":"t","key":null,"value":null,"headers":[],"timestamp":null}x`, `{"topic":"t","key":null,"value":"a"b","headers":[],"timestamp":null}`,
		`{"topic":"t","timestamp":"yesterday"}`, `{"topic":"t","key_encoding":"base64"}`, "{\"topic\":\"t\xff\"}",
	} {
		if _, err := fallback.DecodeLine([]byte(text)); err == nil || err.Error() != "line is not a record" {
			t.Errorf("%q: %v", text, err)
		}
	}
}
