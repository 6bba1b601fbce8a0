package telemetry

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/service/buildinfo"
)

var (
	assignedDesc   = prometheus.NewDesc("docket_assigned_partitions", "Partitions that are assigned to this process.", nil, nil)
	lastCommitDesc = prometheus.NewDesc("docket_last_commit_timestamp_seconds", "When the brokers took the last commit, in Unix time; 0 before the first.", nil, nil)
	retentionDesc  = prometheus.NewDesc("docket_topic_retention_seconds", "How long a topic keeps its records; +Inf: for ever. Absent where the brokers do not tell.", []string{"topic"}, nil)
)

const (
	oldestName = "docket_oldest_uncommitted_seconds"
	oldestHelp = "Age, by its Kafka timestamp, of the oldest record that was fetched and is not committed; 0 where there is none."
)

// RegisterBuild registers which program this is, and which build of it.
func RegisterBuild(program string, reg prometheus.Registerer) {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "docket_build_info", Help: "1, for this program, its version, the commit and the Go version that it was built from.",
	}, []string{"program", "version", "revision", "goversion"})
	reg.MustRegister(info)
	b := buildinfo.Current()
	info.WithLabelValues(program, b.Version, b.Revision, b.Go).Set(1)
}

// progress collects how far the commits go.
func (o outside) progress(ch chan<- prometheus.Metric, behind []Lag) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	oldest := o.cfg.Lanes.desc(oldestName, oldestHelp)
	for _, l := range behind {
		gauge(oldest, age(o.now(), l.Oldest), o.cfg.Lanes.of(l)...)
	}
	assigned, last := 0, 0.0
	if o.cfg.Assigned != nil {
		assigned = o.cfg.Assigned()
	}
	if o.cfg.LastCommit != nil {
		if at := o.cfg.LastCommit(); !at.IsZero() {
			last = float64(at.UnixMilli()) / 1000
		}
	}
	gauge(assignedDesc, float64(assigned))
	gauge(lastCommitDesc, last)
	if o.cfg.Retention == nil {
		return
	}
	for topic, kept := range o.cfg.Retention() {
		seconds := kept.Seconds()
		if kept < 0 {
			seconds = math.Inf(1)
		}
		gauge(retentionDesc, seconds, topic)
	}
}

// age is how long ago that was, in seconds; 0 for the zero time and for what is yet to come.
func age(now, at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, now.Sub(at).Seconds())
}
