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
	if r := s.Range(); r != "" {
		text += " [" + r + "]"
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

Every setting is an environment variable. This page is written by a test from the table that the programs parse, so it
is never out of date.

- Durations as Go writes them (` + "`500ms`, `10s`, `1h30m`" + `), sizes with a unit (` + "`512MiB`, `64KiB`, `1GiB`, `10MB`, `100B`" + `),
  booleans ` + "`true` or `false`" + `, lists by comma.
- A variable that is set but empty counts as not set; only ` + emptied() + ` mean something then.
- A secret can also come from a file: put its path into the variable with ` + "`_FILE`" + ` behind the name. Line ends at the
  end of the file are not part of the secret.
- Wrong settings are all named at once, one line each on standard error, and the program ends with 2. So do settings that
  contradict each other, and variables that are a slip of the pen away from a setting. Other unknown variables that begin
  with ` + "`DOCKET_`" + ` are ignored with a warning: Kubernetes sets some beside a Service called docket.
- A setting that belongs to some of the programs is neither read nor judged by the others.
- Where the programs differ, the replayer's default stands behind the consumer's, then the desk's, then the collector's.
`)
	group := ""
	for _, s := range Table() {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n## %s\n\n| variable | default | unit | range | of | what it is |\n|---|---|---|---|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", s.Name, s.defaults(), s.Unit, s.Range(), s.owners(), strings.ReplaceAll(s.Text, "|", "\\|"))
	}
	fmt.Fprintf(&b, `
## What has to agree

- The four topics differ from each other, and so do the three groups.
- `+"`DOCKET_KAFKA_SESSION_TIMEOUT`"+` is shorter than `+"`DOCKET_KAFKA_REBALANCE_TIMEOUT`"+`.
- The retry budget fits into 80%% of `+"`DOCKET_KAFKA_REBALANCE_TIMEOUT`"+`, so that a batch reaches its homes before the group
  gives its partition to somebody else. It is the number of tries (one more than there are `+"`DOCKET_RETRY_PAUSES`"+`) times
  `+"`DOCKET_STORE_TIMEOUT`"+`, plus the pauses, plus `+"`DOCKET_PUBLISH_TIMEOUT`"+`, plus %v for the spool.
- So does `+"`DOCKET_SHUTDOWN_TIMEOUT`"+`, which also is how long the batch in hand may go on when its partition is revoked.
- `+"`DOCKET_PARKING_BACKOFF`"+` is at most `+"`DOCKET_PARKING_MAX_BACKOFF`"+`, `+"`DOCKET_PARKING_LOOKAHEAD`"+` at least `+"`DOCKET_BATCH_MAX_RECORDS`"+`,
  `+"`DOCKET_SPOOL_MAX_BYTES`"+` at least `+"`DOCKET_BATCH_MAX_BYTES`"+`.
- A login needs mechanism, user and password. A client certificate needs its key, and certificates are of use only with
  `+"`DOCKET_KAFKA_TLS=true`"+`.
- `+"`DOCKET_DESK_RETRY_KINDS`"+` names kinds of failure, and never `+"`decode`"+`; `+"`DOCKET_DESK_RETRY_BACKOFF`"+` is at most
  `+"`DOCKET_DESK_RETRY_MAX_BACKOFF`"+`.
- The API's certificate needs its key, an API that listens beyond loopback needs both, and client certificates need TLS and
  names in `+"`DOCKET_DESK_API_CLIENTS`"+`.
- The collector listens for uploads and for its own state at two addresses. Beyond loopback its uploads need a certificate with
  its key (or `+"`DOCKET_COLLECTOR_PLAINTEXT=true`"+`) and somebody who may upload: tokens or client certificates (or
  `+"`DOCKET_COLLECTOR_ANONYMOUS=true`"+`). `+"`DOCKET_COLLECTOR_INFLATED_BYTES`"+` is at least `+"`DOCKET_COLLECTOR_UPLOAD_BYTES`"+`, and
  `+"`DOCKET_COLLECTOR_MEMORY`"+` at least both together.
- `+"`DOCKET_ARCHIVE_S3_ACCESS_KEY`"+` and `+"`DOCKET_ARCHIVE_S3_SECRET_KEY`"+` come together.

## Traces

OpenTelemetry's own variables switch traces on and are not settings of Docket: `+"`OTEL_EXPORTER_OTLP_ENDPOINT`"+` (off without it) and those beside it, see
[tracing.md](tracing.md).
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
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
