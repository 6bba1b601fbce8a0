package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/goleak"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var topics = []string{"dlq", "parking", "parking-dlq"}

type bundle struct {
	*Observer
	t   *testing.T
	reg *prometheus.Registry
	out *bytes.Buffer
	now time.Time
}

func setup(t *testing.T, cfg Config) *bundle {
	t.Helper()
	b := &bundle{t: t, reg: prometheus.NewRegistry(), out: &bytes.Buffer{}, now: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}
	if cfg.Topics == nil {
		cfg.Topics = topics
	}
	b.Observer = New(cfg, b.reg, calm(zerolog.New(b.out).Level(zerolog.InfoLevel), func() time.Time { return b.now }))
	b.Observer.now = func() time.Time { return b.now }
	return b
}

// value is the value of a series, written like docket_hold{reason="migration"}.
func (b *bundle) value(series string) float64 {
	b.t.Helper()
	name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	families, err := b.reg.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var have []string
			for _, l := range m.GetLabel() {
				have = append(have, l.GetName()+`="`+l.GetValue()+`"`)
			}
			if strings.Join(have, ",") == labels {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	b.t.Fatalf("there is no %s", series)
	return 0
}

func (b *bundle) want(values map[string]float64) {
	b.t.Helper()
	for series, want := range values {
		if got := b.value(series); got != want {
			b.t.Errorf("%s = %v, want %v", series, got, want)
		}
	}
}

// lines are the log lines so far, each a valid JSON object.
func (b *bundle) lines() (all []map[string]any) {
	b.t.Helper()
	for line := range strings.Lines(b.out.String()) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			b.t.Fatalf("%q: %v", line, err)
		}
		all = append(all, l)
	}
	return all
}

func decisions(n int, h home.Home) iter.Seq[pipeline.Decision] {
	all := make([]pipeline.Decision, n)
	for i := range all {
		all[i].Home = h
	}
	return slices.Values(all)
}

func TestMetrics_ZeroFromTheStart(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{Reasons: []string{"migration"}})
	b.want(map[string]float64{
		`docket_records_total{home="row"}`: 0, `docket_records_total{home="duplicate"}`: 0, `docket_records_total{home="parked"}`: 0,
		`docket_records_total{home="dead_letter"}`: 0, `docket_records_total{home="exhausted"}`: 0, `docket_records_total{home="spooled"}`: 0,
		`docket_decode_failures_total{code="empty"}`: 0, `docket_decode_failures_total{code="syntax"}`: 0, `docket_decode_failures_total{code="duplicate_key"}`: 0,
		`docket_decode_failures_total{code="missing_field"}`: 0, `docket_decode_failures_total{code="wrong_type"}`: 0,
		`docket_decode_failures_total{code="out_of_range"}`: 0, `docket_decode_failures_total{code="too_large"}`: 0,
		`docket_store_retries_total`: 0, `docket_batch_duration_seconds`: 0, `docket_batch_records`: 0, `docket_bisect_probes_total`: 0,
		`docket_publish_failures_total{topic="dlq"}`: 0, `docket_publish_failures_total{topic="parking"}`: 0, `docket_publish_failures_total{topic="parking-dlq"}`: 0,
		`docket_hold{reason="database_away"}`: 0, `docket_hold{reason="database_refuses"}`: 0, `docket_hold{reason="read_only"}`: 0,
		`docket_hold{reason="no_home"}`: 0, `docket_hold{reason="migration"}`: 0,
		`docket_unaccounted_records`: 0, `docket_end_to_end_seconds`: 0,
		`docket_spool_files`: 0, `docket_spool_bytes`: 0, `docket_spool_max_bytes`: 0, `docket_spool_oversize_records`: 0, `docket_spool_oldest_seconds`: 0,
		`docket_spool_recovered_records_total`: 0, `docket_spool_dropped_records_total`: 0, `docket_spool_corrupt_files_total`: 0, `docket_parking_waiting`: 0,
		`docket_store_duration_seconds{result="stored"}`: 0, `docket_store_duration_seconds{result="failed"}`: 0,
		`docket_assigned_partitions`: 0, `docket_last_commit_timestamp_seconds`: 0,
	})
}

func TestMetrics_AreLintClean(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{Lag: func() []Lag { return []Lag{{Topic: "decision-logs", Partition: 3, Records: 17}} }})
	b.StoreFailed(errclass.Classification{Code: "08006", Class: errclass.Transient})
	problems, err := testutil.GatherAndLint(b.reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
	b.want(map[string]float64{`docket_consumer_lag{partition="3",topic="decision-logs"}`: 17})
}

func TestBatch_IsToldInFull(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	b.Took(8)
	b.Homed(pipeline.HomedBatch{Topic: "decision-logs", Partition: 2, Records: 7, First: 30, Last: 36, Trace: "7e", Took: 40 * time.Millisecond, Decisions: slices.Values([]pipeline.Decision{
		{Home: home.Row, Time: b.now.Add(-3 * time.Second)},
		{Home: home.Row, Time: b.now.Add(time.Hour)}, // a clock that runs ahead
		{Home: home.Duplicate, Time: b.now.Add(-time.Hour)},
		{Home: home.DeadLetter, Cause: envelope.Cause{Kind: envelope.Decode, Code: "syntax", Message: "secret message"}, ID: "id1"},
		{Home: home.DeadLetter, Cause: envelope.Cause{Kind: envelope.Data, Code: "22P02"}, ID: "id2"},
		{Home: home.Parked, Cause: envelope.Cause{Kind: envelope.Transient, Code: "08006"}, ID: "id3"},
		{Home: home.Spooled, Cause: envelope.Cause{Kind: envelope.Decode, Code: "empty"}, ID: "id4"},
		{Home: home.Exhausted, Cause: envelope.Cause{Kind: envelope.Exhausted, Code: "40001"}, ID: "id5"},
	})})
	b.want(map[string]float64{
		`docket_records_total{home="row"}`: 2, `docket_records_total{home="duplicate"}`: 1, `docket_records_total{home="parked"}`: 1,
		`docket_records_total{home="dead_letter"}`: 2, `docket_records_total{home="exhausted"}`: 1, `docket_records_total{home="spooled"}`: 1,
		`docket_decode_failures_total{code="syntax"}`: 1, `docket_decode_failures_total{code="empty"}`: 1,
		`docket_batch_duration_seconds`: 1, `docket_batch_records`: 1, `docket_end_to_end_seconds`: 2, `docket_unaccounted_records`: 0,
	})
	var got []string
	for _, l := range b.lines() {
		got = append(got, l["level"].(string)+" "+l["message"].(string))
	}
	want := []string{"warn records dead-lettered", "warn records parked", "error records given up after the last attempt", "warn records spooled"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	dead := map[string]any{
		"level": "warn", "message": "records dead-lettered", "topic": "decision-logs", "partition": 2.0, "records": 2.0, "first_offset": 30.0, "last_offset": 36.0, "trace_id": "7e",
		"codes": map[string]any{"syntax": 1.0, "22P02": 1.0}, "dead_letter_ids": []any{"id1", "id2"},
	}
	if diff := cmp.Diff(dead, b.lines()[0]); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
}

func TestLines_NoneInNormalWork(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	for range 100 {
		b.Took(10)
		b.Homed(pipeline.HomedBatch{Topic: "t", Records: 10, Decisions: decisions(10, home.Row)})
	}
	if len(b.lines()) > 0 {
		t.Errorf("normal work writes %s", b.out)
	}
}

func TestLines_FloodOfBadRecords(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	for range 1000 {
		b.Took(5)
		b.Homed(pipeline.HomedBatch{Topic: "t", Decisions: decisions(5, home.DeadLetter)})
		b.StoreFailed(errclass.Classification{Code: "22P02", Class: errclass.Data})
	}
	b.want(map[string]float64{`docket_records_total{home="dead_letter"}`: 5000, `docket_store_failures_total{class="data",code="22P02"}`: 1000})
	if n := len(b.lines()); n != burst {
		t.Errorf("%d lines", n)
	}
	b.now = b.now.Add(period)
	b.Homed(pipeline.HomedBatch{Topic: "t", Decisions: decisions(5, home.DeadLetter)})
	if lines := b.lines(); lines[len(lines)-1][KeyLeftOut] != float64(1000-burst) {
		t.Errorf("the next line says %v", lines[len(lines)-1])
	}
}

func TestUnaccounted_ShowsALie(t *testing.T) {
	t.Parallel()
	homed := func(n int) func(*Observer) {
		return func(o *Observer) { o.Homed(pipeline.HomedBatch{Decisions: decisions(n, home.Row)}) }
	}
	took := func(n int) func(*Observer) { return func(o *Observer) { o.Took(n) } }
	gave := func(n int) func(*Observer) { return func(o *Observer) { o.Gave(n) } }
	for name, c := range map[string]struct {
		steps []func(*Observer)
		want  float64
	}{
		"nothing":                      {nil, 0},
		"in flight":                    {[]func(*Observer){took(5)}, 0},
		"home":                         {[]func(*Observer){took(5), homed(5)}, 0},
		"given back":                   {[]func(*Observer){took(5), gave(5)}, 0},
		"several in flight, any order": {[]func(*Observer){took(5), took(3), took(9), homed(3), gave(9), took(1), homed(5)}, 0},
		"one vanished":                 {[]func(*Observer){took(5), homed(4)}, 1},
		"one vanished beside another":  {[]func(*Observer){took(4), took(5), homed(4), homed(4)}, 1},
		"one told twice":               {[]func(*Observer){took(5), homed(6)}, -1},
		"home that was never taken":    {[]func(*Observer){homed(2)}, -2},
		"given back and home":          {[]func(*Observer){took(5), gave(5), homed(5)}, -5},
		"given back in part":           {[]func(*Observer){took(5), gave(3)}, 2},
		"no home in a finished report": {[]func(*Observer){took(2), func(o *Observer) {
			o.Homed(pipeline.HomedBatch{Decisions: slices.Values([]pipeline.Decision{{Home: home.Row}, {}})})
		}}, 1},
		"lie stays after honest batches": {[]func(*Observer){took(5), homed(4), took(7), homed(7), took(2)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Config{})
			for _, step := range c.steps {
				step(b.Observer)
			}
			b.want(map[string]float64{`docket_unaccounted_records`: c.want})
		})
	}
}

func TestHolding_LastsUntilTheLastPartition(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	h := pipeline.Hold{Reason: pipeline.ReasonReadOnly, Code: "25006", Hint: "find the primary"}
	first := b.Held("t", 1, h)
	b.now = b.now.Add(time.Minute)
	second := b.Held("t", 0, h)
	b.want(map[string]float64{`docket_hold{reason="read_only"}`: 1, `docket_hold{reason="no_home"}`: 0})
	if got := b.Holds(); len(got) != 2 || got[0].Partition != 0 || got[1].Since.After(got[0].Since) || got[0].Hint != "find the primary" {
		t.Errorf("holds %+v", got)
	}
	first()
	first() // a second release is nothing
	b.want(map[string]float64{`docket_hold{reason="read_only"}`: 1})
	b.now = b.now.Add(time.Minute)
	second()
	b.want(map[string]float64{`docket_hold{reason="read_only"}`: 0})
	if len(b.Holds()) != 0 {
		t.Errorf("still holds %+v", b.Holds())
	}
	lines := b.lines()
	if len(lines) != 2 {
		t.Fatalf("one outage makes %d lines:\n%s", len(lines), b.out)
	}
	begin := map[string]any{"level": "error", "message": "hold began", "reason": "read_only", "code": "25006", "hint": "find the primary", "topic": "t", "partition": 1.0}
	if diff := cmp.Diff(begin, lines[0]); diff != "" {
		t.Errorf("first line (-want +got):\n%s", diff)
	}
	if lines[1]["message"] != "hold ended" || lines[1]["took"] != float64(2*time.Minute/time.Millisecond) {
		t.Errorf("last line %v", lines[1])
	}
}

func TestLines_SpoolAndParking(t *testing.T) {
	t.Parallel()
	var b *bundle
	b = setup(t, Config{
		Spool: func() Spool {
			return Spool{Files: 3, Bytes: 400, Oversize: 2, Oldest: b.now.Add(-90 * time.Second), Recovered: 7, Dropped: 1, Corrupt: 4, MaxBytes: 1000}
		},
		Waiting: func() int { return 12 },
	})
	b.want(map[string]float64{
		`docket_spool_files`: 3, `docket_spool_bytes`: 400, `docket_spool_max_bytes`: 1000, `docket_spool_oversize_records`: 2, `docket_spool_oldest_seconds`: 90,
		`docket_spool_recovered_records_total`: 7, `docket_spool_dropped_records_total`: 1, `docket_spool_corrupt_files_total`: 4, `docket_parking_waiting`: 12,
	})
}

func TestMetrics_NoLabelFromOutside(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	for _, code := range []string{"DK001", "ZZ999", "not a code", "08006"} {
		b.StoreFailed(errclass.Classification{Code: code, Class: errclass.Data})
	}
	b.PublishFailed("topic-nobody-named", errors.New("x"))
	b.Took(1)
	b.Homed(pipeline.HomedBatch{Decisions: slices.Values([]pipeline.Decision{{Home: home.DeadLetter, Cause: envelope.Cause{Kind: envelope.Decode, Code: "made up"}}})})
	b.want(map[string]float64{
		`docket_store_failures_total{class="data",code="other"}`: 3, `docket_store_failures_total{class="data",code="08006"}`: 1,
		`docket_publish_failures_total{topic="other"}`: 1, `docket_decode_failures_total{code="other"}`: 1,
	})
}

func TestPublishFailures_CountedNotQuoted(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	const planted = "planted-marker"
	b.PublishFailed("dlq", kerr.NotEnoughReplicas)
	b.PublishFailed("dlq", context.DeadlineExceeded)
	b.PublishFailed("dlq", errors.New(planted))
	b.want(map[string]float64{`docket_publish_failures_total{topic="dlq"}`: 3})
	if strings.Contains(b.out.String(), planted) {
		t.Error("the text of an error shows")
	}
}

func TestObserver_Concurrent(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	b.Observer.log, b.Holding.log = zerolog.Nop(), zerolog.Nop()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				b.Took(i + 1)
				release := b.Held("t", int32(i), pipeline.Hold{Reason: pipeline.ReasonDatabaseAway})
				b.Retried()
				b.Bisected(2)
				release()
				b.Homed(pipeline.HomedBatch{Decisions: decisions(i+1, home.Row)})
				if u := b.books.unaccounted(); u != 0 {
					t.Errorf("%d unaccounted while all is well", u)
				}
			}
		})
	}
	wg.Wait()
	b.want(map[string]float64{
		`docket_records_total{home="row"}`: 7200, `docket_store_retries_total`: 1600, `docket_bisect_probes_total`: 3200,
		`docket_hold{reason="database_away"}`: 0, `docket_unaccounted_records`: 0,
	})
}

func TestLogger_OneLineAtATime(t *testing.T) {
	t.Parallel()
	for _, console := range []bool{false, true} {
		var out bytes.Buffer // is not safe for several writers, so the race detector sees two writes at once
		log, err := Logger(&out, "info", console)
		if err != nil {
			t.Fatal(err)
		}
		var writers sync.WaitGroup
		for range 8 {
			writers.Go(func() {
				for range 100 {
					log.Info().Msg("this")
				}
			})
		}
		writers.Wait()
		if n := strings.Count(out.String(), "this\"}\n") + strings.Count(out.String(), "this\n"); n != 800 {
			t.Errorf("console %v: %d whole lines of 800", console, n)
		}
	}
}

func TestLogger_BothFormats(t *testing.T) {
	t.Parallel()
	for _, console := range []bool{false, true} {
		var out bytes.Buffer
		log, err := Logger(&out, "warn", console)
		if err != nil {
			t.Fatal(err)
		}
		log.Info().Msg("not this")
		log.Warn().Str(KeyReason, "a\nb\x1b[31m").Msg("this")
		if strings.Contains(out.String(), "not this") || !strings.Contains(out.String(), "this") || strings.Count(out.String(), "\n") != 1 || strings.Contains(out.String(), "\x1b") {
			t.Errorf("console %v writes %q", console, out.String())
		}
		if json.Valid(out.Bytes()) == console {
			t.Errorf("console %v writes %q", console, out.String())
		}
	}
	if _, err := Logger(&bytes.Buffer{}, "loud", false); err == nil {
		t.Error("an unknown level was taken")
	}
}
