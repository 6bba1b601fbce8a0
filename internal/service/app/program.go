package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"docket/internal/consumer/lanes"
	"docket/internal/consumer/pipeline"
	"docket/internal/consumer/replay"
	"docket/internal/fallback"
	"docket/internal/kafka"
	"docket/internal/service/buildinfo"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
	"docket/internal/service/tracing"
)

// Dial connects to an address.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Options are what a program can be told beside its settings. The zero value is right for all but tests.
type Options struct {
	// Once ends the replayer when nothing in the parking topic is due any more.
	Once bool
	// Instance names this process among others. Default: host and process id.
	Instance string
	// Parts replaces what the settings would open.
	Parts *Parts
	// DialKafka replaces the way to connect to the brokers.
	DialKafka Dial
	// DialDatabase replaces the way to connect to the database.
	DialDatabase Dial
	// Disk replaces the spool's directory where the settings name one.
	Disk fallback.FS
	// Listen replaces the way to listen on the HTTP address.
	Listen func(network, address string) (net.Listener, error)
	// Environ is the environment, as os.Environ has it, in which OpenTelemetry's own variables are looked for. nil: no traces.
	Environ []string
	// Patience is how long a batch may go without a sign of progress before /healthz turns red; after twice as long the
	// program ends. Default: the retry budget, at least 30 s.
	Patience time.Duration
	// Decided is told the rule of each decision on a batch that failed, as in [pipeline.Config]. nil: nobody listens.
	Decided func(rule string)
}

// Program is the consumer or the replayer: the same pipeline on another topic, another group, and in the replayer with
// a gate before it.
type Program struct {
	name     config.Program
	settings config.Settings
	options  Options
	patience time.Duration
	log      zerolog.Logger
	parts    *Parts
	observer *telemetry.Observer
	tracing  *tracing.Tracing // nil: none
	pipe     *pipeline.Pipeline
	lanes    []lane
	source   sources
	faults   []*Faults // one for each source
	turns    *lanes.Turns
	yielding atomic.Pointer[time.Time] // since when the low lanes yield; nil: they do not
	limits   *Limits                   // nil: none
	http     *Server
	grace    time.Duration

	mu       sync.Mutex
	windows  map[*replay.Window]struct{}
	stopping bool
}

// New opens what the program needs and dials nobody: a database or a Kafka that is away is not an error. Errors
// are a spool that cannot be used ([*SpoolError]), a wrong database URL ([*db.ConfigError]), and an HTTP address that is
// taken. After New there has to be a Close.
func New(name config.Program, s config.Settings, log zerolog.Logger, reg *prometheus.Registry, o Options) (*Program, error) {
	if o.Instance == "" {
		o.Instance = Instance()
	}
	log = telemetry.Calm(log.With().Str(telemetry.KeyProgram, string(name)).Logger())
	p := &Program{
		name: name, settings: s, options: o, log: log, parts: o.Parts, patience: o.Patience, grace: grace, windows: map[*replay.Window]struct{}{},
	}
	if p.patience <= 0 {
		p.patience = patience(s)
	}
	// The address first: a second process on the same host is told so before it touches anything.
	if o.Listen == nil {
		o.Listen = Listen
	}
	listener, err := o.Listen("tcp", s.HTTPAddr)
	if err != nil {
		return nil, fmt.Errorf("listen on DOCKET_HTTP_ADDR %s: %w", s.HTTPAddr, err)
	}
	p.tracing = tracing.Open(o.Environ, tracing.Config{
		Program: string(name), Instance: o.Instance, Replay: name == config.Replayer,
		Groups: groupsOf(s),
	}, log)
	labelled := Labelled(s, reg)
	if p.parts == nil {
		wired, trip, err := tripwires(name, s, o)
		if err == nil {
			p.parts, err = open(name, s, wired, p.tracing, log, labelled)
		}
		if err != nil {
			return nil, errors.Join(err, listener.Close(), p.tracing.Close())
		}
		trip(p.parts)
	}
	if p.limits, err = openLimits(name, s, p.share, log, labelled); err != nil {
		p.closeParts()
		return nil, errors.Join(err, listener.Close(), p.tracing.Close())
	}
	p.assemble(labelled)
	p.http = NewServer(listener, p, reg)
	return p, nil
}

// Listen binds an address. That waits for nobody, so there is no context to end it.
func Listen(network, address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), network, address)
}

// assemble joins the parts.
func (p *Program) assemble(reg prometheus.Registerer) {
	s := p.settings
	p.source = p.parts.Sources
	for i, l := range lanesOf(p.name, s) {
		p.lanes = append(p.lanes, lane{l, p.source[i]})
	}
	p.turns = turnsOf(len(p.lanes))
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	telemetry.RegisterBuild(string(p.name), reg)
	told := telemetry.Config{
		Topics:  []string{s.KafkaDLQTopic, s.KafkaParkingTopic, s.KafkaParkingDLQTopic},
		Reasons: reasons(), Lag: p.source.Lag, Waiting: p.waiting,
		Assigned: p.source.Assigned, LastCommit: p.source.LastCommit, Retention: p.source.Retention, Lanes: p.byLane(),
	}
	// An interface that holds nothing is not nil to whoever is given it.
	var spool pipeline.Spool
	if p.parts.Spool != nil {
		told.Spool, spool = p.parts.Spool.Stats, p.parts.Spool
	}
	p.observer = telemetry.New(told, reg, p.log)
	if s.Share() != nil {
		telemetry.RegisterUnowned(p.source.Unowned, reg)
	}
	for _, src := range p.source {
		p.faults = append(p.faults, NewFaults(src, p.observer.Holding))
	}
	cfg := pipeline.Config{
		Program:  string(p.name),
		DLQTopic: s.KafkaDLQTopic, ParkingTopic: s.KafkaParkingTopic, ParkingDLQTopic: s.KafkaParkingDLQTopic,
		MaxRecordBytes: int64(s.MaxRecordBytes), MaxRefused: s.MaxRefused, BatchBytes: int64(s.BatchMaxBytes), Turns: p.turns, RetryPauses: s.RetryPauses, ParkBatches: s.ParkBatches, ProbeInterval: s.ProbeInterval, PublishTimeout: s.PublishTimeout,
		Backoff: s.ParkingBackoff, MaxBackoff: s.ParkingMaxBackoff, MaxAttempts: s.ParkingMaxAttempts,
		Consumer: p.lanes[0].Group + "/" + p.options.Instance, Replay: p.name == config.Replayer, Keys: s.HeaderKeys(),
		Decided: p.options.Decided,
	}
	if len(p.lanes) > 1 {
		cfg.LaneOf, cfg.ConsumerOf = s.LaneOf, p.consumerOf
	}
	if p.limits != nil {
		cfg.Tokens = p.limits.gate
	}
	db := p.observer.Timed(p.parts.Database)
	if p.tracing != nil {
		cfg.Tracer, db = p.tracing, p.tracing.Store(db)
		if spool != nil {
			spool = p.tracing.Spool(spool)
		}
	}
	p.pipe = pipeline.New(cfg, db, p.parts.Publisher, spool, p.observer, p.log)
}

// consumerOf is the group of a lane's topic and this instance.
func (p *Program) consumerOf(topic string) string {
	for _, l := range p.lanes {
		if l.Topic == topic {
			return l.Group + "/" + p.options.Instance
		}
	}
	return p.lanes[0].Group + "/" + p.options.Instance
}

// turns is how many batches are decoded and written at a time. Two writers keep two cores of a database busy. A few more
// hide the network. Beyond that a batch only costs memory while it waits.
const turns = 4

// queued is how many batches wait in the queues of all partitions together, in bytes.
const queued = 5

// Addr is where HTTP is served.
func (p *Program) Addr() net.Addr { return p.http.Addr() }

// Close gives up what New opened, in reverse order. It comes after Run.
func (p *Program) Close() {
	p.http.Close()
	p.closeParts()
	p.limits.Close()
	if err := p.tracing.Close(); err != nil {
		p.log.Debug().Str(telemetry.KeyReason, "timeout").Msg("last traces not exported")
	}
}

func (p *Program) closeParts() {
	if p.parts.Close != nil {
		p.parts.Close()
	}
}

// grace is what leaving the group and closing may take beyond the shutdown timeout.
const grace = 5 * time.Second

// Run works until ctx ends, and returns nil then: no more fetching, the batch in hand is brought home within the
// shutdown timeout, its offset is committed, the group is left. With Once it also ends when there is nothing more to
// do. After [ErrWedged] and [ErrOverdue] something may still be running, and Close could wait for it for ever.
func (p *Program) Run(ctx context.Context) error {
	line := p.log.Info().Str(telemetry.KeyVersion, buildinfo.String()).Str(telemetry.KeyInstance, p.options.Instance).
		Str(telemetry.KeyTopic, p.lanes[0].Topic).Str(telemetry.KeyGroup, p.lanes[0].Group).Stringer(telemetry.KeyAddr, p.Addr()).
		Str(telemetry.KeyDir, p.settings.SpoolDir)
	if len(p.lanes) > 1 {
		line.Interface(telemetry.KeyLanes, p.laneTopics())
	}
	line.Msg("program started")
	return Outlive(ctx, p.settings.ShutdownTimeout+p.grace, p.log, p.stop, p.join)
}

// stop notes that the program is leaving, for /readyz.
func (p *Program) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
	p.log.Info().Msg("stop requested")
}

// join runs everything until fetching ends. The first part that fails ends all. The parts that serve the source outlive
// it: HTTP, the spool, the watchdog.
func (p *Program) join(fetching context.Context, stop context.CancelCauseFunc) error {
	upkeep, end := context.WithCancel(context.WithoutCancel(fetching))
	defer end()
	var all errgroup.Group
	run := func(f func() error) {
		all.Go(func() error {
			err := f()
			if err != nil {
				stop(err)
			}
			return err
		})
	}
	first := make(chan struct{})
	tried := sync.OnceFunc(func() { close(first) })
	if p.settings.AutoMigrate {
		run(func() error { p.migrate(fetching, tried); return nil })
	} else {
		tried()
	}
	run(func() error {
		defer end()
		defer stop(nil)
		select {
		case <-first:
		case <-fetching.Done():
		case <-time.After(migrating):
		}
		return p.source.Run(fetching, p.carry)
	})
	run(func() error { p.awaitDatabase(fetching); return nil })
	run(func() error { p.keepPartitions(fetching, first); return nil })
	run(func() error { return p.http.Run(upkeep) })
	for _, f := range p.faults {
		run(func() error { f.Run(upkeep); return nil })
	}
	run(func() error { p.keepYielding(fetching); return nil })
	run(func() error { return p.watch(upkeep) })
	if p.parts.Spool != nil {
		run(func() error { return p.parts.Spool.Run(upkeep, p.pipe.Idle, p.parts.Publisher) })
	}
	return all.Wait()
}

// carry carries one partition.
func (p *Program) carry(ctx context.Context, a Assignment) error {
	if p.name != config.Replayer {
		return p.pipe.Run(ctx, a)
	}
	s := p.settings
	w := replay.New(replay.Config{
		Lookahead: s.ParkingLookahead, Weigh: kafka.RecordBytes, MaxBackoff: s.ParkingMaxBackoff,
		BatchRecords: s.BatchMaxRecords, BatchBytes: int64(s.BatchMaxBytes), BatchWait: s.BatchMaxWait, Keys: s.HeaderKeys(), Unproven: p.unproven,
		Unread: func(offsets int64) { p.unread(a, offsets) }, Once: p.options.Once,
		First: p.first(),
	}, a)
	p.mu.Lock()
	p.windows[w] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.windows, w)
		p.mu.Unlock()
	}()
	return p.pipe.Run(ctx, w)
}

// unproven says that somebody else may have written to the parking topic.
func (p *Program) unproven(n int, first *kgo.Record) {
	p.log.Warn().Int("records", n).Str("topic", first.Topic).Int32("partition", first.Partition).Int64("offset", first.Offset).
		Str("hint", "somebody without the key of DOCKET_HEADER_KEY wrote to this topic, or the key is newer than the records; they are replayed as never tried").
		Msg("parked records without proof")
}

// unread says that a run with Once left records that may be due.
func (p *Program) unread(a Assignment, offsets int64) {
	p.log.Warn().Int64("offsets", offsets).Str("topic", a.Topic()).Int32("partition", a.Partition()).
		Str("hint", "records before them wait for their time and fill DOCKET_PARKING_LOOKAHEAD or the memory; run --once again when those are due, or raise DOCKET_PARKING_LOOKAHEAD").
		Msg("parked records not looked at")
}

// waiting is how many parked records were read and are not due.
func (p *Program) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for w := range p.windows {
		n += w.Waiting()
	}
	return n
}
