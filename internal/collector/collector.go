package collector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/collector/routing"
	"docket/internal/consumer/lanes"
	"docket/internal/record/envelope"
	"docket/internal/record/redact"
	"docket/internal/record/subject"
	"docket/internal/service/bearer"
	"docket/internal/service/telemetry"
)

// Publisher writes records to Kafka.
type Publisher interface {
	// Publish sends records and waits for the answers. It returns one error for each record, in order: nil means that
	// every in-sync replica has it; one that is kerr.MessageTooLarge says that this record alone is too large.
	Publish(ctx context.Context, records []*kgo.Record) []error
}

// Config is what a collector keeps to. All but Lanes, Routing, Redact, Key, Auth and Tracer is required.
type Config struct {
	// Topic is where decisions go, DLQTopic where those go that cannot be stored.
	Topic, DLQTopic string
	// Lanes are the topics of the urgent and the bulk lane. A lane without a topic does not exist.
	Lanes map[lanes.Lane]string
	// Routing chooses among the lanes. It sends no decision to a lane that does not exist.
	Routing routing.Config
	// Consumer names this process in dead letters, as group/instance.
	Consumer string
	// Key is what records are keyed by; a decision that has none of it is keyed by its decision_id.
	Key subject.Spec
	// Redact is done to every decision before Kafka sees it.
	Redact redact.Rules
	// UploadBytes is the largest upload as it comes, InflatedBytes that after gunzip.
	UploadBytes, InflatedBytes int64
	// Memory is the most bytes that all uploads take together: as they came, gunzipped, and what decoding and publishing add.
	Memory int64
	// MaxRefused is how many refused decisions of an upload have a dead letter each; the others share one. 0 or less: all have.
	MaxRefused int
	// Uploads is how many are worked on at once.
	Uploads int
	// BodyTimeout is how long a body may take to come, PublishTimeout how long Kafka may take for an upload.
	BodyTimeout, PublishTimeout time.Duration
	// RetryAfter is what 429 and 503 say, rounded up to whole seconds.
	RetryAfter time.Duration
	// Auth is who may upload.
	Auth Auth
	// Keys sign what is published.
	Keys envelope.Keys
	// Tracer follows uploads; nil: nobody does.
	Tracer Tracer
}

func (c Config) validate() error {
	var bad []error
	demand := func(ok bool, what string) {
		if !ok {
			bad = append(bad, errors.New(what))
		}
	}
	demand(c.Topic != "" && c.DLQTopic != "" && c.Topic != c.DLQTopic, "two topics are needed")
	for _, lane := range c.Routing.Lanes()[1:] {
		topic := c.Lanes[lane]
		demand(topic != "" && topic != c.Topic && topic != c.DLQTopic, "the "+lane.Name()+" lane needs a topic of its own")
	}
	demand(c.UploadBytes > 0 && c.InflatedBytes > 0 && c.Memory > 0, "limits in bytes must be above 0")
	demand(c.Uploads > 0, "at least one upload must be allowed")
	demand(c.BodyTimeout > 0 && c.PublishTimeout > 0 && c.RetryAfter > 0, "durations must be above 0")
	return errors.Join(bad...)
}

// Collector is OPA's decision log service. It is safe for concurrent use.
type Collector struct {
	cfg       Config
	auth      atomic.Pointer[Auth]
	publisher Publisher
	log       zerolog.Logger
	metrics   *metrics
	memory    budget
	places    *places
	outages   outages
	router    *routing.Router // nil: there is only the default lane
	opas      *opas
	draining  atomic.Bool
	now       func() time.Time
}

// New checks the settings and registers the metrics; reg may be nil.
func New(cfg Config, publisher Publisher, reg prometheus.Registerer, log zerolog.Logger) (*Collector, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("collector: %w", err)
	}
	c := &Collector{cfg: cfg, publisher: publisher, log: log, memory: budget{most: cfg.Memory},
		places: newPlaces(cfg.Uploads), now: time.Now}
	c.auth.Store(&cfg.Auth)
	if len(cfg.Routing.Lanes()) > 1 {
		c.router = routing.New(cfg.Routing, time.Now())
	}
	c.outages = outages{rest: min(cfg.RetryAfter, longestRest), now: time.Now, log: log, since: map[string]*outage{}}
	c.opas = newOPAs(log, cfg.Redact.Covers("/labels/id"), func() time.Time { return c.now() })
	var err error
	if c.metrics, err = newMetrics(c, reg); err != nil {
		return nil, err
	}
	return c, nil
}

// Close answers further uploads with 503. Uploads under way continue. The server's Shutdown waits for them.
func (c *Collector) Close() { c.draining.Store(true) }

// Admit changes who may upload, from the next upload on.
func (c *Collector) Admit(a Auth) { c.auth.Store(&a) }

// State reports whether decisions find a home. After a failure it is not ready for RetryAfter. Each further failure
// doubles that time, up to half a minute. Then it is ready, so that the next upload shows whether Kafka takes records
// again. Only a record can show that: rights, replicas in sync and topics fail a produce, but not a look at the cluster.
func (c *Collector) State() State {
	if c.draining.Load() {
		return State{Reason: stateDraining, Hint: "the program stops"}
	}
	return c.outages.state()
}

// ServeHTTP takes an upload of decisions, or a status update of an OPA.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u := &upload{collector: c, share: share{budget: &c.memory}, trace: untraced{}}
	// For those who are refused, too: the server reads what they still send. One without deadlines has bodies that are there.
	_ = http.NewResponseController(w).SetReadDeadline(c.now().Add(c.cfg.BodyTimeout))
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		c.log.Error().Strs(telemetry.KeyStacks, frames()).Str(telemetry.KeyHint, "report this bug with the stacks").
			Msg("upload handler panicked")
		c.refused(w, u, r, refuse(reasonPanic, 0))
	}()
	if refused := c.take(w, r, u); refused != nil {
		c.refused(w, u, r, refused)
		return
	}
	w.WriteHeader(http.StatusOK) // older OPAs take nothing else as success
	if u.update == nil {
		c.metrics.answered(http.StatusOK)
	}
	u.ended(http.StatusOK, "")
}

// take gives every decision of an upload its home, or says why not. A status update has none.
func (c *Collector) take(w http.ResponseWriter, r *http.Request, u *upload) *refusal {
	if c.draining.Load() {
		return refuse(reasonDraining, 0)
	}
	if r.Method != http.MethodPost {
		return refuse(reasonMethod, 0)
	}
	// Without credentials, which loopback may do without, any page that a browser here shows could upload.
	if crossSite.Check(r) != nil {
		return refuse(reasonCrossSite, 0)
	}
	auth := c.auth.Load()
	name, ok := auth.admits(r, c.now())
	u.client = name
	if !ok {
		return refuse(reasonCredentials, 0)
	}
	if u.right, ok = auth.Rights.of(name); !ok {
		return refuse(reasonClient, 0)
	}
	if c.cfg.Tracer != nil {
		u.trace = c.cfg.Tracer.Upload(traceparent(r.Header))
	}
	switch {
	case !isJSON(r.Header):
		return refuse(reasonContentType, 0)
	case !encoded(r.Header):
		return refuse(reasonEncoding, 0)
	case r.ContentLength > c.cfg.UploadBytes:
		u.bytes = r.ContentLength
		return refuse(reasonUploadBytes, 0)
	case r.ContentLength > c.cfg.Memory:
		u.bytes = r.ContentLength
		return refuse(reasonMemorySize, 0)
	case r.ContentLength > c.cfg.Memory-c.memory.used.Load():
		u.bytes = r.ContentLength
		c.places.hunger(u.from(r), c.now())
		return refuse(reasonMemory, 0)
	}
	// A client that sends only headers holds no place.
	if refused := u.begun(r); refused != nil {
		return refused
	}
	from := u.from(r)
	u.sender = from
	of, ok := c.places.take(from, c.now())
	if !ok {
		return refuse(reasonUploads, 0)
	}
	u.join(from, of, c.places, c.now)
	began := c.now()
	defer func() {
		u.end()
		c.places.leave(from)
		if u.update == nil {
			c.metrics.ended(began)
		}
	}()
	if refused := u.read(w, r); refused != nil {
		return refused
	}
	if u.update != nil {
		c.opas.hear(u.client, *u.update)
		return nil
	}
	// A client that hangs up sends the upload again. So an upload that began is finished, within the time for Kafka.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), c.cfg.PublishTimeout)
	defer cancel()
	return u.home(ctx)
}

// refused answers, counts and tells.
func (c *Collector) refused(w http.ResponseWriter, u *upload, r *http.Request, why *refusal) {
	known := refusals[why.reason]
	c.metrics.answered(known.status)
	c.metrics.refused.WithLabelValues(string(why.reason)).Inc()
	tell := func(e *zerolog.Event) *zerolog.Event {
		e = e.Str(telemetry.KeyReason, string(why.reason)).Int("status", known.status).Str(telemetry.KeyAddr, r.RemoteAddr).
			Int64("bytes", u.bytes).Int64("inflated_bytes", u.inflated)
		if u.client != "" {
			e = e.Str(telemetry.KeyName, u.client)
		}
		return e
	}
	switch {
	case why.reason == reasonCredentials && u.client != "":
		c.log.Warn().Str(telemetry.KeyAddr, r.RemoteAddr).Str(telemetry.KeyName, u.client).
			Str(telemetry.KeyHint, "give this client a new token in DOCKET_COLLECTOR_TOKENS, or remove the entry").Msg("upload token expired")
	case why.reason == reasonCredentials:
		c.log.Warn().Str(telemetry.KeyAddr, r.RemoteAddr).Msg("upload authentication failed")
	case why.reason == reasonMethod:
		tell(c.log.Debug()).Msg("non-upload request refused")
	case known.fate == never:
		tell(c.log.Error()).Int("offset", why.offset).Str(telemetry.KeyHint, known.detail).
			Msg("upload refused")
	default:
		tell(c.log.Warn()).Msg("upload deferred")
	}
	if bearer.Showed(r.TLS) && (why.reason == reasonCredentials || why.reason == reasonClient) {
		w.Header().Set("Connection", "close")
	}
	why.write(w, c.cfg.RetryAfter)
	u.ended(known.status, why.reason)
}

// traceparent is the trace that an upload came in, empty where it says none, or several.
func traceparent(h http.Header) string {
	if values := h.Values("Traceparent"); len(values) == 1 {
		return values[0]
	}
	return ""
}

// frames are the places that led to a panic. Its value is left out, it could be of a payload.
func frames() []string {
	pcs := make([]uintptr, 24)
	found := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs)])
	var places []string
	for {
		f, more := found.Next()
		places = append(places, fmt.Sprintf("%s:%d", f.Function, f.Line))
		if !more {
			return places
		}
	}
}
