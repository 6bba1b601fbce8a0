package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	kgzip "github.com/klauspost/compress/gzip"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/subject"
)

const unnamed = `{"timestamp":"2026-03-01T12:00:00Z","requested_by":"10.0.0.1:4711","input":{"password":"hush"}}`

func TestHome_MixedUploadKeepsGoodAndDeadLettersBad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.post(t, gz("[ "+good("a")+", "+unnamed+" ,\n"+good("b")+",7]"))
	if a.Code != http.StatusOK {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	kept, letters := w.kafka.in(logs), w.kafka.in(dlq)
	if len(kept) != 2 || len(letters) != 2 {
		t.Fatalf("%d kept, %d dead", len(kept), len(letters))
	}
	for i, id := range []string{"a", "b"} {
		if string(kept[i].Value) != good(id) || string(kept[i].Key) != "10.0.0.1:4711" || len(kept[i].Headers) != 0 {
			t.Errorf("kept %q by %q", kept[i].Value, kept[i].Key)
		}
	}
	for i, want := range []struct{ value, code, key string }{{unnamed, "missing_field", "10.0.0.1:4711"}, {"7", "wrong_type", ""}} {
		r := letters[i]
		d := envelope.OpenDead(r)
		if string(r.Value) != want.value || string(r.Key) != want.key || d.Cause.Code != want.code || d.Cause.Kind != envelope.Decode || d.Cause.Message == "" {
			t.Errorf("dead: %q by %q, %+v", r.Value, r.Key, d.Cause)
		}
		if o := d.Origin; o.Topic != logs || o.Partition != envelope.NoPlace || o.Offset != envelope.NoPlace || o.Index != envelope.NoIndex || time.Since(o.Timestamp) > time.Minute {
			t.Errorf("it says that it came from %+v", o)
		}
		if header(r, envelope.Consumer) != "docket/one" || d.FailedAt.IsZero() || strings.Contains(d.Cause.Message, "hush") {
			t.Errorf("headers %v", r.Headers)
		}
	}
	again := newWorld(t)
	again.post(t, "["+good("c")+","+good("d")+","+unnamed+"]") // chunked otherwise
	if first, second := envelope.IDOf(letters[0]), envelope.IDOf(again.kafka.in(dlq)[0]); first != second || len(first) != 64 {
		t.Errorf("the same bad decision is %s and then %s", first, second)
	}
	if topic, dead := w.metric(t, "docket_collector_decisions_total", "topic"), w.metric(t, "docket_collector_decisions_total", "dead_letter"); topic != 2 || dead != 2 {
		t.Errorf("counted %v and %v", topic, dead)
	}
}

func TestKey_IDWithoutSubject(t *testing.T) {
	t.Parallel()
	label, err := subject.Parse("label:tenant")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(c *Config) { c.Key = label })
	w.post(t, `[{"decision_id":"a","timestamp":"2026-03-01T12:00:00Z","labels":{"tenant":"t"}},{"decision_id":"b","timestamp":"2026-03-01T12:00:00Z"},
		{"decision_id":"c","timestamp":"yesterday"},{"decision_id":"d","timestamp":"2026-03-01T12:00:00Z","labels":{"tenant":""}}]`)
	var keys []string
	for _, r := range append(w.kafka.in(logs), w.kafka.in(dlq)...) {
		keys = append(keys, string(r.Key))
	}
	if got := strings.Join(keys, " "); got != "t b d c" {
		t.Errorf("keys %s", got)
	}
}

// TestAnswer_2xxOnlyIfAllAcknowledged has a publisher that answers whatever it likes.
func TestAnswer_2xxOnlyIfAllAcknowledged(t *testing.T) {
	t.Parallel()
	errs := []error{nil, nil, nil, kerr.MessageTooLarge, kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, errors.New("away"),
		fmt.Errorf("publish: %w", kerr.MessageTooLarge)}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, most(rapid.IntRange(0, 3).Draw(rt, "most refused")))
		n := rapid.IntRange(1, 12).Draw(rt, "decisions")
		var parts []string
		for i := range n {
			if rapid.IntRange(0, 3).Draw(rt, "kind") == 0 {
				parts = append(parts, fmt.Sprintf(`{"decision_id":"%d","bad":true}`, i))
			} else {
				parts = append(parts, good(fmt.Sprint(i)))
			}
		}
		acked := map[int]bool{}
		w.kafka.answer = func(r *kgo.Record) error {
			err := errs[rapid.IntRange(0, len(errs)-1).Draw(rt, "answer")]
			if err == nil {
				for i := range n {
					if strings.Contains(inflated(r.Value), fmt.Sprintf(`"decision_id":"%d"`, i)) {
						acked[i] = true
					}
				}
			}
			return err
		}
		body := "[" + strings.Join(parts, ",") + "]"
		if rapid.Bool().Draw(rt, "lines") {
			body = strings.Join(parts, "\n")
		}
		a := w.post(t, body)
		switch {
		case a.Code < 300 && len(acked) != n:
			rt.Fatalf("%d, though %d of %d are acknowledged", a.Code, len(acked), n)
		case a.Code >= 300 && a.Code != http.StatusServiceUnavailable && a.Code != http.StatusRequestEntityTooLarge:
			rt.Fatalf("answered %d", a.Code)
		case a.Code == http.StatusServiceUnavailable && a.Header().Get("Retry-After") != "2":
			rt.Fatalf("Retry-After %q", a.Header().Get("Retry-After"))
		}
	})
}

func inflated(value []byte) string {
	if !decision.IsGzip(value) {
		return string(value)
	}
	z, err := kgzip.NewReader(strings.NewReader(string(value)))
	if err != nil {
		return err.Error()
	}
	all, err := io.ReadAll(z)
	if err != nil {
		return err.Error()
	}
	return string(all)
}

func TestHome_OneUnacknowledgedIs503(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var parts []string
	for i := range 100 {
		parts = append(parts, good(fmt.Sprint("d", i)))
	}
	w.kafka.answer = func(r *kgo.Record) error {
		if string(r.Value) == parts[61] {
			return kerr.NotEnoughReplicas
		}
		return nil
	}
	a := w.post(t, "["+strings.Join(parts, ",")+"]")
	if a.Code != http.StatusServiceUnavailable || a.Header().Get("Retry-After") != "2" || problem(t, a).Reason != reasonKafka {
		t.Fatalf("%d %v %s", a.Code, a.Header(), a.Body)
	}
	w.kafka.answer = nil
	if a := w.post(t, "["+strings.Join(parts, ",")+"]"); a.Code != http.StatusOK {
		t.Errorf("and then %d", a.Code)
	}
}

func TestPublisher_TooFewAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publisher = short{w.kafka}
	if a := w.post(t, "["+good("a")+","+good("b")+"]"); a.Code != http.StatusServiceUnavailable {
		t.Errorf("%d", a.Code)
	}
}

type short struct{ *kafka }

func (s short) Publish(ctx context.Context, records []*kgo.Record) []error {
	return s.kafka.Publish(ctx, records)[1:]
}

// TestHome_TooLargeIsSentSmaller has topics with limits of their own.
func TestHome_TooLargeIsSentSmaller(t *testing.T) {
	t.Parallel()
	large := strings.Replace(good("large"), "hush", strings.Repeat("hush", 10_000), 1)
	badLarge := strings.Replace(large, "timestamp", "time", 1)
	for name, c := range map[string]struct {
		decision      string
		inTopic, dead int // bytes that the topics take, headers included
		code          int
		home, letter  string // topic, x-failure-code
	}{
		"as it is":                       {large, 1 << 20, 1 << 20, 200, logs, ""},
		"gzipped":                        {large, 1 << 12, 1 << 20, 200, logs, ""},
		"gzipped, as a dead letter":      {large, 100, 1 << 12, 200, dlq, "too_large"},
		"with the necessary headers":     {large, 100, 950, 200, dlq, "too_large"},
		"nowhere":                        {large, 100, 100, 413, "", ""},
		"a bad one":                      {badLarge, 100, 1 << 20, 200, dlq, "missing_field"},
		"a bad one, gzipped":             {badLarge, 100, 1 << 12, 200, dlq, "missing_field"},
		"a bad one, headers cut":         {badLarge, 100, 950, 200, dlq, "missing_field"},
		"a bad one, nowhere":             {badLarge, 100, 100, 413, "", ""},
		"a bad one is not one of topics": {badLarge, 1 << 20, 100, 413, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys, err := envelope.ParseKeys(strings.Repeat("a key of 8", 4))
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, func(c *Config) { c.Keys = keys })
			w.kafka.answer = func(r *kgo.Record) error {
				if !keys.Prove(r) {
					t.Errorf("published without proof: %v", r.Headers)
				}
				if string(r.Value) == good("a") || string(r.Value) == good("z") {
					return nil
				}
				size := len(r.Value)
				for _, h := range r.Headers {
					size += len(h.Key) + len(h.Value)
				}
				if r.Topic == logs && size > c.inTopic || r.Topic == dlq && size > c.dead {
					return kerr.MessageTooLarge
				}
				return nil
			}
			a := w.post(t, "["+good("a")+","+c.decision+","+good("z")+"]")
			if a.Code != c.code || !w.State().Ready {
				t.Fatalf("%d %s, %+v", a.Code, a.Body, w.State())
			}
			topic, dead := w.metric(t, "docket_collector_decisions_total", "topic"), w.metric(t, "docket_collector_decisions_total", "dead_letter")
			if kept, letters := len(w.kafka.in(logs)), len(w.kafka.in(dlq)); int(topic) != kept || int(dead) != letters {
				t.Errorf("counted %v and %v, where %d and %d were acknowledged", topic, dead, kept, letters)
			}
			var home *kgo.Record
			for _, r := range w.kafka.kept {
				if inflated(r.Value) == c.decision {
					home = r
				}
			}
			switch {
			case len(w.kafka.in(logs)) < 2:
				t.Error("its neighbours were not kept")
			case c.home == "":
				if home != nil || problem(t, a).Reason != reasonDecisionBytes || !strings.Contains(w.log.String(), `"level":"error"`) {
					t.Errorf("%s: %s", a.Body, w.log)
				}
			case home == nil || home.Topic != c.home || header(home, envelope.FailureCode) != c.letter || string(home.Key) != "10.0.0.1:4711":
				t.Errorf("its home is %+v", home)
			}
			if home != nil && c.letter != "" {
				if d := envelope.OpenDead(home); d.Origin.Topic != logs || d.Origin.Partition != envelope.NoPlace || d.ID != envelope.ID(d.Origin, home.Value) {
					t.Errorf("the letter says %+v", d)
				}
			}
		})
	}
}

// late fails, and looks at what it was given long afterwards, as a client does that still has it in a buffer.
type late struct {
	held   []*kgo.Record
	values []string
}

func (l *late) Publish(_ context.Context, records []*kgo.Record) []error {
	errs := make([]error, len(records))
	for i, r := range records {
		l.held = append(l.held, &kgo.Record{Key: r.Key, Value: r.Value})
		l.values = append(l.values, string(r.Key)+string(r.Value))
		errs[i] = errors.New("no answer")
	}
	return errs
}

func TestHome_UnacknowledgedMemoryIsNotReused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := &late{}
	for n := range 20 {
		w.publisher = l
		for _, pack := range []func(string) string{gz, strings.Clone} {
			if a := w.post(t, pack("["+good(fmt.Sprint("first", n))+","+unnamed+"]")); a.Code != 503 {
				t.Fatal(a.Code)
			}
		}
		w.publisher = w.kafka
		for _, pack := range []func(string) string{gz, strings.Clone} {
			w.post(t, pack("["+strings.Repeat(" ", n)+good(fmt.Sprint("other", n))+","+good("third")+"]"))
		}
	}
	for i, r := range l.held {
		if string(r.Key)+string(r.Value) != l.values[i] {
			t.Fatalf("record %d has become %q", i, r.Value)
		}
	}
}
