package app

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/consumer/replay"
	"docket/internal/consumer/shards"
	"docket/internal/fallback"
	"docket/internal/kafka"
	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/record/commitnote"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
	"docket/internal/service/tracing"
)

// Assignment is one partition that is ours, with what the replayer's gate needs besides.
type Assignment = replay.Assigned

// Source brings partitions.
type Source interface {
	// Run reads until ctx ends or there is nothing more to do, and calls carry for every partition that is ours. After
	// the end of ctx it brings the batches in hand home, within the shutdown timeout, and leaves the group.
	Run(ctx context.Context, carry func(context.Context, Assignment) error) error
	// Assigned is how many partitions are ours.
	Assigned() int
	// Partitions is how many partitions all members have; 0 while that is not known.
	Partitions() int
	// Joined says whether the group has given us an assignment, maybe an empty one.
	Joined() bool
	// Lag tells how far each partition that is ours is behind.
	Lag() []telemetry.Lag
	// LastCommit is when the brokers took a commit; zero before the first.
	LastCommit() time.Time
	// Retention is how long topics keep their records, where it is known; negative is for ever.
	Retention() map[string]time.Duration
	// Fault is the standing reason why something cannot be read, nil when all is well.
	Fault() error
}

// Database is the table and its migrations.
type Database interface {
	pipeline.Store
	Migrate(ctx context.Context) (applied int, err error)
	MakePartitions(ctx context.Context, ahead int) (made int, err error)
}

// Spool is the home of last resort with its recovery.
type Spool interface {
	pipeline.Spool
	// Run recovers until ctx ends; idle says that live traffic is.
	Run(ctx context.Context, idle func() bool, p pipeline.Publisher) error
	Stats() telemetry.Spool
}

// Parts are what a program is made of.
type Parts struct {
	Sources   []Source // one for each lane, in the order of [config.Settings.Lanes]; the replayer has one
	Database  Database
	Publisher pipeline.Publisher
	Spool     Spool  // nil: none
	Close     func() // closes what was opened, in reverse order
}

// Kafka is how the clients of a program reach the brokers. Certificates and passwords of files are read again at each
// connection.
func Kafka(s config.Settings, instance string) (kafka.Config, error) {
	secrets, err := s.Credentials()
	if err != nil {
		return kafka.Config{}, err
	}
	return kafka.Config{
		Shares: Shares(s), Brokers: s.KafkaBrokers, ClientID: "docket", InstanceLabel: instance,
		SessionTimeout: s.KafkaSessionTimeout, RebalanceTimeout: s.KafkaRebalanceTimeout,
		FreshTLS: secrets.TLS,
		Login:    kafka.Login{Mechanism: s.KafkaSASLMechanism, User: s.KafkaSASLUsername, Password: secrets.Password},
	}, nil
}

// Shares are the partitions of the source topics that a process works on, none without shards. The ranges are those of
// the topics of all lanes.
func Shares(s config.Settings) map[string]*shards.Share {
	share := s.Share()
	if share == nil {
		return nil
	}
	all := map[string]*shards.Share{}
	for _, topic := range s.SourceTopics() {
		all[topic] = share
	}
	return all
}

// Labelled returns a registry that gives all metrics of a shard the label shard. Without shards it is reg.
func Labelled(s config.Settings, reg *prometheus.Registry) prometheus.Registerer {
	if s.ShardName == "" {
		return reg
	}
	return prometheus.WrapRegistererWith(prometheus.Labels{"shard": s.ShardName}, reg)
}

// maxConns is the size of the pool where the URL does not say: every partition that is carried wants a connection,
// and they are only made when they are wanted.
const maxConns = 16

// OpenDatabase prepares the pool; it dials nothing. An error is a [*db.ConfigError].
func OpenDatabase(s config.Settings, program config.Program, log zerolog.Logger) (*store.Store, error) {
	return openDatabase(s, poolOf(program), nil, nil, log)
}

// OpenDatabaseBy is OpenDatabase with another way to connect; nil is the ordinary one.
func OpenDatabaseBy(s config.Settings, program config.Program, dial Dial, log zerolog.Logger) (*store.Store, error) {
	return openDatabase(s, poolOf(program), dial, nil, log)
}

// OpenDatabaseFor is OpenDatabaseBy for a second pool of the program, of half the size. A user that exhausts it does not block the others.
func OpenDatabaseFor(use string, s config.Settings, program config.Program, dial Dial, log zerolog.Logger) (*store.Store, error) {
	p := poolOf(program)
	p.name, p.halved = p.name+"-"+use, true
	return openDatabase(s, p, dial, nil, log)
}

// OpenDatabaseOf is OpenDatabaseFor for a pool of so many connections, whatever the URL says.
func OpenDatabaseOf(conns int32, use string, s config.Settings, program config.Program, dial Dial, log zerolog.Logger) (*store.Store, error) {
	p := poolOf(program)
	p.name, p.conns = p.name+"-"+use, conns
	return openDatabase(s, p, dial, nil, log)
}

// pool is one of a program's.
type pool struct {
	name   string // which the server shows
	halved bool
	conns  int32 // 0: as the URL says
}

func poolOf(program config.Program) pool { return pool{name: "docket-" + string(program)} }

func openDatabase(s config.Settings, p pool, dial Dial, traces *tracing.Tracing, log zerolog.Logger) (*store.Store, error) {
	cfg := db.Config{
		URL: s.DatabaseURL.Reveal(), Fresh: FreshDatabaseURL(s), StoreTimeout: s.StoreTimeout, ApplicationName: p.name, Dialer: dial, HalfMaxConns: p.halved, OneEditor: !s.DeskFourEyes,
	}
	if traces != nil {
		cfg.Tracer = traces.Statements()
	}
	switch {
	case p.conns > 0:
		cfg.MaxConns = p.conns
	case !strings.Contains(cfg.URL, "pool_max_conns"):
		cfg.MaxConns = maxConns
	}
	return store.Open(cfg, log)
}

// FreshDatabaseURL gives the database's URL as it is now: of its file, where it came from one.
func FreshDatabaseURL(s config.Settings) func() (string, error) {
	return func() (string, error) {
		url, err := s.FreshDatabaseURL()
		return url.Reveal(), err
	}
}

// Instance names this process among others: host and process id.
func Instance() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "docket"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// open makes the real parts. None of them dials; the spool's directory is locked.
func open(program config.Program, s config.Settings, o Options, traces *tracing.Tracing, log zerolog.Logger, reg prometheus.Registerer) (parts *Parts, err error) {
	var closers []func()
	closeAll := func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	brokers, err := Kafka(s, o.Instance)
	if err != nil {
		return nil, err
	}
	brokers.Dialer = o.DialKafka
	if traces != nil {
		brokers.Hooks = traces.Hooks()
	}
	parts = &Parts{Close: closeAll}

	notes := commitnote.NewKeeper(nil, nil) // one for all lanes
	if s.SpoolDir != "" {
		sp, err := openSpool(s, o, log)
		if err != nil {
			return nil, err
		}
		parts.Spool = sp
		closers = append(closers, func() { _ = sp.spool.Close() })
		notes = commitnote.NewKeeper(sp.held, nil)
	}
	db, err := openDatabase(s, poolOf(program), o.DialDatabase, traces, log)
	if err != nil {
		return nil, err
	}
	parts.Database = database{db, schema.New(db.DB)}
	closers = append(closers, db.Close)
	reg.MustRegister(db.Collector())

	publisher, err := kafka.NewPublisher(brokers, kafka.PublisherConfig{Timeout: s.PublishTimeout}, log, reg)
	if err != nil {
		return nil, err
	}
	parts.Publisher = publisher
	closers = append(closers, publisher.Close)

	of := lanesOf(program, s)
	var memory *kafka.Memory
	if len(of) > 1 {
		memory = kafka.NewMemory()
	}
	for i, l := range of {
		cfg := kafka.SourceConfig{
			Topic: l.Topic, Group: l.Group, BatchRecords: l.BatchRecords, BatchBytes: int64(s.BatchMaxBytes), BatchWait: l.BatchWait,
			BufferBytes:        buffer(l.Lane, len(of), s),
			MaxDecompressBytes: setBytes(s),
			Memory:             memory,
			Needs:              needed(program, s),
			Drain:              s.ShutdownTimeout, Once: o.Once,
			Notes: notes, Due: dueOf(program, s, o.Once),
		}
		if i == 0 { // one of them asks for all
			cfg.RetentionOf = append(s.SourceTopics(), s.KafkaParkingTopic, s.KafkaDLQTopic, s.KafkaParkingDLQTopic)
		} else {
			cfg.Role = "source-" + l.Name()
		}
		src, err := kafka.NewSource(brokers, cfg, log, reg)
		if err != nil {
			return nil, err
		}
		parts.Sources = append(parts.Sources, source{src})
		closers = append(closers, src.Close)
	}
	return parts, nil
}

// dueOf returns when a record that a program reads may be carried; nil: all at once. A run with Once waits for nothing.
func dueOf(program config.Program, s config.Settings, once bool) func(*kgo.Record) time.Time {
	if program != config.Replayer || once {
		return nil
	}
	keys := s.HeaderKeys()
	return func(r *kgo.Record) time.Time { return replay.Due(r, keys, s.ParkingMaxBackoff) }
}

// database makes a [Database] of a store and of its schema.
type database struct {
	*table
	*schema.Schema
}

// table has another name than its method [store.Store.Store], so that it can be embedded.
type table = store.Store

// source makes a [Source] of Kafka's.
type source struct{ *kafka.Source }

func (s source) Run(ctx context.Context, carry func(context.Context, Assignment) error) error {
	return s.Source.Run(ctx, func(ctx context.Context, a *kafka.Assignment) error { return carry(ctx, a) })
}

func (s source) Lag() []telemetry.Lag {
	return Lags(s.Source.Lag())
}

// Lags are a source's, as telemetry has them.
func Lags(lags []kafka.PartitionLag) []telemetry.Lag {
	all := make([]telemetry.Lag, len(lags))
	for i, l := range lags {
		all[i] = telemetry.Lag{Topic: l.Topic, Partition: l.Partition, Records: l.Lag, Oldest: l.Oldest, Stuck: l.Stuck}
	}
	return all
}

var (
	_ Source   = source{}
	_ Database = database{}
	_ Spool    = (*spool)(nil)
)

func spoolConfig(s config.Settings, instance string) fallback.Config {
	cfg := fallback.Config{Dir: s.SpoolDir, Instance: instance, MaxBytes: int64(s.SpoolMaxBytes), MaxAge: s.SpoolMaxAge, Keys: s.HeaderKeys()}
	if s.SpoolOnFull == "evict" {
		cfg.OnFull = fallback.Evict
	}
	return cfg
}
