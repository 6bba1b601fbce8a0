package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

func TestRelay_RecordHasTheMark(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("k", 1)
		o.rows[0].Headers = []ledger.Header{{Key: "a", Value: nil}, {Key: "a", Value: []byte("2")}}
		running(t, relayOf(o, p), time.Second/2)
		r := p.took[0]
		want := []kgo.RecordHeader{{Key: "a"}, {Key: "a", Value: []byte("2")}, {Key: envelope.RetryOf, Value: []byte("mark-1")}}
		if r.Topic != "source" || string(r.Key) != "k" || string(r.Value) != "1" || fmt.Sprint(r.Headers) != fmt.Sprint(want) || !r.Timestamp.Equal(o.claims[0]) {
			t.Errorf("record %+v", r)
		}
		if got := o.rows[0]; got.published != 1 || got.placed != (ledger.Placed{SendingID: 1, Partition: 4, Offset: 0}) {
			t.Errorf("row %+v", got)
		}
	})
}

func TestRelay_Keys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys, err := envelope.ParseKeys(strings.Repeat("a key of 8", 4))
		if err != nil {
			t.Fatal(err)
		}
		o, p := &outbox{}, &topic{}
		o.add("k", 1)
		r := relayOf(o, p)
		r.cfg.Keys = keys
		running(t, r, time.Second/2)
		if len(p.took) != 1 || !keys.Prove(p.took[0]) {
			t.Errorf("put back without proof: %+v", p.took)
		}
	})
}

func TestRelay_EditedLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("k", 1)
		r := relayOf(o, p)
		running(t, r, time.Second/2)
		o.add("k", 1)
		o.rows[1].LetterID, o.rows[1].Value = o.rows[0].LetterID, []byte("edited")
		running(t, r, time.Second/2)
		if len(p.took) != 2 || string(p.took[0].Value) != "1" || string(p.took[1].Value) != "edited" {
			t.Errorf("published %d records, the last with %q", len(p.took), p.took[len(p.took)-1].Value)
		}
	})
}

func TestRelay_FullBatchesWithoutAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("", 120)
		from := time.Now()
		running(t, relayOf(o, p), 2500*time.Millisecond)
		var at []time.Duration
		for _, c := range o.claims {
			at = append(at, c.Sub(from))
		}
		if want := []time.Duration{0, 0, 0, time.Second, 2 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("claimed at %v, want %v", at, want)
		}
		if len(p.took) != 120 {
			t.Errorf("%d records", len(p.took))
		}
	})
}

// With any failures, a call has no two records of a key, and they come in the order of the outbox.
func TestRelay_OrderOfAKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ""}), 1, 30).Draw(rt, "keys")
		fails := rapid.SliceOfN(rapid.IntRange(0, 3), len(keys), len(keys)).Draw(rt, "fails")
		synctest.Test(t, func(t *testing.T) {
			o, p := &outbox{}, &topic{}
			for _, k := range keys {
				o.add(k, 1)
			}
			left := slices.Clone(fails)
			p.fail = func(r *kgo.Record) error {
				var id int
				_, _ = fmt.Sscan(string(r.Value), &id)
				if left[id-1]--; left[id-1] >= 0 {
					return kerr.NotEnoughReplicas
				}
				return nil
			}
			running(t, relayOf(o, p), 2*time.Hour)
			last := map[string]int{}
			for _, r := range p.took {
				var id int
				_, _ = fmt.Sscan(string(r.Value), &id)
				if r.Key != nil && id < last[string(r.Key)] {
					rt.Errorf("of key %s %d came after %d", r.Key, id, last[string(r.Key)])
				}
				last[string(r.Key)] = id
			}
			for _, call := range p.calls {
				in := map[string]bool{}
				for _, r := range call {
					if r.Key != nil && in[string(r.Key)] {
						rt.Errorf("two records of key %s in one call", r.Key)
					}
					in[string(r.Key)] = true
				}
			}
			for _, r := range o.rows {
				if r.published != 1 {
					rt.Errorf("row %d was published %d times, refused %q", r.ID, r.published, r.refused)
				}
			}
		})
	})
}

func TestRelay_FiveTriesThenFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("", 2)
		p.fail = func(r *kgo.Record) error {
			if string(r.Value) == "1" {
				return fmt.Errorf("publish: %w", kerr.TopicAuthorizationFailed)
			}
			return nil
		}
		running(t, relayOf(o, p), time.Hour)
		r := o.rows[0]
		if want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}; !slices.Equal(r.pauses[:len(r.pauses)-1], want) {
			t.Errorf("pauses %v, want %v", r.pauses, want)
		}
		if r.Tries != 5 || r.refused != "not_allowed" || r.published != 0 || o.rows[1].published != 1 {
			t.Errorf("rows %+v %+v", r, o.rows[1])
		}
		if len(p.calls) != 5 {
			t.Errorf("%d calls", len(p.calls))
		}
	})
}

func TestRelay_UnansweredIsSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("", 2)
		asked := 0
		p.fail = func(r *kgo.Record) error {
			if asked++; asked <= 2 && string(r.Value) == "2" {
				return fmt.Errorf("publish: %w", ErrUnanswered)
			}
			return nil
		}
		running(t, relayOf(o, p), time.Minute)
		if r := o.rows[1]; r.Tries != 1 || r.published != 1 || r.placed != (ledger.Placed{SendingID: 2, Partition: 4, Offset: 1}) {
			t.Errorf("%+v", r)
		}
	})
}

func TestCodeOf_EveryReason(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		kerr.MessageTooLarge: "too_large", kerr.UnknownTopicOrPartition: "topic_missing", kerr.TopicAuthorizationFailed: "not_allowed",
		ErrUnanswered: "unanswered", context.DeadlineExceeded: "unanswered", kerr.NetworkException: "unreachable",
		errors.New("dial"): "unreachable", kerr.InvalidRecord: "other",
	} {
		if got := codeOf(fmt.Errorf("publish to source: %w", err)); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}

// TestRelay_LastPublishNamesTheRemedy: waiting for healthy brokers helps with none of these.
func TestRelay_LastPublishNamesTheRemedy(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		kerr.MessageTooLarge: "max.message.bytes", kerr.UnknownTopicOrPartition: "create the topic",
		kerr.TopicAuthorizationFailed: "ACLs", kerr.NotEnoughReplicas: "brokers are healthy",
	} {
		synctest.Test(t, func(t *testing.T) {
			o, p := &outbox{}, &topic{fail: func(*kgo.Record) error { return err }}
			o.add("k", 1)
			r := relayOf(o, p)
			var log bytes.Buffer
			r.log = zerolog.New(&log)
			running(t, r, time.Hour)
			_, last, found := strings.Cut(log.String(), `"hint":"`)
			if hint, _, _ := strings.Cut(last, `"`); !found || !strings.Contains(hint, want) || !strings.Contains(hint, "FAILED") {
				t.Errorf("after %v the hint is %q", err, hint)
			}
		})
	}
}

func TestRelay_MarksWithinTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("", 1)
		back := time.Now().Add(45 * time.Second)
		o.mark = func() error {
			if time.Now().Before(back) {
				return sqlError("57P03")
			}
			return nil
		}
		running(t, relayOf(o, p), 2*time.Minute)
		if o.rows[0].published != 1 || len(p.took) != 1 {
			t.Errorf("marked %d times, %d records", o.rows[0].published, len(p.took))
		}
	})
}

func TestRelay_UnmarkedIsLeftToTheNextClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("k", 2)
		back := time.Now().Add(10 * time.Minute)
		o.mark = func() error {
			if time.Now().Before(back) {
				return sqlError("57P03")
			}
			return nil
		}
		running(t, relayOf(o, p), 20*time.Minute)
		if o.rows[0].published != 1 || o.rows[1].published != 1 {
			t.Errorf("marked %d and %d times", o.rows[0].published, o.rows[1].published)
		}
		n := map[string]int{}
		for _, r := range p.took {
			n[string(r.Value)]++
		}
		if n["1"] < 5 || n["1"] > 15 || n["2"] != 1 { // one for each lease, and nothing of the key beyond what is marked
			t.Errorf("published %v", n)
		}
	})
}

func TestRelay_StopMarksPublished(t *testing.T) {
	t.Parallel()
	for _, took := range []bool{true, false} {
		t.Run(fmt.Sprint("taken ", took), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o, p := &outbox{}, &topic{}
				o.add("k", 2)
				ctx, stop := context.WithCancel(t.Context())
				p.hook = stop
				p.fail = func(*kgo.Record) error {
					if took {
						return nil
					}
					return context.Canceled
				}
				fails := 3
				o.mark = func() error {
					if fails--; fails >= 0 {
						return sqlError("57P03")
					}
					return nil
				}
				if err := relayOf(o, p).Run(ctx); err != nil {
					t.Fatal(err)
				}
				want := map[bool]int{true: 1}[took]
				if r := o.rows[0]; r.published != want || r.Tries != 0 || o.rows[1].published != 0 || len(p.calls) != 1 {
					t.Errorf("rows %+v %+v, %d calls", r, o.rows[1], len(p.calls))
				}
			})
		})
	}
}

func TestRelay_StopWaitsAFewSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("", 1)
		ctx, stop := context.WithCancel(t.Context())
		p.hook = stop
		o.mark = func() error { return sqlError("57P03") }
		from := time.Now()
		if err := relayOf(o, p).Run(ctx); err != nil || time.Since(from) != markAnyway {
			t.Errorf("Run = %v after %v", err, time.Since(from))
		}
	})
}

func TestRelay_NoWaveNearTheEndOfTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("k", 10)
		p.hook = func() { time.Sleep(9 * time.Second) }
		ctx, stop := context.WithTimeout(t.Context(), 59*time.Second)
		defer stop()
		if err := relayOf(o, p).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(p.calls) != 4 { // at 0, 9, 18 and 27 seconds of the minute
			t.Errorf("%d calls within one lease", len(p.calls))
		}
	})
}

func TestRelay_MarksAfterTheClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("", 2)
		p.hook = func() { time.Sleep(2 * time.Minute) }
		p.fail = func(r *kgo.Record) error {
			if string(r.Value) == "2" && len(p.calls) == 1 {
				return ErrUnanswered
			}
			return nil
		}
		o.mark = func() error { return nil }
		running(t, relayOf(o, p), 10*time.Minute)
		if o.rows[0].published != 1 || o.rows[1].Tries != 1 || o.rows[1].published != 1 || len(p.took) != 2 {
			t.Errorf("rows %+v %+v, %d records", o.rows[0], o.rows[1], len(p.took))
		}
	})
}

func TestRelay_LostRowIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("", 1)
		asked := 0
		o.mark = func() error { asked++; return fmt.Errorf("note: %w", ledger.ErrLost) }
		p.fail = func(*kgo.Record) error { return kerr.NotEnoughReplicas }
		running(t, relayOf(o, p), 10*time.Second)
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}

func TestRelay_BacksOffWhileTheLedgerIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("", 1)
		o.claim = func() error {
			if len(o.claims) < 100 {
				return sqlError("57P03")
			}
			return nil
		}
		from := time.Now()
		running(t, relayOf(o, p), time.Hour)
		if took := o.claims[99].Sub(from); took < 15*time.Minute || took > 17*time.Minute {
			t.Errorf("a hundred looks within %v", took)
		}
		if o.rows[0].published != 1 {
			t.Error("it does not go on")
		}
	})
}

// TestRelay_LaneOfEach: a retry goes to the topic that its letter came from, and keys are kept apart by topic.
func TestRelay_LaneOfEach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("k", 3)
		o.rows[1].Topic, o.rows[2].Topic = "source-urgent", "source-bulk"
		r := relayOf(o, p)
		r.cfg.Topics = []string{"source", "source-urgent"} // the lane bulk was removed
		running(t, r, 10*time.Minute)
		if len(p.took) != 2 || p.took[0].Topic != "source" || p.took[1].Topic != "source-urgent" {
			t.Errorf("published %+v", p.took)
		}
		if row := o.rows[2]; row.refused != CodeForeignTopic || o.rows[0].refused != "" || o.rows[1].refused != "" {
			t.Errorf("row %+v", row)
		}
	})
}

// TestRelay_TopicsOfOthers: a letter's headers name its topic, and strangers can write them. Nothing goes to a topic
// outside the allowed ones. The others are published, in the order of their keys.
func TestRelay_TopicsOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, p := &outbox{}, &topic{}
		o.add("k", 1)
		o.add("l", 1)
		o.add("m", 1)
		o.rows[1].Topic, o.rows[2].Topic = "payments", ""
		var log bytes.Buffer
		r := relayOf(o, p)
		r.log = zerolog.New(&log)
		running(t, r, 10*time.Minute)
		if len(p.took) != 1 || string(p.took[0].Key) != "k" {
			t.Errorf("published %+v", p.took)
		}
		for _, row := range o.rows[1:] {
			if row.refused != "foreign_topic" || row.Tries != 1 {
				t.Errorf("row %+v", row)
			}
		}
		if n := strings.Count(log.String(), `"message":"retry refused, not a source topic"`); n != 2 || !strings.Contains(log.String(), "DOCKET_DESK_RETRY_TOPICS") || !strings.Contains(log.String(), "DOCKET_LANES") {
			t.Errorf("the log: %s", log.String())
		}
	})
}
