package config

import (
	"fmt"
	"strings"
)

// Help is the table of a program as its --help shows it: a heading per group, and for every setting its default, its range and its
// sentence, within width columns.
func Help(p Program, width int) string {
	var b strings.Builder
	group := ""
	for _, s := range Table() {
		if !s.Of(p) {
			continue
		}
		if s.Group != group {
			if group != "" {
				b.WriteByte('\n')
			}
			group = s.Group
			fmt.Fprintf(&b, "  %s\n", group)
		}
		fmt.Fprintf(&b, "    %s%s\n", s.Name, s.state(p))
		for _, line := range wrap(s.Text, width-8) {
			fmt.Fprintf(&b, "        %s\n", line)
		}
	}
	return b.String()
}

// state is the default and the range of a setting behind its name.
func (s Setting) state(p Program) string {
	var text string
	switch d := s.Default(p); {
	case s.Required:
		text = " (required)"
	case d != "":
		text = "=" + d
	}
	if form := s.Form(); form != "" {
		text += " [" + form + "]"
	}
	if s.Secret {
		text += " [or " + s.Name + fileSuffix + "]"
	}
	return text
}

// wrap breaks a text between words so that no line is longer than width, where the words allow it.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// Markdown is the table as docs/settings.md has it.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Settings

Every setting is an environment variable. A test generates this page from the table that the
programs parse:

` + "```sh\nDOCKET_BATCH_MAX_WAIT=500ms DOCKET_DATABASE_URL_FILE=/run/secrets/docket-url consumer run\n```" + `

- Write durations like ` + "`500ms`, `10s` or `1h30m`" + `, sizes like ` + "`512MiB`, `64KiB`, `10MB` or `100B`" + `,
  booleans as ` + "`true` or `false`" + `, and lists with commas.
- An empty variable counts as not set. Exceptions:
  ` + emptied() + `.
- For a secret, you can put the path of a file into the variable with ` + "`_FILE`" + ` behind its name. Line
  ends at the end of the file do not count.
- A YAML file can hold the same settings: ` + "`docket consume --config docket.yaml`" + `, or its path
  in ` + "`DOCKET_CONFIG`" + `. A key is the name without ` + "`DOCKET_`" + ` in small letters, as in
  ` + "`kafka_brokers: [kafka-1:9092, kafka-2:9092]`" + `. A variable of the environment wins. An unknown key
  is an error. ` + "`docket config validate --config docket.yaml`" + ` checks everything without connecting.
  ` + "`docket config print consume`" + ` prints the settings of a program with their sources, as such a file.
  Secrets may be in the file: let only Docket read it. A change of the file needs a restart.
- A program lists all wrong settings at once, one per line on standard error, and exits with 2. This
  includes settings that contradict each other, and misspelled names.
- Other unknown variables that begin with ` + "`DOCKET_`" + ` cause a warning only, because Kubernetes sets
  some for a Service called docket.
- A program ignores settings that belong to other programs only.
- Defaults that differ between programs are in the order consumer, replayer, desk, collector.
`)
	group := ""
	for _, s := range Table() {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n## %s\n\n| variable | default | unit | range | programs | meaning |\n|---|---|---|---|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", s.Name, s.defaults(), s.Unit, s.Range(), s.owners(), strings.ReplaceAll(s.Text, "|", "\\|"))
	}
	fmt.Fprintf(&b, `
## Settings that must agree

- The four topics have different names, and so have the three groups.
- `+"`DOCKET_KAFKA_SESSION_TIMEOUT`"+` is shorter than `+"`DOCKET_KAFKA_REBALANCE_TIMEOUT`"+`.
- The retry budget fits into 80%% of `+"`DOCKET_KAFKA_REBALANCE_TIMEOUT`"+`. A batch then reaches its homes
  before the group assigns its partition to another member. The budget is the number of attempts
  (one more than `+"`DOCKET_RETRY_PAUSES`"+` has pauses) times `+"`DOCKET_STORE_TIMEOUT`"+`, plus the pauses,
  plus `+"`DOCKET_PUBLISH_TIMEOUT`"+`, plus %v for the spool.
- `+"`DOCKET_SHUTDOWN_TIMEOUT`"+` fits into the same 80%%. It also limits the current batch of a revoked
  partition.
- `+"`DOCKET_PARKING_BACKOFF`"+` is at most `+"`DOCKET_PARKING_MAX_BACKOFF`"+`.
- `+"`DOCKET_PARKING_LOOKAHEAD`"+` is at least `+"`DOCKET_BATCH_MAX_RECORDS`"+`.
- `+"`DOCKET_SPOOL_MAX_BYTES`"+` is at least `+"`DOCKET_BATCH_MAX_BYTES`"+`.
- A Kafka login needs mechanism, user and password. A client certificate needs its key. Certificates
  need `+"`DOCKET_KAFKA_TLS=true`"+`.
- `+"`DOCKET_DESK_RETRY_KINDS`"+` never contains `+"`decode`"+`.
- `+"`DOCKET_DESK_RETRY_BACKOFF`"+` is at most `+"`DOCKET_DESK_RETRY_MAX_BACKOFF`"+`.
- The API's certificate needs its key. Beyond loopback, the API needs both. Client certificates need
  TLS and names in `+"`DOCKET_DESK_API_CLIENTS`"+`.
- The collector has two different listen addresses: one for uploads and one for its own state.
- Beyond loopback, uploads need a certificate with its key, or `+"`DOCKET_COLLECTOR_PLAINTEXT=true`"+`.
  They also need tokens or client certificates, or `+"`DOCKET_COLLECTOR_ANONYMOUS=true`"+`.
- `+"`DOCKET_COLLECTOR_INFLATED_BYTES`"+` is at least `+"`DOCKET_COLLECTOR_UPLOAD_BYTES`"+`.
- `+"`DOCKET_COLLECTOR_MEMORY`"+` is at least both together.
- `+"`DOCKET_ARCHIVE_S3_ACCESS_KEY`"+` and `+"`DOCKET_ARCHIVE_S3_SECRET_KEY`"+` need each other.

## Traces

The variables of OpenTelemetry are not settings of Docket. `+"`OTEL_EXPORTER_OTLP_ENDPOINT`"+` turns
traces on, see [tracing.md](tracing.md).
`, SpoolAllowance)
	return b.String()
}

func (s Setting) defaults() string {
	switch {
	case s.Required:
		return "required"
	case s.standard == "":
		return "none"
	}
	text := "`" + s.standard + "`"
	for _, other := range []string{s.replayer, s.desk, s.collector} {
		if other != "" {
			text += ", `" + other + "`"
		}
	}
	return text
}

// owners are the programs that it belongs to.
func (s Setting) owners() string {
	if len(s.Programs) == 0 {
		return "all"
	}
	names := make([]string, len(s.Programs))
	for i, p := range s.Programs {
		names[i] = "`" + string(p) + "`"
	}
	return strings.Join(names, ", ")
}

// emptied are the settings that mean something where they are empty.
func emptied() string {
	var names []string
	for _, s := range Table() {
		if s.keepNull {
			names = append(names, "`"+s.Name+"` ("+s.empty+")")
		}
	}
	return strings.Join(names[:len(names)-1], ", ") + " and\n  " + names[len(names)-1]
}
