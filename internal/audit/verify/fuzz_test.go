package verify

import (
	"encoding/json"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// FuzzForwardedOf: no headers make the reader panic, and an unreadable origin is reported.
func FuzzForwardedOf(f *testing.F) {
	f.Add("logs", "3", "77", "0", "23514")
	f.Add("", "-1", "x", "99999999999999999999", "")
	f.Fuzz(func(t *testing.T, topic, partition, offset, index, code string) {
		got := ForwardedOf(&kgo.Record{Headers: []kgo.RecordHeader{
			{Key: envelope.OriginalTopic, Value: []byte(topic)}, {Key: envelope.OriginalPartition, Value: []byte(partition)},
			{Key: envelope.OriginalOffset, Value: []byte(offset)}, {Key: envelope.OriginalIndex, Value: []byte(index)}, {Key: envelope.FailureCode, Value: []byte(code)},
		}}, home.DeadLetter, "dlq")
		if got.Code != code || topic == "" && !got.NoOrigin {
			t.Fatalf("%+v", got)
		}
	})
}

// FuzzSpoolLine: no line makes the reader panic. null stays null, and invalid base64 is refused.
func FuzzSpoolLine(f *testing.F) {
	f.Add([]byte(`{"topic":"t","key":null,"value":"","headers":[{"key":"k","value":null}],"timestamp":null}`))
	f.Add([]byte(`{"topic":"t","key":"aGk=","key_encoding":"base64","value":"!","value_encoding":"base64","headers":null,"timestamp":"2026-01-02T03:04:05.000000006Z"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var l spoolLine
		if json.Unmarshal(b, &l) != nil {
			return
		}
		if r, err := l.record(); err == nil && ((r.Value == nil) != (l.Value == nil) || (r.Key == nil) != (l.Key == nil)) {
			t.Fatalf("null did not stay null: %q", b)
		}
	})
}
