package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/fallback"
	"docket/internal/kafka"
	"docket/internal/service/config"
	"docket/internal/testkit/output"
)

func TestReadiness_TellsWhyNot(t *testing.T) {
	t.Parallel()
	missing := &kafka.FaultError{
		Reason: kafka.ReasonTopicMissing, Act: "read", Topic: "decision-logs", Partition: -1, Code: "UNKNOWN_TOPIC_OR_PARTITION", Hint: "create the topic",
	}
	for name, c := range map[string]struct {
		source   func(*fakeSource)
		status   int
		assigned int
		note     bool
		reason   Reason
	}{
		"assigned":               {func(s *fakeSource) { s.assigned = 3 }, 200, 3, false, Reason{}},
		"an empty assignment":    {func(s *fakeSource) { s.assigned = 0 }, 200, 0, true, Reason{}},
		"not joined":             {func(s *fakeSource) { s.joined, s.assigned = false, 0 }, 503, 0, false, Reason{Reason: "joining"}},
		"a topic is missing":     {func(s *fakeSource) { s.fault = missing }, 503, 1, false, Reason{Reason: "kafka_topic_missing", Code: "UNKNOWN_TOPIC_OR_PARTITION", Hint: "create the topic"}},
		"a fault without a name": {func(s *fakeSource) { s.fault = errors.New("x") }, 503, 1, false, Reason{Reason: "kafka_other"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, config.Consumer, Options{})
			w.source.set(c.source)
			w.run()
			status, r := w.ready()
			if status != c.status || r.Ready != (c.status == 200) || r.Assigned != c.assigned || (r.Note != "") != c.note {
				t.Errorf("%d %+v", status, r)
			}
			if c.reason.Reason == "" {
				if len(r.Reasons) != 0 {
					t.Errorf("ready with reasons %+v", r.Reasons)
				}
				return
			}
			if len(r.Reasons) != 1 || r.Reasons[0].Reason != c.reason.Reason || r.Reasons[0].Code != c.reason.Code || !strings.Contains(r.Reasons[0].Hint, c.reason.Hint) {
				t.Errorf("reasons %+v, want %+v", r.Reasons, c.reason)
			}
			w.source.set(func(s *fakeSource) { s.fault, s.joined = nil, true })
			if status, r := w.ready(); status != 200 {
				t.Errorf("still %d %+v after it was mended", status, r)
			}
		})
	}
}

func TestFault_OfTheSourceIsAHold(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Consumer, Options{})
	w.source.set(func(s *fakeSource) {
		s.fault = &kafka.FaultError{Reason: kafka.ReasonAuthorization, Topic: "decision-logs", Partition: 4}
	})
	w.run()
	var text string
	w.until("docket_hold is 1", func() bool {
		w.get("/metrics", &text)
		return strings.Contains(text, `docket_hold{reason="kafka_authorization"} 1`)
	})
	if _, r := w.ready(); !slices.Equal(r.Reasons[0].Partitions, []string{"decision-logs/4"}) {
		t.Errorf("reasons %+v", r.Reasons)
	}
	w.stop()
	if err := w.end(); err != nil {
		t.Error(err)
	}
	if len(w.program.observer.Holds()) != 0 {
		t.Error("the hold outlived the program")
	}
}

func TestReadiness_NamesHeldPartitions(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Consumer, Options{})
	w.run()
	h := pipeline.Hold{Reason: pipeline.ReasonReadOnly, Code: "25006", Hint: "find the primary"}
	for i := range int32(50) {
		w.program.observer.Held("decision-logs", i, h)
	}
	status, r := w.ready()
	if status != 503 || len(r.Reasons) != 1 || r.Reasons[0].Code != "25006" || r.Reasons[0].Hint != "find the primary" || r.Reasons[0].Since == nil ||
		len(r.Reasons[0].Partitions) != 20 || r.Reasons[0].More != 30 {
		t.Errorf("%d %+v", status, r)
	}
	if status := w.get("/healthz", nil); status != 200 {
		t.Errorf("a hold turns /healthz to %d; a restart would not cure it", status)
	}
}

func TestHTTP_OnlyThreePages(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Consumer, Options{})
	w.run()
	for _, path := range []string{"/", "/debug/pprof/", "/healthz/x", "/metrics/"} {
		if status := w.get(path, nil); status != 404 {
			t.Errorf("%s answers %d", path, status)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+w.program.Addr().String()+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _ = resp.Body.Close(); resp.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s answers %d", method, path, resp.StatusCode)
			}
		}
	}
}

func TestRun_CarriesAndStopsInOrder(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Consumer, Options{})
	p := newPartition("decision-logs", decisionLog(0), decisionLog(1), decisionLog(2))
	w.source.assignments = []Assignment{p}
	w.run()
	w.until("three are committed", func() bool { return p.offset() == 3 })
	if w.db.rows() != 3 {
		t.Errorf("%d rows", w.db.rows())
	}
	w.stop()
	p.leave()
	if err := w.end(); err != nil {
		t.Errorf("Run = %v after it was stopped", err)
	}
	w.program.Close()
	if want := []string{"source began", "source ended", "spool ended", "parts closed"}; !slices.Equal(w.events, want) {
		t.Errorf("events %v, want %v", w.events, want)
	}
	for _, message := range []string{`"program started"`, `"stop requested"`, `"program ended"`} {
		if strings.Count(w.log.String(), message) != 1 {
			t.Errorf("%s is not logged once:\n%s", message, w.log)
		}
	}
}

func TestReplayer_WaitsUntilDue(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Replayer, Options{})
	p := newPartition("decision-logs-parking", decisionLog(0), decisionLog(1, notBefore(30*time.Minute)), decisionLog(2))
	w.source.assignments = []Assignment{p}
	w.run()
	w.until("two are stored and one is waited for", func() bool { return w.db.rows() == 2 && w.program.waiting() == 1 })
	var text string
	w.get("/metrics", &text)
	if !strings.Contains(text, "\ndocket_parking_waiting 1\n") {
		t.Error("docket_parking_waiting is not 1")
	}
	if p.offset() != 1 {
		t.Errorf("committed %d past a record that waits", p.offset())
	}
	w.stop()
	p.leave()
	if err := w.end(); err != nil {
		t.Error(err)
	}
	if w.program.waiting() != 0 {
		t.Error("waiting is counted after the partition was given up")
	}
}

func TestOnce_EndsByItself(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Replayer, Options{Once: true})
	w.source.once = true
	p := newPartition("decision-logs-parking", decisionLog(0), decisionLog(1, notBefore(30*time.Minute)))
	w.source.assignments = []Assignment{p}
	w.run()
	if err := w.end(); err != nil || w.db.rows() != 1 {
		t.Errorf("Run = %v, %d rows", err, w.db.rows())
	}
}

// TestOnce_NamesTheRest: a record that may be due is behind one that is not, and was not looked at.
func TestOnce_NamesTheRest(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Replayer, Options{Once: true}, "DOCKET_BATCH_MAX_RECORDS=1", "DOCKET_PARKING_LOOKAHEAD=1")
	w.source.once = true
	p := newPartition("decision-logs-parking", decisionLog(0, notBefore(30*time.Minute)), decisionLog(1))
	w.source.assignments = []Assignment{p}
	w.run()
	if err := w.end(); err != nil || w.db.rows() != 0 {
		t.Errorf("Run = %v, %d rows", err, w.db.rows())
	}
	if said := w.log.String(); !strings.Contains(said, `"offsets":1,"topic":"decision-logs-parking","partition":0`) || !strings.Contains(said, "parked records not looked at") {
		t.Errorf("the log does not name the rest:\n%s", said)
	}
}

func TestRun_FailureEndsAll(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Consumer, Options{})
	w.source.err = errors.New("settle: a bug")
	w.run()
	if err := w.end(); err == nil || !strings.Contains(err.Error(), "a bug") {
		t.Errorf("Run = %v", err)
	}
}

func TestHealth_BatchInHandIsHealthy(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Consumer, Options{Patience: time.Hour})
	w.db.block = make(chan struct{})
	p := newPartition("decision-logs", decisionLog(0))
	w.source.assignments = []Assignment{p}
	w.run()
	w.until("the batch is in hand", func() bool { return !w.program.pipe.Idle() })
	if h := w.program.Health(); !h.Healthy {
		t.Errorf("red at once: %+v", h)
	}
	close(w.db.block)
	w.stop()
	p.leave()
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

func TestHealth_StuckWorkerEndsTheProgram(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Consumer, Options{Patience: 300 * time.Millisecond}, "DOCKET_SHUTDOWN_TIMEOUT=100ms")
	w.program.grace = 50 * time.Millisecond
	w.db.block = make(chan struct{})
	p := newPartition("decision-logs", decisionLog(0))
	w.source.assignments = []Assignment{p}
	w.run()
	w.until("the batch is in hand", func() bool { return !w.program.pipe.Idle() })
	var h Health
	w.until("/healthz is red", func() bool { return w.get("/healthz", &h) == 503 })
	if h.Healthy || len(h.Reasons) != 1 || h.Reasons[0].Reason != "wedged" {
		t.Errorf("health %+v", h)
	}
	if err := w.end(); !errors.Is(err, ErrWedged) {
		t.Errorf("Run = %v, want ErrWedged", err)
	}
	if p.offset() != -1 {
		t.Error("what was stuck got committed")
	}
	if said := w.log.String(); !strings.Contains(said, "Store") || !strings.Contains(said, "pipeline.(*Pipeline).carry") {
		t.Errorf("the log does not say where the worker is stuck:\n%s", said)
	}
	close(w.db.block)
	p.leave()
	w.until("the worker is free", func() bool { return slices.Contains(w.noted(), "spool ended") })
}

func (w *world) noted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

func TestStop_Bounded(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Consumer, Options{}, "DOCKET_SHUTDOWN_TIMEOUT=100ms")
	w.program.grace = 50 * time.Millisecond
	w.source.stuck = make(chan struct{})
	w.run()
	w.until("the source runs", func() bool { return slices.Contains(w.noted(), "source began") })
	w.stop()
	w.until("/readyz says stopping", func() bool {
		r := w.program.Readiness()
		return len(r.Reasons) == 1 && r.Reasons[0].Reason == "stopping"
	})
	if err := w.end(); !errors.Is(err, ErrOverdue) {
		t.Errorf("Run = %v, want ErrOverdue", err)
	}
	close(w.source.stuck)
	w.until("all has ended", func() bool { return slices.Contains(w.noted(), "spool ended") })
}

func TestStart_DatabaseAwayIsAHold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		program config.Program
		env     string
		code    string
		holds   bool
	}{
		"away":                       {config.Consumer, "DOCKET_PARK_BATCHES=3", errclass.CodeNetwork, true},
		"away, for the replayer":     {config.Replayer, "DOCKET_PARK_BATCHES=0", errclass.CodeNetwork, true},
		"away, and never waited for": {config.Consumer, "DOCKET_PARK_BATCHES=0", errclass.CodeNetwork, false},
		"no file descriptor":         {config.Consumer, "DOCKET_PARK_BATCHES=3", errclass.CodeDescriptors, true},
		"there, with another fault":  {config.Consumer, "DOCKET_PARK_BATCHES=3", errclass.CodeEncode, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, c.program, Options{}, c.env)
			var away atomic.Bool
			away.Store(true)
			w.db.probe = func() error {
				if away.Load() {
					return errclass.As(errors.New("dial"), c.code)
				}
				return nil
			}
			w.run()
			w.until("the source runs", func() bool { return slices.Contains(w.noted(), "source began") })
			if !c.holds {
				if status, r := w.ready(); status != 200 {
					t.Errorf("%d %+v", status, r)
				}
				return
			}
			w.until("it holds", func() bool { status, _ := w.ready(); return status == 503 })
			if _, r := w.ready(); len(r.Reasons) != 1 || r.Reasons[0].Reason != "database_away" || r.Reasons[0].Code != c.code || r.Reasons[0].Hint == "" {
				t.Errorf("reasons %+v", r.Reasons)
			}
			away.Store(false)
			w.until("the hold is over", func() bool { status, _ := w.ready(); return status == 200 })
		})
	}
}

func TestMigration_NotYetIsAHold(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Consumer, Options{}, "DOCKET_AUTO_MIGRATE=true")
	var away atomic.Bool
	away.Store(true)
	var tries atomic.Int32
	w.db.migrate = func() (int, error) {
		tries.Add(1)
		if away.Load() {
			return 0, errclass.As(errors.New("dial"), errclass.CodeNetwork)
		}
		return 2, nil
	}
	w.run()
	w.until("it was tried several times", func() bool { return tries.Load() > 3 })
	status, r := w.ready()
	if status != 503 || len(r.Reasons) != 1 || r.Reasons[0].Reason != "migration" || r.Reasons[0].Code != "network" || r.Reasons[0].Hint == "" {
		t.Errorf("%d %+v", status, r)
	}
	if !slices.Contains(w.noted(), "source began") {
		t.Error("reading waits for a migration that has failed")
	}
	if n := strings.Count(w.log.String(), `"hold began"`); n != 1 {
		t.Errorf("%d lines about one hold", n)
	}
	away.Store(false)
	w.until("the hold is over", func() bool { status, _ := w.ready(); return status == 200 })
}

func TestMigration_ReadingWaitsForFirstAttempt(t *testing.T) {
	t.Parallel()
	w := setup(t, config.Consumer, Options{}, "DOCKET_AUTO_MIGRATE=true")
	running, goOn := make(chan struct{}), make(chan struct{})
	w.db.migrate = func() (int, error) { close(running); <-goOn; return 1, nil }
	w.run()
	<-running
	if slices.Contains(w.noted(), "source began") {
		t.Error("reading began before there was a table")
	}
	close(goOn)
	w.until("the source runs", func() bool { return slices.Contains(w.noted(), "source began") })
}

func TestNew_OpensWithoutDialling(t *testing.T) {
	t.Parallel()
	const planted = "hunter2marker"
	var log output.Buffer
	reg := prometheus.NewRegistry()
	s := settings(t, config.Consumer, "DOCKET_DATABASE_URL=postgres://u:"+planted+"@127.0.0.1:1/x", "DOCKET_KAFKA_SASL_MECHANISM=SCRAM-SHA-512",
		"DOCKET_KAFKA_SASL_USERNAME=u", "DOCKET_KAFKA_SASL_PASSWORD="+planted, "DOCKET_AUTO_MIGRATE=true")
	dialled := make(chan struct{}, 1000)
	p, err := New(config.Consumer, s, zerolog.New(&log), reg, Options{DialKafka: func(context.Context, string, string) (net.Conn, error) {
		dialled <- struct{}{}
		return nil, errors.New("nobody is there, and the password is not " + planted)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(dialled) > 0 {
		t.Error("New dials")
	}
	w := &world{t: t, program: p, log: &log, ended: make(chan error, 1)}
	w.run()
	<-dialled
	w.until("both are told to be away", func() bool {
		_, r := w.ready()
		reasons := []string{}
		for _, r := range r.Reasons {
			reasons = append(reasons, r.Reason)
		}
		return slices.Contains(reasons, "kafka_unreachable") && slices.Contains(reasons, "migration")
	})
	lint(t, reg)
	var metrics, ready string
	w.get("/metrics", &metrics)
	w.get("/readyz", &ready)
	for _, name := range contractMetrics {
		if !strings.Contains(metrics, "\n# TYPE "+name+" ") {
			t.Errorf("%s is not there from the start", name)
		}
	}
	w.stop()
	if err := w.end(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String()+metrics+ready, planted) {
		t.Errorf("a secret shows:\n%s", log.String())
	}
}

// contractMetrics are there from the start. docket_store_failures_total and docket_consumer_lag come with their labels.
var contractMetrics = []string{
	"docket_records_total", "docket_decode_failures_total", "docket_store_retries_total", "docket_batch_duration_seconds", "docket_batch_records",
	"docket_bisect_probes_total", "docket_publish_failures_total", "docket_hold", "docket_unaccounted_records", "docket_end_to_end_seconds",
	"docket_spool_files", "docket_spool_bytes", "docket_spool_max_bytes", "docket_spool_oversize_records", "docket_spool_oldest_seconds", "docket_spool_recovered_records_total",
	"docket_spool_dropped_records_total", "docket_spool_corrupt_files_total", "docket_parking_waiting", "docket_store_duration_seconds", "docket_assigned_partitions",
	"docket_last_commit_timestamp_seconds", "docket_build_info", "go_goroutines", "process_open_fds",
}

func lint(t *testing.T, reg *prometheus.Registry) {
	t.Helper()
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	// Two gauges of the Kafka client's own end in _total.
	problems = slices.DeleteFunc(problems, func(p promlint.Problem) bool {
		return strings.HasPrefix(p.Metric, "docket_kafka_buffered_") && strings.HasSuffix(p.Metric, "_total")
	})
	if len(problems) > 0 {
		t.Errorf("promlint: %v", problems)
	}
}

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	dir := t.TempDir() + "/spool"
	other, err := fallback.Open(fallback.Config{Dir: dir}, fallback.OS(dir), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	for name, c := range map[string]struct{ env, want string }{
		"the address is taken":       {"DOCKET_HTTP_ADDR=" + taken.Addr().String(), "DOCKET_HTTP_ADDR"},
		"the spool is another's":     {"DOCKET_SPOOL_DIR=" + dir, "DOCKET_SPOOL_DIR"},
		"the URL is no good":         {"DOCKET_DATABASE_URL=postgres://u:hunter2marker@db/x?sslmode=sometimes", "database URL"},
		"the spool cannot be made":   {"DOCKET_SPOOL_DIR=/dev/null/spool", "DOCKET_SPOOL_DIR"},
		"the pool's size is no good": {"DOCKET_DATABASE_URL=postgres://u:hunter2marker@db/x?pool_max_conns=none", "database URL"},
	} {
		p, err := New(config.Consumer, settings(t, config.Consumer, c.env), zerolog.Nop(), prometheus.NewRegistry(), Options{})
		if err == nil {
			p.Close()
			t.Errorf("%s: New took it", name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2marker") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSpool_NoneIsNone(t *testing.T) {
	t.Parallel()
	p, err := New(config.Consumer, settings(t, config.Consumer, "DOCKET_SPOOL_DIR="), zerolog.Nop(), prometheus.NewRegistry(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.parts.Spool != nil {
		t.Error("there is a spool")
	}
}
