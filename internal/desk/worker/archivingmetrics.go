package worker

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/history/archive/nightly"
)

// ArchivingMetrics are the metrics of an archive that runs by itself. They exist only where a desk archives days.
type ArchivingMetrics struct {
	days        *prometheus.CounterVec
	rows, bytes prometheus.Counter
	failed, due prometheus.Gauge
	behind      archiveBehind
}

// The results of a day.
const (
	resultArchived = "archived"
	resultWaits    = "waits"
	resultFailed   = "failed"
)

// NewArchivingMetrics makes the metrics and registers them.
func NewArchivingMetrics(reg prometheus.Registerer) *ArchivingMetrics {
	m := &ArchivingMetrics{
		days:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_archive_days_total", Help: "Days that the desk tried to archive by itself, by result: archived, waits (not ready, tried again), failed."}, []string{"result"}),
		rows:   prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_archive_rows_total", Help: "Decisions and dead letters that the desk archived by itself."}),
		bytes:  prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_archive_bytes_total", Help: "Bytes of the archives that the desk wrote by itself."}),
		failed: prometheus.NewGauge(prometheus.GaugeOpts{Name: "docket_archive_failed", Help: "Days whose last try by the desk failed, at least 1 if the desk could not look for days; 0 at a desk that does not archive just now."}),
		due:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "docket_archive_due_days", Help: "Days in the table that are old enough to be archived; 0 at a desk that does not archive just now."}),
	}
	reg.MustRegister(m.days, m.rows, m.bytes, m.failed, m.due, &m.behind)
	for _, result := range []string{resultArchived, resultWaits, resultFailed} {
		m.days.WithLabelValues(result)
	}
	return m
}

// ended counts a try of a day.
func (m *ArchivingMetrics) ended(r nightly.Result) {
	switch {
	case r.Why == "":
		m.days.WithLabelValues(resultArchived).Inc()
		m.rows.Add(float64(r.Rows))
		m.bytes.Add(float64(r.Bytes))
	case r.Waits:
		m.days.WithLabelValues(resultWaits).Inc()
	default:
		m.days.WithLabelValues(resultFailed).Inc()
	}
}

// looked shows a note. failed says that the look itself failed.
func (m *ArchivingMetrics) looked(n *nightly.Note, failed bool) {
	failing := 0
	for _, r := range n.Open() {
		if !r.Waits {
			failing++
		}
	}
	if failed {
		failing = max(failing, 1)
	}
	m.failed.Set(float64(failing))
	m.due.Set(float64(n.Due))
	m.behind.set(n)
}

// idle says that another desk has the duty.
func (m *ArchivingMetrics) idle() {
	m.failed.Set(0)
	m.due.Set(0)
	m.behind.set(&nightly.Note{})
}

// archiveBehind shows since when the oldest day is due. It grows while the archive waits or fails.
type archiveBehind struct {
	mu   sync.Mutex
	note nightly.Note // its oldest day and its age
}

func (b *archiveBehind) set(n *nightly.Note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note = nightly.Note{Oldest: n.Oldest, After: n.After}
}

var archiveBehindDesc = prometheus.NewDesc("docket_archive_behind_seconds", "How long ago the oldest day in the table became old enough to be archived; 0: none is, or the desk does not archive just now.", nil, nil)

// Describe implements prometheus.Collector.
func (b *archiveBehind) Describe(ch chan<- *prometheus.Desc) { ch <- archiveBehindDesc }

// Collect implements prometheus.Collector.
func (b *archiveBehind) Collect(ch chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(archiveBehindDesc, prometheus.GaugeValue, b.note.Behind(time.Now()).Seconds())
}
