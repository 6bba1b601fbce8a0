package worker

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/history/state"
)

// StateMetrics are the metrics of the states. They exist only where a desk keeps states.
type StateMetrics struct {
	applied, obsolete, flips prometheus.Counter
	skipped                  *prometheus.CounterVec
	states                   prometheus.Gauge
	lag                      stateLag
}

// NewStateMetrics makes the metrics and registers them.
func NewStateMetrics(reg prometheus.Registerer) *StateMetrics {
	m := &StateMetrics{
		applied:  prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_state_applied_total", Help: "Stored decisions that became the newest of their subject and path."}),
		obsolete: prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_state_obsolete_total", Help: "Stored decisions that were older than the state of their subject and path."}),
		flips:    prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_state_flips_total", Help: "Changes of the verdict of a subject and path, late ones included."}),
		skipped:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_state_skipped_total", Help: "Stored decisions without a state, by reason: no_subject, no_path, too_long, ahead, full."}, []string{"reason"}),
		states:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "docket_state_rows", Help: "States in decision_states; 0 at a desk that does not keep them just now."}),
	}
	reg.MustRegister(m.applied, m.obsolete, m.flips, m.skipped, m.states, &m.lag)
	for _, reason := range state.Skips() {
		m.skipped.WithLabelValues(reason)
	}
	return m
}

// round counts a round. A desk that found another at work counts nothing.
func (m *StateMetrics) round(r state.Round, now time.Time) {
	if r.Busy {
		return
	}
	m.applied.Add(float64(r.Counts.Applied()))
	m.obsolete.Add(float64(r.Counts.Obsolete))
	m.flips.Add(float64(r.Flips))
	for reason, n := range r.Skipped {
		m.skipped.WithLabelValues(reason).Add(float64(n))
	}
	m.states.Set(float64(r.States))
	if !r.Unbegun { // else the lag grows from when this desk took the duty
		m.lag.set(now.Add(-r.Lag))
	}
}

// idle says that another desk has the duty.
func (m *StateMetrics) idle() {
	m.states.Set(0)
	m.lag.set(time.Time{})
}

// stateLag shows how far the states are behind. It grows while rounds fail.
type stateLag struct {
	mu   sync.Mutex
	mark time.Time // by this desk's clock; zero: another desk keeps the states
}

func (l *stateLag) set(mark time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark = mark
}

// begin notes that the desk has the duty. Until a round tells more, the states are not behind, so that the lag of one whose first
// round never ends grows, too.
func (l *stateLag) begin(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mark.IsZero() {
		l.mark = now
	}
}

var stateLagDesc = prometheus.NewDesc("docket_state_lag_seconds", "How long ago the newest decisions were stored that the states have for certain; 0 at a desk that does not keep them just now.", nil, nil)

// Describe implements prometheus.Collector.
func (l *stateLag) Describe(ch chan<- *prometheus.Desc) { ch <- stateLagDesc }

// Collect implements prometheus.Collector.
func (l *stateLag) Collect(ch chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lag := 0.0
	if !l.mark.IsZero() {
		lag = max(0, time.Since(l.mark).Seconds())
	}
	ch <- prometheus.MustNewConstMetric(stateLagDesc, prometheus.GaugeValue, lag)
}
