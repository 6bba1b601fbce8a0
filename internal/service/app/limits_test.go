package app

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/limit"
	"docket/internal/service/config"
	"docket/internal/testkit/output"
)

// limited starts a program with a partition of 40 records.
func limited(t *testing.T, name config.Program, topic string, env ...string) (*world, *partition) {
	t.Helper()
	w := setup(t, name, Options{}, env...)
	var records []*kgo.Record
	for i := range 40 {
		records = append(records, decisionLog(i))
	}
	p := newPartition(topic, records...)
	w.source.partitions, w.source.assignments = 1, []Assignment{p}
	w.run()
	t.Cleanup(p.leave)
	return w, p
}

func (w *world) metric(line string) bool {
	var text string
	w.get("/metrics", &text)
	return strings.Contains(text, "\n"+line+"\n")
}

func TestLimits_NoneWithoutTheSetting(t *testing.T) {
	t.Parallel()
	w, p := limited(t, config.Consumer, "decision-logs")
	w.until("all is committed", func() bool { return p.offset() == 40 })
	var text string
	w.get("/metrics", &text)
	if w.program.limits != nil || strings.Contains(text, "docket_limit") {
		t.Error("there are limits that nobody set")
	}
}

func TestLimits_EachRowIsGranted(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]config.Program{"consumer": config.Consumer, "replayer": config.Replayer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := "decision-logs"
			if program == config.Replayer {
				topic = "decision-logs-parking"
			}
			w, p := limited(t, program, topic, "DOCKET_LIMIT_ROWS=10000", "DOCKET_LIMIT_LOW_ROWS=8000", "DOCKET_LIMIT_BURST=15")
			w.until("all is committed", func() bool { return p.offset() == 40 })
			if !w.metric(`docket_limit_rows_total{class="low"} 40`) || !w.metric(`docket_limit_rows_total{class="urgent"} 0`) {
				t.Error("not each row was granted")
			}
			want := map[config.Program]string{config.Consumer: `docket_limit_rows{limit="low"} 6400`, config.Replayer: `docket_limit_rows{limit="low"} 800`}
			if !w.metric(want[program]) {
				t.Errorf("not %s", want[program])
			}
			if problems, err := testutil.GatherAndLint(w.reg); err != nil || len(problems) != 0 {
				t.Errorf("%v %v", problems, err)
			}
		})
	}
}

func TestLimits_UrgentTopicIsUrgent(t *testing.T) {
	t.Parallel()
	w, p := limited(t, config.Consumer, "decision-logs-urgent", "DOCKET_LANES=urgent", "DOCKET_LIMIT_ROWS=10000")
	w.until("all is committed", func() bool { return p.offset() == 40 })
	if !w.metric(`docket_limit_rows_total{class="urgent"} 40`) {
		t.Error("the urgent lane was counted as low")
	}
}

// A wait for rows does not count as a hold. It ends when the program stops, and what is unwritten stays uncommitted.
func TestLimits_LongWaitIsReady(t *testing.T) {
	t.Parallel()
	w, p := limited(t, config.Consumer, "decision-logs", "DOCKET_LIMIT_ROWS=2", "DOCKET_SHUTDOWN_TIMEOUT=30s")
	w.until("the reason shows", func() bool {
		status, r := w.ready()
		if status != 200 {
			t.Fatalf("status %d", status)
		}
		return len(r.Reasons) == 1 && r.Reasons[0].Reason == ReasonLimited && r.Ready
	})
	w.stop()
	p.leave()
	began := time.Now()
	if err := w.end(); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if at := p.offset(); at != -1 {
		t.Errorf("committed %d", at)
	}
}

func TestLimits_RedisAwayStopsLowOnly(t *testing.T) {
	t.Parallel()
	env := []string{"DOCKET_LANES=urgent", "DOCKET_LIMIT_ROWS=10000", "DOCKET_LIMIT_LOW_ROWS=5000", "DOCKET_REDIS_URL=redis://u:hunter2@127.0.0.1:1"}
	urgent, p := limited(t, config.Consumer, "decision-logs-urgent", env...)
	low, q := limited(t, config.Consumer, "decision-logs", env...)
	urgent.until("the urgent lane is committed", func() bool { return p.offset() == 40 })
	if !urgent.metric("docket_limit_local_rows_total 40") {
		t.Error("rows without Redis are not counted")
	}
	low.until("the reason shows", func() bool {
		status, r := low.ready()
		return status == 200 && len(r.Reasons) == 1 && r.Reasons[0].Reason == ReasonLimitsAway
	})
	low.until("the breaker opens", func() bool { return low.metric(`docket_limit_breaker{state="open"} 1`) })
	if q.offset() != -1 || low.db.rows() != 0 {
		t.Errorf("committed %d, %d rows", q.offset(), low.db.rows())
	}
	if strings.Contains(low.log.String(), "hunter2") || !strings.Contains(low.log.String(), "limits away") {
		t.Errorf("log %s", low.log)
	}
}

func TestLimits_RedisCounts(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	w, p := limited(t, config.Consumer, "decision-logs", "DOCKET_LIMIT_ROWS=10000", "DOCKET_KAFKA_GROUP=g", "DOCKET_REDIS_URL=redis://"+m.Addr())
	w.until("all is committed", func() bool { return p.offset() == 40 })
	if !m.Exists("{docket:g}:all") || !m.Exists("{docket:g}:low") || !w.metric(`docket_limit_rows_total{class="low"} 40`) {
		t.Error("Redis counted nothing")
	}
}

// A restore has a tenth of the low limit, and no process at all without a limit.
func TestLimits_OfARestore(t *testing.T) {
	t.Parallel()
	if l, err := OpenRestoreLimits(settings(t, config.Consumer), zerolog.Nop()); l != nil || err != nil {
		t.Fatal("there is a limit that nobody set")
	}
	s := settings(t, config.Consumer, "DOCKET_LIMIT_ROWS=1000", "DOCKET_LIMIT_LOW_ROWS=500", "DOCKET_LIMIT_BURST=100")
	synctest.Test(t, func(t *testing.T) {
		l, err := OpenRestoreLimits(s, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		sum := 0
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			sum += l.Take(t.Context(), 1000)
		}
		if sum < 490 || sum > 520 {
			t.Errorf("%d rows in 10 s, want 500", sum)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if n := l.Take(ctx, 1000); n != 0 {
			t.Errorf("granted %d after the end", n)
		}
	})
}

// TestLimits_RestoreSaysWhatItWaitsFor has a restore whose Redis is refused, and one whose limit is low.
func TestLimits_RestoreSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	for want, env := range map[string][]string{
		"waiting for Redis (limits_away)": {"DOCKET_LIMIT_ROWS=1000", "DOCKET_REDIS_URL=redis://127.0.0.1:1"},
		"waiting for the limit":           {"DOCKET_LIMIT_ROWS=2", "DOCKET_LIMIT_LOW_ROWS=1"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			l, err := OpenRestoreLimits(settings(t, config.Consumer, env...), zerolog.Nop())
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if text := l.Waiting(); text != "" {
				t.Errorf("at rest: %q", text)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for l.Take(ctx, 100) > 0 {
				}
			}()
			defer func() { stop(); <-done }()
			w := &world{t: t, log: &output.Buffer{}}
			w.until("it says so", func() bool { return l.Waiting() == want })
		})
	}
}

func TestLimits_ShareIsThatOfTheSource(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Consumer, Options{}, "DOCKET_LIMIT_ROWS=1000")
	w.source.assigned, w.source.partitions = 3, 12
	defer w.program.Close()
	if s := w.program.share(); s != (limit.Share{Mine: 3, All: 12}) {
		t.Errorf("share %+v", s)
	}
}
