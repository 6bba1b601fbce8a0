package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"docket/internal/programs/collect"
	"docket/internal/programs/desk"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// metric is one that a program registers.
type metric struct {
	name     string
	kind     string // "" where it has no series yet
	labels   string // in order, joined by ", "; without those of a wrapped registry
	help     string
	programs []string
}

var described = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "(.*?)", (?:unit: "[^"]*", )?constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}\}$`)

// optional are settings without which some metrics and labels do not exist.
var optional = []string{
	"DOCKET_LANES=urgent,bulk", "DOCKET_COLLECTOR_URGENT=verdict=denied", "DOCKET_COLLECTOR_SHARE=label:id=2000/s",
	"DOCKET_LIMIT_ROWS=450", "DOCKET_REDIS_URL=redis://127.0.0.1:1", "DOCKET_STATES=true", "DOCKET_ARCHIVE_TO=/srv/archive", "DOCKET_ARCHIVE_AFTER=90d",
	"DOCKET_SHARDS=a=0-15,b=16-31", "DOCKET_SHARD=a", "DOCKET_COLLECTOR_KEY=decision_id",
}

// registered is what the four programs register with lanes and limits, by name, as they do it; they dial nobody.
var registered = sync.OnceValues(func() (map[string]*metric, error) { return registeredWith(optional) })

func registeredWith(settings []string) (map[string]*metric, error) {
	all := map[string]*metric{}
	for _, program := range []config.Program{config.Consumer, config.Replayer, config.Desk, config.Collector} {
		reg := prometheus.NewRegistry()
		end, err := open(program, settings, reg)
		if err != nil {
			return nil, err
		}
		err = note(string(program), reg, all)
		end()
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// TestRegistry_LanesAndLimitsAreOptional checks that settings that are not set change no metric.
func TestRegistry_LanesAndLimitsAreOptional(t *testing.T) {
	t.Parallel()
	without, err := registeredWith(nil)
	if err != nil {
		t.Fatal(err)
	}
	with, err := registered()
	if err != nil {
		t.Fatal(err)
	}
	if len(with) <= len(without) {
		t.Errorf("%d metrics with lanes and limits, %d without", len(with), len(without))
	}
	for name, m := range without {
		if strings.HasPrefix(name, "docket_lane_") || strings.HasPrefix(name, "docket_limit_") || slices.Contains(strings.Split(m.labels, ", "), "lane") {
			t.Errorf("%s{%s} exists without lanes and limits", name, m.labels)
		}
		if with[name] == nil {
			t.Errorf("%s does not exist with lanes and limits", name)
		}
	}
}

var errNobody = errors.New("nobody is there")

func nobody(context.Context, string, string) (net.Conn, error) { return nil, errNobody }

func open(program config.Program, settings []string, reg *prometheus.Registry) (end func(), err error) {
	environ := append(slices.Clone(settings), "DOCKET_DATABASE_URL=postgres://u@127.0.0.1:1/x", "DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_HTTP_ADDR=127.0.0.1:0")
	if program == config.Desk {
		cleanup := func() {}
		if len(settings) > 0 {
			dir, err := os.MkdirTemp("", "docket-registry-")
			if err != nil {
				return nil, err
			}
			cleanup = func() { _ = os.RemoveAll(dir) } // it holds nothing
			environ = append(environ, "DOCKET_CACHE_DIR="+dir)
		}
		s, _, err := config.LoadWith(program, append(environ, "DOCKET_DESK_API_ADDR=127.0.0.1:0"), desk.Judges())
		if err != nil {
			return nil, err
		}
		p, err := desk.New(s, zerolog.Nop(), reg, desk.Options{DialKafka: nobody, DialDatabase: nobody})
		if err != nil {
			return nil, err
		}
		return func() { p.Close(); cleanup() }, nil
	}
	if program == config.Collector {
		s, _, err := config.LoadWith(program, append(environ, "DOCKET_COLLECTOR_ADDR=127.0.0.1:0"), collect.Judges())
		if err != nil {
			return nil, err
		}
		p, err := collect.New(s, zerolog.Nop(), reg, collect.Options{DialKafka: nobody})
		if err != nil {
			return nil, err
		}
		return p.Close, nil
	}
	s, _, err := config.Load(program, append(environ, "DOCKET_SPOOL_DIR="))
	if err != nil {
		return nil, err
	}
	p, err := app.New(program, s, zerolog.Nop(), reg, app.Options{DialKafka: nobody, DialDatabase: nobody})
	if err != nil {
		return nil, err
	}
	return p.Close, nil
}

// note lists the metrics of a registry: described ones, and those that show without a description.
func note(program string, reg *prometheus.Registry, all map[string]*metric) error {
	descs := make(chan *prometheus.Desc)
	go func() {
		reg.Describe(descs)
		close(descs)
	}()
	add := func(name, labels, help string) *metric {
		m := all[name]
		if m == nil {
			m = &metric{name: name, labels: labels, help: help}
			all[name] = m
		}
		if !slices.Contains(m.programs, program) {
			m.programs = append(m.programs, program)
		}
		return m
	}
	var failed error
	for d := range descs {
		part := described.FindStringSubmatch(d.String())
		if part == nil {
			failed = fmt.Errorf("not understood: %s", d)
			continue
		}
		add(part[1], strings.ReplaceAll(part[4], ",", ", "), part[2])
	}
	families, err := reg.Gather()
	if err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	for _, f := range families {
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		add(f.GetName(), strings.Join(slices.Sorted(maps.Keys(labels)), ", "), f.GetHelp()).kind = strings.ToLower(f.GetType().String())
	}
	return nil
}
