package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/record/decision"
	"docket/internal/record/home"
)

// Lag is how far a partition is behind the end of its log.
type Lag struct {
	Topic     string
	Partition int32
	Records   int64
	Oldest    time.Time // earliest Kafka timestamp of what was fetched and is not committed; zero: there is none
	Stuck     bool      // a fault keeps it from being read
}

// Spool is what the spool holds and did.
type Spool struct {
	Files, Bytes, Oversize int64
	Oldest                 time.Time // of what is held; zero where nothing is
	Recovered, Dropped     int64     // records, since the start
	Corrupt                int64     // files that were set aside as broken, since the start
	MaxBytes               int64     // the limit of Bytes
}

// Config says what there is to tell of. A func that is nil counts as nothing to tell: its metrics stay 0.
type Config struct {
	Topics  []string // that records are forwarded to
	Reasons []string // of holds, beside those of the pipeline
	Lag     func() []Lag
	Spool   func() Spool
	Waiting func() int // parked records that were read and are not due
	// Assigned is how many partitions are ours.
	Assigned func() int
	// LastCommit is when the brokers took a commit; zero before the first.
	LastCommit func() time.Time
	// Retention is how long topics keep their records, where it is known; negative is for ever.
	Retention func() map[string]time.Duration
	// Lanes adds the metrics of lanes and the label lane; nil: the program has one lane and no such label.
	Lanes *Lanes
}

type metrics struct {
	records       *prometheus.CounterVec
	decode        *prometheus.CounterVec
	store         *prometheus.CounterVec
	storeDuration *prometheus.HistogramVec
	retries       prometheus.Counter
	batchDuration prometheus.Histogram
	batchRecords  prometheus.Histogram
	bisect        prometheus.Counter
	publish       *prometheus.CounterVec
	hold          *prometheus.GaugeVec
	endToEnd      *prometheus.HistogramVec // by lane, if there are lanes
	latency       *prometheus.HistogramVec // by lane; nil without lanes
}

// other stands for codes that are not in our table, so that a trigger which makes codes up cannot make up labels.
const other = "other"

func newMetrics(cfg Config, b *books, now func() time.Time, reg prometheus.Registerer) metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	m := metrics{
		records: vec("docket_records_total", "Decisions that got their home, by home; an undecodable record counts as one.", "home"),
		decode:  vec("docket_decode_failures_total", "Records and decisions that the decoder refused, by reason.", "code"),
		store:   vec("docket_store_failures_total", "Writes to Postgres that failed, by class and code.", "class", "code"),
		storeDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "docket_store_duration_seconds", Help: "One write transaction to Postgres, by how it ended: stored or failed.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, []string{"result"}),
		retries:       counter("docket_store_retries_total", "Writes that were tried again after a pause."),
		batchDuration: histogram("docket_batch_duration_seconds", "From a batch in hand to the last of its homes.", prometheus.ExponentialBuckets(0.005, 2, 15)),
		batchRecords:  histogram("docket_batch_records", "Kafka records in a batch.", []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 100000}),
		bisect:        counter("docket_bisect_probes_total", "Writes that were made in search of bad records."),
		publish:       vec("docket_publish_failures_total", "Records that Kafka did not take, by topic.", "topic"),
		hold:          newHold(append(pipeline.Reasons(), cfg.Reasons...)),
		endToEnd: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "docket_end_to_end_seconds", Help: "From OPA's timestamp to the row.",
			Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400},
		}, cfg.Lanes.labels()),
	}
	reg.MustRegister(m.records, m.decode, m.store, m.storeDuration, m.retries, m.batchDuration, m.batchRecords, m.bisect, m.publish, m.hold, m.endToEnd,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "docket_unaccounted_records", Help: "Decisions consumed less homes less in flight; anything but 0 is a bug.",
		}, func() float64 { return float64(b.unaccounted()) }),
		outside{cfg, now})
	if cfg.Lanes != nil {
		m.latency = cfg.Lanes.register(reg)
	}
	m.zero(cfg)
	return m
}

// zero makes every series whose labels are known, so that the first event is an increase and not an appearance.
func (m metrics) zero(cfg Config) {
	for _, h := range home.All() {
		m.records.WithLabelValues(h.String())
	}
	for _, reason := range refusals() {
		m.decode.WithLabelValues(string(reason))
	}
	for _, result := range []string{resultStored, resultFailed} {
		m.storeDuration.WithLabelValues(result)
	}
	for _, lane := range cfg.Lanes.values() {
		m.endToEnd.WithLabelValues(lane...)
	}
	for _, topic := range cfg.Topics {
		m.publish.WithLabelValues(topic)
	}
}

func refusals() []decision.Reason {
	return []decision.Reason{
		decision.Empty, decision.Syntax, decision.DuplicateKey, decision.MissingField, decision.WrongType, decision.OutOfRange, decision.TooLarge,
	}
}

// known are the codes that may become labels.
func known() map[string]bool {
	codes := map[string]bool{}
	for _, v := range errclass.Table() {
		codes[v.Code] = true
	}
	return codes
}

// RegisterUnowned registers the number of partitions of the source topics that no shard has.
func RegisterUnowned(unowned func() int, reg prometheus.Registerer) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "docket_shard_unowned_partitions", Help: "Partitions of the source topics that no shard has; nobody reads them.",
	}, func() float64 { return float64(unowned()) }))
}

// RegisterLag registers what a program is behind, for one that has no [Observer].
func RegisterLag(lag func() []Lag, reg prometheus.Registerer) { reg.MustRegister(lags{lag, nil}) }

// lags collects the lag.
type lags struct {
	lag   func() []Lag
	lanes *Lanes
}

func (l lags) Describe(ch chan<- *prometheus.Desc) { ch <- l.lanes.desc(lagName, lagHelp) }

func (l lags) Collect(ch chan<- prometheus.Metric) {
	if l.lag == nil {
		return
	}
	desc := l.lanes.desc(lagName, lagHelp)
	for _, one := range l.lag() {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(one.Records), l.lanes.of(one)...)
	}
}

const (
	lagName = "docket_consumer_lag"
	lagHelp = "Records between what is committed and the end of the log."
)

// outside collects what others count.
type outside struct {
	cfg Config
	now func() time.Time
}

var (
	filesDesc     = prometheus.NewDesc("docket_spool_files", "Files in the spool.", nil, nil)
	bytesDesc     = prometheus.NewDesc("docket_spool_bytes", "Bytes in the spool.", nil, nil)
	maxBytesDesc  = prometheus.NewDesc("docket_spool_max_bytes", "Bytes that the spool may have; 0 without a spool.", nil, nil)
	oversizeDesc  = prometheus.NewDesc("docket_spool_oversize_records", "Spooled records that the broker refuses as too large.", nil, nil)
	oldestDesc    = prometheus.NewDesc("docket_spool_oldest_seconds", "Age of the oldest spooled file; 0 where there is none.", nil, nil)
	recoveredDesc = prometheus.NewDesc("docket_spool_recovered_records_total", "Spooled records that went on to their topic.", nil, nil)
	droppedDesc   = prometheus.NewDesc("docket_spool_dropped_records_total", "Spooled records that were evicted: data loss.", nil, nil)
	corruptDesc   = prometheus.NewDesc("docket_spool_corrupt_files_total", "Spool files that were broken and set aside. Records that cannot be read in them have no other home.", nil, nil)
	waitingDesc   = prometheus.NewDesc("docket_parking_waiting", "Parked records that were read and are not due.", nil, nil)
)

func (o outside) Describe(ch chan<- *prometheus.Desc) {
	lanes := o.cfg.Lanes
	for _, d := range []*prometheus.Desc{lanes.desc(lagName, lagHelp), lanes.desc(oldestName, oldestHelp), assignedDesc, lastCommitDesc, retentionDesc, filesDesc, bytesDesc, maxBytesDesc, oversizeDesc, oldestDesc, recoveredDesc, droppedDesc, corruptDesc, waitingDesc} {
		ch <- d
	}
}

func (o outside) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	var behind []Lag
	if o.cfg.Lag != nil {
		behind = o.cfg.Lag()
	}
	lags{func() []Lag { return behind }, o.cfg.Lanes}.Collect(ch)
	o.progress(ch, behind)
	var s Spool
	if o.cfg.Spool != nil {
		s = o.cfg.Spool()
	}
	waiting := 0
	if o.cfg.Waiting != nil {
		waiting = o.cfg.Waiting()
	}
	gauge(filesDesc, float64(s.Files))
	gauge(bytesDesc, float64(s.Bytes))
	gauge(maxBytesDesc, float64(s.MaxBytes))
	gauge(oversizeDesc, float64(s.Oversize))
	gauge(oldestDesc, age(o.now(), s.Oldest))
	gauge(waitingDesc, float64(waiting))
	ch <- prometheus.MustNewConstMetric(recoveredDesc, prometheus.CounterValue, float64(s.Recovered))
	ch <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(s.Dropped))
	ch <- prometheus.MustNewConstMetric(corruptDesc, prometheus.CounterValue, float64(s.Corrupt))
}
