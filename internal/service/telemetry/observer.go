package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// Observer tells metrics and log of what happens. It is safe for concurrent use.
type Observer struct {
	*Holding
	metrics metrics
	books   books
	codes   map[string]bool
	topics  map[string]bool
	log     zerolog.Logger
	now     func() time.Time
	lanes   *Lanes
}

var _ pipeline.Observer = (*Observer)(nil)

// New makes an observer and registers its metrics.
func New(cfg Config, reg prometheus.Registerer, log zerolog.Logger) *Observer {
	o := &Observer{codes: known(), topics: map[string]bool{}, log: log, now: time.Now, lanes: cfg.Lanes}
	for _, t := range cfg.Topics {
		o.topics[t] = true
	}
	o.metrics = newMetrics(cfg, &o.books, func() time.Time { return o.now() }, reg)
	o.Holding = newHolding(log, func() time.Time { return o.now() }, o.metrics.hold)
	return o
}

// Took counts decisions that were read.
func (o *Observer) Took(n int) { o.books.took(n) }

// Gave counts decisions that are given back uncommitted.
func (o *Observer) Gave(n int) { o.books.gaveBack(n) }

// StoreFailed counts a write that failed.
func (o *Observer) StoreFailed(v errclass.Classification) {
	o.metrics.store.WithLabelValues(v.Class.String(), o.label(v.Code)).Inc()
}

func (o *Observer) label(code string) string {
	if o.codes[code] {
		return code
	}
	return other
}

// Retried counts a write that is tried again.
func (o *Observer) Retried() { o.metrics.retries.Inc() }

// Bisected counts the writes of a search for bad records.
func (o *Observer) Bisected(writes int) { o.metrics.bisect.Add(float64(writes)) }

// PublishFailed counts a record that Kafka did not take.
func (o *Observer) PublishFailed(topic string, _ error) {
	label := topic
	if !o.topics[topic] {
		label = other
	}
	o.metrics.publish.WithLabelValues(label).Inc()
}

// Homed counts a batch whose decisions all have a home, and tells of those that have no row.
func (o *Observer) Homed(r pipeline.HomedBatch) {
	now := o.now()
	var homes [home.Spooled + 1]int
	rest := map[home.Home]*told{}
	all := 0
	lane := o.lanes.label(r.Topic)
	endToEnd := o.metrics.endToEnd.WithLabelValues(lane...)
	var latency prometheus.Observer
	if o.metrics.latency != nil {
		latency = o.metrics.latency.WithLabelValues(lane...)
	}
	for d := range r.Decisions {
		all++
		if d.Home == home.None {
			continue // it stays unaccounted for, which is what it is
		}
		homes[d.Home]++
		if d.Cause.Kind == envelope.Decode {
			o.metrics.decode.WithLabelValues(o.label(d.Cause.Code)).Inc()
		}
		if d.Home == home.Row && !d.Time.IsZero() {
			endToEnd.Observe(max(0, now.Sub(d.Time).Seconds()))
		}
		if d.Home == home.Row && latency != nil {
			latency.Observe(age(now, d.Came))
		}
		if d.Home != home.Row && d.Home != home.Duplicate {
			if rest[d.Home] == nil {
				rest[d.Home] = &told{codes: map[string]int{}}
			}
			rest[d.Home].add(&d)
		}
	}
	sum := 0
	for h, n := range homes {
		if n > 0 {
			sum += n
			o.metrics.records.WithLabelValues(home.Home(h).String()).Add(float64(n))
		}
	}
	o.books.brought(all, sum)
	o.metrics.batchRecords.Observe(float64(r.Records))
	o.metrics.batchDuration.Observe(r.Took.Seconds())
	o.tell(r, &homes, rest)
}

// told is what a line says of the decisions of one batch that went to one home.
type told struct {
	codes map[string]int
	ids   []string
}

const mostIDs = 3

func (t *told) add(d *pipeline.Decision) {
	t.codes[d.Cause.Code]++
	if len(t.ids) < mostIDs && d.ID != "" {
		t.ids = append(t.ids, d.ID)
	}
}

// tell writes a line for each home but the table that decisions of a batch went to.
func (o *Observer) tell(r pipeline.HomedBatch, homes *[home.Spooled + 1]int, rest map[home.Home]*told) {
	if t := rest[home.DeadLetter]; t != nil {
		t.on(on(o.log.Warn(), r), homes[home.DeadLetter]).Msg("records dead-lettered")
	}
	if t := rest[home.Parked]; t != nil {
		t.on(on(o.log.Warn(), r), homes[home.Parked]).Msg("records parked")
	}
	if t := rest[home.Exhausted]; t != nil {
		t.on(on(o.log.Error(), r), homes[home.Exhausted]).Msg("records given up after the last attempt")
	}
	if t := rest[home.Spooled]; t != nil {
		t.on(on(o.log.Warn(), r), homes[home.Spooled]).Msg("records spooled")
	}
	on(o.log.Debug(), r).Int(KeyRecords, r.Records).Dur(KeyTook, r.Took).Msg("batch stored")
}

// on puts into a line which batch it is of.
func on(e *zerolog.Event, r pipeline.HomedBatch) *zerolog.Event {
	e = e.Str(KeyTopic, r.Topic).Int32(KeyPartition, r.Partition).Int64(KeyFirst, r.First).Int64(KeyLast, r.Last)
	if r.Trace != "" {
		e = e.Str(KeyTrace, r.Trace)
	}
	return e
}

func (t *told) on(e *zerolog.Event, records int) *zerolog.Event {
	return e.Int(KeyRecords, records).Interface(KeyCodes, t.codes).Strs(KeyIDs, t.ids)
}
