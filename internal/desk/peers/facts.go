package peers

import (
	"bufio"
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Facts are the numbers of a program's /metrics. A pointer is nil where the program does not have the metric.
type Facts struct {
	Program, Version string

	Lags   []Lag
	Oldest *float64 // seconds since the oldest fetched record that is not committed; 0: none
	// OldestParked is Oldest of the parking topic, of a replayer.
	Assigned     *float64
	LastCommit   time.Time // zero: none yet, or not known
	Unaccounted  *float64
	ParkedDue    *float64 // parked records that were read and wait
	SpoolFiles   *float64
	SpoolBytes   *float64
	SpoolMost    *float64
	SpoolOldest  *float64 // seconds
	SpoolDropped *float64
	Uploads      *float64 // in flight
	Memory       *float64 // bytes of uploads

	// Stored are rows and duplicates, and Taken decisions that a collector brought into a topic, since the start.
	Stored, Taken *float64
	// Received are all decisions that a collector found a home for, and Refused the uploads that it answered with an error,
	// since the start. OPA sends either again if it got no answer.
	Received, Refused *float64
	// OPAs are those whose status updates came to a collector within the last hour, and OPAFailing those of which the newest upload
	// failed. OPAWaiting and OPAWaitingBytes are what they hold. OPADropped are the decisions that they lost since the start.
	OPAs, OPAFailing, OPAWaiting, OPAWaitingBytes, OPADropped *float64
	OPASilent                                                 *float64 // seconds, of the one that is silent for longest
	// StoredPace and TakenPace are Stored and Taken a second, since the look before; nil: there was none.
	StoredPace, TakenPace *float64

	Lanes    []LaneFacts // none: the program has no lanes
	Yielding *float64
	Limits   map[string]float64 // rows a second by limit: all, low
	Waiting  map[string]float64 // partitions that wait for tokens, by class: low, urgent
	Breaker  string             // closed, half_open, open; empty: none
}

// Lag is how many records of a partition are not committed.
type Lag struct {
	Topic, Partition, Lane string
	Records                float64
}

// LaneFacts are those of one lane.
type LaneFacts struct {
	Lane          string
	Assigned      float64
	Held, Waiting float64  // batches in hand, and batches that wait for a turn
	Oldest        float64  // seconds
	Latency       float64  // seconds, an upper bound of 95 % of all since the start; 0: none
	Stored        float64  // rows since the start
	Pace          *float64 // rows a second since the look before
}

// facts reads /metrics.
func (w *Watch) facts(ctx context.Context, who one) (*Facts, error) {
	body, err := w.get(ctx, who.base+"/metrics", maxMetrics, 0)
	if err != nil {
		return nil, err
	}
	return factsOf(body)
}

// factsOf parses the lines about Docket. The others are many, and skipped unread.
func factsOf(body []byte) (*Facts, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(ours(body)))
	if err != nil || all["docket_build_info"] == nil {
		return nil, errForeign
	}
	m := families(all)
	f := &Facts{
		Assigned: m.sum("docket_assigned_partitions"), Unaccounted: m.sum("docket_unaccounted_records"), ParkedDue: m.sum("docket_parking_waiting"),
		SpoolFiles: m.sum("docket_spool_files"), SpoolBytes: m.sum("docket_spool_bytes"), SpoolMost: m.sum("docket_spool_max_bytes"), SpoolOldest: m.sum("docket_spool_oldest_seconds"),
		SpoolDropped: m.sum("docket_spool_dropped_records_total"), Uploads: m.sum("docket_collector_uploads_in_flight"), Memory: m.sum("docket_collector_memory_bytes"),
		Oldest: m.most("docket_oldest_uncommitted_seconds"), Yielding: m.sum("docket_lane_yielding"),
		Stored: m.sumOf("docket_records_total", "home", "row", "duplicate"), Taken: m.sumOf("docket_collector_decisions_total", "home", "topic"),
		Received: m.sum("docket_collector_decisions_total"), Refused: m.sum("docket_collector_refused_total"),
		OPAs: m.sum("docket_collector_opas"), OPAFailing: m.sum("docket_collector_opa_failing"), OPAWaiting: m.sum("docket_collector_opa_waiting_decisions"),
		OPAWaitingBytes: m.sum("docket_collector_opa_waiting_bytes"), OPADropped: m.sum("docket_collector_opa_dropped_decisions_total"), OPASilent: m.sum("docket_collector_opa_silent_seconds"),
	}
	m.each("docket_build_info", func(of func(string) string, _ *dto.Metric) { f.Program, f.Version = of("program"), of("version") })
	if at := m.sum("docket_last_commit_timestamp_seconds"); at != nil && *at > 0 && *at < math.MaxInt32*4 {
		f.LastCommit = time.UnixMilli(int64(*at * 1000)).UTC()
	}
	m.each("docket_consumer_lag", func(of func(string) string, one *dto.Metric) {
		f.Lags = append(f.Lags, Lag{of("topic"), of("partition"), of("lane"), valueOf(one)})
	})
	f.Limits, f.Waiting = m.by("docket_limit_rows", "limit"), m.by("docket_limit_waiting", "class")
	for state, is := range m.by("docket_limit_breaker", "state") {
		if is == 1 {
			f.Breaker = state
		}
	}
	f.Lanes = m.lanes()
	return f, nil
}

// ours keeps the lines of metrics of Docket.
func ours(body []byte) []byte {
	var kept bytes.Buffer
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, maxMetrics)
	for lines.Scan() {
		line := lines.Bytes()
		if bytes.HasPrefix(line, []byte("docket_")) && !bytes.HasPrefix(line, []byte("docket_kafka_")) || bytes.HasPrefix(line, []byte("# TYPE docket_")) && !bytes.HasPrefix(line, []byte("# TYPE docket_kafka_")) {
			kept.Write(line)
			kept.WriteByte('\n')
		}
	}
	return kept.Bytes()
}

type families map[string]*dto.MetricFamily

// valueOf is the number of a counter or a gauge. One that is none counts as 0.
func valueOf(one *dto.Metric) float64 {
	v := one.GetGauge().GetValue() + one.GetCounter().GetValue() + one.GetUntyped().GetValue()
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

func (m families) each(name string, do func(of func(label string) string, one *dto.Metric)) {
	f := m[name]
	if f == nil {
		return
	}
	for _, one := range f.GetMetric() {
		do(func(label string) string {
			for _, l := range one.GetLabel() {
				if l.GetName() == label {
					return cut(l.GetValue())
				}
			}
			return ""
		}, one)
	}
}

// sum adds all series; nil: the metric is not there.
func (m families) sum(name string) (sum *float64) {
	m.each(name, func(_ func(string) string, one *dto.Metric) { sum = added(sum, valueOf(one)) })
	return sum
}

func added(sum *float64, v float64) *float64 {
	if sum != nil {
		v += *sum
	}
	return &v
}

func (m families) most(name string) (most *float64) {
	m.each(name, func(_ func(string) string, one *dto.Metric) {
		if v := valueOf(one); most == nil || v > *most {
			most = &v
		}
	})
	return most
}

func (m families) sumOf(name, label string, values ...string) (sum *float64) {
	m.each(name, func(of func(string) string, one *dto.Metric) {
		if slices.Contains(values, of(label)) {
			sum = added(sum, valueOf(one))
		}
	})
	return sum
}

func (m families) by(name, label string) (all map[string]float64) {
	m.each(name, func(of func(string) string, one *dto.Metric) {
		if all == nil {
			all = map[string]float64{}
		}
		all[of(label)] += valueOf(one)
	})
	return all
}

// lanes joins the metrics of each lane.
func (m families) lanes() (all []LaneFacts) {
	assigned := m.by("docket_lane_assigned_partitions", "lane")
	oldest := map[string]float64{}
	m.each("docket_oldest_uncommitted_seconds", func(of func(string) string, one *dto.Metric) {
		oldest[of("lane")] = max(oldest[of("lane")], valueOf(one))
	})
	turns := map[[2]string]float64{}
	m.each("docket_lane_turns", func(of func(string) string, one *dto.Metric) {
		turns[[2]string{of("lane"), of("state")}] += valueOf(one)
	})
	m.each("docket_lane_latency_seconds", func(of func(string) string, one *dto.Metric) {
		lane, h := of("lane"), one.GetHistogram()
		all = append(all, LaneFacts{Lane: lane, Assigned: assigned[lane], Held: turns[[2]string{lane, "held"}], Waiting: turns[[2]string{lane, "waiting"}],
			Oldest: oldest[lane], Latency: within95(h), Stored: float64(h.GetSampleCount())})
	})
	return all
}

// within95 is the bound of the bucket below which 95 % are; 0: there are none.
func within95(h *dto.Histogram) float64 {
	n := float64(h.GetSampleCount())
	if n == 0 {
		return 0
	}
	bound := 0.0
	for _, b := range h.GetBucket() {
		if math.IsInf(b.GetUpperBound(), 1) {
			break
		}
		bound = b.GetUpperBound()
		if float64(b.GetCumulativeCount()) >= 0.95*n {
			break
		}
	}
	return bound
}
