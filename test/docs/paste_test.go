package docs

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These find what people paste: blocks of shell, and words in backquotes.
var (
	shell      = regexp.MustCompile("(?ms)^ *```(?:sh|bash|cron)\n(.*?)^ *```$")
	limit      = regexp.MustCompile(`--add-config \S*\b(?:retention\.(?:ms|bytes)|max\.message\.bytes)=[0-9]`)
	sameForAll = regexp.MustCompile(`--topic [^\s:]+(?::\d+(?:,\d+)+)?\s(?:[^\n]*\s)?--to-offset `)
	moment     = regexp.MustCompile(`--(?:since|until)[ =]'?([0-9][^\s'` + "`" + `|,;)]*)`)
	momentRead = regexp.MustCompile(`^(?:[0-9.]+(?:ms|[smhdw])(?:[0-9.]+[smh])*|\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))?)$`)
	variable   = regexp.MustCompile(`\$\{?([A-Z][A-Z_]+)`)
)

// pasted returns the commands of a page.
func pasted(text string) string {
	var all strings.Builder
	for _, m := range shell.FindAllStringSubmatch(text, -1) {
		all.WriteString(strings.ReplaceAll(m[1], "\\\n", " "))
	}
	for _, span := range spans.FindAllString(fenced.ReplaceAllString(text, ""), -1) {
		all.WriteString(strings.Trim(span, "`") + "\n")
	}
	return all.String()
}

// A number that is pasted into the settings of a topic can be lower than the present one. Kafka then deletes records, or
// refuses more of them.
func TestPaste_NoNumberLowersALimit(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, command := range limit.FindAllString(pasted(read(t, page)), -1) {
			t.Errorf("%s: %q sets a number that can be lower than the present one", page, command)
		}
	}
	if !limit.MatchString("kafka-configs.sh --alter --add-config retention.ms=2592000000") || limit.MatchString("--add-config retention.ms=-1,retention.bytes=-1") {
		t.Error("it cannot tell a number from no limit")
	}
}

// --to-offset sets one number for each partition that is named. Offsets differ, so decisions of some would be skipped.
func TestPaste_OffsetOfOnePartition(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, command := range sameForAll.FindAllString(pasted(read(t, page)), -1) {
			t.Errorf("%s: %q sets one offset for several partitions", page, command)
		}
	}
	for command, want := range map[string]bool{
		"--group b --topic t:16,17 --reset-offsets --to-offset 5 --execute": true,
		"--topic t --reset-offsets --to-offset 5":                           true,
		"--topic t:16 --reset-offsets --to-offset 5 --execute":              false,
		"--topic t --reset-offsets --to-latest --execute":                   false,
	} {
		if sameForAll.MatchString(command) != want {
			t.Errorf("%q: want %v", command, want)
		}
	}
}

// A time is one that the commands read: an age, a day or RFC 3339.
func TestPaste_TimesAreRead(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		for _, m := range moment.FindAllStringSubmatch(read(t, page), -1) {
			if !momentRead.MatchString(m[1]) {
				t.Errorf("%s: %s is a time that no command reads", page, m[0])
			}
		}
	}
	for text, want := range map[string]bool{"14:00": false, "2h": true, "1h30m": true, "7d": true, "2026-11-22": true, "2026-11-22T10:00:00Z": true, "2026-11-22 10:00": false} {
		if momentRead.MatchString(text) != want {
			t.Errorf("%s: want %v", text, want)
		}
	}
}

// Nobody who pastes the commands of an installation has variables that the page does not set or explain.
func TestPaste_VariablesAreSet(t *testing.T) {
	t.Parallel()
	const page = "docs/install.md"
	text := read(t, page)
	files := read(t, "deploy/systemd/docket.env")
	for _, m := range variable.FindAllStringSubmatch(pasted(text), -1) {
		set := regexp.MustCompile(`(?m)(?:^|\s|;)` + m[1] + `=|` + "`" + m[1] + "`")
		if !set.MatchString(text) && !set.MatchString(files) {
			t.Errorf("%s uses $%s, which it does not set", page, m[1])
		}
	}
}

// systemd reads the drop-ins of a unit by name, and a LoadCredential= without a value takes out what came before. That of
// the desk's role must not take out those of `systemctl edit`, which is override.conf.
func TestPaste_RoleBeforeOverride(t *testing.T) {
	t.Parallel()
	const page = "docs/install.md"
	files := regexp.MustCompile(`(?s)cat >(\S+\.service\.d/\S+\.conf) <<'UNIT'\n(.*?)\nUNIT\n`).FindAllStringSubmatch(read(t, page), -1)
	if len(files) == 0 {
		t.Fatalf("%s writes no drop-in", page)
	}
	for _, m := range files {
		if slices.Contains(strings.Split(m[2], "\n"), "LoadCredential=") && path.Base(m[1]) > "override.conf" {
			t.Errorf("%s: %s is read after override.conf, and takes out its credentials", page, m[1])
		}
	}
}

// cron has no settings but those that its line exports, and a short PATH.
func TestPaste_CronExportsSettings(t *testing.T) {
	t.Parallel()
	const page = "docs/archive.md"
	text := pasted(read(t, page))
	line := regexp.MustCompile(`(?m)^[0-9]+ [0-9]+ \* \* \* \S+ +(.*)$`).FindStringSubmatch(text)
	if line == nil {
		t.Fatalf("%s has no line for cron", page)
	}
	if !strings.HasPrefix(line[1], "set -a && . ") || !strings.Contains(text, "\nPATH=/usr/local/bin:") {
		t.Errorf("%s: %q has neither settings nor a PATH with docket", page, line[1])
	}
}
