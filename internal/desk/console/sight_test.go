package console_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/desk/peers"
	"docket/internal/desk/worker"
	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/testkit/readertest"
)

// placed is a store whose places can be written, as those of Postgres can.
type placed struct{ *readertest.Store }

func (placed) TailText(t reader.Tail) (string, error) { return strconv.Itoa(t.Mark.(int)), nil }

func (placed) ParseTail(text string) (reader.Tail, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return reader.Tail{}, reader.ErrCursor
	}
	return reader.Tail{Mark: n}, nil
}

var settingLines = []console.SettingLine{
	{Group: "Kafka", Name: "DOCKET_KAFKA_BROKERS", Value: "kafka-1:9092", Source: "environment"},
	{Group: "Database", Name: "DOCKET_DATABASE_URL", Value: "", Source: "environment", Secret: true},
	{Group: "Database", Name: "DOCKET_DATABASE_URL_OTHER", Source: "unset", Secret: true},
}

var checkResult = []api.Finding{
	{Level: "ok", What: "brokers", Detail: "3 answer"}, {Level: "fail", What: "topic decision-logs-dlq", Detail: "it is missing", Hint: "create it"},
	{Level: "warn", What: "database " + marker, Detail: "replication 1"},
}

func of(n float64) *float64 { return &n }

func minutesAgo(n int) *time.Time {
	at := noon.Add(-time.Duration(n) * time.Minute)
	return &at
}

// fleet are programs with lanes and a limit: some hold, one is not seen.
func fleet() []peers.Peer {
	lanes := []peers.LaneFacts{{Lane: "default", Assigned: 3, Held: 2, Waiting: 1, Oldest: 75, Latency: 3600, Pace: of(50)}, {Lane: "urgent", Assigned: 1, Held: 1, Latency: 0.2, Pace: of(7.5)}, {Lane: "bulk", Pace: of(0)}}
	return []peers.Peer{
		{Address: "http://consumer-1:8080", Ready: &peers.Ready{Program: "consumer", Joined: true, Assigned: 4, Reasons: []peers.Reason{
			{Reason: "database_away", Code: "57P01", Hint: "Start the database; the hold ends by itself.", Since: minutesAgo(5), Partitions: []string{"decision-logs/0", "decision-logs/1"}, More: 3},
			{Reason: "<script>alert(1)</script>", Hint: "\u202eplanted"}}},
			Facts: &peers.Facts{Program: "consumer", Version: "1.2.3", Lags: []peers.Lag{{Topic: "decision-logs", Partition: "0", Records: 1200}}, Oldest: of(75), LastCommit: noon.Add(-5 * time.Minute), SpoolFiles: of(2), SpoolBytes: of(2.5e6), SpoolOldest: of(90),
				Lanes: lanes, Yielding: of(1), Limits: map[string]float64{"all": 500, "low": 200}, Waiting: map[string]float64{"low": 2}, Breaker: "open"}},
		{Address: "http://consumer-2:8080", Ready: &peers.Ready{Ready: true, Program: "consumer", Joined: true, Assigned: 0, Note: "this member has no partition", Reasons: []peers.Reason{{Reason: "database_away", Code: "57P01", Since: minutesAgo(9)}}},
			Facts: &peers.Facts{Program: "consumer", Version: "1.2.4", SpoolFiles: of(0), Lanes: lanes[1:2]}},
		{Address: "http://consumer-3:8080", Why: "it refuses connections"},
		{Address: "http://collector:8081", Ready: &peers.Ready{Ready: true, Program: "collector"}, Facts: &peers.Facts{Program: "collector", Version: "1.2.3", Uploads: of(3), TakenPace: of(57.5), Received: of(1_204_118), Refused: of(2)}},
	}
}

var threeLanes = []console.Lane{{Name: "default", Topic: "decision-logs", Group: "docket"}, {Name: "urgent", Topic: "decision-logs-urgent", Group: "docket-urgent"}, {Name: "bulk", Topic: "decision-logs-bulk", Group: "docket-bulk"}}

// whole is a sight with every port.
func whole(c *console.Config, _ *api.Config, _ *api.Ports) {
	c.Sight = console.Sight{Lanes: threeLanes, Settings: settingLines,
		Peers: func(context.Context) []peers.Peer { return fleet() },
		Waits: func() ([]complete.Waits, time.Time, bool, bool) {
			return []complete.Waits{{Topic: "decision-logs", Partition: 0, Records: 200, MovedAt: noon.Add(-5 * time.Minute)}, {Topic: "decision-logs", Partition: 1, Records: 1000, MovedAt: noon}, {Topic: "decision-logs-urgent", MovedAt: noon},
				{Topic: "decision-logs-bulk", Partition: 2, Records: 9, MovedAt: noon.Add(-time.Second)}}, noon.Add(-3 * time.Second), true, false
		},
		Members: func(_ context.Context, group string) (int, error) { return len(group) - 4, nil },
		Alerts: func(context.Context) ([]worker.Told, error) {
			return []worker.Told{{Level: 120, At: noon.Add(-time.Hour)}, {Topic: "decision-logs-dlq", Level: 3, At: noon}}, nil
		},
		Check: func(context.Context) []api.Finding { return checkResult }}
}

func TestScreens_GoldenOfAFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, whole)
	b := w.as(t, "operator")
	for name, path := range map[string]string{"fleet": "/", "fleetlanes": "/lanes", "live": "/decisions?verdict=denied&since=2h&live=1", "unchecked": "/check"} {
		golden(t, name, b.get(t, path).body)
	}
	if a := b.post(t, "/check", nil); a.code != http.StatusSeeOther {
		t.Errorf("%d", a.code)
	}
	golden(t, "check", b.get(t, "/check").body)
}

// TestNow_NotSeenIsNoZero: without any port, and with ports that do not answer, no place shows a zero.
func TestNow_NotSeenIsNoZero(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	for name, sight := range map[string]console.Sight{
		"no port": {},
		"no answer": {Lanes: threeLanes, Peers: func(context.Context) []peers.Peer {
			return []peers.Peer{{Address: "a", Why: "it did not answer in time"}}
		},
			Waits:   func() ([]complete.Waits, time.Time, bool, bool) { return nil, time.Time{}, false, true },
			Members: func(context.Context, string) (int, error) { return 0, gone }, Alerts: func(context.Context) ([]worker.Told, error) { return nil, gone }},
	} {
		w := newWorld(t, func(c *console.Config, _ *api.Config, p *api.Ports) { c.Sight, p.Horizon = sight, nil })
		b := w.as(t, "viewer")
		away := errors.New("no database")
		w.book.away.Store(&away)
		for _, path := range []string{"/", "/lanes"} {
			a := b.get(t, path)
			if strings.Contains(a.body, `class="number">0<`) || strings.Contains(a.body, `class="num">0<`) || strings.Contains(a.body, "No alert of the desk lasts") || strings.Contains(a.body, "Nothing waits for you") {
				t.Errorf("%s, %s: a place that is not seen is shown as zero: %s", name, path, a.body)
			}
		}
		if name == "no answer" {
			if a := b.get(t, "/"); a.code != http.StatusOK || !strings.Contains(a.body, "The database does not answer") || !strings.Contains(a.body, "it did not answer in time") {
				t.Errorf("%d %s", a.code, a.body)
			}
		}
	}
}

// TestNow_SumsSayWhatTheyLack: numbers of programs that are not seen are in no sum, and no page claims them.
func TestNow_SumsSayWhatTheyLack(t *testing.T) {
	t.Parallel()
	ready := func(program string) peers.Peer {
		return peers.Peer{Address: "http://half:8080", Why: "/metrics: it did not answer in time", Ready: &peers.Ready{Ready: true, Program: program, Note: "planted-note"}}
	}
	consumer := peers.Peer{Address: "http://consumer-1:8080", Ready: &peers.Ready{Ready: true, Program: "consumer"},
		Facts: &peers.Facts{Program: "consumer", SpoolFiles: of(0), Oldest: of(0), StoredPace: of(10), LastCommit: noon}}
	idle := consumer
	idle.Facts = &peers.Facts{Program: "consumer", Oldest: of(5), StoredPace: of(0)}
	collector := peers.Peer{Address: "http://collector:8081", Facts: &peers.Facts{Program: "collector", TakenPace: of(7), Received: of(81)}, Why: "/readyz: it did not answer in time"}
	told := collector
	told.Facts = &peers.Facts{Program: "collector", Received: of(81), OPAs: of(2), OPASilent: of(40), OPAWaiting: of(3), OPAWaitingBytes: of(900), OPAFailing: of(1), OPADropped: of(24)}
	other := collector
	other.Facts = &peers.Facts{Program: "collector", Received: of(1), OPAs: of(1), OPASilent: of(50), OPAWaitingBytes: of(900), OPAFailing: of(0), OPADropped: of(0)}
	for name, one := range map[string]struct {
		fleet     []peers.Peer
		now       []string
		lanes     []string
		no, noNow string
	}{
		"half a consumer":        {[]peers.Peer{consumer, collector, ready("consumer")}, []string{">at least 0<", "spools of 1 program; 1 program is not seen", "no consumer that is seen has one in hand", "last commit that is seen", "/metrics: it did not answer in time", ">7<"}, []string{">at least 10<", ">at most 20 s<", "1 program is not seen"}, "", "none is in hand"},
		"half a collector":       {[]peers.Peer{consumer, collector, ready("collector")}, []string{">at least 7<", ">at least 81<", "1 collector is seen; 1 program is not seen", "none is in hand", "spools of 1 program<"}, []string{">10<", ">20 s<"}, "at most", "last commit that is seen"},
		"one of any kind":        {[]peers.Peer{idle, collector, {Address: "a", Why: "it refuses connections"}}, []string{">at least 7<", "the oldest in hand since at least 5 s"}, []string{">at least 0<"}, "never, at this pace", ""},
		"all":                    {[]peers.Peer{idle, collector}, []string{">7<", ">81<", "decisions received since", "the oldest in hand since 5 s"}, []string{">0<", "never, at this pace"}, "at least", "at least"},
		"OPAs report":            {[]peers.Peer{idle, told}, []string{"24 decisions are LOST: OPA dropped them before a collector had them. 2 OPAs report to the collectors, the oldest report since 40 s. They hold 3 decisions. The newest upload of 1 OPA failed.<"}, nil, "", "at least"},
		"an OPA reports":         {[]peers.Peer{idle, other}, []string{"1 OPA reports to the collectors, the oldest report since 50 s. They hold decisions of 900 B.<"}, nil, "", "LOST"},
		"OPAs report to several": {[]peers.Peer{idle, told, other}, []string{"At least 24 decisions are LOST: OPA dropped them before a collector had them. At least 2 OPAs report to the collectors.<", ">82<"}, nil, "", "They hold"},
		"no pace of one":         {[]peers.Peer{consumer, {Address: "b", Facts: &peers.Facts{Program: "consumer"}}}, nil, []string{">at least 10<", ">at most 20 s<"}, "", ""},
	} {
		w := newWorld(t, func(c *console.Config, _ *api.Config, _ *api.Ports) {
			c.Sight.Peers = func(context.Context) []peers.Peer { return one.fleet }
			c.Sight.Waits = func() ([]complete.Waits, time.Time, bool, bool) {
				return []complete.Waits{{Topic: "decision-logs", Records: 200, MovedAt: noon}}, noon, true, false
			}
		})
		b := w.as(t, "viewer")
		for path, want := range map[string][]string{"/": one.now, "/lanes": one.lanes} {
			a, no := b.get(t, path), one.no
			if path == "/" {
				no = one.noNow
			}
			for _, text := range want {
				if !strings.Contains(a.body, text) {
					t.Errorf("%s, %s lacks %q: %s", name, path, text, a.body)
				}
			}
			if no != "" && strings.Contains(a.body, no) {
				t.Errorf("%s, %s says %q: %s", name, path, no, a.body)
			}
		}
	}
}

// TestNow_OldAnswerSaysItsTime: a costly answer is asked for seldom. It says nothing about this moment.
func TestNow_OldAnswerSaysItsTime(t *testing.T) {
	t.Parallel()
	n, until := int64(3), noon.Add(-time.Minute)
	answer := api.NowAnswer{}
	answer.Freshness, answer.Behind, answer.Parked, answer.Spooled, answer.CompleteUntil = reader.Fresh, &n, &n, new(int64), &until
	places, said := console.Places(answer, noon, 45*time.Second)
	for name, text := range places {
		if own := name != "OPA" && name != "Collector"; strings.Contains(text, "as of 11:59:15") != own {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text := places["Consumer"]; !strings.HasPrefix(text, "not known just now||It was FRESH; as of 11:59:15") || said != "" {
		t.Errorf("%s, and %q is read out", text, said)
	}
	if text := places["Spooled"]; !strings.HasPrefix(text, "0||records in the spools of consumers and replayers; as of") {
		t.Error(text)
	}
	places, said = console.Places(answer, noon, 5*time.Second)
	for name, text := range places {
		if strings.Contains(text, "as of") {
			t.Errorf("recent: %s: %s", name, text)
		}
	}
	if text := places["Consumer"]; !strings.HasPrefix(text, "FRESH|good|") || said != "FRESH" {
		t.Errorf("recent: %s, and %q is read out", text, said)
	}
	answer.Freshness = reader.Holding
	if places, _ = console.Places(answer, noon, 45*time.Second); !strings.HasPrefix(places["Consumer"], "HOLDING|bad|As of 11:59:15: ") {
		t.Error(places["Consumer"])
	}
}

// TestNow_SlowReportSaysItsTime: the page shows when its costly part was asked.
func TestNow_SlowReportSaysItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.as(t, "viewer")
		w.book.slow.Store(int64(500 * time.Millisecond))
		b.get(t, "/")
		time.Sleep(30 * time.Second)
		w.clock.pass(30 * time.Second)
		if a := b.get(t, "/"); !strings.Contains(a.body, "a person decides; as of 12:00:00") || w.book.reports.Load() != 1 {
			t.Errorf("after %d reports: %s", w.book.reports.Load(), a.body)
		}
	})
}

// TestNow_PanicIsNotKnown: a question that panics does not end the desk, and the others are shown.
func TestNow_PanicIsNotKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var breaks atomic.Bool
		w := newWorld(t, whole, func(c *console.Config, _ *api.Config, _ *api.Ports) {
			c.Sight.Peers = func(context.Context) []peers.Peer {
				if breaks.Load() {
					panic(marker)
				}
				return fleet()
			}
		})
		b := w.as(t, "viewer")
		for _, now := range []bool{true, false} {
			breaks.Store(now)
			time.Sleep(5 * time.Second)
			if a := b.get(t, "/"); a.code != http.StatusOK || !strings.Contains(a.body, ">5</a>") || strings.Contains(a.body, "consumer-1") == now {
				t.Errorf("%v: %d %s", now, a.code, a.body)
			}
		}
		if log := w.log.String(); !strings.Contains(log, "console question panicked") || !strings.Contains(log, "sight_test.go") && !strings.Contains(log, "TestNow_PanicIsNotKnown") || strings.Contains(log, marker) {
			t.Error(log)
		}
	})
}

// TestNow_SlowKafkaIsNotAsked: a page never waits for a Kafka that the watch knows to be slow.
func TestNow_SlowKafkaIsNotAsked(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 100)
	w := newWorld(t, func(c *console.Config, _ *api.Config, p *api.Ports) {
		c.Sight.Waits = func() ([]complete.Waits, time.Time, bool, bool) { return nil, time.Time{}, false, true }
		c.Sight.Members = func(context.Context, string) (int, error) { asked <- "members"; return 1, nil }
		p.Horizon = told{asked}
	})
	if a := w.as(t, "viewer").get(t, "/"); a.code != http.StatusOK || len(asked) != 0 || !strings.Contains(a.body, "Kafka does not answer") {
		t.Errorf("%d: Kafka was asked %d times", a.code, len(asked))
	}
}

type told struct{ asked chan string }

func (h told) Look(context.Context, time.Time) []worker.HorizonLine {
	h.asked <- "horizon"
	return nil
}

// TestNow_WaitsForNoStore: a store that hangs holds a page up for a moment only, and the others are shown.
func TestNow_WaitsForNoStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, whole, func(c *console.Config, _ *api.Config, p *api.Ports) {
			c.Sight.Members = func(ctx context.Context, _ string) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
			p.Horizon = hanging{}
		})
		b := w.as(t, "viewer")
		began := time.Now()
		if a := b.get(t, "/"); a.code != http.StatusOK || time.Since(began) > 2*time.Second || !strings.Contains(a.body, "consumer-1") {
			t.Errorf("%d after %v", a.code, time.Since(began))
		}
	})
}

type hanging struct{}

func (hanging) Look(ctx context.Context, _ time.Time) []worker.HorizonLine {
	<-ctx.Done()
	return nil
}

// TestNow_CostlyQuestionIsRare: a report that takes long is made so seldom that it takes one part in two hundred of the time.
func TestNow_CostlyQuestionIsRare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.as(t, "viewer")
		w.book.slow.Store(int64(200 * time.Millisecond))
		for range 120 {
			b.get(t, "/")
			time.Sleep(time.Second)
		}
		if n := w.book.reports.Load(); n < 2 || n > 5 {
			t.Errorf("%d reports in two minutes", n)
		}
	})
}

func TestCheck_OneRunForEverybody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		runs, goOn := 0, make(chan struct{})
		w := newWorld(t, func(c *console.Config, _ *api.Config, _ *api.Ports) {
			c.Sight.Check = func(ctx context.Context) []api.Finding {
				mu.Lock()
				runs++
				mu.Unlock()
				select {
				case <-goOn:
				case <-ctx.Done():
				}
				return checkResult
			}
		})
		one, two, viewer := w.as(t, "operator"), w.as(t, "admin"), w.as(t, "viewer")
		ctx, leaves := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			one.post(t, "/check", nil, func(r *http.Request) { *r = *r.WithContext(ctx) })
		}()
		synctest.Wait()
		leaves() // the browser is gone, and the check runs
		if a := two.post(t, "/check", nil); a.code != http.StatusSeeOther || runs != 1 {
			t.Errorf("%d, %d runs", a.code, runs)
		}
		if a := viewer.get(t, "/check"); !strings.Contains(a.body, "A check runs") || strings.Contains(a.body, "Check now") {
			t.Error("a viewer does not see that a check runs, or may start one")
		}
		close(goOn)
		<-done
		two.post(t, "/check", nil) // too soon
		if a := viewer.get(t, "/check"); runs != 1 || !strings.Contains(a.body, "1 fail") || !strings.Contains(a.body, "olga") || strings.Contains(a.body, "DOCKET_") && strings.Contains(a.body, "Settings of this desk") {
			t.Errorf("%d runs; %s", runs, a.body)
		}
		time.Sleep(time.Minute)
		if two.post(t, "/check", nil); runs != 2 {
			t.Errorf("%d runs", runs)
		}
	})
}

// TestCheck_HangingEnds: a check has a time limit, and its result does not replace a whole one.
func TestCheck_HangingEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *console.Config, _ *api.Config, _ *api.Ports) {
			c.Sight.Check = func(ctx context.Context) []api.Finding { <-ctx.Done(); return nil }
		})
		b, began := w.as(t, "operator"), time.Now()
		b.post(t, "/check", nil)
		if a := b.get(t, "/check"); time.Since(began) > 2*time.Minute || !strings.Contains(a.body, "Not checked yet") || strings.Contains(a.body, "A check runs") {
			t.Errorf("after %v: %s", time.Since(began), a.body)
		}
	})
}
