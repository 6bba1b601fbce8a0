package cli

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"docket/internal/programs/cli/term"
	"docket/internal/service/config"
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

// examples have $0 for the name by which the program is called.
var examples = map[config.Program]string{
	config.Consumer: `  # create the table; check brokers, topics, permissions and spool; run
  export DOCKET_KAFKA_BROKERS=kafka-1:9092,kafka-2:9092
  export DOCKET_DATABASE_URL='postgres://docket:secret@db:5432/docket?sslmode=verify-full'
  $0 migrate && $0 check && $0

  # database URL from a mounted secret, readable logs, no spool
  DOCKET_DATABASE_URL_FILE=/run/secrets/database-url DOCKET_LOG_FORMAT=console DOCKET_SPOOL_DIR= $0

  # was any record of the last hour lost? where is this record?
  $0 verify --since 1h
  $0 where-is decision-logs/3/12034

  # what does the x-failure-code of a dead letter mean?
  $0 classify 23514 too_large
`,
	config.Replayer: `  # run it with the settings of the consumer
  export DOCKET_KAFKA_BROKERS=kafka-1:9092,kafka-2:9092
  export DOCKET_DATABASE_URL_FILE=/run/secrets/database-url
  $0

  # replay what is due now, then exit; run it where no other replayer runs
  $0 --once

  # health check of a container
  $0 health
`,
	config.Collector: `  # on the machine of OPA: loopback, no TLS, no token
  export DOCKET_KAFKA_BROKERS=kafka-1:9092,kafka-2:9092
  $0 check && $0

  # over a network: TLS, and tokens for clients
  export DOCKET_COLLECTOR_ADDR=:8085 DOCKET_COLLECTOR_TOKENS_FILE=/run/secrets/collector-tokens
  export DOCKET_COLLECTOR_TLS_CERT=/run/secrets/tls.crt DOCKET_COLLECTOR_TLS_KEY=/run/secrets/tls.key
  $0

  # keep the decisions about one user in order; remove passwords before Kafka
  DOCKET_COLLECTOR_KEY=input:/user DOCKET_COLLECTOR_DROP=/input/password $0

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

// help prints the page of --help.
func help(env Env, commands []Command, args []string) int {
	args = slices.DeleteFunc(slices.Clone(args), isHelp)
	switch {
	case len(args) > 1:
		return misuse(env, "unexpected argument "+quoted(args[1]), "help")
	case len(args) == 1 && args[0] != "help":
		for _, c := range commands {
			if c.Name == args[0] {
				return c.Do(env, []string{"--help"})
			}
		}
		return unknown(env, commands, args[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s [COMMAND] [flags]\n\nCommands:\n", Folded(about[env.Program], ""), env.Called())
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-18s %s\n", strings.TrimSpace(c.Name+" "+c.Args), c.Text)
	}
	fmt.Fprintf(&b, "  %-18s %s\n", "help [COMMAND]", "Show help for a command, or this page.")
	fmt.Fprintf(&b, "\n`%s COMMAND --help` shows the flags, examples and exit codes of a command.\n", env.Called())
	fmt.Fprintf(&b, "\nExamples:\n%s\nSettings (environment):\n", strings.ReplaceAll(examples[env.Program], "$0", env.Called()))
	b.WriteString("  " + Folded(SettingsText, "  ") + "\n\n")
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
	say(env.Stdout, "%s", term.Safe(b.String()))
	return Done
}

func (c Command) help(env Env, flags *flag.FlagSet) string {
	var b strings.Builder
	line := fmt.Sprintf("%s %s", env.Called(), c.Name)
	if c.Name == runCommand {
		line = fmt.Sprintf("%s [%s]", env.Called(), c.Name)
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
		fmt.Fprintf(&b, "\nExamples:\n"+c.Example+"\n", env.Called())
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
	b.WriteString(UsesText(env, c.Uses...))
	b.WriteString(ExitText(c.Exit[0], c.Exit[1], len(c.Uses) > 0))
	return b.String()
}

// SettingsText explains how a list of settings is read.
const SettingsText = "Each line: NAME=default [range, choices or form] [or NAME_FILE, for the path of a file with the secret]. Without a " +
	"default, a setting is not set. An empty value counts as not set, unless the text says otherwise. Durations: 500ms, 10s, 1h30m. Sizes: 512MiB. Booleans: true, false."

// connections are what settings connect a command to.
var connections = map[string]string{
	"DOCKET_KAFKA_BROKERS": "Kafka", "DOCKET_DATABASE_URL": "Postgres", "DOCKET_SPOOL_DIR": "spool", "DOCKET_HTTP_ADDR": "HTTP",
	"DOCKET_COLLECTOR_ADDR": "uploads", "DOCKET_DESK_API_ADDR": "API", "DOCKET_ARCHIVE_TO": "archive",
}

// UsesText is the part of a command's help that names the settings which say what it connects to, with their defaults.
func UsesText(env Env, names ...string) string {
	if len(names) == 0 {
		return "\nIt needs no settings and connects to nothing.\n"
	}
	p := env.Program
	var b strings.Builder
	b.WriteString("\nSettings (environment):\n")
	table := config.Table()
	for _, name := range names {
		s := table[slices.IndexFunc(table, func(s config.Setting) bool { return s.Name == name })]
		state := "not set by default"
		switch d := s.Default(p); {
		case s.Required:
			state = "required"
		case d != "":
			state = "default " + d
		}
		if s.Secret {
			name += " or " + name + "_FILE"
		}
		fmt.Fprintf(&b, "  %-9s %s (%s)\n", connections[s.Name], name, state)
	}
	all := env.Called() + " --help"
	switch {
	case p == config.Desk && slices.Contains(names, "DOCKET_SPOOL_DIR"): // a command that looks at what the consumer does
		fmt.Fprintf(&b, "  `%s settings` and `%[1]s consume --help` list all settings.\n", p)
		return b.String()
	case p == config.Desk:
		all = string(p) + " settings"
	}
	fmt.Fprintf(&b, "  `%s` lists all settings.\n", all)
	return b.String()
}

// ExitText is the part of a command's help about exit codes; settings says that it reads some. It is empty where there is
// nothing to say: the command cannot fail.
func ExitText(done, failed string, settings bool) string {
	if done == "" && failed == "" && !settings {
		return ""
	}
	misuse := "wrong use"
	if settings {
		misuse += " or wrong settings"
	}
	if done == "" {
		done = "done"
	}
	if failed == "" {
		failed = "failed"
	}
	return fmt.Sprintf("\nExit codes:\n  0  %s\n  1  %s\n  2  %s\n", Folded(done, "     "), Folded(failed, "     "), misuse)
}

// TimeText explains the value TIME of flags.
const TimeText = "how long ago: 90m, 2h, 3d or 1w; a day: today, yesterday, 2026-11-22, or monday to sunday for the last one, from 00:00 UTC; or " +
	"RFC 3339, like 2026-11-22T10:00:00Z."

// foldWidth is how wide a line of prose is.
const foldWidth = 96

// Folded breaks the paragraphs of a text into lines; each but the first of all begins with the indent. The lines of a
// paragraph that begins with two spaces are a list, and stay.
func Folded(text, indent string) string {
	var paragraphs []string
	for p := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if strings.HasPrefix(p, "  ") {
			paragraphs = append(paragraphs, strings.ReplaceAll(p, "\n", "\n"+indent))
			continue
		}
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

// flagHelp is a flag with its value, which is in backquotes in its text, and that text.
func flagHelp(f *flag.Flag) (name, text string) {
	takes, text := flag.UnquoteUsage(f)
	return strings.TrimSpace(f.Name + " " + strings.ToUpper(takes)), text
}
