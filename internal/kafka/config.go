package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/plugin/kprom"

	"docket/internal/consumer/shards"
)

// Config holds the settings shared by all clients of the package. Only Brokers is required.
type Config struct {
	// Brokers are the addresses to start from (bootstrap.servers), host:port.
	Brokers []string
	// ClientID is the name of this client in the brokers' logs and quotas (client.id). Default "docket".
	ClientID string
	// InstanceLabel names this process in its own log lines. It is not a group.instance.id: with dynamic membership a
	// stopped process gives its partitions back at once.
	InstanceLabel string
	// TLS is used for every connection when it is set.
	TLS *tls.Config
	// FreshTLS is called at every attempt to connect and replaces TLS, because certificates change while a program
	// runs. It returns nil for no TLS. If it also returns an error, the error is logged and the returned value is
	// used.
	FreshTLS func() (*tls.Config, error)
	// SASL authenticates every connection when it is set.
	SASL sasl.Mechanism
	// Login takes the place of SASL when it names a mechanism.
	Login Login
	// SessionTimeout is how long the group waits for a heartbeat (session.timeout.ms). Default 45 s.
	SessionTimeout time.Duration
	// RebalanceTimeout is how long members may take to give partitions up (max.poll.interval.ms has this role in Java
	// clients). Default 90 s.
	RebalanceTimeout time.Duration
	// HeartbeatInterval is the pause between heartbeats (heartbeat.interval.ms). Default 3 s, at most a third of
	// SessionTimeout.
	HeartbeatInterval time.Duration
	// DialTimeout ends an attempt to connect, TLS included. Default 10 s.
	DialTimeout time.Duration
	// RequestTimeout is added to a request's own time before its connection counts as dead. Default 10 s.
	RequestTimeout time.Duration
	// MetadataMinAge is the least pause between two metadata requests while something is wrong. Default 1 s.
	MetadataMinAge time.Duration
	// Dialer replaces the dialer, for tests. TLS is then added to the connection that it returns.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)
	// Hooks are added to the clients' own hooks.
	Hooks []kgo.Hook
	// Shares are the parts of topics that this process works on, by topic. Sources, readers and publishers leave the
	// other partitions alone. Topics that are not named are whole. Default none.
	Shares map[string]*shards.Share
}

func (c Config) withDefaults() Config {
	set(&c.ClientID, "docket")
	set(&c.SessionTimeout, 45*time.Second)
	set(&c.RebalanceTimeout, 90*time.Second)
	set(&c.HeartbeatInterval, min(3*time.Second, c.SessionTimeout/3))
	set(&c.DialTimeout, 10*time.Second)
	set(&c.RequestTimeout, 10*time.Second)
	set(&c.MetadataMinAge, time.Second)
	return c
}

// set gives an unset field its default.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) validate() error {
	if len(c.Brokers) == 0 {
		return errors.New("no Kafka brokers are named")
	}
	return nil
}

// options returns the options of every client. Each client adds more.
func (c Config) options(logger kgo.Logger, more ...kgo.Opt) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(c.ClientID),
		kgo.DialTimeout(c.DialTimeout),
		kgo.RequestTimeoutOverhead(c.RequestTimeout),
		kgo.MetadataMinAge(c.MetadataMinAge),
		kgo.MetadataMaxAge(max(time.Minute, c.MetadataMinAge)),
		kgo.Dialer(newDialer(c, logger).dial),
		kgo.WithLogger(logger),
		kgo.DisableClientMetrics(), // Docket sends the brokers no telemetry
		kgo.WithHooks(c.Hooks...),
	}
	if m := c.Login.mechanism(&changeLog{logger: logger}); m != nil {
		opts = append(opts, kgo.SASL(m))
	} else if c.SASL != nil {
		opts = append(opts, kgo.SASL(c.SASL))
	}
	return append(opts, more...)
}

// metrics returns the hooks that register a client's metrics, none without a registry.
func metrics(reg prometheus.Registerer, room string) []kgo.Opt {
	if reg == nil {
		return nil
	}
	return []kgo.Opt{kgo.WithHooks(kprom.NewMetrics("docket_kafka",
		kprom.Registerer(reg),
		kprom.WithStaticLabel(prometheus.Labels{"client": room}),
		kprom.FetchAndProduceDetail(kprom.ByNode, kprom.ByTopic, kprom.Records, kprom.Batches, kprom.UncompressedBytes),
	))}
}
