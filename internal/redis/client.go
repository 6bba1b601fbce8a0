package redis

import (
	"context"
	_ "embed"
	"errors"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Deadline limits one call, with the way to an open connection. It is short, because a batch waits for it.
const Deadline = 200 * time.Millisecond

const (
	dialTimeout = 2 * time.Second // a connection that took longer than a call serves the next one
	connections = 4               // two calls run at a time: one of the urgent lane, one of the low lanes
)

// Config says where Redis is.
type Config struct {
	// URL is redis://user:password@host:port/database, or rediss:// for TLS. With ?addr=host:port the nodes are those
	// of a cluster.
	URL string
	// Fresh returns the URL as it is now, for the user and the password of a new connection; nil: they never change. After
	// an error the last ones stay in use.
	Fresh func() (string, error)
	// Dialer replaces the way to connect; nil: TCP.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	// Patience limits one call; 0: [Deadline].
	Patience time.Duration
}

// waits is how long a connection waits for its turn and for an answer, if the caller does not give up before.
func (c Config) waits() time.Duration { return max(time.Second, c.Patience) }

// errURL has no text of the URL, which may have a password.
var errURL = errors.New("DOCKET_REDIS_URL is not a URL of Redis")

func init() { redis.SetLogger(silent{}) }

// silent drops the lines of the library: they are not structured, and its errors come to the callers, too.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// open prepares a client. It dials nobody.
func open(cfg Config) (redis.UniversalClient, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, errURL
	}
	if u.Query().Has("addr") {
		return openCluster(cfg)
	}
	o, err := redis.ParseURL(cfg.URL)
	if err != nil {
		return nil, errURL
	}
	o.CredentialsProviderContext = newLogin(cfg).credentials
	if cfg.Dialer != nil {
		o.Dialer = cfg.Dialer
	}
	o.Protocol, o.DisableIdentity = 2, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.MaxRetries = -1 // the caller asks again; a call that was repeated would take twice
	o.DialerRetries, o.DialTimeout = 1, dialTimeout
	o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = true, cfg.waits(), cfg.waits(), cfg.waits()
	o.PoolSize = connections
	return redis.NewClient(o), nil
}

func openCluster(cfg Config) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(cfg.URL)
	if err != nil {
		return nil, errURL
	}
	o.CredentialsProviderContext = newLogin(cfg).credentials
	if cfg.Dialer != nil {
		o.Dialer = cfg.Dialer
	}
	o.Protocol, o.DisableIdentity = 2, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.MaxRetries, o.MaxRedirects = -1, 3 // a call that is repeated on another node takes its tokens there once more, and grants them once
	o.DialerRetries, o.DialTimeout = 1, dialTimeout
	o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = true, cfg.waits(), cfg.waits(), cfg.waits()
	o.PoolSize = connections
	return redis.NewClusterClient(o), nil
}

// login has the user and the password of new connections. It is safe for concurrent use.
type login struct {
	fresh func() (string, error)

	mu             sync.Mutex
	user, password string // the last readable ones
}

// newLogin returns the login of a URL that can be parsed.
func newLogin(cfg Config) *login {
	l := &login{fresh: cfg.Fresh}
	l.read(cfg.URL)
	return l
}

// read takes the user and the password of a URL. One without both is most likely the beginning of a URL with them.
func (l *login) read(text string) {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		l.user = u.User.Username()
		l.password, _ = u.User.Password()
	}
}

// credentials returns them for a new connection. While they cannot be read, the last readable ones stay in use: the file
// may be away for a moment, or half-written.
func (l *login) credentials(context.Context) (user, password string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fresh != nil {
		if text, err := l.fresh(); err == nil {
			l.read(text)
		}
	}
	return l.user, l.password, nil
}
