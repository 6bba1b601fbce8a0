package desk

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/desk/api"
	"docket/internal/desk/notify"
	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/postgres/db"
	"docket/internal/programs/cli"
	"docket/internal/record/subject"
	"docket/internal/service/config"
)

// Judges check the settings that only the desk understands.
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
		tokensVariable: func(text string) string {
			_, err := api.ParseTokens(text)
			return said(err)
		},
		clientsVariable: func(text string) string {
			_, err := api.ParseClients(strings.Split(text, ","))
			return said(err)
		},
		groupsVariable: func(text string) string {
			_, err := api.ParseGroups(strings.Split(text, ","))
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
		"DOCKET_ARCHIVE_DATABASE_URL": db.Complaint,
		"DOCKET_STATES_WATCH": func(text string) string {
			_, err := state.ParseWatch(text)
			return said(err)
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

// Agree refuses settings that contradict each other. An error is a [config.Complaint].
func Agree(s config.Settings) error {
	if s.DeskAPIAddr == "" {
		return nil
	}
	auth, err := authOf(s, s.DeskAPITokens)
	if err == nil {
		err = auth.Check()
	}
	var wrong config.Complaint
	if err == nil || errors.As(err, &wrong) {
		return err
	}
	return config.Complaint{Variable: clientsVariable, Text: err.Error()}
}

const help = `Run the desk: the daemon that keeps the ledger of dead letters, retries them and alerts people.

It reads both dead-letter topics in the group DOCKET_DESK_GROUP and enters each dead letter into the
ledger in Postgres. It publishes retries to their original topic and records the results, works on
jobs, retries the kinds in DOCKET_DESK_RETRY_KINDS on schedule, sends alerts to
DOCKET_DESK_ALERT_URLS, and serves the HTTP API.

You can run several: they share the work. /healthz, /readyz and /metrics are at DOCKET_HTTP_ADDR.
The API is at DOCKET_DESK_API_ADDR.

Usage:
  docket desk

Examples:
  export DOCKET_KAFKA_BROKERS=kafka-1:9092,kafka-2:9092
  export DOCKET_DATABASE_URL_FILE=/run/secrets/database-url
  docket migrate && docket desk

SIGTERM, SIGINT or SIGHUP: stops reading, finishes and commits the current batch within
DOCKET_SHUTDOWN_TIMEOUT. A second signal stops at once. Nothing is lost in either case.
`

// Main is the command `docket desk`: it runs the desk until it is stopped and returns the exit code.
func Main(env cli.Env, args []string) int {
	if len(args) > 0 {
		if slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
			_, _ = fmt.Fprint(env.Stdout, help,
				cli.UsesText(env, "DOCKET_KAFKA_BROKERS", "DOCKET_DATABASE_URL", "DOCKET_HTTP_ADDR", "DOCKET_DESK_API_ADDR"),
				cli.ExitText("stopped by a signal", "failed, or stopped at once by a second signal", true))
			return cli.Done
		}
		_, _ = fmt.Fprintf(env.Stderr, "%s: unexpected argument %+.40q\nSee %s desk --help.\n", env.Program, args[0], env.Program)
		return cli.Misuse
	}
	s, log, code := cli.Begin(env)
	if code != cli.Done {
		return code
	}
	p, err := New(s, log, prometheus.NewRegistry(), Options{Environ: env.Environ})
	if err != nil {
		return cli.Unopened(env, err)
	}
	return cli.Serve(env, p)
}
