package telemetry

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
)

// Standing is a hold of a partition, or of the whole program if Topic is empty.
type Standing struct {
	pipeline.Hold
	Topic     string
	Partition int32
	Since     time.Time
}

// Holding knows the partitions that hold, and why: a gauge, and a line for each outage. It is safe for concurrent use.
type Holding struct {
	log    zerolog.Logger
	now    func() time.Time
	metric *prometheus.GaugeVec

	mu      sync.Mutex
	current map[*Standing]struct{}
	count   map[string]int        // by reason
	since   map[string]time.Time  // the first partition holds for that reason
	events  map[pipeline.Hold]int // those that stand still for it
}

func newHolding(log zerolog.Logger, now func() time.Time, metric *prometheus.GaugeVec) *Holding {
	return &Holding{log: log, now: now, metric: metric, current: map[*Standing]struct{}{}, count: map[string]int{}, since: map[string]time.Time{}, events: map[pipeline.Hold]int{}}
}

// NewHolding makes one of its own, for a program that has no [Observer], and registers its gauge.
func NewHolding(reasons []string, reg prometheus.Registerer, log zerolog.Logger) *Holding {
	hold := newHold(reasons)
	reg.MustRegister(hold)
	return newHolding(log, time.Now, hold)
}

// newHold is the gauge of holds, with a series for each of these reasons.
func newHold(reasons []string) *prometheus.GaugeVec {
	hold := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "docket_hold", Help: "1 while a partition or the program stands still for that reason.",
	}, []string{"reason"})
	for _, reason := range reasons {
		hold.WithLabelValues(reason)
	}
	return hold
}

// Held notes that a partition holds until release is called. The first partition that holds for a reason writes a line,
// and so does the last that continues: an outage is one event, however many partitions there are. Another repair is
// another event, also while partitions wait for the one before.
func (h *Holding) Held(topic string, partition int32, why pipeline.Hold) (release func()) {
	s := &Standing{Hold: why, Topic: topic, Partition: partition, Since: h.now()}
	if h.begin(s) {
		e := apart(h.log.WithLevel(severity(why.Reason)), why.Reason+" "+why.Code+" "+why.Event().Hint).Str(KeyReason, why.Reason).Str(KeyCode, why.Code).Str(KeyHint, why.Hint)
		if topic != "" {
			e = e.Str(KeyTopic, topic).Int32(KeyPartition, partition)
		}
		e.Msg("hold began")
	}
	return sync.OnceFunc(func() {
		if since, last := h.end(s); last {
			apart(h.log.Warn(), why.Reason).Str(KeyReason, why.Reason).Dur(KeyTook, h.now().Sub(since)).Msg("hold ended")
		}
	})
}

// Marked is Held without a line, for what somebody else writes lines about.
func (h *Holding) Marked(topic string, partition int32, why pipeline.Hold) (release func()) {
	s := &Standing{Hold: why, Topic: topic, Partition: partition, Since: h.now()}
	h.begin(s)
	return sync.OnceFunc(func() { h.end(s) })
}

// severity is error where nothing gets better before somebody does something.
func severity(reason string) zerolog.Level {
	switch reason {
	case pipeline.ReasonDatabaseRefuses, pipeline.ReasonReadOnly, pipeline.ReasonNoHome:
		return zerolog.ErrorLevel
	}
	return zerolog.WarnLevel
}

func (h *Holding) begin(s *Standing) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current[s] = struct{}{}
	h.count[s.Reason]++
	h.metric.WithLabelValues(s.Reason).Set(1)
	if h.count[s.Reason] == 1 {
		h.since[s.Reason] = s.Since
	}
	h.events[s.Event()]++
	return h.events[s.Event()] == 1
}

func (h *Holding) end(s *Standing) (since time.Time, last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.current, s)
	h.count[s.Reason]--
	if h.events[s.Event()]--; h.events[s.Event()] == 0 {
		delete(h.events, s.Event())
	}
	if last = h.count[s.Reason] == 0; last {
		h.metric.WithLabelValues(s.Reason).Set(0)
	}
	return h.since[s.Reason], last
}

// Holds are the partitions that hold, in order.
func (h *Holding) Holds() []Standing {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Standing, 0, len(h.current))
	for s := range h.current {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return all
}
