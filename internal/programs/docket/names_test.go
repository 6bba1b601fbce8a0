package docket

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/term"
)

// answer is what a call ends with.
type answer struct {
	Code     int
	Out, Err string
}

func callAs(called string, environ []string, signals <-chan os.Signal, args ...string) answer {
	var out, errs bytes.Buffer
	code := Main(called, cli.Env{Args: args, Environ: environ, Stdout: &out, Stderr: &errs, Signals: signals}, strings.NewReader(""), term.Terminal{})
	return answer{code, out.String(), errs.String()}
}

// settings are those of a program whose servers do not answer.
var settings = []string{
	"DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_DATABASE_URL=postgres://u:p@127.0.0.1:1/x?sslmode=disable&connect_timeout=1", "DOCKET_SPOOL_DIR=",
	"DOCKET_HTTP_ADDR=127.0.0.1:0", "DOCKET_COLLECTOR_ADDR=127.0.0.1:0", "DOCKET_SHUTDOWN_TIMEOUT=2s",
}

// wrongSettings are refused by each program.
var wrongSettings = []string{
	"DOCKET_DATABASE_URL=mysql://u:p@db/x", "DOCKET_LOG_LEVEL=loud", "DOCKET_KAFKA_TOPIC=a/b", "DOCKET_COLLECTOR_TOKENS=x", "DOCKET_HTTP_ADDR=x",
}

// TestNames_LinkAndCommand calls each program by its link and as a command of docket. Both do the same, apart from the name that they say.
func TestNames_LinkAndCommand(t *testing.T) {
	t.Parallel()
	type use struct {
		args    string
		environ []string
		code    int
	}
	common := []use{
		{"", wrongSettings, cli.Misuse}, {"run", wrongSettings, cli.Misuse}, {"run --help", nil, cli.Done}, {"run -h", nil, cli.Done}, {"run -help", nil, cli.Done},
		{"--help", nil, cli.Done}, {"-h", nil, cli.Done}, {"-help", nil, cli.Done}, {"help", nil, cli.Done}, {"help run", nil, cli.Done}, {"--help run", nil, cli.Done},
		{"help help", nil, cli.Done}, {"help --help", nil, cli.Done}, {"help run health", nil, cli.Misuse}, {"help bogus", nil, cli.Misuse},
		{"bogus", nil, cli.Misuse}, {"bogus --help", nil, cli.Misuse}, {"helth", nil, cli.Misuse}, {"x", nil, cli.Misuse}, {"--", wrongSettings, cli.Misuse},
		{"--bogus", nil, cli.Misuse}, {"-o", nil, cli.Misuse}, {"run --bogus", nil, cli.Misuse}, {"run x", nil, cli.Misuse}, {"run -- x", nil, cli.Misuse},
		{"version", nil, cli.Done}, {"--version", nil, cli.Done}, {"-version", nil, cli.Done}, {"version -json", nil, cli.Done}, {"version --json", nil, cli.Done},
		{"version --json=true", nil, cli.Done}, {"version --json=maybe", nil, cli.Misuse}, {"version --jsno", nil, cli.Misuse}, {"version x --json", nil, cli.Misuse},
		{"version --help --json=maybe", nil, cli.Done}, {"version -- --json", nil, cli.Misuse}, {"--version x", nil, cli.Misuse},
		{"health", []string{"DOCKET_HTTP_ADDR=127.0.0.1:1"}, cli.Failed}, {"health", []string{"DOCKET_HTTP_ADDR=x"}, cli.Misuse}, {"health x", nil, cli.Misuse},
		{"health --help", nil, cli.Done}, {"help health", nil, cli.Done},
	}
	for _, c := range []struct {
		link, command string
		more          []use
	}{
		{"consumer", "consume", []use{
			{"", nil, cli.Misuse}, {"run", nil, cli.Misuse}, {"--once", nil, cli.Misuse}, {"check", nil, cli.Misuse}, {"check --jsno", nil, cli.Misuse}, {"check --help", nil, cli.Done},
			{"chekc", nil, cli.Misuse}, {"migrate", settings, cli.Failed}, {"migrate x", nil, cli.Misuse}, {"migrate --help", nil, cli.Done}, {"classify 23514", nil, cli.Done},
			{"classify 40001 too_large --json", nil, cli.Done}, {"classify --json too_large", nil, cli.Done}, {"classify nonsense", nil, cli.Failed}, {"classify", nil, cli.Misuse},
			{"classify -- --json", nil, cli.Failed}, {"classify --help", nil, cli.Done}, {"verify --help", nil, cli.Done}, {"verify", nil, cli.Misuse},
			{"verify --since", nil, cli.Misuse}, {"verify --since x", nil, cli.Misuse}, {"verify --from a/b/c", nil, cli.Misuse}, {"verify --sincee 1h", nil, cli.Misuse},
			{"where-is", nil, cli.Misuse}, {"where-is a b", nil, cli.Misuse}, {"where-is a --since x", nil, cli.Misuse}, {"where-is --help", nil, cli.Done},
			{"demo --help", nil, cli.Done}, {"demo x", nil, cli.Misuse}, {"demo --bogus", nil, cli.Misuse}, {"help check", nil, cli.Done}, {"help where-is", nil, cli.Done},
		}},
		{"parking-replayer", "replay", []use{
			{"", nil, cli.Misuse}, {"--once", nil, cli.Misuse}, {"-once", nil, cli.Misuse}, {"run --once", nil, cli.Misuse}, {"run --once --help", nil, cli.Done}, {"--onec", nil, cli.Misuse},
			{"--once=x", nil, cli.Misuse}, {"check", nil, cli.Misuse}, {"demo", nil, cli.Misuse}, {"migrate", nil, cli.Misuse},
		}},
		{"collector", "collect", []use{
			{"--once", nil, cli.Misuse}, {"check --help", nil, cli.Done}, {"check -json=x", nil, cli.Misuse}, {"check", wrongSettings, cli.Misuse},
			{"classify 23514", nil, cli.Misuse}, {"migrate", nil, cli.Misuse}, {"demo", nil, cli.Misuse},
		}},
	} {
		for _, u := range append(common, c.more...) {
			args := strings.Fields(u.args)
			t.Run(c.link+" "+u.args, func(t *testing.T) {
				t.Parallel()
				link := callAs("/usr/local/bin/"+c.link, u.environ, nil, args...)
				command := callAs("docket", u.environ, nil, append([]string{c.command}, args...)...)
				command.Out = strings.ReplaceAll(command.Out, "docket "+c.command, c.link)
				command.Err = strings.ReplaceAll(command.Err, "docket "+c.command, c.link)
				if link.Code != u.code || (u.code == cli.Misuse) && link.Err == "" {
					t.Errorf("exit %d, want %d\n%s%s", link.Code, u.code, link.Out, link.Err)
				}
				if diff := cmp.Diff(link, command); diff != "" {
					t.Errorf("docket %s %s does something else (-%s):\n%s", c.command, u.args, c.link, diff)
				}
			})
		}
	}
}

// TestNames_Signal stops each program, though its servers do not answer.
func TestNames_Signal(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"consumer", "parking-replayer", "collector", "docket consume", "docket replay", "docket collect", "docket desk"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			signals := make(chan os.Signal, 1)
			signals <- syscall.SIGTERM
			words := strings.Fields(call)
			if got := callAs(words[0], settings, signals, words[1:]...); got.Code != cli.Done {
				t.Errorf("exit %d\n%s", got.Code, got.Err)
			}
		})
	}
}
