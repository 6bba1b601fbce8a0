package telemetry

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/pipeline"
)

// Standing is a partition, or the whole program where Topic is empty, that stands still.
type Standing struct {
	pipeline.Hold
	Topic     string
	Partition int32
	Since     time.Time
}

type holds struct {
	metric *prometheus.GaugeVec

	mu      sync.Mutex
	current map[*Standing]struct{}
	count   map[string]int       // by reason
	since   map[string]time.Time // the first partition stands still for that reason
}

// Held tells that a partition stands still until release is called. The first partition for a reason writes a line,
// and the last that goes on writes one: an outage is one event, however many partitions there are.
func (o *Observer) Held(topic string, partition int32, h pipeline.Hold) (release func()) {
	s := &Standing{Hold: h, Topic: topic, Partition: partition, Since: o.now()}
	if o.holds.begin(s) {
		e := o.log.WithLevel(severity(h.Reason)).Str(KeyReason, h.Reason).Str(KeyCode, h.Code).Str(KeyHint, h.Hint)
		if topic != "" {
			e = e.Str(KeyTopic, topic).Int32(KeyPartition, partition)
		}
		e.Msg("holding")
	}
	return sync.OnceFunc(func() {
		if since, last := o.holds.end(s); last {
			o.log.Warn().Str(KeyReason, h.Reason).Dur(KeyTook, o.now().Sub(since)).Msg("hold ended")
		}
	})
}

// Marked is Held without a line, for what somebody else writes lines about.
func (o *Observer) Marked(topic string, partition int32, h pipeline.Hold) (release func()) {
	s := &Standing{Hold: h, Topic: topic, Partition: partition, Since: o.now()}
	o.holds.begin(s)
	return sync.OnceFunc(func() { o.holds.end(s) })
}

// severity is error where nothing gets better before somebody does something.
func severity(reason string) zerolog.Level {
	switch reason {
	case pipeline.ReasonDatabaseRefuses, pipeline.ReasonReadOnly, pipeline.ReasonNoHome:
		return zerolog.ErrorLevel
	}
	return zerolog.WarnLevel
}

func (h *holds) begin(s *Standing) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == nil {
		h.current, h.count, h.since = map[*Standing]struct{}{}, map[string]int{}, map[string]time.Time{}
	}
	h.current[s] = struct{}{}
	h.count[s.Reason]++
	h.metric.WithLabelValues(s.Reason).Set(1)
	if first = h.count[s.Reason] == 1; first {
		h.since[s.Reason] = s.Since
	}
	return first
}

func (h *holds) end(s *Standing) (since time.Time, last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.current, s)
	h.count[s.Reason]--
	if last = h.count[s.Reason] == 0; last {
		h.metric.WithLabelValues(s.Reason).Set(0)
	}
	return h.since[s.Reason], last
}

// Holds are the partitions that stand still, in order.
func (o *Observer) Holds() []Standing {
	o.holds.mu.Lock()
	defer o.holds.mu.Unlock()
	all := make([]Standing, 0, len(o.holds.current))
	for s := range o.holds.current {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return all
}
