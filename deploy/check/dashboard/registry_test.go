package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
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

// registered is what the four programs register, by name, as they do it; they dial nobody.
var registered = sync.OnceValues(func() (map[string]*metric, error) {
	all := map[string]*metric{}
	for _, program := range []config.Program{config.Consumer, config.Replayer, config.Desk, config.Collector} {
		reg := prometheus.NewRegistry()
		end, err := open(program, reg)
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
})

var errNobody = errors.New("nobody is there")

func nobody(context.Context, string, string) (net.Conn, error) { return nil, errNobody }

func open(program config.Program, reg *prometheus.Registry) (end func(), err error) {
	environ := []string{"DOCKET_DATABASE_URL=postgres://u@127.0.0.1:1/x", "DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_HTTP_ADDR=127.0.0.1:0", "DOCKET_SPOOL_DIR="}
	if program == config.Desk {
		s, _, err := config.LoadWith(program, append(environ[:3:3], "DOCKET_DESK_API_ADDR=127.0.0.1:0"), desk.Judges())
		if err != nil {
			return nil, err
		}
		p, err := desk.New(s, zerolog.Nop(), reg, desk.Options{DialKafka: nobody, DialDatabase: nobody})
		if err != nil {
			return nil, err
		}
		return p.Close, nil
	}
	if program == config.Collector {
		s, _, err := config.LoadWith(program, append(environ[1:3:3], "DOCKET_COLLECTOR_ADDR=127.0.0.1:0"), collect.Judges())
		if err != nil {
			return nil, err
		}
		p, err := collect.New(s, zerolog.Nop(), reg, collect.Options{DialKafka: nobody})
		if err != nil {
			return nil, err
		}
		return p.Close, nil
	}
	s, _, err := config.Load(program, environ)
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
