package tree

import (
	"strings"
	"testing"

	"docket/internal/programs/cli"
)

// TestGeneralFlags_EmptyOrTwice: a variable of a script that is not set must not choose the desk that a command changes. Nor
// may a flag of an alias.
func TestGeneralFlags_EmptyOrTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no server":      {[]string{"--server", "", "dlq", "list"}, "--server is empty"},
		"no context":     {[]string{"dlq", "list", "--context="}, "--context is empty"},
		"no token":       {[]string{"dlq", "list", "--server", "https://desk.example", "--token-file", ""}, "--token-file is empty"},
		"no authorities": {[]string{"dlq", "list", "--ca-file="}, "--ca-file is empty"},
		"no settings":    {[]string{"consume", "--config", ""}, "--config is empty"},
		"two servers":    {[]string{"--server", "https://a.example", "dlq", "list", "--server=https://b.example"}, `--server has two values, "https://a.example" and "https://b.example"`},
		"two contexts":   {[]string{"--context", "a", "dlq", "list", "--context", "b"}, `--context has two values`},
		"two files":      {[]string{"--config=a", "settings", "--config=b"}, `--config has two values`},
		"two colours":    {[]string{"--color", "never", "settings", "--color=always"}, `--color has two values`},
		"two formats":    {[]string{"-o", "json", "settings", "-ocsv"}, `-o has two values, "json" and "csv"`},
		"long and short": {[]string{"--output=json", "settings", "-o", "csv"}, `-o has two values, "json" and "csv"`},
		"two long":       {[]string{"--output=json", "settings", "--output", "csv"}, `--output has two values`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{book: jobbed()}
			if r := w.call(c.args...); r.code != cli.Misuse || r.out != "" || !strings.Contains(r.err, c.says) {
				t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
			}
		})
	}
	for _, args := range []string{"--color never settings --color=never", "-ojson settings --output=json -o json"} {
		if r := (&world{}).call(strings.Fields(args)...); r.code != cli.Done {
			t.Errorf("%s: exit %d, %s", args, r.code, r.err)
		}
	}
}
