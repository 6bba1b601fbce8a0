package kafka_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/output"
)

func TestTLS_CodeOfEachFailure(t *testing.T) {
	t.Parallel()
	certificate, roots := selfSigned(t) // for 127.0.0.1
	good := kafkatest.New(t, kfake.TLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: certificate}))
	asks := kafkatest.New(t, kfake.TLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: certificate, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots}))
	old := kafkatest.New(t, kfake.TLS(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11, Certificates: certificate}))
	trusting := func(change func(*tls.Config)) *tls.Config {
		conf := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
		change(conf)
		return conf
	}
	for name, tt := range map[string]struct {
		cluster *kafkatest.Cluster
		conf    *tls.Config
		want    string
	}{
		"well":                    {good, trusting(func(*tls.Config) {}), ""},
		"unknown authority":       {good, trusting(func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }), "tls_unknown_authority"},
		"wrong name":              {good, trusting(func(c *tls.Config) { c.ServerName = "broker.invalid" }), "tls_wrong_name"},
		"out of its dates":        {good, trusting(func(c *tls.Config) { c.Time = func() time.Time { return time.Now().AddDate(100, 0, 0) } }), "tls_expired"},
		"no certificate":          {asks, trusting(func(*tls.Config) {}), "tls_client_certificate_missing"},
		"no certificate, TLS 1.2": {asks, trusting(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), "tls_client_certificate_missing"},
		"one for servers":         {asks, trusting(func(c *tls.Config) { c.Certificates = certificate }), "tls_client_certificate_refused"},
		"TLS 1.1 at most":         {old, trusting(func(*tls.Config) {}), "tls_version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := fast(tt.cluster)
			cfg.TLS = tt.conf
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			err := kafka.Ping(ctx, cfg)
			f := &kafka.FaultError{}
			errors.As(err, &f)
			if f.Code != tt.want || (err != nil) != (tt.want != "") || err != nil && f.Reason != kafka.ReasonTLS {
				t.Errorf("got %v (%s), want %q", err, f.Code, tt.want)
			}
		})
	}
}

func TestTLS_FreshForEachConnection(t *testing.T) {
	t.Parallel()
	certificate, roots := selfSigned(t)
	cluster := kafkatest.New(t, kfake.TLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: certificate}), kfake.SeedTopics(1, topic))
	var asked atomic.Int32
	var out output.Buffer
	cfg := fast(cluster)
	cfg.FreshTLS = func() (*tls.Config, error) {
		asked.Add(1)
		return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, errors.New("half a file")
	}
	p, err := kafka.NewPublisher(cfg, kafka.PublisherConfig{Timeout: kafkatest.Timeout}, zerolog.New(&out), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(context.Background(), []*kgo.Record{{Topic: topic, Value: []byte("a")}})[0]; err != nil {
		t.Fatal(err)
	}
	p.Close()
	if n := strings.Count(out.String(), "half a file"); asked.Load() < 2 || n != 1 {
		t.Errorf("asked %d times, told %d times, want 2 or more and once:\n%s", asked.Load(), n, out.String())
	}
}
