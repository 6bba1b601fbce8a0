package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/lanes"
	"docket/internal/consumer/pipeline"
	"docket/internal/kafka"
	"docket/internal/record/envelope"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
	"docket/internal/testkit/output"
)

// laneSource is a source of one lane whose lag can be set.
type laneSource struct {
	*fakeSource
	topic string

	mu  sync.Mutex
	lag []telemetry.Lag
}

func (s *laneSource) Lag() []telemetry.Lag {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lag)
}

// behind sets how far its first partition is behind.
func (s *laneSource) behind(records int64, age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = []telemetry.Lag{{Topic: s.topic, Records: records}}
	if age > 0 {
		s.lag[0].Oldest = time.Now().Add(-age)
	}
}

// stuck sets whether a fault keeps its first partition from being read.
func (s *laneSource) stuck(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag[0].Stuck = is
}

// lanesWorld is a consumer with these lanes, each with one assigned partition.
func lanesWorld(t *testing.T, names string, o Options, env ...string) (*world, map[string]*laneSource) {
	t.Helper()
	w := &world{t: t, reg: prometheus.NewRegistry(), log: &output.Buffer{}, ended: make(chan error, 1)}
	w.db, w.sent, w.spool = &fakeDB{}, &fakePublisher{}, &fakeSpool{w: w}
	w.parts = &Parts{Database: w.db, Publisher: w.sent, Spool: w.spool}
	of := map[string]*laneSource{}
	s := settings(t, config.Consumer, append([]string{"DOCKET_LANES=" + names}, env...)...)
	for _, l := range s.Lanes() {
		src := &laneSource{fakeSource: &fakeSource{w: w, joined: true, assigned: 1}, topic: l.Topic}
		of[l.Name()] = src
		w.parts.Sources = append(w.parts.Sources, src)
	}
	o.Parts = w.parts
	var err error
	if w.program, err = New(config.Consumer, s, zerolog.New(w.log), w.reg, o); err != nil {
		t.Fatal(err)
	}
	return w, of
}

func TestLanes_OneProcessCarriesAll(t *testing.T) {
	t.Parallel()
	for _, names := range []string{"urgent", "bulk", "urgent,bulk"} {
		t.Run(names, func(t *testing.T) {
			t.Parallel()
			w, of := lanesWorld(t, names, Options{})
			var all []*partition
			for _, src := range of {
				p := newPartition(src.topic, decisionLog(len(all)*10), decisionLog(len(all)*10+1))
				src.assignments = []Assignment{p}
				all = append(all, p)
			}
			w.run()
			w.until("every lane is committed", func() bool {
				return !slices.ContainsFunc(all, func(p *partition) bool { return p.offset() != 2 })
			})
			if w.db.rows() != 2*len(of) {
				t.Errorf("%d rows of %d lanes", w.db.rows(), len(of))
			}
			w.stop()
			for _, p := range all {
				p.leave()
			}
			if err := w.end(); err != nil {
				t.Error(err)
			}
			if n := strings.Count(strings.Join(w.events, "\n"), "source ended"); n != len(of) {
				t.Errorf("%d of %d sources ended", n, len(of))
			}
			if log := w.log.String(); !strings.Contains(log, `"urgent":"decision-logs-urgent"`) == strings.Contains(names, "urgent") || !strings.Contains(log, `"default":"decision-logs"`) {
				t.Errorf("the start does not name the lanes:\n%s", log)
			}
		})
	}
}

// TestLanes_FirstFailureEndsAll has one source fail, each in turn.
func TestLanes_FirstFailureEndsAll(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"default", "urgent", "bulk"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, of := lanesWorld(t, "urgent,bulk", Options{})
			failed := errors.New("failed")
			of[name].err = failed
			w.run()
			if err := w.end(); !errors.Is(err, failed) {
				t.Errorf("Run = %v", err)
			}
			if n := strings.Count(strings.Join(w.events, "\n"), "source ended"); n != 3 {
				t.Errorf("%d sources ended", n)
			}
		})
	}
}

func TestLanes_ReadinessOfEach(t *testing.T) {
	t.Parallel()
	w, of := lanesWorld(t, "urgent,bulk", Options{}, "DOCKET_URGENT_GROUP=pressing")
	of["urgent"].set(func(s *fakeSource) { s.assigned = 3 })
	of["bulk"].set(func(s *fakeSource) { s.joined, s.assigned = false, 0 })
	w.run()
	status, r := w.ready()
	want := []LaneState{
		{"default", "decision-logs", "docket", true, 1}, {"urgent", "decision-logs-urgent", "pressing", true, 3}, {"bulk", "decision-logs-bulk", "docket-bulk", false, 0},
	}
	if status != 503 || r.Joined || r.Assigned != 4 || !slices.Equal(r.Lanes, want) || len(r.Reasons) != 1 || r.Reasons[0].Reason != "joining" {
		t.Errorf("%d %+v", status, r)
	}
	of["bulk"].set(func(s *fakeSource) { s.joined = true })
	if status, r := w.ready(); status != 200 || !r.Joined {
		t.Errorf("%d %+v", status, r)
	}
}

// TestLanes_MissingTopicHoldsItsLane has one lane whose topic is missing. The others carry on.
func TestLanes_MissingTopicHoldsItsLane(t *testing.T) {
	t.Parallel()
	w, of := lanesWorld(t, "urgent,bulk", Options{})
	for name, src := range of {
		src.set(func(s *fakeSource) {
			switch name {
			case "bulk":
				s.joined, s.assigned = false, 0
				s.fault = &kafka.FaultError{Reason: kafka.ReasonTopicMissing, Topic: src.topic, Partition: -1, Code: "UNKNOWN_TOPIC_OR_PARTITION", Hint: "create the topic " + src.topic}
			case "urgent":
				s.fault = &kafka.FaultError{Reason: kafka.ReasonSetTooLarge, Topic: src.topic, Partition: 4, Hint: "raise it"}
			}
		})
	}
	p := newPartition("decision-logs", decisionLog(0))
	of["default"].assignments = []Assignment{p}
	w.run()
	w.until("the default lane is committed", func() bool { return p.offset() == 1 })
	status, r := w.ready()
	var reasons []string
	for _, one := range r.Reasons {
		reasons = append(reasons, one.Reason+" "+strings.Join(one.Partitions, ","))
	}
	slices.Sort(reasons)
	if status != 503 || !slices.Equal(reasons, []string{"joining ", "kafka_topic_missing ", "set_too_large decision-logs-urgent/4"}) {
		t.Errorf("%d %q", status, reasons)
	}
	of["urgent"].set(func(s *fakeSource) { s.fault = nil })
	if _, r := w.ready(); len(r.Reasons) != 2 {
		t.Errorf("the fault of one lane ended and left %+v", r.Reasons)
	}
	w.stop()
	p.leave()
	if err := w.end(); err != nil {
		t.Error(err)
	}
	if n := len(w.program.observer.Holds()); n != 0 {
		t.Errorf("%d holds outlived the program", n)
	}
}

func TestLanes_Metrics(t *testing.T) {
	t.Parallel()
	w, of := lanesWorld(t, "urgent", Options{})
	p := newPartition("decision-logs-urgent", decisionLog(0))
	of["urgent"].assignments = []Assignment{p}
	of["urgent"].behind(7, time.Hour)
	of["default"].set(func(s *fakeSource) { s.assigned = 5 })
	w.run()
	w.until("it is committed", func() bool { return p.offset() == 1 })
	var text string
	w.until("it yields", func() bool {
		w.get("/metrics", &text)
		return strings.Contains(text, "docket_lane_yielding 1")
	})
	for _, line := range []string{
		`docket_consumer_lag{lane="urgent",partition="0",topic="decision-logs-urgent"} 7`,
		`docket_oldest_uncommitted_seconds{lane="urgent",partition="0",topic="decision-logs-urgent"} 36`,
		`docket_end_to_end_seconds_count{lane="urgent"} 1`, `docket_end_to_end_seconds_count{lane="default"} 0`,
		`docket_lane_latency_seconds_count{lane="urgent"} 1`, `docket_lane_latency_seconds_count{lane="default"} 0`,
		`docket_lane_latency_seconds_bucket{lane="urgent",le="3"}`, `docket_lane_latency_seconds_bucket{lane="urgent",le="3600"} 1`,
		`docket_lane_turns{lane="urgent",state="held"} 0`, `docket_lane_turns{lane="default",state="waiting"} 0`,
		`docket_lane_assigned_partitions{lane="default"} 5`, `docket_lane_assigned_partitions{lane="urgent"} 1`,
		`docket_assigned_partitions 6`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("/metrics has no %s", line)
		}
	}
	if strings.Contains(text, `docket_hold{reason="yielding"}`) {
		t.Error("yielding counts as a hold")
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		if strings.HasPrefix(problem.Metric, "docket_lane") {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
	}
	w.stop()
	p.leave()
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

// TestLanes_UnsetChangesNoMetric looks for any trace of lanes in a program without.
func TestLanes_UnsetChangesNoMetric(t *testing.T) {
	t.Parallel()
	for _, name := range []config.Program{config.Consumer, config.Replayer} {
		w := setup(t, name, Options{})
		w.run()
		var text, ready string
		w.get("/metrics", &text)
		w.get("/readyz", &ready)
		if strings.Contains(text, "lane") || strings.Contains(ready, "lane") || strings.Contains(w.log.String(), "lane") {
			t.Errorf("%s without lanes says something of them:\n%s", name, ready)
		}
		if !strings.Contains(text, "\ndocket_end_to_end_seconds_count 0\n") || !strings.Contains(text, `docket_consumer_lag{partition="0",topic="decision-logs"} 5`) {
			t.Errorf("%s: the usual metrics changed", name)
		}
		w.stop()
		if err := w.end(); err != nil {
			t.Error(err)
		}
	}
}

// TestReplayer_LanesKeepFourTurns: its writes are low, and it has no urgent lane to leave a turn to.
func TestReplayer_LanesKeepFourTurns(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Replayer, Options{}, "DOCKET_LANES=urgent,bulk")
	for range 4 {
		if !w.program.turns.Acquire(t.Context(), t.Context(), lanes.Default) {
			t.Fatal("no turn")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w.program.turns.Acquire(ctx, ctx, lanes.Default) {
		t.Error("a fifth turn")
	}
	if first := w.program.first(); first == nil || !first("decision-logs-urgent") || first("decision-logs") || first("decision-logs-bulk") {
		t.Error("it does not take the urgent lane first")
	}
	w.program.http.Close()
}

// TestReplayer_TakesUrgentFirst has an urgent record parked behind two of the default lane. All become due together.
func TestReplayer_TakesUrgentFirst(t *testing.T) {
	t.Parallel()
	for names, want := range map[string][]string{"urgent": {"d2", "d0", "d1"}, "bulk": {"d0", "d1", "d2"}} {
		t.Run("with "+names, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := setup(t, config.Replayer, Options{}, "DOCKET_LANES="+names, "DOCKET_BATCH_MAX_RECORDS=1")
				defer w.program.http.Close()
				parked := func(i int, topic string) *kgo.Record {
					return decisionLog(i, kgo.RecordHeader{Key: envelope.OriginalTopic, Value: []byte(topic)}, notBefore(time.Minute))
				}
				p := newPartition("decision-logs-parking", parked(0, "decision-logs"), parked(1, "decision-logs"), parked(2, "decision-logs-urgent"))
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- w.program.carry(ctx, p) }()
				time.Sleep(time.Hour)
				p.leave()
				stop()
				<-done
				if got := w.db.order(); !slices.Equal(got, want) || p.offset() != 3 {
					t.Errorf("stored %v, want %v; committed %d", got, want, p.offset())
				}
			})
		})
	}
}

// TestYielding_BesideTheUrgentLane drives the watcher in virtual time.
func TestYielding_BesideTheUrgentLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, of := yieldWorld(t)
		urgent, p := of["urgent"], w.program
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { p.keepYielding(ctx); close(done) }()
		defer func() { stop(); <-done }()
		yields := func(after time.Duration, want bool, what string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := !p.yieldingSince().IsZero(); got != want {
				t.Errorf("%s: yields %t", what, got)
			}
		}
		yields(time.Second, false, "at rest")
		urgent.behind(1000, 0)
		yields(time.Second, false, "at the bound")
		urgent.behind(1001, 0)
		yields(300*time.Millisecond, true, "many records")
		urgent.behind(0, 0)
		yields(3*time.Second-time.Millisecond, true, "caught up just now")
		yields(600*time.Millisecond, false, "caught up for seconds")
		urgent.behind(1, 4*time.Second)
		yields(300*time.Millisecond, true, "an old record")
		r := p.Readiness()
		if !r.Ready || len(r.Reasons) != 1 || r.Reasons[0].Reason != "yielding" || r.Reasons[0].Since == nil || r.Reasons[0].Hint == "" || len(p.observer.Holds()) != 0 {
			t.Errorf("/readyz while it yields: %+v", r)
		}
		release := p.observer.Held("decision-logs-urgent", 0, pipeline.Hold{Reason: pipeline.ReasonNoHome})
		yields(4*time.Second, false, "the urgent partition holds")
		release()
		yields(300*time.Millisecond, true, "it holds no more")
		urgent.set(func(s *fakeSource) { s.fault = &kafka.FaultError{Topic: "decision-logs-urgent", Partition: 0} })
		yields(4*time.Second, false, "the urgent partition cannot be read")
		urgent.set(func(s *fakeSource) { s.fault = &kafka.FaultError{Topic: "decision-logs-urgent", Partition: 1} })
		yields(300*time.Millisecond, true, "another urgent partition cannot be read")
		urgent.stuck(true)
		yields(4*time.Second, false, "two urgent partitions cannot be read")
		urgent.stuck(false)
		yields(300*time.Millisecond, true, "one of them again")
		urgent.set(func(s *fakeSource) { s.fault = &kafka.FaultError{Topic: "decision-logs-urgent", Partition: -1} })
		yields(4*time.Second, false, "the urgent topic cannot be read")
		urgent.set(func(s *fakeSource) { s.fault = nil })
		of["default"].behind(1e6, time.Hour)
		yields(300*time.Millisecond, true, "again")
		urgent.mu.Lock()
		urgent.lag = nil
		urgent.mu.Unlock()
		yields(4*time.Second, false, "this process has no urgent partition, and default is behind")
		urgent.behind(5000, 0)
		yields(300*time.Millisecond, true, "before the end")
		stop()
		<-done
		if yields(0, false, "the program stops"); p.turns == nil {
			t.Error("no turns")
		}
	})
}

// yieldWorld is a consumer with three lanes that listens on nothing, so that its time can be virtual.
func yieldWorld(t *testing.T) (*world, map[string]*laneSource) {
	t.Helper()
	w := &world{t: t, reg: prometheus.NewRegistry(), log: &output.Buffer{}}
	s := settings(t, config.Consumer, "DOCKET_LANES=urgent,bulk")
	of := map[string]*laneSource{}
	w.parts = &Parts{Database: &fakeDB{}, Publisher: &fakePublisher{}}
	for _, l := range s.Lanes() {
		of[l.Name()] = &laneSource{fakeSource: &fakeSource{w: w, joined: true, assigned: 1}, topic: l.Topic}
		w.parts.Sources = append(w.parts.Sources, of[l.Name()])
	}
	w.program = &Program{name: config.Consumer, settings: s, log: zerolog.New(w.log), parts: w.parts}
	w.program.assemble(w.reg)
	return w, of
}

// TestYielding_ShrinksTheLowLanes looks at the turns, and not at what is said of them.
func TestYielding_ShrinksTheLowLanes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, of := yieldWorld(t)
		p := w.program
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { p.keepYielding(ctx); close(done) }()
		low := func() (n int) {
			over, cancel := context.WithCancel(t.Context())
			cancel()
			for p.turns.Acquire(over, over, []lanes.Lane{lanes.Default, lanes.Bulk}[n%2]) {
				n++
			}
			for i := range n {
				p.turns.Release([]lanes.Lane{lanes.Default, lanes.Bulk}[i%2])
			}
			return n
		}
		synctest.Wait()
		for _, c := range []struct {
			behind int64
			want   int
		}{{0, 3}, {2000, 1}, {0, 3}} {
			of["urgent"].behind(c.behind, 0)
			time.Sleep(5 * time.Second)
			if n := low(); n != c.want {
				t.Errorf("%d low batches at a time while urgent is %d behind, want %d", n, c.behind, c.want)
			}
		}
		of["urgent"].behind(2000, 0)
		time.Sleep(time.Second)
		stop()
		<-done
		if n := low(); n != 3 {
			t.Errorf("%d low batches at a time after the stop", n)
		}
	})
}

// TestSources_MissingTopicHasNoPartitions has lanes whose numbers of partitions are not all known.
func TestSources_MissingTopicHasNoPartitions(t *testing.T) {
	t.Parallel()
	known := &fakeSource{partitions: 6}
	for name, c := range map[string]struct {
		fault error
		want  int
	}{
		"not known yet":  {nil, 0},
		"missing":        {&kafka.FaultError{Reason: kafka.ReasonTopicMissing}, 6},
		"not allowed":    {&kafka.FaultError{Reason: kafka.ReasonAuthorization}, 6},
		"Kafka is away":  {&kafka.FaultError{Reason: kafka.ReasonUnreachable}, 0},
		"another reason": {errors.New("broken"), 0},
	} {
		if got := (sources{known, &fakeSource{fault: c.fault}}).Partitions(); got != c.want {
			t.Errorf("%s: %d partitions, want %d", name, got, c.want)
		}
	}
}
