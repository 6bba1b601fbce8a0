package desk

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/audit/inspect"
	"docket/internal/kafka"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/store"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
)

// parts are the parts of the desk.
type parts struct {
	brokers    kafka.Config
	sources    []*kafka.Source
	db         *store.Store
	ledger     *ledgerdb.Ledger
	owner      *store.Store // by which days are archived: db, or as another role
	asked      *store.Store // a pool for the API, so that its clients cannot use up the connections of the desk
	sessions   *store.Store // a small pool for the console's sessions, so that slow searches log nobody out
	publisher  *kafka.Publisher
	everywhere *inspect.Everywhere // all shards; nil: there is one database
	reader     *kafka.Reader
	watched    []*kafka.Reader // of every shard, with all partitions
	close      func()          // closes what was opened, in reverse order
}

// after closes something more, before everything else.
func (p *parts) after(more func()) {
	before := p.close
	p.close = func() { more(); before() }
}

// How dead letters are read: in portions that one transaction takes, and of which little has to be read again.
const (
	batchRecords = 500
	batchBytes   = 8 << 20
	bufferBytes  = 2 * batchBytes
)

// sessionConns are the connections for sessions. Each statement there reads or writes one row by its key.
const sessionConns = 4

// open makes the real parts. None of them dials.
func open(s config.Settings, o Options, log zerolog.Logger, reg prometheus.Registerer) (p *parts, err error) {
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
	p = &parts{close: closeAll}
	if p.brokers, err = app.Kafka(s, o.Instance); err != nil {
		return nil, err
	}
	p.brokers.Dialer = o.DialKafka
	if p.db, err = app.OpenDatabaseBy(s, config.Desk, o.DialDatabase, log); err != nil {
		return nil, err
	}
	closers = append(closers, p.db.Close)
	p.owner = p.db
	if archive, own := s.ForArchive(); own {
		if p.owner, err = app.OpenDatabaseFor("archive", archive, config.Desk, o.DialDatabase, log); err != nil {
			return nil, err
		}
		closers = append(closers, p.owner.Close)
	}
	if p.asked, err = app.OpenDatabaseFor("api", s, config.Desk, o.DialDatabase, log); err != nil {
		return nil, err
	}
	closers = append(closers, p.asked.Close)
	if s.DeskAPIAddr != "" && s.DeskConsole {
		if p.sessions, err = app.OpenDatabaseOf(sessionConns, "sessions", s, config.Desk, o.DialDatabase, log); err != nil {
			return nil, err
		}
		closers = append(closers, p.sessions.Close)
	}
	if p.everywhere, err = inspect.AskAll(s, func(one config.Settings) (*store.Store, error) {
		return app.OpenDatabaseFor("shards", one, config.Desk, o.DialDatabase, log)
	}, inspect.Sight{Shelf: shelfOf(s)}); err != nil {
		return nil, err
	}
	if p.everywhere != nil {
		closers = append(closers, p.everywhere.Close)
		for _, one := range p.everywhere.Shards {
			r, err := openWatched(one.Settings, o)
			if err != nil {
				return nil, err
			}
			p.watched = append(p.watched, r)
			closers = append(closers, r.Close)
		}
	}
	pools := map[string]*store.Store{"work": p.db, "api": p.asked}
	if p.sessions != nil {
		pools["sessions"] = p.sessions
	}
	for pool, db := range pools {
		prometheus.WrapRegistererWith(prometheus.Labels{"pool": pool}, reg).MustRegister(db.Collector())
	}
	p.ledger = ledgerdb.New(p.db.DB).Bounded(s.DeskMaxEntered)

	if p.publisher, err = kafka.NewPublisher(p.brokers, kafka.PublisherConfig{Timeout: s.PublishTimeout}, log, reg); err != nil {
		return nil, err
	}
	closers = append(closers, p.publisher.Close)

	if p.reader, err = kafka.NewReader(p.brokers); err != nil {
		return nil, err
	}
	closers = append(closers, p.reader.Close)

	// Both are members of one group, each of its own topic: the assignor gives a partition only to a member that reads its topic.
	for _, topic := range []string{s.KafkaDLQTopic, s.KafkaParkingDLQTopic} {
		src, err := kafka.NewSource(p.brokers, kafka.SourceConfig{
			Topic: topic, Group: s.DeskGroup, BatchRecords: batchRecords, BatchBytes: batchBytes, BufferBytes: bufferBytes, Drain: s.ShutdownTimeout,
		}, log, prometheus.WrapRegistererWith(prometheus.Labels{"reads": topic}, reg))
		if err != nil {
			return nil, err
		}
		p.sources = append(p.sources, src)
		closers = append(closers, src.Close)
	}
	telemetry.RegisterLag(p.lag, reg)
	return p, nil
}

// lag tells how far each partition of both dead-letter topics is behind.
func (p *parts) lag() (all []telemetry.Lag) {
	for _, src := range p.sources {
		all = append(all, app.Lags(src.Lag())...)
	}
	return all
}

// openWatched makes the reader of a watch. It dials nobody.
func openWatched(s config.Settings, o Options) (*kafka.Reader, error) {
	brokers, err := app.Kafka(s, o.Instance)
	if err != nil {
		return nil, err
	}
	brokers.Dialer, brokers.Shares = o.DialKafka, nil
	return kafka.NewReader(brokers)
}
