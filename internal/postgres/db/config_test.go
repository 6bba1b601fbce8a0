package db

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/errclass"
)

func TestOpen_MalformedURLIsNotShown(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", " ", "postgres://docket:" + secret + "@host:port/db", "postgres://docket:" + secret + "%zz@host/db",
		"postgres://docket:" + secret + "/x@host/db", "mysql://docket:" + secret + "@host/db",
		"host=localhost password=" + secret + " port=x", "postgres://docket:" + secret + "@host/db?sslmode=" + secret, secret,
		"postgres://docket:" + secret + "@host/db?sslmode=verify-full&sslrootcert=/" + secret, "postgres://docket:" + secret + "@host/db?pool_max_conns=" + secret,
		"postgres://docket:" + secret + "@host/db?target_session_attrs=" + secret, "postgres://docket@host/" + secret + "?connect_timeout=" + secret,
	} {
		db, err := Open(Config{URL: url}, zerolog.Nop())
		if err == nil {
			db.Close()
			t.Errorf("%q was taken", url)
			continue
		}
		var c *ConfigError
		if !errors.As(err, &c) || errclass.Classify(err).Code != errclass.CodeConfig {
			t.Errorf("%q: %T %v", url, err, err)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if s := fmt.Sprintf("%v %+v %#v", e, e, e); strings.Contains(s, secret) {
				t.Errorf("a secret in %s", s)
			}
		}
	}
}

func TestOpen_DoesNotDial(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dialled := make(chan struct{})
	go func() {
		defer close(dialled)
		if c, err := l.Accept(); err == nil {
			_ = c.Close()
			t.Error("somebody dialled")
		}
	}()
	db, err := Open(Config{URL: "postgres://docket@" + l.Addr().String() + "/docket"}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	_ = l.Close()
	<-dialled
}

func TestConfig_DefaultsAndOverrides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg   Config
		conns int32
		name  string
		wait  time.Duration
	}{
		{Config{URL: "postgres://h/d"}, defaultMaxConns, "docket", connectTimeout},
		{Config{URL: "postgres://h/d?pool_max_conns=9&connect_timeout=3&application_name=x"}, 9, "docket", 3 * time.Second},
		{Config{URL: "postgres://h/d?pool_max_conns=9", MaxConns: 2, ApplicationName: "replayer"}, 2, "replayer", connectTimeout},
	} {
		pc, err := poolConfig(c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if pc.MaxConns != c.conns || pc.ConnConfig.RuntimeParams["application_name"] != c.name || pc.ConnConfig.ConnectTimeout != c.wait {
			t.Errorf("%+v: %d %v %v", c.cfg, pc.MaxConns, pc.ConnConfig.RuntimeParams, pc.ConnConfig.ConnectTimeout)
		}
		if pc.ConnConfig.ValidateConnect == nil {
			t.Error("a read-only node would be taken")
		}
	}
}

func TestPool_Measured(t *testing.T) {
	t.Parallel()
	db, err := Open(Config{URL: "postgres://127.0.0.1:1/d", MaxConns: 7}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(db.Collector()); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]float64{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "docket_postgres_pool_") || f.GetHelp() == "" {
			t.Errorf("%s", f.GetName())
		}
		seen[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	if len(seen) != len(poolMetrics) || seen["docket_postgres_pool_max_connections"] != 7 {
		t.Errorf("%v", seen)
	}
}
