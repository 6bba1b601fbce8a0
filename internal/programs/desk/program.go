package desk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"docket/internal/desk/console/openid"
	"docket/internal/desk/peers"
	"docket/internal/desk/worker"
	"docket/internal/history/cold"
	"docket/internal/history/complete"
	"docket/internal/kafka"
	"docket/internal/postgres/schema"
	"docket/internal/service/app"
	"docket/internal/service/buildinfo"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
)

// Options replace parts of the desk. Only tests need them.
type Options struct {
	// Instance names this process among others. Default: host, process id and a few letters, as a container's first process
	// always has the same id.
	Instance string
	// DialKafka replaces the way to connect to the brokers.
	DialKafka app.Dial
	// DialDatabase replaces the way to connect to the database.
	DialDatabase app.Dial
	// Patience is how long a batch may go without a sign of progress before /healthz turns red; after twice as long the
	// program ends. Default: as long as writing and publishing may take, at least 30 s.
	Patience time.Duration
	// TokensEvery is how often the file of the API's tokens is read again. Default 2 s.
	TokensEvery time.Duration
	// Environ is the environment, as os.Environ has it, that the console shows the settings of. nil: it shows none.
	Environ []string
}

// Program is the desk.
type Program struct {
	settings config.Settings
	options  Options
	patience time.Duration
	log      zerolog.Logger
	parts    *parts
	holds    *telemetry.Holding
	faults   []*app.Faults
	pulse    pulse
	http     *app.Server
	api      *listener         // nil: none
	complete *complete.Watch   // nil: no API asks it
	shards   []*complete.Watch // of every shard; none without shards
	days     *cold.Days        // nil: no API asks them
	signing  *openid.Provider  // nil: no login by OpenID Connect
	peers    *peers.Watch      // nil: the settings name none, or there is no console
	stopping atomic.Bool

	intake  *worker.Intake
	workers []runner
}

// runner is work that runs until its context ends, and then returns nil.
type runner interface {
	Run(ctx context.Context) error
}

// New opens the parts of the desk and dials nobody, so a database or a Kafka that is away is not an error. An address that is taken is
// one, as is a database URL that cannot be used ([*db.ConfigError]). After New there has to be a Close.
func New(s config.Settings, log zerolog.Logger, reg *prometheus.Registry, o Options) (*Program, error) {
	if o.Instance == "" {
		o.Instance = instance()
	}
	if o.TokensEvery <= 0 {
		o.TokensEvery = app.RenewEvery
	}
	log = telemetry.Calm(log.With().Str(telemetry.KeyProgram, string(config.Desk)).Logger())
	p := &Program{settings: s, options: o, log: log, patience: o.Patience}
	if p.patience <= 0 {
		p.patience = max(30*time.Second, 2*s.StoreTimeout+s.PublishTimeout)
	}
	// The addresses come first: a second process on the same host fails before it touches anything.
	listener, err := app.Listen("tcp", s.HTTPAddr)
	if err != nil {
		return nil, fmt.Errorf("listen on DOCKET_HTTP_ADDR %s: %w", s.HTTPAddr, err)
	}
	p.http = app.NewServer(listener, p, reg)
	if err := p.assemble(app.Labelled(s, reg)); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// assemble opens and joins the parts.
func (p *Program) assemble(reg prometheus.Registerer) error {
	var err error
	if p.parts, err = open(p.settings, p.options, p.log, reg); err != nil {
		return err
	}
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	telemetry.RegisterBuild(string(config.Desk), reg)
	p.holds = telemetry.NewHolding(app.HoldReasons(), reg, p.log)
	for _, src := range p.parts.sources {
		p.faults = append(p.faults, app.NewFaults(src, p.holds))
	}
	return p.work(reg)
}

// Addr is where /healthz, /readyz and /metrics are served.
func (p *Program) Addr() string { return p.http.Addr().String() }

// Close closes the parts in reverse order. It comes after Run.
func (p *Program) Close() {
	p.http.Close()
	if p.api != nil {
		p.api.close()
	}
	if p.signing != nil {
		p.signing.Close()
	}
	p.days.Close()
	if p.peers != nil {
		p.peers.Close()
	}
	if p.parts != nil {
		p.parts.close()
	}
}

// grace is what leaving the group and closing may take beyond the shutdown timeout.
const grace = 5 * time.Second

// Run works until ctx ends, and returns nil then. It fetches no more, and enters and commits the current batch within the shutdown
// timeout. It notes published retries, hands jobs over, and leaves the group. After [app.ErrWedged] and
// [app.ErrOverdue] something may still be running, and Close could wait for it for ever.
func (p *Program) Run(ctx context.Context) error {
	s := p.settings
	p.log.Info().Str(telemetry.KeyVersion, buildinfo.String()).Str(telemetry.KeyInstance, p.options.Instance).
		Strs(telemetry.KeyTopics, []string{s.KafkaDLQTopic, s.KafkaParkingDLQTopic}).Str(telemetry.KeyGroup, s.DeskGroup).
		Str(telemetry.KeyAddr, p.Addr()).Str(telemetry.KeyAPI, p.apiAddr()).Msg("program started")
	return app.Outlive(ctx, s.ShutdownTimeout+grace, p.log, func() {
		p.stopping.Store(true)
		p.log.Info().Msg("stop requested")
	}, p.join)
}

// join runs everything until working ends; the first that fails ends all. HTTP, the faults and the
// watchdog outlive it.
func (p *Program) join(working context.Context, stop context.CancelCauseFunc) error {
	upkeep, end := context.WithCancel(context.WithoutCancel(working))
	defer end()
	var all, serving errgroup.Group
	run := func(g *errgroup.Group, f func() error) {
		g.Go(func() error {
			err := f()
			if err != nil {
				stop(err)
			}
			return err
		})
	}
	first := make(chan struct{})
	looked := sync.OnceFunc(func() { close(first) })
	if p.settings.AutoMigrate {
		run(&all, func() error {
			app.Migrate(working, schema.New(p.parts.db.DB), p.holds, p.settings.ProbeInterval, p.log, func() {})
			return nil
		})
	}
	run(&all, func() error { p.lookout(working, looked); return nil })
	run(&all, func() error { tellFormer(working, p.settings, p.parts.reader, p.log); return nil })
	for _, src := range p.parts.sources {
		run(&all, func() error { p.await(working, first); return src.Run(working, p.carry) })
	}
	for _, w := range p.workers {
		run(&all, func() error { p.await(working, first); return w.Run(working) })
	}
	if p.api != nil {
		run(&all, func() error { return p.api.run(working) })
		run(&all, func() error { return p.complete.Run(working) })
		for _, w := range p.shards {
			run(&all, func() error { return w.Run(working) })
		}
	}
	run(&serving, func() error { return p.http.Run(upkeep) })
	run(&serving, func() error { return p.watch(upkeep.Done()) })
	if p.api != nil {
		run(&serving, func() error { p.renew(upkeep); return nil })
		run(&serving, func() error { return p.days.Warm(upkeep) })
		if all := p.parts.everywhere; all != nil {
			run(&serving, func() error { return all.Warm(upkeep) })
		}
	}
	for _, f := range p.faults {
		run(&serving, func() error { f.Run(upkeep); return nil })
	}
	err := all.Wait()
	end()
	return errors.Join(err, serving.Wait())
}

// await waits for the first answer of the ledger, but not for ever.
func (p *Program) await(ctx context.Context, first <-chan struct{}) {
	select {
	case <-first:
	case <-ctx.Done():
	case <-time.After(looking):
	}
}

// carry enters the dead letters of one partition.
func (p *Program) carry(ctx context.Context, a *kafka.Assignment) error {
	h, release := p.pulse.take(a)
	defer release()
	return p.intake.Carry(ctx, h)
}
