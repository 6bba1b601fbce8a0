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
	config.Consumer: `Stores OPA decision logs from Kafka in Postgres.

A Kafka offset is committed only after each record up to it is stored, parked, dead-lettered or spooled
to disk. If none of these works, the consumer holds: it pauses, says why in the log, in /readyz and in
the metric docket_hold, and resumes by itself.`,
	config.Replayer: `Stores parked records again: those that Postgres could not take when the consumer read them.

It reads the parking topic, waits until each record is due, and stores it in the same way as the
consumer. A record that fails again is parked for longer. After its last attempt it goes to the parking
dead-letter topic. An outage of the database does not use up attempts.`,
	config.Collector: `Accepts decision log uploads from OPA over HTTP and writes each decision to Kafka as one record.

An upload is answered with 2xx only after each of its decisions is acknowledged by Kafka: in the topic
of decision logs, or in the dead-letter topic if it cannot be stored. Until then OPA keeps the upload
and sends it again.`,
}

var examples = map[config.Program]string{
	config.Consumer: `  # create the table; check brokers, topics, permissions and spool; run
  export DOCKET_KAFKA_BROKERS=kafka-1:9092,kafka-2:9092
  export DOCKET_DATABASE_URL='postgres://docket:secret@db:5432/docket?sslmode=verify-full'
  consumer migrate && consumer check && consumer

  # database URL from a mounted secret, readable logs, no spool
  DOCKET_DATABASE_URL_FILE=/run/secrets/database-url DOCKET_LOG_FORMAT=console DOCKET_SPOOL_DIR= consumer

  # was any record of the last hour lost? where is this record?
  consumer verify --since 1h
  consumer where-is decision-logs/3/12034

  # what does the x-failure-code of a dead letter mean?
  consumer classify 23514 too_large
`,
	config.Replayer: `  # run it with the settings of the consumer
  export DOCKET_KAFKA_BROKERS=kafka-1:9092,kafka-2:9092
  export DOCKET_DATABASE_URL_FILE=/run/secrets/database-url
  parking-replayer

  # replay what is due now, then exit
  parking-replayer --once

  # health check of a container
  parking-replayer health
`,
	config.Collector: `  # on the machine of OPA: loopback, no TLS, no token
  export DOCKET_KAFKA_BROKERS=kafka-1:9092,kafka-2:9092
  collector check && collector

  # over a network: TLS, and tokens for clients
  export DOCKET_COLLECTOR_ADDR=:8085 DOCKET_COLLECTOR_TOKENS_FILE=/run/secrets/collector-tokens
  export DOCKET_COLLECTOR_TLS_CERT=/run/secrets/tls.crt DOCKET_COLLECTOR_TLS_KEY=/run/secrets/tls.key
  collector

  # keep the decisions about one user in order; remove passwords before Kafka
  DOCKET_COLLECTOR_KEY=input:/user DOCKET_COLLECTOR_DROP=/input/password collector

  # upload one decision by hand
  curl -si --data '[{"decision_id":"1","timestamp":"2026-01-01T00:00:00Z","labels":{"id":"me"}}]' http://127.0.0.1:8085/logs
`,
}

// endpoints are what a program serves over HTTP, where it differs from the consumer.
var endpoints = map[config.Program]string{
	config.Collector: `  /metrics   Prometheus metrics, like docket_collector_uploads_total{code}
  /readyz    200 if the brokers accept records; else 503 with reason, code and hint
  /healthz   200 while it runs
`,
}

const consumerEndpoints = `  /metrics   Prometheus metrics, like docket_records_total{home}, docket_hold{reason}
  /readyz    200 if partitions are assigned and none holds; else 503 with reason, code and hint
  /healthz   503 only if the process is stuck
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
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s [COMMAND] [flags]\n\nCommands:\n", Folded(about[env.Program], ""), env.Program)
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-18s %s\n", strings.TrimSpace(c.Name+" "+c.Args), c.Text)
	}
	fmt.Fprintf(&b, "  %-18s %s\n", "help [COMMAND]", "Show help for a command, or this page.")
	fmt.Fprintf(&b, "\nExamples:\n%s\nSettings (environment):\n", examples[env.Program])
	b.WriteString("  " + Folded("Durations: 500ms, 10s, 1h30m. Sizes: 512MiB. Booleans: true, false. Lists: by comma. An empty value counts as not "+
		"set. Each line: NAME=default [range or choices] [where a secret can come from instead].", "  ") + "\n\n")
	b.WriteString(config.Help(env.Program, helpWidth))
	http, special := endpoints[env.Program]
	if !special {
		http = consumerEndpoints
	}
	b.WriteString("\n  Traces\n    OTEL_EXPORTER_OTLP_ENDPOINT and the other standard OpenTelemetry variables; off if not set.\n")
	addr := config.Lookup(env.Program, nil, "DOCKET_HTTP_ADDR")
	fmt.Fprintf(&b, `
HTTP (DOCKET_HTTP_ADDR, %s):
%s
Exit codes:
  0  done, or stopped by a signal
  1  failed, or stopped at once by a second signal
  2  wrong use or wrong settings
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
	var options strings.Builder
	width, times := 8, false
	flags.VisitAll(func(f *flag.Flag) { name, _ := flagHelp(f); width = max(width, len(name)) })
	flags.VisitAll(func(f *flag.Flag) {
		name, text := flagHelp(f)
		times = times || strings.HasSuffix(name, " TIME")
		fmt.Fprintf(&options, "  --%-*s  %s\n", width, name, text)
	})
	if line = strings.TrimSpace(line + " " + c.Args); options.Len() > 0 {
		line += " [flags]"
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", Folded(c.Text, ""), line)
	if c.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n"+c.Example+"\n", p)
	}
	if options.Len() > 0 {
		fmt.Fprintf(&b, "\nFlags:\n%s", options.String())
	}
	if times {
		fmt.Fprintf(&b, "\n%s\n", Folded("TIME: "+TimeText, ""))
	}
	if c.More != "" {
		fmt.Fprintf(&b, "\n%s\n", Folded(c.More, ""))
	}
	settings := string(p) + " --help"
	if p == config.Desk {
		settings = string(p) + " settings"
	}
	fmt.Fprintf(&b, "\nSettings: %s\n", settings)
	return b.String()
}

// TimeText explains the value TIME of flags.
const TimeText = "2h or 3d ago; today, yesterday, monday to sunday (the last one), 2026-11-22; or RFC 3339, like 2026-11-22T10:00:00Z. " +
	"Days start at 00:00 UTC."

// foldWidth is how wide a line of prose is.
const foldWidth = 96

// Folded breaks the paragraphs of a text into lines; each but the first of all begins with the indent.
func Folded(text, indent string) string {
	var paragraphs []string
	for p := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var lines []string
		line := ""
		for word := range strings.FieldsSeq(p) {
			if line != "" && len(indent)+len(line)+1+len(word) > foldWidth {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimSpace(line + " " + word)
		}
		paragraphs = append(paragraphs, strings.Join(append(lines, line), "\n"+indent))
	}
	return strings.Join(paragraphs, "\n\n"+indent)
}

// flagHelp is a flag with what it takes, which stands in backquotes in its text, and what it says.
func flagHelp(f *flag.Flag) (name, text string) {
	takes, text := flag.UnquoteUsage(f)
	return strings.TrimSpace(f.Name + " " + strings.ToUpper(takes)), text
}
