package tracing

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"docket/internal/record/envelope"
	"docket/internal/service/buildinfo"
)

// Config is who traces.
type Config struct {
	Program  string // the service's name, unless the environment has another
	Instance string
	// Replay says that records come from the parking topic: Docket itself wrote their trace.
	Replay bool
	// Groups are the consumer groups by the topic that they read.
	Groups map[string]string
	// DeadLetters is the topic of the dead letters of a collector.
	DeadLetters string
}

// Tracing follows batches. It is safe for concurrent use.
type Tracing struct {
	provider  *sdktrace.TracerProvider
	tracer    trace.Tracer
	abandon   context.CancelFunc
	header    string // that holds the trace in which a record comes
	replay    bool
	groups    map[string]string
	letters   string
	publishes *rate.Limiter
}

// Of what is waiting to be sent, so many spans at most, and so many at a time.
const (
	mostWaiting  = 8192
	mostTogether = 512
)

// closing is how long the spans that wait are still sent at the end.
const closing = 1500 * time.Millisecond

// quiet has the SDK's own log, which is not ours and goes past it, say nothing. It is for the whole process, as that is.
var quiet = sync.OnceFunc(func() {
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
})

// Open reads the standard variables of OpenTelemetry from an environment. Without an endpoint there are no traces, and it
// returns nil. It dials nobody, and nothing that is wrong with the variables is an error: each is a line in the log.
func Open(environ []string, cfg Config, log zerolog.Logger) *Tracing {
	env := read(environ)
	s := env.settings()
	for _, w := range env.wrong {
		log.Warn().Str("variable", w.Variable).Str("hint", w.Text).Msg("tracing setting ignored")
	}
	if s.endpoint == "" {
		return nil
	}
	quiet()
	to, err := otlptracehttp.New(context.Background(), s.options()...)
	if err != nil { // it dials nothing, and all of its settings were looked at
		log.Warn().Str("variable", exporterPrefix+"ENDPOINT").Str("hint", "correct the endpoint; without it there are no traces").
			Msg("tracing setting ignored")
		return nil
	}
	return open(to, s, cfg, log)
}

func open(to sdktrace.SpanExporter, s settings, cfg Config, log zerolog.Logger) *Tracing {
	stop, abandon := context.WithCancel(context.Background())
	service := s.service
	if service == "" {
		service = "docket-" + cfg.Program
	}
	attributes := append(s.attributes, semconv.ServiceName(service), semconv.ServiceVersion(buildinfo.String()), semconv.ServiceInstanceID(cfg.Instance))
	t := &Tracing{
		abandon: abandon, header: "traceparent", replay: cfg.Replay,
		groups: cfg.Groups, letters: cfg.DeadLetters,
		// A batch that forwards hundreds of records gets spans for some of them.
		publishes: rate.NewLimiter(mostRecords, 2*mostRecords),
		provider: sdktrace.NewTracerProvider(
			sdktrace.WithBatcher(&exporter{SpanExporter: to, log: log, stop: stop},
				sdktrace.WithMaxQueueSize(mostWaiting), sdktrace.WithMaxExportBatchSize(mostTogether)),
			sdktrace.WithSampler(s.sampler),
			sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
				AttributeValueLengthLimit: 1024, AttributeCountLimit: 64, EventCountLimit: 64, LinkCountLimit: mostLinks,
				AttributePerEventCountLimit: 16, AttributePerLinkCountLimit: 4,
			}),
			sdktrace.WithResource(resource.NewWithAttributes(semconv.SchemaURL, attributes...)),
		),
	}
	if cfg.Replay {
		t.header = envelope.Traceparent
	}
	t.tracer = t.provider.Tracer("docket", trace.WithSchemaURL(semconv.SchemaURL))
	return t
}

// Close sends what waits to be sent and returns soon, sent or not. It may be called on nil.
func (t *Tracing) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	defer t.abandon()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last spans: %w", err)
	}
	return nil
}
