package collector

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/service/telemetry"
)

const (
	// mostOPAs is how many OPAs are told apart. Beyond it the one that was silent for longest is forgotten, and drops of before the
	// first update of another do not count any more.
	mostOPAs = 1000
	// opaForgotten is after how long without a status update an OPA counts as gone. With its default settings it sends one
	// each ten minutes.
	opaForgotten = time.Hour
	// dropsTold is how often the drops of one OPA are logged.
	dropsTold = time.Minute
)

// opaName tells one OPA from another. A client cannot speak for those of another.
type opaName struct{ client, id string }

// heard is what an OPA said last.
type heard struct {
	statusUpdate
	at   time.Time
	told time.Time // when its drops were logged
	news float64   // drops that were not
}

// opas are those whose status updates come here. It is safe for concurrent use.
type opas struct {
	log     zerolog.Logger
	hidden  bool // the ids are not to leave the process
	now     func() time.Time
	updates prometheus.Counter
	dropped prometheus.Counter

	mu      sync.Mutex
	of      map[opaName]*heard
	crowded bool // some were forgotten, so one that is not known may have counted
}

func newOPAs(log zerolog.Logger, hidden bool, now func() time.Time) *opas {
	return &opas{log: log, hidden: hidden, now: now, of: map[opaName]*heard{},
		updates: prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_collector_status_updates_total", Help: "Status updates of OPAs."}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_collector_opa_dropped_decisions_total",
			Help: "Decisions that OPAs dropped before they could upload them, as their status updates say: data loss. What one dropped before its first update here counts with that."})}
}

// hear notes a status update.
func (o *opas) hear(client string, s statusUpdate) {
	o.updates.Inc()
	grown, tell := o.note(client, s)
	o.dropped.Add(grown)
	if tell == 0 {
		return
	}
	line := o.log.Warn().Str(telemetry.KeyName, client)
	if !o.hidden {
		line = line.Str("opa", s.id)
	}
	line.Float64("decisions", tell).Float64("decisions_since_start", s.dropped).
		Str(telemetry.KeyHint, "these decisions are lost: raise the limits of this OPA's decision_logs.reporting").Msg("decisions dropped by OPA")
}

// note returns how many drops an update tells of for the first time, and how many are to be logged. An OPA gives itself a new id
// with each start, so its count only grows. A smaller one came late.
func (o *opas) note(client string, s statusUpdate) (grown, tell float64) {
	now, name := o.now(), opaName{client, s.id}
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.of[name]
	if h == nil {
		if len(o.of) >= mostOPAs {
			o.forget(now)
		}
		h = &heard{}
		if o.crowded { // it may have counted before
			h.dropped = s.dropped
		}
		o.of[name] = h
	}
	grown = max(0, s.dropped-h.dropped)
	s.dropped = max(s.dropped, h.dropped)
	h.statusUpdate, h.at = s, now
	if h.news += grown; h.news == 0 || now.Sub(h.told) < dropsTold {
		return grown, 0
	}
	tell = h.news
	h.told, h.news = now, 0
	return grown, tell
}

// forget makes room: it forgets those that are gone, else the one that was silent for longest.
func (o *opas) forget(now time.Time) {
	o.crowded = true
	var silent opaName
	var since time.Time
	for name, h := range o.of {
		if now.Sub(h.at) > opaForgotten {
			delete(o.of, name)
		} else if since.IsZero() || h.at.Before(since) {
			silent, since = name, h.at
		}
	}
	if len(o.of) >= mostOPAs {
		delete(o.of, silent)
	}
}

// sum adds a number of all that are not gone.
func (o *opas) sum(of func(h *heard) float64) (sum float64) {
	now := o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.of {
		if now.Sub(h.at) <= opaForgotten {
			sum += of(h)
		}
	}
	return sum
}

// silent is the time since the last status update of the OPA that is silent for longest.
func (o *opas) silent() (longest time.Duration) {
	now := o.now()
	o.sum(func(h *heard) float64 {
		longest = max(longest, now.Sub(h.at))
		return 0
	})
	return longest
}

// register adds the metrics. They have no name of an OPA: no label comes from an upload.
func (o *opas) register(r prometheus.Registerer) error {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	for _, each := range []prometheus.Collector{o.updates, o.dropped,
		gauge("docket_collector_opas", "OPAs that sent a status update within the last hour.", func() float64 { return o.sum(func(*heard) float64 { return 1 }) }),
		gauge("docket_collector_opa_failing", "Of these, OPAs whose newest upload failed.", func() float64 {
			return o.sum(func(h *heard) float64 {
				if h.failing {
					return 1
				}
				return 0
			})
		}),
		gauge("docket_collector_opa_waiting_decisions", "Decisions that these OPAs hold, of those that count them.", func() float64 { return o.sum(func(h *heard) float64 { return h.waiting }) }),
		gauge("docket_collector_opa_waiting_bytes", "Bytes of decisions that these OPAs hold, of those that weigh them.", func() float64 { return o.sum(func(h *heard) float64 { return h.waitingBytes }) }),
		gauge("docket_collector_opa_silent_seconds", "Time since the last status update of that OPA which is silent for longest; 0 without any.", func() float64 { return o.silent().Seconds() }),
	} {
		if err := r.Register(each); err != nil {
			return fmt.Errorf("register the metrics of OPAs: %w", err)
		}
	}
	return nil
}
