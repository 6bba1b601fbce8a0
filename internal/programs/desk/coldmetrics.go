package desk

import (
	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/history/claims"
	"docket/internal/history/cold"
	"docket/internal/history/cold/cache"
)

// coldMetrics show what the cache of archived days and the claims on them did. They exist only with DOCKET_CACHE_DIR.
type coldMetrics struct {
	days []*cold.Days // of each shard; they share one directory

	reads, readBytes, bytes, ended, waited *prometheus.Desc
}

func newColdMetrics(days []*cold.Days) *coldMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &coldMetrics{
		days:      days,
		reads:     desc("docket_cache_reads_total", "Reads of archived files from object storage, or of parts of them, by result: hit (DOCKET_CACHE_DIR had it), miss.", "result"),
		readBytes: desc("docket_cache_read_bytes_total", "Bytes that DOCKET_CACHE_DIR gave in place of the object storage."),
		bytes:     desc("docket_cache_bytes", "Size of the archived files in DOCKET_CACHE_DIR, of all processes."),
		ended:     desc("docket_claims_total", "Claims on reading an archived day or file, by result: taken (this process reads), shared (another one's result), late (waited for half of the time, then reads, too), alone (no claims could be had), refused (another fetches the file).", "result"),
		waited:    desc("docket_claims_waited_seconds_total", "Time for which questions waited for the reading of another process."),
	}
}

// Describe implements [prometheus.Collector].
func (m *coldMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.reads, m.readBytes, m.bytes, m.ended, m.waited} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *coldMetrics) Collect(to chan<- prometheus.Metric) {
	var kept cache.Counts
	var asked claims.Counts
	size := int64(0)
	for _, d := range m.days {
		c, o := d.Cache.Counts(), d.Once.Counts()
		kept.Hits, kept.Misses, kept.HitBytes = kept.Hits+c.Hits, kept.Misses+c.Misses, kept.HitBytes+c.HitBytes
		asked.Taken, asked.Shared, asked.Late, asked.Alone = asked.Taken+o.Taken, asked.Shared+o.Shared, asked.Late+o.Late, asked.Alone+o.Alone
		asked.Refused, asked.Waited = asked.Refused+o.Refused, asked.Waited+o.Waited
		if n, err := d.Cache.Size(); err == nil {
			size = max(size, n)
		}
	}
	count := func(d *prometheus.Desc, n float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n, labels...)
	}
	count(m.reads, float64(kept.Hits), "hit")
	count(m.reads, float64(kept.Misses), "miss")
	count(m.readBytes, float64(kept.HitBytes))
	to <- prometheus.MustNewConstMetric(m.bytes, prometheus.GaugeValue, float64(size))
	for result, n := range map[string]int64{"taken": asked.Taken, "shared": asked.Shared, "late": asked.Late, "alone": asked.Alone, "refused": asked.Refused} {
		count(m.ended, float64(n), result)
	}
	count(m.waited, asked.Waited.Seconds())
}
