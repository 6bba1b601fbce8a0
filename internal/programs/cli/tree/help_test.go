package tree

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/democmd"
	"docket/internal/service/config"
)

// commandTree returns all commands, each by its words; those that hold others are groups.
func commandTree(t *testing.T) (all, groups [][]string) {
	t.Helper()
	root := (&tree{Call: frame.New(cli.Env{Program: config.Desk}, frame.Options{Programs: programs(), Demo: democmd.Command()})}).root()
	root.InitDefaultCompletionCmd("x")
	var walk func(c *cobra.Command, words []string)
	walk = func(c *cobra.Command, words []string) {
		all = append(all, words)
		if c.HasSubCommands() {
			groups = append(groups, words)
		}
		for _, sub := range c.Commands() {
			walk(sub, append(slices.Clone(words), sub.Name()))
		}
	}
	walk(root, nil)
	return all, groups
}

// unwell are words that no help has: they are not plain English.
var unwell = regexp.MustCompile(`(?i)\b(mend|anew|whoever|of ours|goes on|stands|lies|for ever|for the sake|is no|whose|nobody)\b`)

func TestHelp_OfEveryCommand(t *testing.T) {
	t.Parallel()
	all, groups := commandTree(t)
	if len(all) < 30 || len(groups) < 5 {
		t.Fatalf("%d commands, %d groups", len(all), len(groups))
	}
	for _, words := range all {
		r := (&world{}).call(append(slices.Clone(words), "--help")...)
		if len(words) == 0 || words[0] != "desk" { // its help is in package desk
			golden(t, strings.Join(append([]string{"help"}, words...), "_")+".txt", r.out)
		}
		group := slices.ContainsFunc(groups, func(g []string) bool { return slices.Equal(g, words) }) && strings.Join(words, " ") != "archive"
		last := append([]string{""}, words...)[len(words)]
		if !group && last != "desk" && last != "demo" && !strings.Contains(r.out, "\nSettings (environment):\n") && !strings.Contains(r.out, "\nIt needs no settings") {
			t.Errorf("%v does not say what it connects to", words)
		}
		if !group && last != "desk" && last != "demo" && strings.Contains(r.out, "\nSettings (environment):\n") != strings.Contains(r.out, "\nExit codes:\n  0  ") &&
			last != "classify" {
			t.Errorf("%v does not say what its exit codes mean", words)
		}
		for line := range strings.Lines(r.out) {
			if n := utf8.RuneCountInString(line); n > 101 && !isProgram(words) || unwell.MatchString(line) {
				t.Errorf("%v: %d columns: %s", words, n-1, line)
			}
		}
		for _, args := range [][]string{append(slices.Clone(words), "--help"), append([]string{"help"}, words...)} {
			if r := (&world{}).call(args...); r.code != 0 && r.code != 7 || r.err != "" || r.out == "" { // 7: the daemon of these tests
				t.Errorf("%v: exit %d\n%s%s", args, r.code, r.out, r.err)
			}
		}
	}
}

// isProgram says if words are a program with a command line of its own. Its page has lines for a shell, which are not broken.
func isProgram(words []string) bool {
	return len(words) == 1 && slices.ContainsFunc(programs(), func(p frame.Program) bool { return p.Name == words[0] })
}

// TestUse_CheckedBeforeSettings: of every command, so that a slip is told as such where nothing is set up yet.
func TestUse_CheckedBeforeSettings(t *testing.T) {
	t.Parallel()
	wrong := map[string][]string{
		"archive":         {"", "--day x", "--older-than 90", "--older-than 90d --day 2026-08-01", "--older-than 90d", "--older-than 90d --operator mara", "x"},
		"archive list":    {"x", ""},
		"archive days":    {"x", "-n 0", "--before x"},
		"archive forget":  {"", "x", "2026-08-01", "2026-08-01 --reason r", "2026-08-01 2026-08-02 --dry-run"},
		"archive verify":  {"", "--day x", "--day 2026-08-01 --all", "--all"},
		"check":           {"x", "--bogus"},
		"classify":        {"", "--bogus"},
		"context add":     {"", "a b", "a/b --server https://desk", "a", "a --server desk", "a --server http://desk", "a --server https://desk --token-file x --token-stdin"},
		"context list":    {"x"},
		"context remove":  {"", "a b", "missing"},
		"context use":     {"", "a b", "missing"},
		"config validate": {"x", "consume dsk", "--bogus"},
		"config print":    {"", "x", "consume desk", "--bogus"},
		"completion bash": {"x"}, "completion zsh": {"x"}, "completion fish": {"x"}, "completion powershell": {"x"},
		"diff":           {"", "a", "a b c", "a b --at-a x", "a b --at-b x"},
		"dlq edit":       {"", "a b", "a0a0a0", "a0a0a0 --operator mara", "a0 --file x --yes --operator mara --reason x", "a0a0a0 --wait --detach"},
		"dlq approve":    {"", "1 2", "x", "0", "7", "7 --operator mara", "7 --operator mara --reason x", "7 --wait --detach"},
		"dlq assign":     {"", "mara", "mara a0a0a0", "mara a0a0a0 --group 8d0e --operator o --reason x", "mara a0 --operator o --reason x"},
		"dlq snooze":     {"", "a0a0a0", "a0a0a0 --until x", "a0a0a0 --until 2020-01-01", "a0a0a0 --until 1d --off", "a0a0a0 --group 8d0e --until 1d", "a0a0a0 --until 1d --operator o"},
		"dlq reopen":     {"", "a0a0a0", "a0a0a0 --operator o", "a0 --operator o --note x"},
		"dlq rules list": {"x", "--bogus"}, "dlq rules approve": {"", "x", "7", "7 --operator o"}, "dlq rules remove": {"", "x", "7", "7 --operator o"},
		"dlq rules add": {"", "x --group 8d0e", "retry", "retry --group 8d0e", "retry --group 8d0e --until x", "retry --group 8d0e --until 1d", "retry --group 8d0e --until 1d --operator o"},
		"jobs approve":  {"", "x", "1", "1 --operator o"},
		"dlq audit":     {"x", "-n 0", "--since nonsense", "--act x", "--before x", "--group 8d0e"},
		"dlq groups":    {"x", "--since nonsense", "--state x", "--fingerprint xyz1"},
		"dlq list":      {"x", "--since nonsense", "--limit 0", "--all --limit 5", "--kind x"},
		"dlq proposals": {"x", "1 2", "1 --all"},
		"dlq reject":    {"", "x", "7", "7 --operator mara"},
		"dlq resolve":   {"", "a0a0a0", "a0 --note x", "--all", "--all --note x", "--since nonsense --note x", "--state RESOLVED --note x"},
		"dlq retry":     {"", "a0a0a0", "a0", "--all", "--all --operator mara", "--since nonsense", "--state RESOLVED --dry-run", "a0a0a0 --rate 5", "a0 --dry-run"},
		"dlq show":      {"", "a", "a b"},
		"dlq surplus":   {"x", "--enter x", "--enter 1", "--enter 1 --operator mara", "--reason x"},
		"health":        {"x", "--bogus"},
		"help":          {"bogus"},
		"jobs list":     {"x", "--limit 0"},
		"jobs resume":   {"", "x", "1"},
		"jobs show":     {"", "x", "1 2"},
		"jobs stop":     {"", "x", "1"},
		"logs":          {"--since nonsense", "--since 1h --until 2h", "a b", "a --denied", "-f --until 1h", "-n 0", "--match x", "--every 2s"},
		"migrate":       {"x", "--bogus"},
		"report":        {"x", "--bogus"},
		"restore":       {"", "--day x", "--day 2026-08-01", "--day 2026-08-01 --operator mara"},
		"settings":      {"x"},
		"state":         {"", "a b", "a -n 0", "a --path="},
		"flips":         {"x", "-n 0", "--every 2s", "--since nonsense", "--subject="},
		"topics create": {"x", "--bogus", "--partitions 0", "--replication x"},
		"stats":         {"x", "--since nonsense", "--by x", "--step x", "-n 0"},
		"verify":        {"x", "--since nonsense", "--from x", "--from a/b/c", "--spool="},
		"version":       {"x"},
		"where-is":      {"", "a b", "a --since nonsense"},
		"why":           {"", "a b", "a --at x", "a --neighbours 51", "a --subject x"},
		"desk":          nil, // in package desk
		"demo":          {"x", "--bogus", "--records 1"},
		"consume run":   {"x", "--bogus"}, "consume demo": {"x", "--bogus", "--records 1"}, "consume check": {"x", "--bogus"},
		"consume migrate": {"x", "--bogus"}, "consume verify": {"x", "--since nonsense"}, "consume where-is": {"", "a b"}, "consume classify": {"", "--bogus"},
		"consume health": {"x"}, "consume version": {"x"},
		"replay run": {"x", "--bogus"}, "replay health": {"x"}, "replay version": {"x"},
		"collect run": {"x", "--once"}, "collect check": {"x", "--bogus"}, "collect health": {"x"}, "collect version": {"x"},
	}
	all, groups := commandTree(t)
	for _, words := range all {
		name := strings.Join(words, " ")
		_, there := wrong[name]
		if group := slices.ContainsFunc(groups, func(g []string) bool { return slices.Equal(g, words) }) && name != "archive"; !there && !group {
			t.Errorf("no wrong use of %q is tried", name)
		}
		for _, more := range wrong[name] {
			w := &world{bare: true, book: newBook()}
			r := w.call(append(slices.Clone(words), strings.Fields(more)...)...)
			if r.code != cli.Misuse || strings.Contains(r.err, "DATABASE_URL") || !strings.Contains(r.err, "--help.\n") || r.out != "" {
				t.Errorf("%s %s: exit %d\n%s%s", name, more, r.code, r.out, r.err)
			}
		}
	}
}

func TestHelp_OfACommandThatThereIsNot(t *testing.T) {
	t.Parallel()
	_, groups := commandTree(t)
	for _, words := range groups {
		for _, args := range [][]string{{"bogus", "--help"}, {"--help", "bogus"}, {"bogus", "-h"}, {"bogus"}, {"bogus", "--since", "1h"}} {
			args = append(slices.Clone(words), args...)
			want := `unknown command "` + strings.Join(append(slices.Clone(words), "bogus"), " ") + `"`
			if isProgram(words) {
				want = "docket " + words[0] + `: unknown command "bogus"`
			}
			if r := (&world{}).call(args...); r.code != cli.Misuse || !strings.Contains(r.err, want) || r.out != "" {
				t.Errorf("%v: exit %d\n%s%s", args, r.code, r.out, r.err)
			}
		}
	}
	for args, want := range map[string]string{
		"dlq lst --help": "did you mean list?", "help dlq lst": "did you mean list?", "dlq help lst": "did you mean list?", "lgs --help": "did you mean logs?",
		"help dlq list x": `unexpected argument "x"`, "archive lst": "did you mean list?", "completion zhs": "did you mean zsh?",
	} {
		if r := (&world{}).call(strings.Fields(args)...); r.code != cli.Misuse || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit %d\n%s%s", args, r.code, r.out, r.err)
		}
	}
}
