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
)

// Config is what every client of the package shares. Only Brokers is required.
type Config struct {
	// Brokers are the addresses to start from (bootstrap.servers), host:port.
	Brokers []string
	// ClientID is how the brokers name us in their logs and quotas (client.id). Default "docket".
	ClientID string
	// InstanceLabel names this process in our own log lines. It is no group.instance.id: membership stays dynamic, so
	// that a process that ends gives its partitions back at once.
	InstanceLabel string
	// TLS is used for every connection when it is set.
	TLS *tls.Config
	// FreshTLS is asked at every attempt to connect, and takes the place of TLS: certificates change while a program runs. It
	// returns nil where there is no TLS. With an error, which is told in the log, comes what to use all the same.
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
	// MetadataMinAge is the least pause between two looks at the cluster's shape while something is wrong. Default 1 s.
	MetadataMinAge time.Duration
	// Dialer replaces the way to connect, for tests. TLS is then put on top of what it returns.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)
	// Hooks are told what the clients do, beside those that count it.
	Hooks []kgo.Hook
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

// set gives a field its default when it was left out.
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

// options are those of every client; more follow per client.
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
		kgo.DisableClientMetrics(), // the brokers need no telemetry of ours
		kgo.WithHooks(c.Hooks...),
	}
	if m := c.Login.mechanism(&telling{logger: logger}); m != nil {
		opts = append(opts, kgo.SASL(m))
	} else if c.SASL != nil {
		opts = append(opts, kgo.SASL(c.SASL))
	}
	return append(opts, more...)
}

// metrics are the hooks that tell a registry of a client; none without a registry.
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
