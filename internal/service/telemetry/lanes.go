package telemetry

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Lanes says what there is to tell of the lanes of a program. nil has no lane: then no metric has the label lane.
type Lanes struct {
	// Names are the lanes of the program.
	Names []string
	// Of returns the lane of a topic: one of Names.
	Of func(topic string) string
	// Assigned is how many partitions of a lane are ours.
	Assigned func(lane string) int
	// Turns is how many batches of a lane are decoded or written, and how many wait for their turn.
	Turns func(lane string) (held, waiting int)
	// Yielding says that the low lanes yield to the urgent one; nil: there is no urgent lane.
	Yielding func() bool
}

const labelLane = "lane"

// latencyBuckets begin where a batch of the urgent lane ends, and have the bound of the alert, 3 s.
var latencyBuckets = []float64{0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400}

var (
	laneTurnsDesc    = prometheus.NewDesc("docket_lane_turns", "Batches of a lane: held, which are decoded or written, and waiting, which wait for their turn.", []string{labelLane, "state"}, nil)
	laneAssignedDesc = prometheus.NewDesc("docket_lane_assigned_partitions", "Partitions of a lane that are assigned to this process.", []string{labelLane}, nil)
	laneYieldingDesc = prometheus.NewDesc("docket_lane_yielding", "1 while the default and bulk lanes yield to the urgent lane.", nil, nil)
)

// register registers the metrics that only a program with lanes has. It returns the latency by lane.
func (l *Lanes) register(reg prometheus.Registerer) *prometheus.HistogramVec {
	latency := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "docket_lane_latency_seconds", Help: "From a record's Kafka timestamp to its row.", Buckets: latencyBuckets,
	}, l.labels())
	for _, lane := range l.values() {
		latency.WithLabelValues(lane...)
	}
	reg.MustRegister(latency, l)
	return latency
}

// Describe implements [prometheus.Collector].
func (l *Lanes) Describe(ch chan<- *prometheus.Desc) {
	ch <- laneTurnsDesc
	ch <- laneAssignedDesc
	ch <- laneYieldingDesc
}

// Collect implements [prometheus.Collector].
func (l *Lanes) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, name := range l.Names {
		held, waiting := l.Turns(name)
		gauge(laneTurnsDesc, float64(held), name, "held")
		gauge(laneTurnsDesc, float64(waiting), name, "waiting")
		gauge(laneAssignedDesc, float64(l.Assigned(name)), name)
	}
	if l.Yielding != nil {
		yields := 0.0
		if l.Yielding() {
			yields = 1
		}
		gauge(laneYieldingDesc, yields)
	}
}

// labels are those that lanes add to a metric.
func (l *Lanes) labels() []string {
	if l == nil {
		return nil
	}
	return []string{labelLane}
}

// values are the values of these labels: one list for each lane, and an empty one without lanes.
func (l *Lanes) values() [][]string {
	if l == nil {
		return [][]string{nil}
	}
	var all [][]string
	for _, name := range l.Names {
		all = append(all, []string{name})
	}
	return all
}

// label is the values of these labels for a topic.
func (l *Lanes) label(topic string) []string {
	if l == nil {
		return nil
	}
	return []string{l.Of(topic)}
}

// desc describes a metric of a partition.
func (l *Lanes) desc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"topic", "partition"}, l.labels()...), nil)
}

// of is the values of its labels.
func (l *Lanes) of(lag Lag) []string {
	return append([]string{lag.Topic, strconv.Itoa(int(lag.Partition))}, l.label(lag.Topic)...)
}
