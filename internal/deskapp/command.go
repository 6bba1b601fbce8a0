package deskapp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/cli"
	"docket/internal/config"
	"docket/internal/deskapi"
	"docket/internal/notify"
	"docket/internal/reader"
	"docket/internal/subject"
)

// Judges know what those settings mean that only the desk understands.
func Judges() config.Judges {
	said := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	return config.Judges{
		"DOCKET_DESK_ALERT_URLS": func(text string) string {
			_, err := notify.New(text, zerolog.Nop(), nil)
			return said(err)
		},
		"DOCKET_DESK_API_TOKENS": func(text string) string {
			_, err := deskapi.ParseTokens(text)
			return said(err)
		},
		"DOCKET_DESK_API_CLIENTS": func(text string) string {
			_, err := deskapi.ParseClients(strings.Split(text, ","))
			return said(err)
		},
		"DOCKET_READER_SUBJECT": func(text string) string {
			switch spec, err := subject.Parse(text); {
			case err != nil:
				return subject.ErrForm.Error()
			case spec.Kind == subject.DecisionID:
				return "by decision_id every decision is a subject of its own: want requested_by, requested_by:host, label:NAME or input:/POINTER"
			}
			return ""
		},
		"DOCKET_READER_EXTRACTORS": func(text string) string {
			list := strings.Split(text, ",")
			for i := range list {
				list[i] = strings.TrimSpace(list[i])
			}
			_, err := reader.ParseExtractors(list)
			return said(err)
		},
	}
}

const help = `Run the desk: enter dead letters into the ledger, publish retries and record their results, work on jobs,
retry what time can heal, send alerts, and serve the HTTP API.

Usage:
  docket desk

The desk reads both dead-letter topics in the group DOCKET_DESK_GROUP and keeps the ledger in Postgres.
You can run several: they share the work. /healthz, /readyz and /metrics are at DOCKET_HTTP_ADDR, the
API is at DOCKET_DESK_API_ADDR.

SIGTERM or SIGINT: stops reading, finishes and commits the current batch within
DOCKET_SHUTDOWN_TIMEOUT, exit 0. A second signal stops at once, exit 1. Nothing is lost in either case.

Settings: docket settings
`

// Main is the command `docket desk`: it runs the desk until it is stopped and returns the exit code.
func Main(env cli.Env, args []string) int {
	if len(args) > 0 {
		if slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
			_, _ = fmt.Fprint(env.Stdout, help)
			return cli.Done
		}
		_, _ = fmt.Fprintf(env.Stderr, "%s: unexpected argument %+.40q\nSee %s desk --help.\n", env.Program, args[0], env.Program)
		return cli.Misuse
	}
	s, log, code := cli.Begin(env)
	if code != cli.Done {
		return code
	}
	p, err := New(s, log, prometheus.NewRegistry(), Options{})
	if err != nil {
		return cli.Unopened(env, err)
	}
	return cli.Serve(env, p.Run, p.Close)
}
