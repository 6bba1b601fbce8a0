package cli

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"docket/internal/config"
)

const helpWidth = 100

var about = map[config.Program]string{
	config.Consumer: `Carries OPA decision logs from Kafka into Postgres, and gives every record a home before its offset is
committed: a row, the parking topic, a dead-letter topic or the spool. With no home left it holds, says
why in the log, in /readyz and in docket_hold, and goes on by itself.`,
	config.Replayer: `Brings parked records back: it reads the parking topic, waits until each record is due, and stores it by
the same path as the consumer. What fails again is parked again for longer, and after the last attempt
goes to the parking dead-letter topic. No outage of the database uses up an attempt.`,
	config.Collector: `Takes decision logs as OPA uploads them over HTTP and writes each decision to Kafka as a record of its own.
An upload is answered 2xx only once every decision of it has a home: acknowledged in the topic, or, where it
cannot be stored, in the dead-letter topic. Until then OPA keeps it and sends it again.`,
}

var examples = map[config.Program]string{
	config.Consumer: `  # make the table, look at brokers, topics, grants and spool before going live, run
  export DOCKET_KAFKA_BROKERS=kafka-1:9092,kafka-2:9092
  export DOCKET_DATABASE_URL='postgres://docket:secret@db:5432/docket?sslmode=verify-full'
  consumer migrate && consumer check && consumer

  # with the URL from a mounted secret, logs for people, and no spool: hold instead
  DOCKET_DATABASE_URL_FILE=/run/secrets/database-url DOCKET_LOG_FORMAT=console DOCKET_SPOOL_DIR= consumer

  # did everything that was read in the last hour get its home, and where is this record?
  consumer verify --since 1h
  consumer where-is decision-logs/3/12034

  # what does the code in a dead letter's x-failure-code mean?
  consumer classify 23514 too_large
`,
	config.Replayer: `  # beside the consumer, with the same settings
  export DOCKET_KAFKA_BROKERS=kafka-1:9092,kafka-2:9092
  export DOCKET_DATABASE_URL_FILE=/run/secrets/database-url
  parking-replayer

  # replay what is due now, and end
  parking-replayer --once

  # is it alive? for a container's health check
  parking-replayer health
`,
	config.Collector: `  # on one machine with OPA: no TLS and no token on loopback
  export DOCKET_KAFKA_BROKERS=kafka-1:9092,kafka-2:9092
  collector check && collector

  # for the network: TLS, and a token for each who uploads
  export DOCKET_COLLECTOR_ADDR=:8085 DOCKET_COLLECTOR_TOKENS_FILE=/run/secrets/collector-tokens
  export DOCKET_COLLECTOR_TLS_CERT=/run/secrets/tls.crt DOCKET_COLLECTOR_TLS_KEY=/run/secrets/tls.key
  collector

  # keep the order of decisions about one user, and take a password out before Kafka sees it
  DOCKET_COLLECTOR_KEY=input:/user DOCKET_COLLECTOR_DROP=/input/password collector

  # upload one decision by hand
  curl -si --data '[{"decision_id":"1","timestamp":"2026-01-01T00:00:00Z","labels":{"id":"me"}}]' http://127.0.0.1:8085/logs
`,
}

// endpoints are what there is to see of a program over HTTP, where it is not what the consumer has.
var endpoints = map[config.Program]string{
	config.Collector: `  /metrics   Prometheus: docket_collector_uploads_total{code}, docket_collector_refused_total{reason} and others
  /readyz    200 when the brokers take records, else 503 with the reason, its code and what to do
  /healthz   200 as long as it runs
`,
}

const consumerEndpoints = `  /metrics   Prometheus: docket_records_total{home}, docket_hold{reason}, docket_unaccounted_records and others
  /readyz    200 when it has an assignment and does not hold, else 503 with the reason, its code and what to do
  /healthz   503 only when the process is stuck
`

func isHelp(arg string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, arg) }

// help is what --help prints: something that a stranger can work from.
func help(env Env, commands []Command, args []string) int {
	args = slices.DeleteFunc(slices.Clone(args), isHelp)
	switch {
	case len(args) > 1:
		return misuse(env, "unexpected argument "+quoted(args[1]), "help")
	case len(args) == 1 && args[0] != "help":
		for _, c := range commands {
			if c.Name == args[0] {
				return c.do(env, []string{"--help"})
			}
		}
		return unknown(env, commands, args[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s [command] [flags]\n\nCommands:\n", about[env.Program], env.Program)
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-18s %s\n", strings.TrimSpace(c.Name+" "+c.Args), c.Text)
	}
	fmt.Fprintf(&b, "  %-18s %s\n", "help [command]", "Explain a command, or show this page.")
	fmt.Fprintf(&b, "\nExamples:\n%s\nSettings (environment):\n", examples[env.Program])
	b.WriteString("  Durations like 500ms, 10s, 1h30m; sizes like 512MiB; booleans true or false; lists by comma. Set but empty\n" +
		"  counts as not set. Shown are default, [range or choices], and [where a secret can come from instead].\n\n")
	b.WriteString(config.Help(env.Program, helpWidth))
	http, special := endpoints[env.Program]
	if !special {
		http = consumerEndpoints
	}
	b.WriteString("\n  Traces\n    OTEL_EXPORTER_OTLP_ENDPOINT and the other standard variables of OpenTelemetry; off without it.\n")
	addr := config.Lookup(env.Program, nil, "DOCKET_HTTP_ADDR")
	fmt.Fprintf(&b, `
HTTP (DOCKET_HTTP_ADDR, %s):
%s
Exit codes:
  0  done, or stopped by a signal
  1  failed, or stopped at once by a second signal
  2  wrong use or settings
`, addr, http)
	say(env.Stdout, "%s", b.String())
	return Done
}

func (c Command) help(p config.Program, flags *flag.FlagSet) string {
	var b strings.Builder
	line := fmt.Sprintf("%s %s", p, c.Name)
	if c.Name == runCommand {
		line = string(p)
	}
	options := ""
	width := 10
	flags.VisitAll(func(f *flag.Flag) { name, _ := flagHelp(f); width = max(width, len(name)) })
	flags.VisitAll(func(f *flag.Flag) {
		name, text := flagHelp(f)
		options += fmt.Sprintf("  --%-*s %s\n", width, name, text)
	})
	if options != "" {
		line += " [flags]"
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", c.Text, strings.TrimSpace(line+" "+c.Args))
	if options != "" {
		fmt.Fprintf(&b, "\nFlags:\n%s", options)
	}
	if c.More != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(c.More))
	}
	fmt.Fprintf(&b, "\nSettings and examples: %s --help\n", p)
	return b.String()
}

// flagHelp is a flag with what it takes, which stands in backquotes in its text, and what it says.
func flagHelp(f *flag.Flag) (name, text string) {
	takes, text := flag.UnquoteUsage(f)
	return strings.TrimSpace(f.Name + " " + strings.ToUpper(takes)), text
}
