package db

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"docket/internal/errclass"
)

// Config says where the database is and how patient to be with it.
type Config struct {
	// URL is a connection URL or key-value string as libpq takes it. Several hosts are tried in order until one takes
	// writes, whatever target_session_attrs says.
	URL string
	// Fresh gives the URL as it is now; it is asked before each connection that is made. nil: URL stays. Where it fails, or
	// gives an unusable URL, the last usable one is kept. The size of the pool stays what it was at the start.
	Fresh func() (string, error)
	// StoreTimeout is the longest that storing a batch or one probe may take in all, connecting included. The server is
	// given a statement_timeout and a lock_timeout below it, so that it gives up before we do. Default 30 s.
	StoreTimeout time.Duration
	// MaxConns is the size of the pool; a fresh connection is beside it. Default 4, or pool_max_conns of the URL. It
	// should not be smaller than the number of partitions carried at once.
	MaxConns int32
	// HalfMaxConns has the pool be half as large, and 2 at least: it is the second one of its program.
	HalfMaxConns bool
	// ApplicationName is what pg_stat_activity shows. Default "docket".
	ApplicationName string
	// ReadOnly takes a node that takes no writes as well, for looking alone. Of several hosts a standby is the last choice.
	ReadOnly bool
	// OneEditor has a migration switch the rule off that evidence is edited by two persons; else it switches it on.
	OneEditor bool
	// Dialer replaces the way to connect, for tests; names are then its own to look up.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)
	// Tracer is told of statements, as the driver tells it; nil: nobody is.
	Tracer pgx.QueryTracer
}

const (
	defaultStoreTimeout = 30 * time.Second
	defaultMaxConns     = 4
	connectTimeout      = 10 * time.Second
	maxConnLifetime     = 30 * time.Minute
	maxConnIdleTime     = 5 * time.Minute
	encoding            = "UTF8"
)

// DB is the database. It is safe for concurrent use.
type DB struct {
	pool    *pgxpool.Pool
	where   *whereabouts // for every connection
	timeout time.Duration
	logger  zerolog.Logger
	closed  atomic.Bool
	full    atomic.Bool // the last write found the disk full

	witnesses witnesses // connections to ask on a second time
}

// ConfigError says that the connection string cannot be used. It never holds any of it.
type ConfigError struct {
	// Reason is in words of our own.
	Reason string
}

func (e *ConfigError) Error() string { return "the database URL cannot be used: " + e.Reason }

// Open prepares a pool of connections and makes none, so it does not fail where the database is away. An error is a
// [*ConfigError].
func Open(cfg Config, logger zerolog.Logger) (*DB, error) {
	pc, err := poolConfig(cfg)
	if err != nil {
		return nil, errclass.As(err, errclass.CodeConfig)
	}
	db := &DB{where: &whereabouts{cfg: cfg, log: logger}, timeout: cfg.StoreTimeout, logger: logger}
	if err := db.where.read(cfg.URL); err != nil {
		return nil, errclass.As(err, errclass.CodeConfig)
	}
	pc.BeforeConnect, pc.PrepareConn = db.where.before, askStandby
	if db.timeout <= 0 {
		db.timeout = defaultStoreTimeout
	}
	// The background context is the pool's own upkeep, which ends with Close.
	if db.pool, err = pgxpool.NewWithConfig(context.Background(), pc); err != nil {
		return nil, errclass.As(&ConfigError{Reason: "the pool's settings contradict each other"}, errclass.CodeConfig)
	}
	return db, nil
}

// Complaint is what is wrong with a connection string, in words that quote nothing of it; empty where it can be used.
// Nothing is dialled.
func Complaint(url string) string {
	_, err := poolConfig(Config{URL: url})
	if wrong := (*ConfigError)(nil); errors.As(err, &wrong) {
		return wrong.Reason
	}
	return ""
}

func poolConfig(cfg Config) (*pgxpool.Config, error) {
	if strings.TrimSpace(cfg.URL) == "" {
		return nil, &ConfigError{Reason: "it is empty"}
	}
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, &ConfigError{Reason: complaint(cfg.URL, err)}
	}
	switch {
	case cfg.MaxConns > 0:
		pc.MaxConns = cfg.MaxConns
	case !strings.Contains(cfg.URL, "pool_max_conns"):
		pc.MaxConns = defaultMaxConns
	}
	if cfg.HalfMaxConns {
		pc.MaxConns = max(pc.MaxConns/2, 2)
	}
	pc.MinConns, pc.MinIdleConns = 0, 0 // nothing is dialled before it is needed
	pc.MaxConnLifetime, pc.MaxConnLifetimeJitter = maxConnLifetime, maxConnLifetime/10
	pc.MaxConnIdleTime = maxConnIdleTime

	cc := pc.ConnConfig
	cc.Tracer = cfg.Tracer
	// Every statement by the extended protocol, unnamed: no state on the server that a pooler could mix up.
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	cc.StatementCacheCapacity, cc.DescriptionCacheCapacity = 0, 0
	cc.ValidateConnect = speaksUTF8
	if !cfg.ReadOnly {
		cc.ValidateConnect = takesWrites
	}
	cc.OnNotice = noteWarning
	watchTLS(cc)
	if cc.ConnectTimeout <= 0 {
		cc.ConnectTimeout = connectTimeout
	}
	if cfg.ApplicationName == "" {
		cfg.ApplicationName = "docket"
	}
	cc.RuntimeParams["application_name"] = cfg.ApplicationName
	cc.RuntimeParams["client_encoding"] = encoding // whatever the role, the database or the URL has
	// The driver reads no other dates, and statements have backslashes. A pooler carries these settings for each client.
	cc.RuntimeParams["DateStyle"], cc.RuntimeParams["standard_conforming_strings"] = "ISO, MDY", "on" // as a server reports them
	if cfg.Dialer != nil {
		cc.DialFunc = cfg.Dialer
		cc.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	}
	return pc, nil
}

// complaint tells what is wrong with a connection string without showing any of it: the driver's own error carries the
// whole of it.
func complaint(dsn string, err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return "a file that it names (sslrootcert, sslcert, sslkey, servicefile) cannot be read"
	}
	if strings.Contains(dsn, "://") {
		u, err := url.Parse(dsn)
		switch {
		case err != nil:
			return "it is not a URL; special characters in user name and password must be percent-encoded (@ is %40, / is %2F)"
		case u.Scheme != "postgres" && u.Scheme != "postgresql":
			return "it must begin with postgres:// or postgresql://"
		}
	}
	return "it is not of the form postgres://user:password@host:5432/database?sslmode=verify-full, or a setting in it has a value that there is not"
}

// Usable says whether the pool is open: its error has the code pool_closed.
func (db *DB) Usable() error {
	if db.closed.Load() {
		return ErrPoolClosed()
	}
	return nil
}

// Pool is the pool of connections.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Timeout is the store timeout: the longest that one act may take in all.
func (db *DB) Timeout() time.Duration { return db.timeout }

// Logger is the log of what happens to the database.
func (db *DB) Logger() *zerolog.Logger { return &db.logger }

// ConnConfig is how to connect just now, for the caller to keep and change.
func (db *DB) ConnConfig() *pgx.ConnConfig { return db.where.now() }

// OneEditor is that of [Config].
func (db *DB) OneEditor() bool { return db.where.cfg.OneEditor }

// Clean makes err safe to show, as [Clean] does, and knows what the server asked for when it was dialled.
func (db *DB) Clean(act string, err error) error { return db.where.clean(act, err) }

// FoundFull says whether the last write found the server's disk full.
func (db *DB) FoundFull() bool { return db.full.Load() }

// FoundRoom notes that a write found room on the server's disk.
func (db *DB) FoundRoom() { db.full.Store(false) }

// Close waits for what is under way, which is never longer than the store timeout, and closes all connections.
// Afterwards everything fails with the code pool_closed.
func (db *DB) Close() {
	db.closed.Store(true)
	db.witnesses.close()
	db.pool.Close()
}
