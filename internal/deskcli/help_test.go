package deskcli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"docket/internal/cli"
)

// tree are all commands, each by its words; those that hold others are groups.
func tree(t *testing.T) (all, groups [][]string) {
	t.Helper()
	s := &session{}
	root := s.root()
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

func TestHelp_OfEveryCommand(t *testing.T) {
	t.Parallel()
	all, groups := tree(t)
	if len(all) < 30 || len(groups) < 5 {
		t.Fatalf("%d commands, %d groups", len(all), len(groups))
	}
	for _, words := range all {
		for _, args := range [][]string{append(slices.Clone(words), "--help"), append([]string{"help"}, words...)} {
			if r := (&world{}).call(args...); r.code != 0 && r.code != 7 || r.err != "" || r.out == "" { // 7: the daemon of these tests
				t.Errorf("%v: exit %d\n%s%s", args, r.code, r.out, r.err)
			}
		}
	}
}

func TestHelp_OfACommandThatThereIsNot(t *testing.T) {
	t.Parallel()
	_, groups := tree(t)
	for _, words := range groups {
		for _, args := range [][]string{{"bogus", "--help"}, {"--help", "bogus"}, {"bogus", "-h"}, {"bogus"}, {"bogus", "--since", "1h"}} {
			args = append(slices.Clone(words), args...)
			want := `there is no command "` + strings.Join(append(slices.Clone(words), "bogus"), " ") + `"`
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
