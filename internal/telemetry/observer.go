package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"

	"docket/internal/envelope"
	"docket/internal/errclass"
	"docket/internal/home"
	"docket/internal/pipeline"
)

// Observer tells metrics and log of what happens. It is safe for concurrent use.
type Observer struct {
	metrics metrics
	books   books
	holds   holds
	codes   map[string]bool
	topics  map[string]bool
	log     zerolog.Logger
	limited map[home.Home]zerolog.Logger
	failing zerolog.Logger
	now     func() time.Time
}

var _ pipeline.Observer = (*Observer)(nil)

// Of one kind of line no more than burst are written in a period: a flood of bad records does not become a flood of
// lines. The metrics count them all.
const (
	burst  = 10
	period = 10 * time.Second
)

// New makes an observer and registers its metrics.
func New(cfg Config, reg prometheus.Registerer, log zerolog.Logger) *Observer {
	o := &Observer{codes: known(), topics: map[string]bool{}, log: log, now: time.Now, limited: map[home.Home]zerolog.Logger{}}
	for _, t := range cfg.Topics {
		o.topics[t] = true
	}
	for _, h := range home.All() {
		o.limited[h] = log.Sample(&zerolog.BurstSampler{Burst: burst, Period: period})
	}
	o.failing = log.Sample(&zerolog.BurstSampler{Burst: burst, Period: period})
	o.metrics = newMetrics(cfg, &o.books, func() time.Time { return o.now() }, reg)
	o.holds.metric = o.metrics.hold
	return o
}

// Took counts decisions that were read.
func (o *Observer) Took(n int) { o.books.took(n) }

// Gave counts decisions that are given back uncommitted.
func (o *Observer) Gave(n int) { o.books.gaveBack(n) }

// StoreFailed counts a write that failed.
func (o *Observer) StoreFailed(v errclass.Verdict) {
	o.metrics.store.WithLabelValues(v.Class.String(), o.label(v.Code)).Inc()
	o.failing.Warn().Str(KeyClass, v.Class.String()).Str(KeyCode, v.Code).Str(KeyName, v.Name).Msg("write to the database failed")
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
func (o *Observer) PublishFailed(topic string, err error) {
	label := topic
	if !o.topics[topic] {
		label = other
	}
	o.metrics.publish.WithLabelValues(label).Inc()
	o.failing.Warn().Str(KeyTopic, topic).Str(KeyCode, publishCode(err)).Msg("record not published")
}

// publishCode is Kafka's name for the error where it has one, or our own.
func publishCode(err error) string {
	var k *kerr.Error
	if errors.As(err, &k) {
		return k.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errclass.CodeTimeout
	}
	return errclass.Classify(err).Code
}

// Homed counts a batch whose decisions all have a home, and tells of those that have no row.
func (o *Observer) Homed(r pipeline.Report) {
	now := o.now()
	var homes [home.Spooled + 1]int
	rest := map[home.Home]*told{}
	all := 0
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
			o.metrics.endToEnd.Observe(max(0, now.Sub(d.Time).Seconds()))
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

func (o *Observer) tell(r pipeline.Report, homes *[home.Spooled + 1]int, rest map[home.Home]*told) {
	for _, line := range [...]struct {
		home    home.Home
		level   zerolog.Level
		message string
	}{
		{home.DeadLetter, zerolog.WarnLevel, "records dead-lettered"},
		{home.Parked, zerolog.WarnLevel, "records parked"},
		{home.Exhausted, zerolog.ErrorLevel, "records given up after the last attempt"},
		{home.Spooled, zerolog.WarnLevel, "records spooled"},
	} {
		t := rest[line.home]
		if t == nil {
			continue
		}
		logger := o.limited[line.home]
		logger.WithLevel(line.level).Str(KeyTopic, r.Topic).Int32(KeyPartition, r.Partition).Int(KeyRecords, homes[line.home]).
			Interface(KeyCodes, t.codes).Strs(KeyIDs, t.ids).Msg(line.message)
	}
	o.log.Debug().Str(KeyTopic, r.Topic).Int32(KeyPartition, r.Partition).Int(KeyRecords, r.Records).Dur(KeyTook, r.Took).Msg("batch brought home")
}
