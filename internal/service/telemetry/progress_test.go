package telemetry

import (
	"context"
	"errors"
	"maps"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"docket/internal/consumer/pipeline"
	"docket/internal/service/buildinfo"
)

func TestProgress_IsTold(t *testing.T) {
	t.Parallel()
	var b *bundle
	looks := 0
	b = setup(t, Config{
		Lag: func() []Lag {
			looks++
			return []Lag{
				{Topic: "decision-logs", Partition: 0, Records: 9, Oldest: b.now.Add(-90 * time.Second)},
				{Topic: "decision-logs", Partition: 1},
				{Topic: "decision-logs", Partition: 2, Records: 1, Oldest: b.now.Add(time.Hour)}, // a clock that runs ahead
			}
		},
		Assigned:   func() int { return 3 },
		LastCommit: func() time.Time { return time.UnixMilli(1700000000250) },
		Retention: func() map[string]time.Duration {
			return map[string]time.Duration{"dlq": time.Hour, "parking": -1, "gone": 0}
		},
	})
	b.want(map[string]float64{
		`docket_oldest_uncommitted_seconds{partition="0",topic="decision-logs"}`: 90,
		`docket_oldest_uncommitted_seconds{partition="1",topic="decision-logs"}`: 0,
		`docket_oldest_uncommitted_seconds{partition="2",topic="decision-logs"}`: 0,
	})
	b.want(map[string]float64{
		`docket_assigned_partitions`: 3, `docket_last_commit_timestamp_seconds`: 1700000000.25,
		`docket_topic_retention_seconds{topic="dlq"}`: 3600, `docket_topic_retention_seconds{topic="parking"}`: math.Inf(1),
		`docket_topic_retention_seconds{topic="gone"}`: 0,
	})
	if looks != 8 {
		t.Errorf("%d looks at the partitions for 8 scrapes", looks)
	}
	if problems, err := testutil.GatherAndLint(b.reg); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

func TestBuild_IsToldOnce(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	RegisterBuild("consumer", reg)
	families, err := reg.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 1 {
		t.Fatalf("%v, %v", families, err)
	}
	one := families[0].GetMetric()[0]
	labels := map[string]string{}
	for _, l := range one.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	b := buildinfo.Current()
	want := map[string]string{"program": "consumer", "version": b.Version, "revision": b.Revision, "goversion": runtime.Version()}
	if one.GetGauge().GetValue() != 1 || !maps.Equal(labels, want) {
		t.Errorf("%v, want the labels %v", one, want)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

// slow is a store that takes its time.
type slow struct {
	table
	b    *bundle
	took time.Duration
	err  error
}

func (s slow) Store(context.Context, []pipeline.Row, bool) ([]pipeline.Outcome, error) {
	s.b.now = s.b.now.Add(s.took)
	return []pipeline.Outcome{pipeline.Stored}, s.err
}

func TestStore_TimesAndPassesOn(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	failed := errors.New("no")
	if _, err := b.Timed(slow{b: b, took: 3 * time.Second, err: failed}).Store(t.Context(), nil, false); !errors.Is(err, failed) {
		t.Errorf("the error became %v", err)
	}
	for range 2 {
		got, err := b.Timed(slow{b: b, took: 20 * time.Millisecond}).Store(t.Context(), nil, false)
		if err != nil || len(got) != 1 || got[0] != pipeline.Stored {
			t.Errorf("the outcomes became %v, %v", got, err)
		}
	}
	b.want(map[string]float64{`docket_store_duration_seconds{result="stored"}`: 2, `docket_store_duration_seconds{result="failed"}`: 1})
	families, err := b.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "docket_store_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			want := map[string]float64{"stored": 0.04, "failed": 3}[m.GetLabel()[0].GetValue()]
			if got := m.GetHistogram().GetSampleSum(); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %v s in all, want %v", m.GetLabel()[0].GetValue(), got, want)
			}
		}
	}
}

//nolint:paralleltest // it measures what is the whole process's
func TestStore_AllocatesNothing(t *testing.T) {
	b := setup(t, Config{})
	s := b.Timed(nothing{})
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Store(t.Context(), nil, false) }); n > 0 {
		t.Errorf("%v allocations for a write", n)
	}
}

// nothing is a store that does nothing.
type nothing struct{ table }

func (nothing) Store(context.Context, []pipeline.Row, bool) ([]pipeline.Outcome, error) {
	return nil, nil
}

func TestMetrics_NoLabelNamedAfterPayload(t *testing.T) {
	t.Parallel()
	b := setup(t, Config{})
	families, err := b.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	known := " code class home reason result topic partition program version "
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if !strings.Contains(known, " "+l.GetName()+" ") {
					t.Errorf("%s has a label %s", f.GetName(), l.GetName())
				}
			}
		}
	}
}
