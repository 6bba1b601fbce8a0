package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/record/decision"
)

func TestAMalformedURLIsToldWithoutShowingIt(t *testing.T) {
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

func TestOpenDoesNotDial(t *testing.T) {
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

func TestDefaultsAndOverrides(t *testing.T) {
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

func TestAfterCloseEverythingSaysSo(t *testing.T) {
	t.Parallel()
	db, err := Open(Config{URL: "postgres://127.0.0.1:1/d"}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	rows := []pipeline.Row{{Log: &decision.Log{ID: "a"}}}
	_, pooled := db.Store(t.Context(), rows, false)
	_, fresh := db.Store(t.Context(), rows, true)
	_, migrated := db.Migrate(t.Context())
	for _, err := range []error{pooled, fresh, migrated, db.Probe(t.Context(), time.Now())} {
		if got := errclass.Classify(err).Code; got != errclass.CodePoolClosed {
			t.Errorf("%s: %v", got, err)
		}
	}
}

func TestASilentServerIsATimeout(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // it accepts and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	db, err := Open(Config{URL: "postgres://docket@" + l.Addr().String() + "/docket?sslmode=disable", StoreTimeout: 200 * time.Millisecond}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	for _, fresh := range []bool{false, true} {
		_, err := db.Store(t.Context(), []pipeline.Row{{Log: &decision.Log{ID: "a"}}}, fresh)
		if got := errclass.Classify(err).Code; got != errclass.CodeTimeout {
			t.Errorf("fresh %v: %s: %v", fresh, got, err)
		}
	}
}

func TestTheServersLimitsStayBelowOurs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var statement, lock, idle int
	got := limits(remaining(ctx))
	if _, err := fmt.Sscan(string(got[0])+" "+string(got[1])+" "+string(got[2]), &statement, &lock, &idle); err != nil {
		t.Fatal(err)
	}
	if !(0 < lock && lock < statement && statement < 54_000-5_000 && idle <= 60_000) {
		t.Fatalf("statement %d, lock %d, idle %d", statement, lock, idle)
	}
	over, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	for _, l := range limits(remaining(over)) {
		if string(l) != "1" { // 0 would be no limit at all
			t.Errorf("after the deadline: %s", l)
		}
	}
}

func TestLimitsThatStandAreBelowWhatIsLeft(t *testing.T) {
	t.Parallel()
	if !(&transaction{}).outgrown(time.Hour) {
		t.Error("a transaction without limits needs none")
	}
	kept := 0
	for gone := time.Duration(0); gone <= time.Minute; gone += 100 * time.Millisecond {
		left, set := time.Minute-gone, &transaction{left: time.Minute}
		if set.outgrown(left) {
			continue
		}
		kept++
		var statement int64
		if _, err := fmt.Sscan(string(limits(set.left)[0]), &statement); err != nil {
			t.Fatal(err)
		}
		if statement >= left.Milliseconds() {
			t.Errorf("a statement may take %d ms, and %v are left", statement, left)
		}
	}
	if kept == 0 {
		t.Error("limits are sent with each statement")
	}
}

func TestThePoolIsMeasured(t *testing.T) {
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
