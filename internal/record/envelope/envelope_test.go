package envelope

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	read = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	now  = time.Date(2026, 3, 1, 13, 0, 0, 1, time.UTC)
)

func source() *kgo.Record {
	return &kgo.Record{
		Topic: "decision-logs", Partition: 4, Offset: 77, Timestamp: read, Key: []byte("alice"), Value: []byte(`{"a":1}`),
		Headers: []kgo.RecordHeader{{Key: "traceparent", Value: []byte("00-aa")}, {Key: "x-team", Value: nil}, {Key: "traceparent", Value: []byte("00-bb")}},
	}
}

func headers(r *kgo.Record) map[string]string {
	m := map[string]string{}
	for _, h := range r.Headers {
		m[h.Key] = string(h.Value)
	}
	return m
}

func TestSeal_EveryHeader(t *testing.T) {
	t.Parallel()
	cause := Cause{Kind: Data, Code: "23514", Message: "check_violation", Table: "decision_logs", Column: "c", Constraint: "k"}
	r := Open(source()).Seal(cause, Sealed{
		Topic: "decision-logs-parking", Index: 2, Value: []byte(`{"a":1}`), At: now, Attempt: 0, NotBefore: now.Add(time.Minute), Consumer: "docket/one",
	})
	sum := sha256.Sum256([]byte("decision-logs\x004\x0077\x002\x00{\"a\":1}"))
	want := map[string]string{
		"traceparent": "00-bb", "x-team": "",
		"x-original-topic": "decision-logs", "x-original-partition": "4", "x-original-offset": "77", "x-original-index": "2",
		"x-original-timestamp": "2026-03-01T12:00:00.123456789Z",
		"x-failure-kind":       "data", "x-failure-code": "23514", "x-failure-message": "check_violation",
		"x-failure-table": "decision_logs", "x-failure-column": "c", "x-failure-constraint": "k",
		"x-first-failed-at": "2026-03-01T13:00:00.000000001Z", "x-failed-at": "2026-03-01T13:00:00.000000001Z",
		"x-retry-attempt": "0", "x-not-before": strconv.FormatInt(now.Add(time.Minute).UnixMilli(), 10),
		"x-dead-letter-id": hex.EncodeToString(sum[:]), "x-consumer": "docket/one",
	}
	if d := cmp.Diff(want, headers(r)); d != "" {
		t.Errorf("headers (-want +got):\n%s", d)
	}
	if d := cmp.Diff(source().Headers, r.Headers[:3]); d != "" {
		t.Errorf("the record's own headers changed:\n%s", d)
	}
	if string(r.Key) != "alice" || r.Topic != "decision-logs-parking" || !r.Timestamp.Equal(now) {
		t.Errorf("sealed as %+v", r)
	}
}

func TestSeal_LeavesOutEmptyValues(t *testing.T) {
	t.Parallel()
	r := Open(&kgo.Record{Topic: "t"}).Seal(Cause{Kind: Decode, Code: "empty"}, Sealed{Topic: "dlq", Index: NoIndex, At: now})
	h := headers(r)
	for _, key := range []string{OriginalIndex, FailureTable, FailureColumn, FailureConstraint, NotBefore} {
		if v, ok := h[key]; ok {
			t.Errorf("%s is %q, want none", key, v)
		}
	}
	if r.Key != nil || r.Value != nil {
		t.Errorf("null became key %q, value %q", r.Key, r.Value)
	}
	sum := sha256.Sum256([]byte("t\x000\x000\x00\x00"))
	if h[DeadLetterID] != hex.EncodeToString(sum[:]) {
		t.Error("the id of a record without index and value is not that of empty fields")
	}
}

func TestSeal_DropsHeadersOfTheSource(t *testing.T) {
	t.Parallel()
	forged := source()
	for name := range ours {
		forged.Headers = append(forged.Headers, kgo.RecordHeader{Key: name, Value: []byte("5")})
	}
	e := Open(forged)
	if e.Attempt != 0 || !e.NotBefore.IsZero() || e.Parked || e.Origin.Topic != "decision-logs" || e.Origin.Offset != 77 || e.Code != "" {
		t.Errorf("forged headers were believed: %+v", e)
	}
	r := e.Seal(Cause{Kind: Transient, Code: "08006"}, Sealed{Topic: "p", Index: 0, Value: forged.Value, At: now})
	count := map[string]int{}
	for _, h := range r.Headers {
		count[h.Key]++
		if ours[h.Key] && string(h.Value) == "5" {
			t.Errorf("forged %s was forwarded", h.Key)
		}
	}
	for name := range ours {
		if count[name] > 1 {
			t.Errorf("%s stands %d times", name, count[name])
		}
	}
}

func TestOpenParked_SealedHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := source()
		src.Partition, src.Offset = rapid.Int32Range(0, 1e6).Draw(t, "partition"), rapid.Int64Range(0, 1e15).Draw(t, "offset")
		index := rapid.IntRange(0, 1e6).Draw(t, "index")
		attempt := rapid.IntRange(0, 100).Draw(t, "attempt")
		value := rapid.SliceOf(rapid.Byte()).Draw(t, "value")
		in := Open(src)
		s := Sealed{Topic: "parking", Index: index, Value: value, At: now, Attempt: attempt, NotBefore: now.Add(time.Second), Consumer: "c"}
		parked := in.Seal(Cause{Kind: Transient, Code: "08006"}, s)

		out := OpenParked(parked, time.Hour)
		want := in.Origin
		want.Index = index
		if d := cmp.Diff(want, out.Origin); d != "" {
			t.Fatalf("origin:\n%s", d)
		}
		if out.Attempt != attempt || !out.Parked || !out.FirstFailedAt.Equal(now) || out.Code != "08006" {
			t.Fatalf("history %+v", out)
		}
		if !out.NotBefore.Equal(now.Add(time.Second).Truncate(time.Millisecond)) {
			t.Fatalf("not before %v", out.NotBefore)
		}
		again := out.Seal(Cause{Kind: Data, Code: "23514"}, Sealed{Topic: "dlq", Index: index, Value: value, At: now.Add(time.Hour)})
		if IDOf(again) != IDOf(parked) {
			t.Fatal("the same decision has two dead-letter ids")
		}
		if h := headers(again); h[FirstFailedAt] != stamped(now) || h[FailedAt] != stamped(now.Add(time.Hour)) {
			t.Fatalf("first and last failure: %s, %s", h[FirstFailedAt], h[FailedAt])
		}
	})
}

func TestOpenParked_SenselessHistory(t *testing.T) {
	t.Parallel()
	at := func(key, value string) *kgo.Record {
		return &kgo.Record{Topic: "parking", Partition: 1, Offset: 9, Timestamp: now, Headers: []kgo.RecordHeader{{Key: key, Value: []byte(value)}}}
	}
	for name, tc := range map[string]struct {
		r         *kgo.Record
		attempt   int
		notBefore time.Time
	}{
		"nothing":               {&kgo.Record{Topic: "parking", Partition: 1, Offset: 9, Timestamp: now}, 0, time.Time{}},
		"negative attempt":      {at(RetryAttempt, "-3"), 0, time.Time{}},
		"attempt of letters":    {at(RetryAttempt, "many"), 0, time.Time{}},
		"attempt beyond int32":  {at(RetryAttempt, "99999999999"), math.MaxInt32, time.Time{}},
		"attempt beyond int64":  {at(RetryAttempt, "99999999999999999999"), math.MaxInt32, time.Time{}},
		"attempt far below":     {at(RetryAttempt, "-99999999999999999999"), 0, time.Time{}},
		"attempt":               {at(RetryAttempt, "4"), 4, time.Time{}},
		"negative not-before":   {at(NotBefore, "-5"), 0, time.Time{}},
		"not-before of letters": {at(NotBefore, "tomorrow"), 0, time.Time{}},
		"not-before":            {at(NotBefore, strconv.FormatInt(now.Add(time.Minute).UnixMilli(), 10)), 0, now.Add(time.Minute).Truncate(time.Millisecond)},
		"not-before too far":    {at(NotBefore, strconv.FormatInt(now.AddDate(9, 0, 0).UnixMilli(), 10)), 0, now.Add(time.Hour)},
	} {
		e := OpenParked(tc.r, time.Hour)
		if e.Attempt != tc.attempt || !e.NotBefore.Equal(tc.notBefore) {
			t.Errorf("%s: attempt %d, not before %v; want %d, %v", name, e.Attempt, e.NotBefore, tc.attempt, tc.notBefore)
		}
		if e.Origin.Topic != "parking" || e.Origin.Offset != 9 || e.Origin.Index != NoIndex {
			t.Errorf("%s: origin %+v, want where it is now", name, e.Origin)
		}
	}
}

func TestSeal_HeadersWithinFourKiB(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 10_000)
	src := source()
	src.Topic = strings.Repeat("t", 249)
	src.Partition, src.Offset = 1<<31-1, 1<<62
	cause := Cause{Kind: Exhausted, Code: long, Message: long, Table: long, Column: long, Constraint: long}
	for _, to := range []Sealed{
		{Topic: "p", Index: 1 << 30, At: now, Attempt: 1 << 30, NotBefore: now, Consumer: long, Traceparent: long},
		{
			Topic: "p", Index: 1 << 30, At: now, Attempt: 1 << 30, Consumer: long, Traceparent: long,
			Value: []byte(`{"decision_id":"` + long + `","timestamp":"2026-12-31T23:59:59.999999999+00:01"}`),
		},
	} {
		withinFourKiB(t, Open(src).Seal(cause, to))
	}
}

func withinFourKiB(t *testing.T, r *kgo.Record) {
	t.Helper()
	total := 0
	for _, h := range r.Headers {
		if !ours[h.Key] {
			continue
		}
		total += len(h.Key) + len(h.Value)
		if strings.ContainsRune(string(h.Value), '\uFFFD') {
			t.Errorf("%s was cut inside a character", h.Key)
		}
		if (h.Key == FailureMessage || h.Key == DecisionID) && len(h.Value) > 1024 {
			t.Errorf("%s has %d bytes", h.Key, len(h.Value))
		}
	}
	if total > 4096 {
		t.Errorf("headers of ours take %d bytes", total)
	}
}

func TestOpenParked_ImpossibleTopic(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		strings.Repeat("t", 249): strings.Repeat("t", 249), strings.Repeat("t", 250): "parking", "a\nb": "parking", "a b": "parking", "é": "parking",
	} {
		r := &kgo.Record{Topic: "parking", Partition: 1, Offset: 9, Timestamp: now, Headers: []kgo.RecordHeader{
			{Key: OriginalTopic, Value: []byte(name)}, {Key: OriginalPartition, Value: []byte("3")}, {Key: OriginalOffset, Value: []byte("4")},
		}}
		if e := OpenParked(r, time.Hour); e.Origin.Topic != want {
			t.Errorf("%.20q…, %d bytes, became %.20q…", name, len(name), e.Origin.Topic)
		}
	}
}

func TestSeal_MessageIsOneLine(t *testing.T) {
	t.Parallel()
	r := Open(source()).Seal(Cause{Kind: Data, Message: "a\r\nb\x1b[31m\x00c"}, Sealed{At: now})
	if got := headers(r)[FailureMessage]; strings.ContainsAny(got, "\r\n\x1b\x00") {
		t.Errorf("message is %q", got)
	}
}

func TestBare_NecessaryHeaders(t *testing.T) {
	t.Parallel()
	r := Keys{}.Bare(Open(source()).Seal(Cause{Kind: Transient, Code: "08006", Message: "m", Table: "t"},
		Sealed{Topic: "p", Index: 1, Value: []byte("v"), At: now, Attempt: 2, NotBefore: now, Consumer: "c"}))
	h := headers(r)
	for _, key := range []string{OriginalTopic, OriginalPartition, OriginalOffset, OriginalIndex, FailureKind, FailureCode, DeadLetterID, RetryAttempt, NotBefore} {
		if h[key] == "" {
			t.Errorf("%s is gone", key)
		}
	}
	if len(r.Headers) != 9 || !bytes.Equal(r.Value, []byte("v")) || string(r.Key) != "alice" || r.Topic != "p" {
		t.Errorf("bare record is %+v", r)
	}
	if e := OpenParked(r, time.Hour); e.Attempt != 2 || e.Origin.Offset != 77 || e.Origin.Index != 1 {
		t.Errorf("read back as %+v", e)
	}
}

func FuzzOpenParked(f *testing.F) {
	for name := range ours {
		f.Add(name, []byte("12"))
	}
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		r := &kgo.Record{Topic: "parking", Timestamp: now, Headers: []kgo.RecordHeader{{Key: key, Value: value}}}
		e := OpenParked(r, time.Hour)
		if e.Attempt < 0 || e.Origin.Partition < 0 || e.Origin.Offset < 0 || e.Origin.Index < NoIndex || e.NotBefore.After(now.Add(time.Hour)) {
			t.Errorf("%s=%q read as %+v", key, value, e)
		}
	})
}

// TestID_ByTheContract spells the hash out, because readers of the topics compute it themselves.
func TestID_ByTheContract(t *testing.T) {
	t.Parallel()
	o := Origin{Topic: "decision-logs", Partition: 3, Offset: 17}
	seen := map[string]string{}
	for index, hashed := range map[int]string{
		NoIndex: "decision-logs\x003\x0017\x00\x00{}",
		0:       "decision-logs\x003\x0017\x000\x00{}",
		12:      "decision-logs\x003\x0017\x0012\x00{}",
	} {
		o.Index = index
		id := ID(o, []byte("{}"))
		if want := fmt.Sprintf("%x", sha256.Sum256([]byte(hashed))); id != want {
			t.Errorf("index %d: %s, want that of %q", index, id, hashed)
		}
		if other, twice := seen[id]; twice {
			t.Errorf("%q and %q share an id", other, hashed)
		}
		seen[id] = hashed
	}
}

func TestSeal_ClaimedIdentity(t *testing.T) {
	t.Parallel()
	const id, at = `"decision_id":"a\u0000\"` + "\u202eé" + `"`, `"timestamp":"2026-03-01T12:00:00.5+01:00"`
	src := source()
	src.Headers = append(src.Headers, kgo.RecordHeader{Key: DecisionID, Value: []byte("another")})
	for value, want := range map[string][2]string{
		"{" + id + "," + at + "}": {`a\u0000\"\u202eé`, "2026-03-01T11:00:00.5Z"},
		"{" + id + ",":            {`a\u0000\"\u202eé`, ""},
		"{" + at + "}":            {"", "2026-03-01T11:00:00.5Z"},
		"[{" + id + "}]":          {"", ""},
		`{"decision_id":"` + strings.Repeat("é", 511) + `a\u0041"}`: {strings.Repeat("é", 511) + "a", ""},
	} {
		dead := Open(src).Seal(Cause{Kind: Data, Code: "23514"}, Sealed{Topic: "dlq", Value: []byte(value), At: now})
		if got := [2]string{header(dead, DecisionID), header(dead, DecisionTime)}; got != want {
			t.Errorf("%s says %q, want %q", value, got, want)
		}
		around := Open(src).Seal(Cause{Kind: Decode, Code: "wrong_type"}, Sealed{Topic: "dlq", Value: []byte("[" + value + "]"), Decision: []byte(value), At: now})
		if got := [2]string{header(around, DecisionID), header(around, DecisionTime)}; got != want {
			t.Errorf("an array of %s says %q, want %q", value, got, want)
		}
		parked := Open(src).Seal(Cause{Kind: Transient, Code: "network"}, Sealed{Topic: "parking", Value: []byte(value), At: now, NotBefore: now})
		if header(parked, DecisionID) != "" || header(parked, DecisionTime) != "" {
			t.Errorf("a parked record says %v", parked.Headers)
		}
	}
}
