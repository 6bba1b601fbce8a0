package collector

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/collector/routing"
)

// Homes of decisions, as labels.
const (
	homeTopic      = "topic"
	homeDeadLetter = "dead_letter"
)

// metrics are all there from the start, at zero. No label comes from an upload.
type metrics struct {
	uploads   *prometheus.CounterVec
	decisions *prometheus.CounterVec
	refused   *prometheus.CounterVec
	denied    prometheus.Counter
	bytes     prometheus.Counter
	inflated  prometheus.Counter
	took      prometheus.Histogram
	routed    *prometheus.CounterVec // both nil if there is only the default lane
	shaped    *prometheus.CounterVec
}

func newMetrics(c *Collector, r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		uploads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_collector_uploads_total",
			Help: "Uploads by the status that they were answered with."}, []string{"code"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_collector_decisions_total",
			Help: "Decisions that Kafka acknowledged, by their home; those of an upload that comes again count again."}, []string{"home"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_collector_refused_total",
			Help: "Uploads that were not answered 2xx, by reason."}, []string{"reason"}),
		denied: prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_collector_not_allowed_total",
			Help: "Decisions that became dead letters because their client may not upload them."}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_collector_upload_bytes_total",
			Help: "Bytes of uploads as they came."}),
		inflated: prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_collector_inflated_bytes_total",
			Help: "Bytes of uploads after gunzip; those of plain ones as they came."}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "docket_collector_upload_duration_seconds",
			Help: "How long uploads took that had a place, from the place to the answer.", Buckets: prometheus.ExponentialBuckets(0.001, 3, 10)}),
	}
	m.uploads.WithLabelValues(strconv.Itoa(http.StatusOK))
	for why, known := range refusals {
		m.uploads.WithLabelValues(strconv.Itoa(known.status))
		m.refused.WithLabelValues(string(why))
	}
	for _, home := range []string{homeTopic, homeDeadLetter} {
		m.decisions.WithLabelValues(home)
	}
	all := []prometheus.Collector{m.uploads, m.decisions, m.refused, m.denied, m.bytes, m.inflated, m.took}
	if c.router != nil {
		all = append(all, m.lanes(c.cfg.Routing)...)
	}
	if r == nil {
		return m, nil
	}
	if err := c.opas.register(r); err != nil {
		return nil, err
	}
	for _, each := range append(all,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "docket_collector_uploads_in_flight",
			Help: "Uploads that have a place."}, func() float64 { return float64(c.places.taken()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "docket_collector_memory_bytes",
			Help: "Bytes of DOCKET_COLLECTOR_MEMORY that uploads take."}, func() float64 { return float64(c.memory.used.Load()) }),
	) {
		if err := r.Register(each); err != nil {
			return nil, fmt.Errorf("register the collector's metrics: %w", err)
		}
	}
	return m, nil
}

// lanes makes the metrics of routing, which exist only with lanes.
func (m *metrics) lanes(cfg routing.Config) []prometheus.Collector {
	m.routed = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_collector_routed_total",
		Help: "Decisions that Kafka acknowledged in the topic of a lane; those of an upload that comes again count again."}, []string{"lane"})
	m.shaped = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_collector_shaped_total",
		Help: "Decisions that were sent to a lower lane because they exceed a share; those of an upload that comes again count again."}, []string{"rule"})
	for _, lane := range cfg.Lanes() {
		m.routed.WithLabelValues(lane.Name())
	}
	for _, rule := range cfg.Shaping() {
		m.shaped.WithLabelValues(rule)
	}
	return []prometheus.Collector{m.routed, m.shaped}
}

func (m *metrics) answered(status int) { m.uploads.WithLabelValues(strconv.Itoa(status)).Inc() }

func (m *metrics) ended(began time.Time) { m.took.Observe(time.Since(began).Seconds()) }
