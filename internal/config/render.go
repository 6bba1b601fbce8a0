package config

import (
	"fmt"
	"strings"
)

// Help is the table as --help shows it: a heading per group, and for every setting its default, its range and its
// sentence, within width columns.
func Help(p Program, width int) string {
	var b strings.Builder
	group := ""
	for _, s := range Table() {
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
- A variable that is set but empty counts as not set; ` + "`DOCKET_SPOOL_DIR`" + ` alone means something then.
- A secret can also come from a file: put its path into the variable with ` + "`_FILE`" + ` behind the name. Line ends at the
  end of the file are not part of the secret.
- Wrong settings are all named at once, one line each on standard error, and the program ends with 2. So do settings that
  contradict each other, and variables that are a slip of the pen away from a setting. Other unknown variables that begin
  with ` + "`DOCKET_`" + ` are ignored with a warning: Kubernetes sets some beside a Service called docket.
- Where the two programs differ, the replayer's default stands behind the consumer's.
`)
	group := ""
	for _, s := range Table() {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n## %s\n\n| variable | default | unit | range | what it is |\n|---|---|---|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Name, s.defaults(), s.Unit, s.Range(), strings.ReplaceAll(s.Text, "|", "\\|"))
	}
	fmt.Fprintf(&b, `
## What has to agree

- The four topics differ from each other, and so do the two groups.
- `+"`DOCKET_KAFKA_SESSION_TIMEOUT`"+` is shorter than `+"`DOCKET_KAFKA_REBALANCE_TIMEOUT`"+`.
- The retry budget fits into 80%% of `+"`DOCKET_KAFKA_REBALANCE_TIMEOUT`"+`, so that a batch reaches its homes before the group
  gives its partition to somebody else. It is the number of tries (one more than there are `+"`DOCKET_RETRY_PAUSES`"+`) times
  `+"`DOCKET_STORE_TIMEOUT`"+`, plus the pauses, plus `+"`DOCKET_PUBLISH_TIMEOUT`"+`, plus %v for the spool.
- So does `+"`DOCKET_SHUTDOWN_TIMEOUT`"+`, which also is how long the batch in hand may go on when its partition is revoked.
- `+"`DOCKET_PARKING_BACKOFF`"+` is at most `+"`DOCKET_PARKING_MAX_BACKOFF`"+`, `+"`DOCKET_PARKING_LOOKAHEAD`"+` at least `+"`DOCKET_BATCH_MAX_RECORDS`"+`,
  `+"`DOCKET_SPOOL_MAX_BYTES`"+` at least `+"`DOCKET_BATCH_MAX_BYTES`"+`.
- A login needs mechanism, user and password. A client certificate needs its key, and certificates are of use only with
  `+"`DOCKET_KAFKA_TLS=true`"+`.
`, SpoolAllowance)
	return b.String()
}

func (s Setting) defaults() string {
	switch {
	case s.Required:
		return "required"
	case s.standard == "":
		return "none"
	case s.replayer != "":
		return "`" + s.standard + "`, `" + s.replayer + "`"
	}
	return "`" + s.standard + "`"
}
