package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// LimitState is the state of the limits on rows.
type LimitState struct {
	All, Low                  float64 // rows a second that are in force: of all processes with Redis, else of this one
	WaitingLow, WaitingUrgent int     // partitions that wait
	Breaker                   string  // its state; empty without Redis
}

// Limits counts the rows that the limits grant. It is safe for concurrent use.
type Limits struct {
	rows  *prometheus.CounterVec
	waits *prometheus.HistogramVec
	alone prometheus.Counter
	calls *prometheus.HistogramVec
}

// Classes of writes under a limit.
const (
	classLow    = "low"
	classUrgent = "urgent"
)

// NewLimits registers the metrics of limits. state is called at each collection. breaker lists the states of the breaker
// before Redis; empty: there is no Redis.
func NewLimits(state func() LimitState, breaker []string, reg prometheus.Registerer) *Limits {
	l := &Limits{
		rows: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_limit_rows_total", Help: "Rows that the limit granted, by class of the lane."}, []string{"class"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "docket_limit_wait_seconds", Help: "Wait of one write for the rows that the limit grants; 0 if they are there.",
			Buckets: []float64{0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"class"}),
		alone: prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_limit_local_rows_total", Help: "Rows of the urgent lane that were granted without Redis, because it was away."}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "docket_limit_call_seconds", Help: "One call to Redis for rows, by its result: ok or failed.",
			Buckets: []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5},
		}, []string{"result"}),
	}
	for _, class := range []string{classLow, classUrgent} {
		l.rows.WithLabelValues(class)
		l.waits.WithLabelValues(class)
	}
	reg.MustRegister(l.rows, l.waits, limitGauges{state, breaker})
	if len(breaker) > 0 {
		for _, result := range []string{resultOK, resultFailed} {
			l.calls.WithLabelValues(result)
		}
		reg.MustRegister(l.alone, l.calls)
	}
	return l
}

const resultOK = "ok"

// Granted counts rows that were granted after a wait. alone says that Redis was away.
func (l *Limits) Granted(low bool, rows int, waited time.Duration, alone bool) {
	class := classUrgent
	if low {
		class = classLow
	}
	l.rows.WithLabelValues(class).Add(float64(rows))
	l.waits.WithLabelValues(class).Observe(waited.Seconds())
	if alone {
		l.alone.Add(float64(rows))
	}
}

// Called counts a call to Redis.
func (l *Limits) Called(took time.Duration, ok bool) {
	result := resultFailed
	if ok {
		result = resultOK
	}
	l.calls.WithLabelValues(result).Observe(took.Seconds())
}

// limitGauges collects the state of the limits.
type limitGauges struct {
	state   func() LimitState
	breaker []string
}

var (
	limitDesc        = prometheus.NewDesc("docket_limit_rows", "Rows a second that the limits in force allow: of all processes with Redis, else of this one.", []string{"limit"}, nil)
	limitWaitingDesc = prometheus.NewDesc("docket_limit_waiting", "Partitions that wait for rows of the limit, by class of the lane.", []string{"class"}, nil)
	breakerDesc      = prometheus.NewDesc("docket_limit_breaker", "1 for the state of the breaker before Redis.", []string{"state"}, nil)
)

func (g limitGauges) Describe(ch chan<- *prometheus.Desc) {
	ch <- limitDesc
	ch <- limitWaitingDesc
	if len(g.breaker) > 0 {
		ch <- breakerDesc
	}
}

func (g limitGauges) Collect(ch chan<- prometheus.Metric) {
	s := g.state()
	gauge := func(d *prometheus.Desc, v float64, label string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, label)
	}
	gauge(limitDesc, s.All, "all")
	gauge(limitDesc, s.Low, "low")
	gauge(limitWaitingDesc, float64(s.WaitingLow), classLow)
	gauge(limitWaitingDesc, float64(s.WaitingUrgent), classUrgent)
	for _, state := range g.breaker {
		v := 0.0
		if state == s.Breaker {
			v = 1
		}
		gauge(breakerDesc, v, state)
	}
}
