package collect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"docket/internal/collector"
	"docket/internal/kafka"
	"docket/internal/service/app"
	"docket/internal/service/buildinfo"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
	"docket/internal/service/tracing"
)

// Options replace parts of the collector. Only tests need them.
type Options struct {
	// Instance names this process among others. Default: host and process id.
	Instance string
	// DialKafka replaces the way to connect to the brokers.
	DialKafka app.Dial
	// Farewell returns when a collector that stops may stop listening, or when its context ends. Default: after 2 s.
	Farewell func(context.Context)
	// TokensEvery is how often the files of tokens and rights are read again. Default 2 s.
	TokensEvery time.Duration
	// Environ is where the standard variables of OpenTelemetry are read from. Default: none of them, so no traces.
	Environ []string
}

// Program is the collector.
type Program struct {
	settings  config.Settings
	options   Options
	log       zerolog.Logger
	tracing   *tracing.Tracing // nil: none
	service   *collector.Collector
	publisher *kafka.Publisher
	brokers   kafka.Config // how they are asked whether they are there
	holds     *telemetry.Holding
	ready     readiness
	http      *app.Server
	uploads   *uploads
	admission admission
	stopping  atomic.Bool
}

// New opens the parts of the collector and dials nobody, so a Kafka that is away is not an error. An address that is taken is one, as
// is a setting that cannot be used ([config.Complaint]). After New there has to be a Close.
func New(s config.Settings, log zerolog.Logger, reg *prometheus.Registry, o Options) (*Program, error) {
	if o.Instance == "" {
		o.Instance = app.Instance()
	}
	if o.Farewell == nil {
		o.Farewell = bye
	}
	if o.TokensEvery <= 0 {
		o.TokensEvery = app.RenewEvery
	}
	p := &Program{settings: s, options: o, log: telemetry.Calm(log.With().Str(telemetry.KeyProgram, string(config.Collector)).Logger())}
	// The addresses come first: a second process on the same host fails before it touches anything.
	listener, err := app.Listen("tcp", s.HTTPAddr)
	if err != nil {
		return nil, fmt.Errorf("listen on DOCKET_HTTP_ADDR %s: %w", s.HTTPAddr, err)
	}
	p.http = app.NewServer(listener, p, reg)
	if err := p.assemble(reg); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// assemble opens and joins the parts.
func (p *Program) assemble(reg *prometheus.Registry) error {
	s := p.settings
	c, in, err := work(s)
	if err != nil {
		return err
	}
	p.admission.in = in
	c.Consumer = p.options.Instance
	p.tracing = tracing.Open(p.options.Environ, tracing.Config{
		Program: string(config.Collector), Instance: p.options.Instance, DeadLetters: s.KafkaDLQTopic,
	}, p.log)
	tls, err := s.CollectorTLS(app.ListenerFiles(p.log))
	if err != nil {
		return err
	}
	listener, err := app.Listen("tcp", s.CollectorAddr)
	if err != nil {
		return fmt.Errorf("listen on DOCKET_COLLECTOR_ADDR %s: %w", s.CollectorAddr, err)
	}
	p.uploads = newUploads(s, listener, tls, p)
	brokers, err := app.Kafka(s, p.options.Instance)
	if err != nil {
		return err
	}
	brokers.Dialer = p.options.DialKafka
	p.brokers = brokers
	if p.tracing != nil {
		c.Tracer, brokers.Hooks = p.tracing, p.tracing.Hooks()
	}
	p.publisher, err = kafka.NewPublisher(brokers, kafka.PublisherConfig{
		Timeout: s.PublishTimeout, MaxBufferedBytes: int(s.CollectorMemory), Linger: linger,
	}, p.log, reg)
	if err != nil {
		return err
	}
	if p.service, err = collector.New(c, p.publisher, reg, p.log); err != nil {
		return err
	}
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	telemetry.RegisterBuild(string(config.Collector), reg)
	p.holds = telemetry.NewHolding(reasons(), reg, p.log)
	return nil
}

// Addr is where /healthz, /readyz and /metrics are served.
func (p *Program) Addr() string { return p.http.Addr().String() }

// Uploads is where OPA uploads to.
func (p *Program) Uploads() net.Addr { return p.uploads.listener.Addr() }

// Close closes the parts in reverse order. It comes after Run.
func (p *Program) Close() {
	p.http.Close()
	if p.uploads != nil {
		p.uploads.close()
	}
	if p.publisher != nil {
		p.publisher.Close()
	}
	if err := p.tracing.Close(); err != nil {
		p.log.Debug().Str(telemetry.KeyReason, "timeout").Msg("last traces not exported")
	}
}

// linger is how long a decision waits for those of other uploads, so that many small ones are fewer requests for the brokers.
const linger = time.Millisecond

const (
	// farewell is how long a load balancer may take to see that /readyz has turned red.
	farewell = 2 * time.Second
	// grace is what closing may take beyond the shutdown timeout.
	grace = 5 * time.Second
)

func bye(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(farewell):
	}
}

// Run works until ctx ends, and returns nil then. It answers further uploads with 503. Uploads in progress get their answers within
// the shutdown timeout. OPA sends the others again. After [app.ErrOverdue] something may still be running, and Close
// could wait for it for ever.
func (p *Program) Run(ctx context.Context) error {
	s := p.settings
	p.log.Info().Str(telemetry.KeyVersion, buildinfo.String()).Str(telemetry.KeyInstance, p.options.Instance).
		Strs(telemetry.KeyTopics, append(s.SourceTopics(), s.KafkaDLQTopic)).
		Str(telemetry.KeyAddr, p.Addr()).Stringer(telemetry.KeyUploads, p.Uploads()).Msg("program started")
	return app.Outlive(ctx, s.ShutdownTimeout+grace, p.log, func() {}, p.join)
}

// join runs everything until working ends; the first that fails ends all. HTTP and the watchdog outlive the uploads.
func (p *Program) join(working context.Context, stop context.CancelCauseFunc) error {
	upkeep, end := context.WithCancel(context.WithoutCancel(working))
	defer end()
	var serving errgroup.Group
	serving.Go(func() error {
		defer stop(nil)
		return p.http.Run(upkeep)
	})
	serving.Go(func() error { p.watch(upkeep); return nil })
	serving.Go(func() error { p.renew(upkeep); return nil })
	serving.Go(func() error { p.renewRights(upkeep); return nil })
	err := p.uploads.run(working, p.options.Farewell, func() {
		p.stopping.Store(true)
		p.service.Close()
		p.log.Info().Msg("stop requested")
	}, func() {
		p.log.Warn().Str(telemetry.KeyHint, "if this repeats, check the brokers or raise DOCKET_SHUTDOWN_TIMEOUT; OPA sends these uploads again").
			Msg("uploads interrupted by shutdown")
	})
	end()
	return errors.Join(err, serving.Wait())
}
