package replay

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"docket/internal/consumer/pipeline"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log is a partition of the parking topic in memory.
type log struct {
	account *home.Account
	records []*kgo.Record
	at      int
	grown   chan *kgo.Record
	end     int64
	failed  error
	taken   int64 // bytes that are not done with
	most    int64 // limit of taken
	failing error
	next    int64 // of the group
	marks   bool  // control records are behind the last record, up to the end
}

// weight is the memory of a record.
func weight(r *kgo.Record) int64 { return int64(len(r.Value)) }

func newLog(records ...*kgo.Record) *log {
	return &log{most: 1 << 20, account: home.NewAccount("parking", 0), records: records, grown: make(chan *kgo.Record, 1), end: int64(len(records))}
}

func (l *log) Topic() string                              { return "parking" }
func (l *log) Partition() int32                           { return 0 }
func (l *log) Leaving() context.Context                   { return context.Background() }
func (l *log) Hold() func()                               { return func() {} }
func (l *log) Account() *home.Account                     { return l.account }
func (l *log) Ready(context.Context) error                { panic("the window reads by Take") }
func (l *log) Fetch(context.Context) (*home.Batch, error) { panic("the window reads by Take") }
func (l *log) Commit(context.Context, home.Settled) error { return nil }
func (l *log) Done(bytes int64)                           { l.taken -= bytes }
func (l *log) Allowed() int64                             { return l.most }
func (l *log) Failing() error                             { return l.failing }

func (l *log) Bounds(context.Context) (next, end int64, e error) {
	if l.marks && l.at >= len(l.records) {
		return l.end, l.end, l.failed
	}
	return l.next, l.end, l.failed
}

func (l *log) Take(ctx context.Context, records int, bytes int64, _ time.Duration) ([]*kgo.Record, error) {
	for l.at >= len(l.records) || l.taken >= l.most {
		select {
		case r := <-l.grown:
			l.records = append(l.records, r)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	var out []*kgo.Record
	for l.at < len(l.records) && len(out) < records && (len(out) == 0 || bytes > 0 && l.taken < l.most) {
		bytes -= weight(l.records[l.at])
		l.taken += weight(l.records[l.at])
		out = append(out, l.records[l.at])
		l.at++
	}
	return out, nil
}

// due makes a parked record that is due after d.
func due(offset int64, d time.Duration) *kgo.Record {
	return &kgo.Record{
		Topic: "parking", Offset: offset, Timestamp: time.Now(), Value: make([]byte, 100),
		Headers: []kgo.RecordHeader{{Key: envelope.NotBefore, Value: []byte(strconv.FormatInt(time.Now().Add(d).UnixMilli(), 10))}},
	}
}

func config() Config {
	return Config{Lookahead: 100, Weigh: weight, MaxBackoff: time.Hour, BatchRecords: 10, BatchBytes: 1 << 20}
}

// settle gives every record of a batch a home and returns the offset that may be committed.
func settle(t *testing.T, b *home.Batch) int64 {
	t.Helper()
	for i := range b.Records() {
		b.Carries(i, 1)[0].Give(home.Row)
	}
	s, err := b.Settle()
	if err != nil {
		t.Fatal(err)
	}
	return s.Offset()
}

func offsets(b *home.Batch) (out []int64) {
	for _, r := range b.Records() {
		out = append(out, r.Offset)
	}
	return out
}

func TestWindow_WaitingRecordIsNotCommittedPast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		w := New(config(), newLog(due(0, 10*time.Minute), due(1, 0), due(2, time.Minute), due(3, -time.Hour)))
		for _, want := range []struct {
			offsets []int64
			after   time.Duration
			commit  int64
			waiting int
		}{
			{[]int64{1, 3}, 0, -1, 2},
			{[]int64{2}, time.Minute, -1, 1},
			{[]int64{0}, 10 * time.Minute, 4, 0},
		} {
			b, err := w.Fetch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := offsets(b); len(got) != len(want.offsets) || got[0] != want.offsets[0] {
				t.Errorf("let through %v, want %v", got, want.offsets)
			}
			if since := time.Since(from).Round(time.Second); since != want.after {
				t.Errorf("let %v through after %v, want %v", offsets(b), since, want.after)
			}
			if w.Waiting() != want.waiting {
				t.Errorf("%d wait, want %d", w.Waiting(), want.waiting)
			}
			if got := settle(t, b); got != want.commit {
				t.Errorf("may commit %d, want %d", got, want.commit)
			}
		}
	})
}

func TestWindow_BoundsOddNotBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		w := New(config(), newLog(due(0, 24*365*time.Hour), &kgo.Record{Topic: "parking", Offset: 1}))
		b, err := w.Fetch(t.Context())
		if err != nil || len(offsets(b)) != 1 || offsets(b)[0] != 1 {
			t.Fatalf("let through %v, %v", b, err)
		}
		b, err = w.Fetch(t.Context())
		if err != nil || offsets(b)[0] != 0 || time.Since(from) != time.Hour {
			t.Errorf("a not-before a year away came after %v, %v", time.Since(from), err)
		}
	})
}

// TestWindow_Unproven: a stranger's record in the parking topic spends no tries and does not wait.
func TestWindow_Unproven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys, err := envelope.ParseKeys(strings.Repeat("a key of 8", 4))
		if err != nil {
			t.Fatal(err)
		}
		says := func(offset int64) *kgo.Record {
			r := due(offset, 30*time.Minute)
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: envelope.RetryAttempt, Value: []byte("4")},
				kgo.RecordHeader{Key: envelope.OriginalTopic, Value: []byte("logs")}, kgo.RecordHeader{Key: envelope.OriginalPartition, Value: []byte("1")},
				kgo.RecordHeader{Key: envelope.OriginalOffset, Value: []byte("2")}, kgo.RecordHeader{Key: "theirs"})
			return r
		}
		forged, ours, later := says(0), says(1), says(2)
		keys.Sign(ours)
		cfg, told := config(), []int64(nil)
		cfg.Weigh = func(r *kgo.Record) int64 { return weight(r) + int64(len(r.Headers)) }
		cfg.Keys, cfg.Unproven = keys, func(n int, first *kgo.Record) { told = append(told, int64(n), first.Offset) }
		l, from := newLog(forged, ours, later), time.Now()
		took := cfg.Weigh(forged) + cfg.Weigh(ours) + cfg.Weigh(later)
		w := New(cfg, l)
		b, err := w.Fetch(t.Context())
		if err != nil || !slices.Equal(offsets(b), []int64{0, 2}) || time.Since(from) > time.Second {
			t.Fatalf("%v after %v, %v", offsets(b), time.Since(from), err)
		}
		e := envelope.OpenParked(b.Records()[0], time.Hour)
		if e.Attempt != 0 || e.Origin.Topic != "parking" || e.Origin.Offset != 0 || len(e.Record.Headers) != 1 {
			t.Errorf("it is believed: %+v", e)
		}
		settle(t, b)
		b, err = w.Fetch(t.Context())
		if err != nil || !slices.Equal(offsets(b), []int64{1}) || time.Since(from) < 30*time.Minute {
			t.Fatalf("%v after %v, %v", offsets(b), time.Since(from), err)
		}
		if e := envelope.OpenParked(b.Records()[0], time.Hour); e.Attempt != 4 || e.Origin.Topic != "logs" || e.Origin.Offset != 2 {
			t.Errorf("it is not believed: %+v", e)
		}
		settle(t, b)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := w.Fetch(ctx); err == nil { // tells the log that the batch before is done
			t.Error("there is more")
		}
		if given := 3*weight(ours) - l.taken; given != took {
			t.Errorf("gave %d bytes back of the %d that were taken", given, took)
		}
		if !slices.Equal(told, []int64{2, 0}) {
			t.Errorf("told %v", told)
		}
	})
}

func TestWindow_ClockAYearAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		r := due(0, 24*365*time.Hour)
		r.Timestamp = from.Add(24 * 365 * time.Hour)
		if _, err := New(config(), newLog(r)).Fetch(t.Context()); err != nil || time.Since(from) != time.Hour {
			t.Errorf("came after %v, %v", time.Since(from), err)
		}
	})
}

func TestWindow_LookaheadIsBounded(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config, *log){
		"records": func(c *Config, _ *log) { c.Lookahead = 25 },
		"bytes":   func(_ *Config, l *log) { l.most = 2500 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var rs []*kgo.Record
				for i := range 200 {
					rs = append(rs, due(int64(i), time.Minute))
				}
				l, cfg := newLog(rs...), config()
				change(&cfg, l)
				w := New(cfg, l)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				if _, err := w.Fetch(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("something was let through before its time: %v", err)
				}
				if l.at < 20 || l.at > 40 {
					t.Errorf("read %d of 200 records, want about 25", l.at)
				}
				for seen := 0; seen < 200; {
					b, err := w.Fetch(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					seen += len(b.Records())
					if got := settle(t, b); got != int64(seen) {
						t.Fatalf("may commit %d after %d records", got, seen)
					}
				}
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := w.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) || l.taken != 0 {
					t.Errorf("%d bytes are in hand when all is done, %v", l.taken, err)
				}
			})
		})
	}
}

func TestWindow_WakesForNewRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(due(0, time.Hour))
		w := New(config(), l)
		time.AfterFunc(time.Second, func() { l.grown <- due(1, 0) })
		from := time.Now()
		b, err := w.Fetch(t.Context())
		if err != nil || offsets(b)[0] != 1 || time.Since(from) != time.Second {
			t.Errorf("let through %v after %v, %v", b, time.Since(from), err)
		}
	})
}

func TestOnce_EndsWhenNothingIsDue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		records func() []*kgo.Record
		change  func(*Config, *log)
		batches int
		within  time.Duration
		unread  int64
	}{
		"empty":            {func() []*kgo.Record { return nil }, func(*Config, *log) {}, 0, 0, 0},
		"one that is due":  {func() []*kgo.Record { return []*kgo.Record{due(0, 0)} }, func(*Config, *log) {}, 1, 0, 0},
		"due and not due":  {func() []*kgo.Record { return []*kgo.Record{due(0, time.Minute), due(1, 0)} }, func(*Config, *log) {}, 1, 0, 0},
		"look-ahead full":  {func() []*kgo.Record { return []*kgo.Record{due(0, time.Minute), due(1, 0)} }, func(c *Config, _ *log) { c.Lookahead = 1 }, 0, 0, 1},
		"no memory":        {func() []*kgo.Record { return []*kgo.Record{due(0, time.Hour), due(1, 0), due(2, 0)} }, func(_ *Config, l *log) { l.most = 1 }, 0, quiet, 2},
		"control records":  {func() []*kgo.Record { return []*kgo.Record{due(0, 0)} }, func(_ *Config, l *log) { l.end, l.marks = 9, true }, 1, quiet, 0},
		"control, waiting": {func() []*kgo.Record { return []*kgo.Record{due(0, 20*time.Minute)} }, func(_ *Config, l *log) { l.end, l.marks = 9, true }, 0, quiet, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := config()
				cfg.Once = true
				var unread int64
				cfg.Unread = func(n int64) { unread += n }
				l := newLog(tc.records()...)
				tc.change(&cfg, l)
				w := New(cfg, l)
				from, n := time.Now(), 0
				for {
					b, err := w.Fetch(t.Context())
					if errors.Is(err, pipeline.ErrDone) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					settle(t, b)
					n++
				}
				if n != tc.batches || time.Since(from) != tc.within || unread != tc.unread {
					t.Errorf("%d batches in %v and %d offsets unread, want %d in %v and %d", n, time.Since(from), unread, tc.batches, tc.within, tc.unread)
				}
			})
		})
	}
}

// TestOnce_UnreadIsNotTheEnd: a log that is quiet because it cannot be read was not replayed. Its records may have been deleted, or
// its brokers may be away.
func TestOnce_UnreadIsNotTheEnd(t *testing.T) {
	t.Parallel()
	for what, stop := range map[string]func(l *log, err error){
		"a fault":   func(l *log, err error) { l.failing = err },
		"no answer": func(l *log, err error) { l.failed = err },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := config()
				cfg.Once = true
				l := newLog(due(0, 0))
				l.end = 5
				w := New(cfg, l)
				if b, err := w.Fetch(t.Context()); err != nil || len(b.Records()) != 1 {
					t.Fatal(b, err)
				}
				away := errors.New("gone")
				stop(l, away)
				if _, err := w.Fetch(t.Context()); !errors.Is(err, away) || errors.Is(err, pipeline.ErrDone) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func TestOnce_UnknownEndOfTheLogFails(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.Once = true
	l := newLog()
	l.next, l.end = 5, 3
	if _, err := New(cfg, l).Fetch(t.Context()); err == nil || errors.Is(err, pipeline.ErrDone) {
		t.Errorf("of a log that was made again: %v", err)
	}
	l.failed = errors.New("no broker")
	if _, err := New(cfg, l).Fetch(t.Context()); !errors.Is(err, l.failed) {
		t.Errorf("Fetch: %v", err)
	}
}

func TestWindow_EachRecordOnceAndNotEarly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			cfg := config()
			cfg.Lookahead, cfg.BatchRecords = 1+rng.IntN(30), 1+rng.IntN(8)
			var rs []*kgo.Record
			for i := range 120 {
				rs = append(rs, due(int64(i), time.Duration(rng.IntN(3000))*time.Second))
			}
			w := New(cfg, newLog(rs...))
			seen := map[int64]bool{}
			committed := int64(-1)
			for len(seen) < len(rs) {
				b, err := w.Fetch(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range b.Records() {
					if at := envelope.OpenParked(r, cfg.MaxBackoff).NotBefore; seen[r.Offset] || at.After(time.Now()) {
						t.Fatalf("seed %d: offset %d twice or before its time", seed, r.Offset)
					}
					seen[r.Offset] = true
				}
				committed = settle(t, b)
				for o := range committed {
					if !seen[o] {
						t.Fatalf("seed %d: may commit %d but %d still waits", seed, committed, o)
					}
				}
			}
			if committed != int64(len(rs)) {
				t.Fatalf("seed %d: ended at %d", seed, committed)
			}
		})
	}
}

func TestWindow_LookaheadCountsDoneRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		log := []*kgo.Record{due(0, time.Hour)}
		for i := range int64(100) {
			log = append(log, due(i+1, 0))
		}
		c := config()
		c.Lookahead = 25
		w := New(c, newLog(log...))
		passed := 0
		for passed < 101 {
			b, err := w.Fetch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			passed += len(b.Records())
			settle(t, b)
			if passed > 24 && time.Since(from) < time.Hour {
				t.Fatalf("%d records passed the one that waits: what must be remembered of them has no bound", passed)
			}
		}
	})
}

// TestWindow_SmallerTwinWaits: a due record that does not fit into the batch keeps smaller ones behind it back. Two payloads of
// one identity may be parked one behind the other, and the earlier one has to get the row.
func TestWindow_SmallerTwinWaits(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"logs", "urgent"} {
		synctest.Test(t, func(t *testing.T) {
			cfg := config()
			cfg.BatchBytes, cfg.First = 1000, urgentFirst
			var rs []*kgo.Record
			for i, size := range []int{600, 600, 1, 1001, 1} {
				r := of(topic, due(int64(i), time.Second))
				r.Value = make([]byte, size)
				rs = append(rs, r)
			}
			w := New(cfg, newLog(rs...))
			var got [][]int64
			for n := 0; n < len(rs); {
				b, err := w.Fetch(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, offsets(b))
				n += len(b.Records())
				settle(t, b)
			}
			if want := [][]int64{{0}, {1, 2}, {3}, {4}}; !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%s: let through %v, want %v", topic, got, want)
			}
		})
	}
}
