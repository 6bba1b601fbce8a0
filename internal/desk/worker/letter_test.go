package worker

import (
	"bytes"
	"compress/gzip"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

func letterOf(r *kgo.Record) ledger.Letter {
	return intake(&shelf{}, &bytes.Buffer{}, nil).read(&decision.Decoder{}, r)
}

func zipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func TestRead_IDThatVerifyAsksFor(t *testing.T) {
	t.Parallel()
	id := func(text string) func(*kgo.Record) {
		return func(r *kgo.Record) {
			r.Headers = slices.DeleteFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == envelope.DeadLetterID })
			if text != "" {
				r.Headers = append(r.Headers, kgo.RecordHeader{Key: envelope.DeadLetterID, Value: []byte(text)})
			}
		}
	}
	for name, change := range map[string]func(*kgo.Record){
		"as it was written": func(*kgo.Record) {},
		"without an id":     id(""),
		"another text":      id("7"),
		"too short":         id(strings.Repeat("a", 62)),
		"in capitals":       id(strings.Repeat("A", 64)),
		"that of another":   id(strings.Repeat("a", 64)),
		"no headers":        func(r *kgo.Record) { r.Headers = nil },
		"half an origin": func(r *kgo.Record) {
			id("")(r)
			r.Headers = slices.DeleteFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == envelope.OriginalOffset })
		},
	} {
		for _, h := range []home.Home{home.DeadLetter, home.Exhausted} {
			r := deadRecord(7, `{"a":1}`)
			change(r)
			f := verify.ForwardedOf(r, h, r.Topic)
			if entered := letterOf(r).ID; f.Trace().ID != entered || len(entered) != 64 {
				t.Errorf("%s: the desk enters it as %s, verify asks for %q", name, entered, f.Trace().ID)
			}
		}
	}
}

func TestLetter_WhichDecisionItIs(t *testing.T) {
	t.Parallel()
	one := `{"decision_id":"d1","timestamp":"2026-01-02T03:04:05.5Z","path":"a/b"}`
	at := time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC)
	for name, test := range map[string]struct {
		value    string
		path, id string
		time     time.Time
		held     string // of several decisions, those with an id
	}{
		"plain":          {value: one, path: "a/b", id: "d1", time: at},
		"gzip":           {value: zipped(one), path: "a/b", id: "d1", time: at},
		"array of one":   {value: "[" + one + "]", path: "a/b", id: "d1", time: at},
		"refused in it":  {value: `[{"decision_id":"d1","timestamp":"2026-01-02T03:04:05.5Z","path":7}]`, id: "d1", time: at},
		"that in gzip":   {value: zipped(`[ {"decision_id":"d1","path":"a/b"} ]`), id: "d1"},
		"two":            {value: one + "\n" + `{"decision_id":"d2"}`, held: "0 d1 true,1 d2 false"},
		"a torn array":   {value: "[" + one + `,7,{"decision_id":"d2","path":tru}]`, held: "0 d1 true,2 d2 false"},
		"that zipped":    {value: zipped("[" + one + ",]"), held: "0 d1 true"},
		"too large":      {value: zipped("[" + one + "," + strings.Repeat(" ", 2<<20) + one + "]"), held: "0 d1 true"},
		"no timestamp":   {value: `{"decision_id":"d1","path":"a/b"}`, id: "d1"},
		"an odd path":    {value: `{"decision_id":"d1","timestamp":"2026-01-02T03:04:05.5Z","path":7}`, id: "d1", time: at},
		"torn":           {value: one[:len(one)-1], id: "d1", time: at},
		"an odd id":      {value: strings.Replace(one, "d1", `d\u0000`, 1), id: "d\ufffd", time: at},
		"not JSON":       {value: "\x00\xff"},
		"empty":          {value: ""},
		"broken gzip":    {value: zipped(one)[:20]},
		"larger than it": {value: `{"decision_id":"d1","timestamp":"2026-01-02T03:04:05.5Z","path":"` + strings.Repeat("x", 2<<20) + `"}`, id: "d1", time: at},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := letterOf(deadRecord(7, test.value))
			if l.Path != test.path || l.DecisionID != test.id || !l.DecisionTime.Equal(test.time) {
				t.Errorf("path %q, id %q, time %v", l.Path, l.DecisionID, l.DecisionTime)
			}
			if got := told(l.Held); got != test.held || l.Refused != 0 {
				t.Errorf("it holds %q, want %q", got, test.held)
			}
			if string(l.Value) != test.value || l.ID != deadIDOf(7, test.value) || string(l.Key) != "k" || l.Cause.Code != "23514" {
				t.Errorf("the letter is %.200v", l)
			}
		})
	}
}

func TestShortPath_FitsAnIndex(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"x", "é", "日", "😀"} {
		for shift := range 4 {
			path := strings.Repeat("a", shift) + strings.Repeat(unit, 2000)
			l := letterOf(deadRecord(0, `{"decision_id":"d","timestamp":"2026-01-02T03:04:05Z","path":"`+path+`"}`))
			if len(l.Path) > longestPath || len(l.Path) < longestPath-8 || !utf8.ValidString(l.Path) || !strings.HasSuffix(l.Path, "…") {
				t.Errorf("%d bytes, %q", len(l.Path), l.Path)
			}
		}
	}
}

func TestDated_FitsTimestamptz(t *testing.T) {
	t.Parallel()
	first, last := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, ms := range []int64{math.MinInt64, -1, 0, 1, 1e15, math.MaxInt64} {
		r := deadRecord(0, "x")
		r.Timestamp = time.UnixMilli(ms)
		l := letterOf(r)
		for what, at := range map[string]time.Time{"found": l.Found.Stamp, "origin": l.Origin.Timestamp, "first": l.FirstFailedAt, "last": l.FailedAt} {
			if at.Before(first) || !at.Before(last) {
				t.Errorf("%s of %d ms is %v", what, ms, at)
			}
			if ms >= -1 && ms <= 1 && at.UnixMilli() != ms {
				t.Errorf("%s of %d ms is %v", what, ms, at)
			}
		}
	}
}

func TestRead_ForeignMarkStaysAHeader(t *testing.T) {
	t.Parallel()
	mark := "0f8fad5b-d9cb-469f-a165-70867728950e"
	for value, is := range map[string]bool{
		mark: true, strings.ToUpper(mark): false, mark[1:]: false, "{" + mark + "}": false, "": false, "\xff": false,
		strings.ReplaceAll(mark, "-", "0"): false, strings.ReplaceAll(mark, "0", "g"): false,
	} {
		l := letterOf(deadRecord(0, "x", kgo.RecordHeader{Key: envelope.RetryOf, Value: []byte(value)}, kgo.RecordHeader{Key: "theirs", Value: nil}))
		if (l.RetryOf == mark) != is || !is && l.RetryOf != "" {
			t.Errorf("%q: mark %q", value, l.RetryOf)
		}
		kept := false
		for _, h := range l.Headers {
			kept = kept || h.Key == envelope.RetryOf && string(h.Value) == value
		}
		if kept == is {
			t.Errorf("%q is among the headers: %v", value, kept)
		}
	}
}

func TestRead_LetterOfACollector(t *testing.T) {
	t.Parallel()
	value := []byte(`{"decision_id":"d1","path":7}`)
	e := envelope.Unplaced(&kgo.Record{Topic: "decision-logs", Key: []byte("alice"), Value: value}, time.Unix(1_800_000_000, 0))
	sealed := e.Seal(envelope.Cause{Kind: envelope.Decode, Code: "wrong_type"}, envelope.Sealed{Topic: "dlq", Index: envelope.NoIndex, Value: value, At: time.Unix(1_800_000_001, 0)})
	for name, r := range map[string]*kgo.Record{"whole": sealed, "bare": envelope.Keys{}.Bare(sealed)} {
		r.Partition, r.Offset, r.Timestamp = 2, 900, time.Unix(1_800_000_002, 0)
		l := letterOf(r)
		if l.Origin.Topic != "decision-logs" || l.Origin.Partition != envelope.NoPlace || l.Origin.Offset != envelope.NoPlace || l.Origin.Index != envelope.NoIndex || l.Found.Topic != "dlq" {
			t.Errorf("%s: %+v, found at %+v", name, l.Origin, l.Found)
		}
		if l.ID != envelope.IDOf(sealed) || string(l.Key) != "alice" || l.Cause.Code != "wrong_type" {
			t.Errorf("%s: %+v", name, l)
		}
	}
}
