//go:build !nodemo

package democmd

import (
	"bytes"
	"strings"
	"testing"

	"docket/internal/programs/cli"
	"docket/internal/service/config"
)

func TestDemo_WrongUse(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{"--records 5": 2, "--records x": 2, "--unknown": 2, "more": 2, "--help": 0} {
		var out, errs bytes.Buffer
		if got := Command().Do(cli.Env{Program: config.Consumer, Stdout: &out, Stderr: &errs}, strings.Fields(args)); got != want {
			t.Errorf("%s: status %d", args, got)
		}
		for _, hidden := range []string{"plant-loss", "no-desk"} {
			if strings.Contains(out.String()+errs.String(), hidden) {
				t.Errorf("%s shows the hidden flag %s", args, hidden)
			}
		}
		if help, hint := strings.Contains(out.String(), "Usage:\n  consumer demo"), strings.Contains(errs.String(), "See consumer demo --help."); help != (want == 0) || hint == help {
			t.Errorf("%s: %s%s", args, out.String(), errs.String())
		}
	}
}
